"""Captures to seal, and what is asked of their sealed copies."""

from __future__ import annotations

from pathlib import Path

from analyzer.pipeline import Options, analyze
from analyzer.report import Report
from analyzer.seal import seal_capture
from store.db import Capture

KEY = bytes(range(32))


def sealed_copy(source: Path, target: Path, options: Options) -> Path:
    """A sealed copy of an open capture."""
    with (
        Capture.open(str(source)) as opened,
        Capture.create_or_open(str(target), redaction="sealed") as copy,
    ):
        seal_capture(opened, copy, options, KEY)
    return target


def report_of(path: Path, options: Options) -> Report:
    """The report on a capture."""
    with Capture.open(str(path)) as capture:
        return analyze(capture, options).report
