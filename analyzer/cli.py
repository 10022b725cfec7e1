"""The command line: parses, calls one function, prints what it returns.

No work is done here, and nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from typing import Any

import click

from analyzer.cli_capture import proxy, run
from analyzer.cli_errors import explained
from analyzer.cli_live import doctor, watch
from analyzer.cli_options import (
    analysis_options,
    check_options,
    key_file_option,
    load_early,
    no_text_option,
    text_or_json,
)
from analyzer.cli_traces import export, import_

IN_ORDER_OF_USE = (
    "doctor",
    "proxy",
    "run",
    "watch",
    "report",
    "show",
    "compare",
    "verify",
    "share",
    "export",
    "import",
    "list",
)


class _Program(click.Group):
    """The commands; whatever they say on stderr is redacted, tracebacks and click's own messages too."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which a newcomer needs them, not the alphabet's."""
        return sorted(super().list_commands(ctx), key=IN_ORDER_OF_USE.index)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command line."""
        from store.messages import stderr_redacted

        with stderr_redacted():
            try:
                return super().main(*args, **kwargs)
            except Exception:
                traceback.print_exc()  # here: the interpreter would print it past the redaction
                sys.exit(1)


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="prompt-locality", prog_name="locality")
def main() -> None:
    """Show where a coding agent's prompts lose the server's KV cache, and in which field.

    \b
    Put the proxy in front of a vLLM server, point the agent at it, then read the report:
      locality proxy --upstream http://127.0.0.1:8000 --capture session.sqlite
      OPENAI_BASE_URL=http://127.0.0.1:8900/v1 your-agent
      locality report session.sqlite

    `locality doctor URL` says first what the server hides, and which flag reveals it.
    """


@main.command(short_help="Report how much of each prompt was reusable, and what lost it.")
@click.argument("capture")
@analysis_options
@click.option(
    "--pool-sweep",
    is_flag=True,
    help="Show this capture's hit rate at other pool sizes too: half of today's, double, without limit, and"
    " what a prompt that only appends would give. For servers with a pool of blocks.",
)
@click.option(
    "--format",
    "form",
    default="text",
    show_default=True,
    metavar="FORMAT",
    help="See `locality list reports`.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write there instead of to stdout.",
)
@no_text_option
@check_options
@explained
def report(capture: str, form: str, output: Path | None, *, no_text: bool, **chosen: Any) -> None:
    """Report how much of each prompt the server could reuse, and where and why the rest was lost.

    Every turn is compared with the turn before it in its own conversation. Token counts are held
    against those the server reported; the second line says how many agree. The findings come last, the
    dearest first, each with what it alone costs and what to do; `locality show` tells one turn in depth.
    Exit status: 0 done, 1 it failed or nothing could be rendered, 2 wrong usage, 3 --fail-under or
    --baseline did not hold.

    \b
    As a check in an agent's own tests:
      locality report good.sqlite --format json -o baseline.json
      locality report new.sqlite --baseline baseline.json --tolerance 2 --fail-under 80
    """
    load_early(chosen["tokenizer"])
    from analyzer import reporting
    from analyzer.pipeline import Options

    checks = reporting.Checks(**{name: chosen.pop(name) for name in ("fail_under", "baseline", "tolerance")})
    options = Options(**chosen)
    sys.exit(reporting.run_report(capture, options, form=form, output=output, no_text=no_text, checks=checks))


@main.command(short_help="Show one turn in depth, both sides of where it diverges.")
@click.argument("capture")
@click.argument("exchange")
@analysis_options
@text_or_json
@no_text_option
@explained
def show(capture: str, exchange: str, form: str, *, no_text: bool, **chosen: Any) -> None:
    """Show one turn in depth: EXCHANGE is an id of `locality report`, such as 7.

    Told are its parent, the tokens of both prompts around the first that differs, with the blocks they
    lie in, and cause after cause what restoring the parent's value brings back. 7#1 is the second
    prompt of a body that holds several. Token ids are known without a tokenizer where the server sent them.
    Exit status: 0 done, 1 it failed or there is no such exchange, 2 wrong usage.
    """
    load_early(chosen["tokenizer"])
    from analyzer import showing
    from analyzer.pipeline import Options

    sys.exit(showing.run_show(capture, exchange, Options(**chosen), form=form, no_text=no_text))


