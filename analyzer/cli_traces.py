"""The commands that hand captures on to other tools and take theirs: `export` and `import`.

No work is done here, and nothing heavy is imported before a command needs it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from analyzer.cli_errors import explained
from analyzer.cli_options import analysis_options, import_options, load_early, output_option


@click.command(short_help="Write a capture as a trace that others replay, without text.")
@click.argument("capture")
@click.option("--format", "form", required=True, metavar="NAME", help="See `locality list exports`.")
@output_option
@analysis_options
@explained
def export(capture: str, form: str, output: Path | None, **chosen: Any) -> None:
    """Write a capture as a trace that others replay: counts, times and block numbers, no text.

    Blocks are cut from the tokens to the format's own size, whatever the server's is. What a format
    needs and the capture does not tell is left out, and said on stderr.
    Exit status: 0 done, 1 it failed or no prompt could be exported, 2 wrong usage.
    """
    load_early(chosen["tokenizer"])
    from analyzer import exporting
    from analyzer.pipeline import Options

    sys.exit(exporting.run_export(capture, Options(**chosen), form=form, output=output))


@click.command("import", short_help="Make a capture of a HAR, mitmproxy's flows or JSON lines.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--format", "form", required=True, metavar="NAME", help="See `locality list imports`.")
@click.option("-o", "--output", required=True, metavar="CAPTURE", help="The capture to make: a new one.")
@click.option(
    "--dialect",
    metavar="NAME",
    help="What bodies of jsonl are that do not say theirs; see `locality list dialects`."
    " Default: told from each body's shape.",
)
@import_options
@explained
def import_(
    file: Path,
    form: str,
    output: str,
    *,
    dialect: str | None,
    redact: str,
    tokenizer: str | None,
    key_file: Path | None,
) -> None:
    """Make a capture of what others recorded: a HAR, mitmproxy's flows, or JSON lines of bodies.

    Secrets are replaced as the proxy does, and text as it does with --redact sealed, which needs
    --tokenizer. Exit status: 0 done, 1 a part could not be read (what could be is kept) or CAPTURE is there
    already, 2 wrong usage.
    """
    from analyzer import importing

    source = importing.source(file, dialect, _read_flows)
    sealing = None
    if redact == "sealed":
        if tokenizer is None:
            raise click.UsageError(
                "--redact sealed counts tokens before anything is written: give --tokenizer"
            )
        sealing = importing.Sealing(tokenizer=tokenizer, key_file=key_file)
    elif key_file is not None:
        raise click.UsageError("--key-file is for --redact sealed")
    sys.exit(importing.run_import(source, output, form=form, sealing=sealing))


def _read_flows(path: Path) -> Any:
    """Only the proxy's room knows mitmproxy."""
    from proxy.flows import read_flows

    return read_flows(path)
