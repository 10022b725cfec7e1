"""The commands that record: `proxy` and `run`.

No work is done here, and nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import click

from analyzer.cli_errors import explained
from analyzer.cli_options import UPSTREAM_OPTIONS, listen_options, proxy_options


@click.command()
@proxy_options
@listen_options
@explained
def proxy(listen: str, *, allow_remote: bool, token_file: Path | None, **recorded: Any) -> None:
    """Stand in front of a server and record what agents send it.

    Every response streams through as it comes. Recorded are POSTs to /v1/chat/completions,
    /v1/completions, /v1/messages and /v1/responses; everything else passes unrecorded. SIGTERM or Ctrl-C
    ends it: what is in flight may finish, the queue is written, and the counts are printed. The exit
    status is 1 if a record was lost.
    """
    upstream, recording = _upstream(recorded), _recording(**recorded)
    from analyzer import capturing

    address = _address(listen)
    access = _access(address[0], allow_remote=allow_remote, token_file=token_file)
    sys.exit(capturing.run_proxy(upstream, address, access, recording))


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    options_metavar="[OPTIONS] --",
    short_help="Run a command with its traffic recorded, then sum up.",
)
@proxy_options
@click.argument("command", metavar="COMMAND [ARG]...", nargs=-1, required=True, type=click.UNPROCESSED)
@explained
def run(command: tuple[str, ...], redact: str, **recorded: Any) -> None:
    """Run COMMAND with its traffic recorded, then print the report's summary.

    The proxy takes a free port; COMMAND finds it in OPENAI_BASE_URL, OPENAI_API_BASE,
    ANTHROPIC_BASE_URL and LOCALITY_PROXY_URL. What stands before `--` is for locality, what follows is
    COMMAND's own. The exit status is COMMAND's; 127 if it cannot be started, and 1 or 2 where the proxy
    cannot be.

    \b
      locality run --upstream http://127.0.0.1:8000 --capture session.sqlite -- your-agent --its --options
    """
    upstream, recording = _upstream(recorded), _recording(redact=redact, **recorded)
    from analyzer import capturing
    from analyzer.pipeline import Options

    options = Options(tokenizer=None if redact == "sealed" else recording.tokenizer)
    sys.exit(capturing.run_command(upstream, recording, command, options))


def _recording(*, capture: str, redact: str, key_file: Path | None, **kept: Any) -> Any:
    if key_file is not None and redact != "sealed":
        raise click.UsageError("--key-file is for --redact sealed")
    from analyzer.capturing import Recording

    return Recording(target=capture, redaction=redact, key_file=key_file, **kept)


def _upstream(options: dict[str, Any]) -> Any:
    from proxy.upstream import Upstream

    url, *said = UPSTREAM_OPTIONS
    try:
        return Upstream.parse(options.pop(url), **{name: options.pop(name) for name in said})
    except ValueError as error:
        raise click.UsageError(f"--upstream: {error}") from error


def _access(host: str, **given: Any) -> Any:
    from proxy.access import access_for

    try:
        return access_for(host, environment=os.environ, **given)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _address(listen: str) -> tuple[str, int]:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise click.UsageError(f"--listen {listen}: give HOST:PORT, such as 127.0.0.1:8900")
    return host.strip("[]") or "127.0.0.1", int(port)
