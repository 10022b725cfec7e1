"""Opens a capture for reading, in whatever form it came: a database, or the JSON of `locality share`.

It reads nothing of it yet but the form.
"""

from __future__ import annotations

from pathlib import Path

from analyzer.sealed_json import SCHEMA, from_json
from store.db import Capture
from store.engine import sqlite_path
from store.errors import CaptureError


def open_capture(target: str) -> Capture:
    """An existing capture; raises CaptureError where it is missing, none, damaged or of another version."""
    path = sqlite_path(target)
    if path is None or not _is_json(Path(path)):
        return Capture.open(target)
    try:
        return from_json(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise CaptureError(f"{path} is no capture of schema {SCHEMA}: {error}") from error


def _is_json(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(1) == b"{"