@main.command(short_help="Compare two captures of the same task.")
@click.argument("capture_a", metavar="A")
@click.argument("capture_b", metavar="B")
@analysis_options
@text_or_json
@explained
def compare(capture_a: str, capture_b: str, form: str, **chosen: Any) -> None:
    """Compare two captures of the same task: two clients, two versions or two settings.

    Side by side stand turns, prompt tokens, the share that is reusable, and what each cause cost; the
    first lines say which is better and by how much. Options hold for both. No prompt text is printed.
    Exit status: 0 done, 1 it failed or nothing of one could be rendered, 2 wrong usage.
    """
    load_early(chosen["tokenizer"])
    from analyzer import comparing
    from analyzer.pipeline import Options

    sys.exit(comparing.run_compare((capture_a, capture_b), Options(**chosen), form=form))


@main.command(short_help="Verify a capture, and its renderings against the server's.")
@click.argument("capture")
@click.option("--server", metavar="URL", help="The server whose /render is asked, with the captured bytes.")
@click.option("--tokenizer", metavar="DIR|NAME", help="As for `locality report`.")
@click.option(
    "--renderer",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Whose renderings are verified. auto: the best local one; a named one fails hard.",
)
@explained
def verify(capture: str, **chosen: Any) -> None:
    """Verify that a capture is whole, and that renderings made here are the server's.

    Everything stored is read back. Every prompt is rendered here and compared, token by token, with what
    --server renders from the same bytes, with the ids its response carried, and with the counts it
    reported. Exit status: 0 all that was compared agrees, 1 it could not be done, 2 wrong usage, 3 a check
    did not hold.
    """
    from analyzer import verifying
    from analyzer.pipeline import Options

    sys.exit(verifying.run_verify(capture, Options(**chosen)))


main.add_command(proxy)
main.add_command(run)
main.add_command(export)
main.add_command(import_)
main.add_command(doctor)
main.add_command(watch)


@main.command(short_help="Make a copy without prompt text, proved to give the same numbers.")
@click.argument("capture")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    required=True,
    metavar="FILE",
    help="A new file: .sqlite or .json, captures like any other; .html, the report as one page.",
)
@analysis_options
@key_file_option
@explained
def share(capture: str, output: Path, *, key_file: Path | None, **chosen: Any) -> None:
    """Make a copy of CAPTURE that holds no prompt text, proved to give the same numbers.

    The copy is analysed, and every number compared; searched for any text of the original; attacked with
    the original's own words; and what leaves this machine is told. If a step does not hold, the file is
    removed. Exit status: 0 done, 1 it failed, 2 wrong usage, 3 a step did not hold.
    """
    load_early(chosen["tokenizer"])
    from analyzer import sharing
    from analyzer.pipeline import Options

    sys.exit(sharing.run_share(capture, output, Options(**chosen), key_file=key_file))


@main.command("list")
@click.argument(
    "what",
    type=click.Choice(["renderers", "dialects", "engines", "causes", "exports", "imports", "reports"]),
)
@explained
def list_plugins(what: str) -> None:
    """List the plug-ins of a kind, with what each is for."""
    from analyzer.registry import describe

    # Why less was reused than could be: where prompts part, and where they do not.
    kinds = ("causes", "residuals") if what == "causes" else (what,)
    rows = [row for kind in kinds for row in describe(kind)]
    width = max(len(name) for name, _ in rows) + 2
    for name, purpose in rows:
        click.echo(f"{name:<{width}}{purpose}")
