"""The command line: parses, calls one function, prints what it returns.

No work is done here, and nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

FAILED, WRONG_USAGE, CHECK_DID_NOT_HOLD = 1, 2, 3
INTERRUPTED = 130


def explained[**P, R](command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors a user can do something about into one message and exit status 1; Ctrl-C into 130."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            from analyzer.renderers import RenderFailed
            from analyzer.tokens import TokenizerError
            from store.engine import CaptureError

            try:
                return command(*args, **kwargs)
            except (CaptureError, TokenizerError, RenderFailed, OSError) as error:
                raise click.ClickException(str(error)) from error
        except KeyboardInterrupt:
            click.echo("locality: interrupted", err=True)
            sys.exit(INTERRUPTED)

    return guarded


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="prompt-locality", prog_name="locality")
def main() -> None:
    """Show where a coding agent's prompts lose the server's KV cache, and in which field.

    \b
    Put the proxy in front of a vLLM server, point the agent at it, then read the report:
      locality proxy --upstream http://127.0.0.1:8000 --capture session.sqlite
      OPENAI_BASE_URL=http://127.0.0.1:8900/v1 your-agent
      locality report session.sqlite
    """


def _serve_command(what_becomes_of_it: str) -> Callable[..., Any]:
    return click.option(
        "--serve-command",
        metavar="LINE",
        help="The line that starts the server, quoted whole: it tells the chat template, its defaults, the"
        f" tokenizer and the cache's sizes. {what_becomes_of_it}",
    )


def _proxy_options[F: Callable[..., Any]](command: F) -> F:
    options = (
        click.option(
            "--upstream", required=True, metavar="URL", help="The server, such as http://127.0.0.1:8000."
        ),
        click.option(
            "--capture",
            default="capture.sqlite",
            show_default=True,
            metavar="FILE",
            help="Where to record: a file (mode 0600) or a SQLAlchemy URL. Added to if it is there.",
        ),
        click.option(
            "--redact",
            type=click.Choice(["secrets"]),
            default="secrets",
            show_default=True,
            help="What never reaches disk. secrets: credentials, in headers, query and bodies.",
        ),
        _serve_command("Kept with the capture."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@main.command()
@_proxy_options
@click.option(
    "--listen",
    default="127.0.0.1:8900",
    show_default=True,
    metavar="HOST:PORT",
    help="Port 0 takes a free one.",
)
@explained
def proxy(upstream: str, listen: str, capture: str, redact: str, serve_command: str | None) -> None:
    """Stand in front of a server and record what agents send it.

    Every response streams through as it comes. Recorded are POSTs to /v1/chat/completions,
    /v1/completions, /v1/messages and /v1/responses; everything else passes unrecorded. SIGTERM or Ctrl-C
    ends it: what is in flight may finish, the queue is written, and the counts are printed. The exit
    status is 1 if a record was lost.
    """
    from analyzer import capturing

    recording = capturing.Recording(target=capture, redaction=redact, serve_command=serve_command)
    sys.exit(capturing.run_proxy(_upstream(upstream), _address(listen), recording))


@main.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@_proxy_options
@click.option("--tokenizer", metavar="DIR|NAME", help="As for `locality report`.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@explained
def run(
    upstream: str,
    capture: str,
    redact: str,
    *,
    tokenizer: str | None,
    serve_command: str | None,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND with its traffic recorded, then print the report's summary.

    The proxy takes a free port; COMMAND finds it in OPENAI_BASE_URL, OPENAI_API_BASE,
    ANTHROPIC_BASE_URL and LOCALITY_PROXY_URL. The exit status is COMMAND's.
    """
    from analyzer import capturing
    from analyzer.pipeline import Options

    recording = capturing.Recording(target=capture, redaction=redact, serve_command=serve_command)
    options = Options(tokenizer=tokenizer)
    sys.exit(capturing.run_command(_upstream(upstream), recording, command, options))


@main.command()
@click.argument("capture")
@click.option(
    "--tokenizer",
    metavar="DIR|NAME",
    help="The served model's tokenizer folder, or its name in the local hub cache."
    " Default: where the server said it loaded it from.",
)
@click.option(
    "--renderer",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="How prompts become tokens; see `locality list renderers`."
    " auto takes the best that works and says which; a named one fails hard.",
)
@_serve_command("Default: the one that was given to the proxy.")
@click.option(
    "--server",
    metavar="URL",
    help="Ask this server for the tokens: its /render gets the captured bytes, else its /tokenize."
    " Nobody is asked without it.",
)
@click.option(
    "--engine",
    default="auto",
    show_default=True,
    metavar="NAME",
    help="Whose cache rules predict; see `locality list engines`. auto: the kind the server says it is,"
    " else vllm.",
)
@click.option(
    "--block-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Tokens a KV block. Default: as the server said.",
)
@click.option(
    "--pool-blocks",
    type=click.IntRange(min=2),
    metavar="N",
    help="KV blocks of the server's pool. Default: as the server said.",
)
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
@click.option(
    "--fail-under",
    type=click.FloatRange(0, 100),
    metavar="PCT",
    help="Exit with 3 if less than PCT percent of the prompt tokens are reusable.",
)
@explained
def report(capture: str, form: str, output: Path | None, fail_under: float | None, **chosen: Any) -> None:
    """Report how much of each prompt the server could reuse, and where the rest was lost.

    Every turn is compared with the turn before it in its own conversation. Token counts are held
    against those the server reported; the second line says how many agree. Exit status: 0 done,
    1 it failed or nothing could be rendered, 2 wrong usage, 3 --fail-under did not hold.
    """
    folder = chosen["tokenizer"]
    if folder and Path(folder).is_dir():
        from analyzer.tokens import start_loading

        start_loading(Path(folder))  # it goes on while the rest is being imported
    from analyzer import reporting
    from analyzer.pipeline import Options

    sys.exit(
        reporting.run_report(capture, Options(**chosen), form=form, output=output, fail_under=fail_under)
    )


@main.command()
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


@main.command("list")
@click.argument("what", type=click.Choice(["renderers", "dialects", "engines", "causes", "reports"]))
def list_plugins(what: str) -> None:
    """List the plug-ins of a kind, with what each is for."""
    from analyzer.registry import describe

    for name, purpose in describe(what):
        click.echo(f"{name:<14}{purpose}")


def _upstream(url: str) -> Any:
    from proxy.serve import Upstream

    try:
        return Upstream.parse(url)
    except ValueError as error:
        raise click.UsageError(f"--upstream: {error}") from error


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen {listen}: give HOST:PORT, such as 127.0.0.1:8900")
    return host.strip("[]") or "127.0.0.1", int(port)
