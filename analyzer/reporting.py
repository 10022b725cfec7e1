"""Reads a capture, analyses it, and puts the report where it was asked for: what `report` does.

Data goes to stdout or a file; progress and complaints go to stderr.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

import click

from analyzer.ledger import engine_of
from analyzer.pipeline import Options, Progress, analyze
from analyzer.registry import plugins
from analyzer.rendering import renderers
from analyzer.report import Report
from analyzer.reports import ReportForm
from analyzer.server_api import ServerApi
from analyzer.servers import ServerProfile
from analyzer.settings import note_on_ignored, parse_settings
from store.db import Capture

DONE, FAILED, CHECK_DID_NOT_HOLD = 0, 1, 3


def run_report(
    target: str, options: Options, *, form: str, output: Path | None, fail_under: float | None
) -> int:
    """Make one report; returns the exit status.

    Raises click.UsageError for a format or renderer that is none, and what `analyze` raises.
    """
    chosen = _form(form)
    check_usage(options)
    report = _analyse(target, options)
    _put(chosen, report, output)
    if form != "text":  # a text report has said it itself
        for problem in report.problems:
            print(f"locality: {problem}", file=sys.stderr)
    if report.problems and not report.summary.rendered:
        return FAILED
    return _check(report, fail_under)


def check_usage(options: Options) -> None:
    """Raises click.UsageError for an unknown renderer or engine, no server's URL, or no start line."""
    try:
        renderers(options.renderer)
        engine_of(ServerProfile(), options.engine)
        if options.server is not None:
            ServerApi(options.server)
        if options.serve_command is not None:
            parse_settings(options.serve_command)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def print_summary(target: str, options: Options) -> None:
    """The report's opening lines on stderr: a command's own output has stdout."""
    try:
        report = _analyse(target, options)
    except Exception as error:
        # The command has run and its exit status must stand, whatever is wrong with the report.
        print(f"locality: no summary: {error}", file=sys.stderr)
        return
    text = plugins("reports")["text"].format(report, width=None, color=False)
    print(*text.split("\n")[:3], *report.problems, sep="\n", file=sys.stderr)


def _form(name: str) -> ReportForm:
    forms = plugins("reports")
    if name not in forms:
        raise click.UsageError(f"--format {name}: there are {', '.join(forms)}")
    form: ReportForm = forms[name]
    return form


def _analyse(target: str, options: Options) -> Report:
    if options.serve_command is not None and (note := note_on_ignored(parse_settings(options.serve_command))):
        print(note, file=sys.stderr)
    with Capture.open(target) as capture, ProgressBar() as progress:
        return analyze(capture, options, progress)


def _put(form: ReportForm, report: Report, output: Path | None) -> None:
    if output is not None:
        output.write_text(_writable(form.format(report, width=None, color=False)), encoding="utf-8")
        return
    # COLUMNS, else the terminal's own; nothing where there is neither.
    width = shutil.get_terminal_size((0, 0)).columns or None
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(_writable(form.format(report, width=width, color=color)), end="")


def _writable(text: str) -> str:
    """The text with half a surrogate pair, which a request may name its model with, as JSON escapes it."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _check(report: Report, fail_under: float | None) -> int:
    if fail_under is None:
        return DONE
    found = report.summary.reusable_prefix_pct
    if found is not None and found >= fail_under:
        return DONE
    said = "not known: no turn has a parent" if found is None else f"{found} %"
    print(f"locality: reusable prefix {said}, less than the {fail_under} % asked for", file=sys.stderr)
    return CHECK_DID_NOT_HOLD


class ProgressBar:
    """A bar on stderr, for a person who waits at a terminal that can redraw it; silent elsewhere."""

    def __enter__(self) -> Progress:
        self._stack = ExitStack()
        if not sys.stderr.isatty():
            return lambda done, total: None  # and nothing to import for it
        from rich.console import Console
        from rich.progress import Progress as Bar

        console = Console(stderr=True)
        still = console.is_dumb_terminal or console.no_color
        bar = self._stack.enter_context(Bar(console=console, transient=True, disable=still))
        task = bar.add_task("reading", total=None)
        return lambda done, total: bar.update(task, completed=done, total=total)

    def __exit__(self, *raised: object) -> None:
        self._stack.close()
