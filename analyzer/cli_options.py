"""Options that several commands take, or that one takes many of: what they are called and what they say.

Nothing is decided here; what a value means is told where it is used.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

type Option = Callable[[Any], Any]


def _with[F: Callable[..., Any]](command: F, *options: Option) -> F:
    for option in reversed(options):  # as decorators above each other: the first is listed first
        command = option(command)
    return command


def _serve_command(what_becomes_of_it: str) -> Option:
    return click.option(
        "--serve-command",
        metavar="LINE",
        help="The line that starts the server, quoted whole: it tells the chat template, its defaults, the"
        f" tokenizer and the cache's sizes. {what_becomes_of_it}",
    )


UPSTREAM_OPTIONS = ("upstream", "keep_host", "ca_file", "insecure")
"""What `proxy_options` gives that is said of the server."""

key_file_option = click.option(
    "--key-file",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Keep the key of a sealed capture's fingerprints there, or take the one in there: captures with the"
    " same key can be compared. Without it the key is gone with the program.",
)


redact_options: tuple[Option, ...] = (
    click.option(
        "--redact",
        type=click.Choice(["secrets", "sealed"]),
        default="secrets",
        show_default=True,
        help="What never reaches disk. secrets: credentials, wherever they stand (see SECURITY.md)."
        " sealed: all text of prompts and answers; the tokens are counted before anything is written.",
    ),
    click.option(
        "--tokenizer",
        metavar="DIR|NAME",
        help="As for `locality report`; --redact sealed needs it while it records.",
    ),
    key_file_option,
)
"""What is left out of what is written, and what that takes."""


def proxy_options[F: Callable[..., Any]](command: F) -> F:
    """What is recorded and where: for `proxy` and `run`."""
    return _with(
        command,
        click.option(
            "--upstream", required=True, metavar="URL", help="The server, such as http://127.0.0.1:8000."
        ),
        click.option(
            "--keep-host",
            is_flag=True,
            help="Pass on the Host header as the client sent it. Default: it names the server.",
        ),
        click.option(
            "--cacert",
            "ca_file",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="The authorities (PEM) that may vouch for an https server. Default: the system's.",
        ),
        click.option(
            "--insecure",
            is_flag=True,
            help="Do not check the certificate of an https server: whoever stands in between can read and"
            " change everything.",
        ),
        click.option(
            "--capture",
            default="capture.sqlite",
            show_default=True,
            metavar="FILE",
            help="Where to record: a file (mode 0600) or a SQLAlchemy URL. Added to if it is there.",
        ),
        *redact_options,
        _serve_command("Kept with the capture."),
    )


def listen_options[F: Callable[..., Any]](command: F) -> F:
    """Where the proxy listens, and who may use it."""
    return _with(
        command,
        click.option(
            "--listen",
            default="127.0.0.1:8900",
            show_default=True,
            metavar="HOST:PORT",
            help="Port 0 takes a free one. An address that other machines reach needs --allow-remote.",
        ),
        click.option(
            "--allow-remote",
            is_flag=True,
            help="Let other machines in that have the token: of --token-file, of the variable LOCALITY_TOKEN,"
            " or a new one, told once on stderr.",
        ),
        click.option(
            "--token-file",
            type=click.Path(dir_okay=False, path_type=Path),
            metavar="FILE",
            help="Ask clients for the token in there, on loopback as well: as their API key, in the header"
            " x-locality-token, or in the base URL, /t/TOKEN/v1. A file that is missing is made (mode 0600).",
        ),
    )


def analysis_options[F: Callable[..., Any]](command: F) -> F:
    """How a capture is analysed: each is a field of `pipeline.Options`."""
    return _with(
        command,
        click.option(
            "--tokenizer",
            metavar="DIR|NAME",
            help="The served model's tokenizer folder, or its name in the local hub cache."
            " Default: where the server said it loaded it from.",
        ),
        click.option(
            "--renderer",
            default="auto",
            show_default=True,
            metavar="NAME",
            help="How prompts become tokens; see `locality list renderers`."
            " auto takes the best that works and says which; a named one fails hard.",
        ),
        _serve_command("Default: the one that was given to the proxy."),
        click.option(
            "--server",
            metavar="URL",
            help="Ask this server for the tokens: its /render gets the captured bytes, else its /tokenize."
            " Nobody is asked without it.",
        ),
        click.option(
            "--engine",
            default="auto",
            show_default=True,
            metavar="NAME",
            help="Whose cache rules predict; see `locality list engines`. auto: the kind the server says it"
            " is, else vllm.",
        ),
        click.option(
            "--block-size",
            type=click.IntRange(min=1),
            metavar="N",
            help="Tokens a KV block. Default: as the server said.",
        ),
        click.option(
            "--pool-blocks",
            type=click.IntRange(min=2),
            metavar="N",
            help="KV blocks of the server's pool. Default: as the server said.",
        ),
    )


def _number(context: click.Context, parameter: click.Parameter, value: float | None) -> float | None:
    """Refuses nan: whatever is compared with it holds, or does not, for no reason."""
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no number")
    return value


def check_options[F: Callable[..., Any]](command: F) -> F:
    """What a report is to hold: each is a field of `reporting.Checks`."""
    return _with(
        command,
        click.option(
            "--fail-under",
            type=click.FloatRange(0, 100),
            callback=_number,
            metavar="PCT",
            help="Exit with 3 if less than PCT percent of the prompt tokens are reusable.",
        ),
        click.option(
            "--baseline",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Exit with 3, and say what, if something is worse than in this report of --format json: less"
            " is reusable, fewer renderings are the server's, or a cause is new or costs more.",
        ),
        click.option(
            "--tolerance",
            type=click.FloatRange(min=0),
            callback=_number,
            default=0,
            show_default=True,
            metavar="PCT",
            help="How much worse than --baseline is still good: points of a share, per cent of a cost.",
        ),
    )


def import_options[F: Callable[..., Any]](command: F) -> F:
    """How an imported capture is written."""
    return _with(command, *redact_options)


def _file_or_folder(ctx: click.Context, option: click.Parameter, given: str | None) -> Path | None:
    """Refuse a folder that is not there: a path drops the slash, and it would become a file."""
    if given is not None and given.endswith("/") and not Path(given).is_dir():
        raise click.UsageError(f"-o {given}: there is no such folder; make it first")
    return None if given is None else Path(given)


output_option = click.option(
    "-o",
    "--output",
    callback=_file_or_folder,
    metavar="FILE",
    help="Write there instead of to stdout. A format of several files takes a folder, too.",
)

no_text_option = click.option(
    "--no-text",
    is_flag=True,
    help="Print no text of any prompt: paths, lengths, kinds and labels only, with placeholders for keys and"
    " names that the client chose.",
)

text_or_json = click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or for programs.",
)


def load_early(tokenizer: str | None) -> None:
    """Begin with what takes longest, so that it goes on while the rest is being imported."""
    if tokenizer and Path(tokenizer).is_dir():
        from analyzer.tokens import start_loading

        start_loading(Path(tokenizer))
