"""The commands for while an agent works: `doctor` and `watch`.

No work is done here, and nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import sys
from typing import Any

import click

from analyzer.cli_errors import explained
from analyzer.cli_options import analysis_options, load_early, text_or_json


@click.command(short_help="Say what a server reveals and hides, with the flag to set.")
@click.argument("url", required=False)
@click.option("--upstream", metavar="URL", help="The same as the argument: the server, or a running proxy.")
@click.option(
    "--proxy",
    metavar="URL",
    help="Where an agent is to be sent: does the proxy answer there, and who points to it?",
)
@click.option(
    "--probe",
    is_flag=True,
    help="Also send two requests that generate one token each, to see what their answers carry.",
)
@text_or_json
@explained
def doctor(url: str | None, upstream: str | None, proxy: str | None, *, probe: bool, form: str) -> None:
    """Say what a server reveals and what it hides, with the flag to set; and where an agent would go.

    URL is the server's address, or a running proxy's. Asked are pages that cost it nothing; it generates
    nothing without --probe. Without a URL only this shell is looked at: which base URLs it sets, and where
    each client reads its own. No credentials are sent.
    Exit status: 0 nothing that the report needs is hidden, 1 nobody answers, 2 wrong usage, 3 something is.

    \b
      locality doctor http://127.0.0.1:8000 --probe
      locality doctor --proxy http://127.0.0.1:8900
    """
    if url and upstream and url != upstream:
        raise click.UsageError("give the address once: as the argument, or with --upstream")
    from analyzer import doctor as doctoring

    sys.exit(doctoring.run_doctor(url or upstream, proxy, probe=probe, form=form))


@click.command(short_help="Print a line for each turn while the agent works.")
@click.argument("capture")
@analysis_options
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "jsonl"]),
    default="text",
    show_default=True,
    help="A line for people, or an object a line for programs.",
)
@click.option("--new", "only_new", is_flag=True, help="Leave out what is in the capture already.")
@click.option("--once", is_flag=True, help="Print what is in the capture, and end.")
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="End when nothing has come for so long.",
)
@explained
def watch(capture: str, form: str, **chosen: Any) -> None:
    """Print a line for each turn while the agent works: reuse, blocks lost, where and why, cache hits.

    CAPTURE is the file that a proxy is writing; if it is not there yet, it is waited for. A line comes when
    its exchange is over, and says what `locality report` says of it. While a request that began earlier is
    not over, a line may change: it is marked, and printed again if it does; printed again is also what a
    restart of the server changes that is seen only later. Ctrl-C ends it with what the session adds up to.
    Exit status: 0 ended, 1 it failed or there is no tokenizer, 2 wrong usage.
    """
    load_early(chosen["tokenizer"])
    from analyzer import watching
    from analyzer.pipeline import Options

    manner = watching.Manner(
        form=form, **{name: chosen.pop(name) for name in ("only_new", "once", "until_idle")}
    )
    sys.exit(watching.run_watch(capture, Options(**chosen), manner))
