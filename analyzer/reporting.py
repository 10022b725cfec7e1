"""Reads a capture, analyses it, and puts the report where it was asked for: what `report` does.

Data goes to stdout or a file; progress and complaints go to stderr.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import click

from analyzer.baseline import Baseline, read_baseline, worsened
from analyzer.ledger import engine_of
from analyzer.no_text import without_text
from analyzer.open_capture import open_capture
from analyzer.pipeline import Analysis, Options, Progress, analyze
from analyzer.registry import plugins
from analyzer.renderers import RenderFailed
from analyzer.rendering import renderers
from analyzer.report import Report
from analyzer.reports import ReportForm
from analyzer.server_api import ServerApi
from analyzer.servers import ServerProfile
from analyzer.settings import note_on_ignored, parse_settings
from analyzer.whole_file import write_whole
from analyzer.wording import one_line
from store.engine import sqlite_path

DONE, FAILED, CHECK_DID_NOT_HOLD = 0, 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Checks:
    """What a report is to hold: so many per cent reusable, and nothing worse than in an earlier report.

    `tolerance` is in percentage points for shares, and in per cent for what a cause costs.
    """

    fail_under: float | None = None
    baseline: Path | None = None
    tolerance: float = 0


NO_CHECKS = Checks()


def run_report(
    target: str,
    options: Options,
    *,
    form: str,
    output: Path | None,
    no_text: bool = False,
    checks: Checks = NO_CHECKS,
) -> int:
    """Make one report; returns the exit status.

    Raises click.UsageError for a format, renderer or baseline that is none, and what `analyze` raises.
    """
    chosen = _form(form)
    check_usage(options)
    baseline = _baseline(checks)
    if output is not None and output.exists() and any(map(output.samefile, _read_files(target, checks))):
        raise click.UsageError(f"-o {output} is read for this report; choose another file")
    report = read_report(target, options, no_text=no_text)
    put(lambda width, color: chosen.format(report, width=width, color=color), output)
    if form != "text":  # a text report has said it itself
        for problem in report.problems:
            print(one_line(f"locality: {problem}"), file=sys.stderr)
    if report.problems and not report.summary.rendered:
        return FAILED
    return _check(report, checks, baseline)


def _read_files(target: str, checks: Checks) -> Iterator[Path]:
    """The files that a report is made from: to write into one would destroy it."""
    named = (sqlite_path(target), checks.baseline)
    yield from (Path(path) for path in named if path is not None and Path(path).exists())


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
        report = read_analysis(target, options).report
    except Exception as error:
        # The command has run and its exit status must stand, whatever is wrong with the report.
        print(one_line(f"locality: no summary: {error}"), file=sys.stderr)
        return
    text = plugins("reports")["text"].format(report, width=None, color=False)
    print(*text.split("\n")[:3], *map(one_line, report.problems), sep="\n", file=sys.stderr)


def _form(name: str) -> ReportForm:
    forms = plugins("reports")
    if name not in forms:
        raise click.UsageError(f"--format {name}: there are {', '.join(forms)}")
    form: ReportForm = forms[name]
    return form


def _baseline(checks: Checks) -> Baseline | None:
    try:
        return None if checks.baseline is None else read_baseline(checks.baseline)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def read_report(target: str, options: Options, *, no_text: bool = False) -> Report:
    """The report of a capture, with `no_text` without what was sent; so are then the errors of renderers."""
    report = read_analysis(target, options, no_text=no_text).report
    return without_text(report) if no_text else report


def read_analysis(target: str, options: Options, *, no_text: bool = False) -> Analysis:
    """The analysis of a capture, with a bar for who waits. What `no_text` hides of it is the error alone."""
    if options.serve_command is not None and (note := note_on_ignored(parse_settings(options.serve_command))):
        print(note, file=sys.stderr)
    with open_capture(target) as capture, ProgressBar() as progress:
        try:
            return analyze(capture, options, progress)
        except RenderFailed:
            if no_text:
                hidden = (
                    f"--renderer {options.renderer} failed; what it says may quote a prompt, and is not shown"
                )
                raise RenderFailed(hidden) from None
            raise


def put(text: Callable[[int | None, bool], str], output: Path | None) -> None:
    """Write a text to a file or to stdout; it is made for that width in columns, in colour or not."""
    if output is not None:
        write_whole(output, _writable(text(None, False), "utf-8"))
        return
    if sys.stdout is None:
        raise OSError("stdout is closed; give -o FILE, or leave it open")
    # COLUMNS, else the terminal's own; nothing where there is neither.
    width = shutil.get_terminal_size((0, 0)).columns or None
    dumb = os.environ.get("NO_COLOR") or os.environ.get("TERM") in ("dumb", "unknown")
    color = sys.stdout.isatty() and not dumb
    print(_writable(text(width, color), sys.stdout.encoding or "utf-8"), end="")


def _writable(text: str, encoding: str) -> str:
    """The text with what the output cannot hold escaped: half a surrogate pair, a sign in ASCII."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _check(report: Report, checks: Checks, baseline: Baseline | None) -> int:
    failures = [*_too_little(report, checks.fail_under)]
    if baseline is not None:
        failures += [
            f"worse than {checks.baseline}: {item}" for item in worsened(report, baseline, checks.tolerance)
        ]
    for failure in failures:
        print(f"locality: {failure}", file=sys.stderr)
    return CHECK_DID_NOT_HOLD if failures else DONE


def _too_little(report: Report, fail_under: float | None) -> Iterator[str]:
    found = report.summary.reusable_prefix_pct
    if fail_under is None or (found is not None and found >= fail_under):
        return
    said = "not known: no turn has a parent" if found is None else f"{found} %"
    yield f"reusable prefix {said}, less than the {fail_under} % asked for"


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
