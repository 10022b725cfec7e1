"""Holds the report on a sealed capture against the one on the open capture: every number, label and path.

Left out is what is text: sentences that may quote, the names of headers, and the tokenizer's folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from analyzer.no_text import without_text
from analyzer.notes import TEMPLATE_ERROR
from analyzer.report import Report, Turn
from analyzer.reports.json_report import as_object

_PLACEHOLDER = re.compile(r"<[^>]*>")


def differences(original: Report, sealed: Report) -> list[str]:
    """Where the two differ, a path and both values each; empty where every number is the same."""
    return list(_differences("", _numbers(original), _numbers(sealed)))


def _numbers(report: Report) -> Any:
    bare = without_text(report)
    server = replace(bare.server, tokenizer=None)
    turns = tuple(map(_without_sentences, bare.turns))
    held = replace(bare, redaction="", server=server, turns=turns, problems=(), secrets=())
    return {**as_object(held), "secrets": _secrets(bare)}


def _secrets(report: Report) -> list[tuple[str, str, str, str, int]] | None:
    """The counts by kind and place; of a place no name that a client chose."""
    if report.secrets is None:
        return None
    return sorted(
        (
            item.kind,
            item.side,
            item.part,
            _PLACEHOLDER.sub("<>", item.path if item.part == "body" else ""),
            item.count,
        )
        for item in report.secrets
    )


def _without_sentences(turn: Turn) -> Turn:
    notes = tuple(replace(note, text="") if note.label == TEMPLATE_ERROR else note for note in turn.notes)
    return replace(turn, notes=notes, problem=None if turn.problem is None else "")


def _differences(path: str, a: Any, b: Any) -> Iterator[str]:
    if isinstance(a, dict) and isinstance(b, dict):
        for key in {**a, **b}:
            yield from _differences(f"{path}.{key}".lstrip("."), a.get(key), b.get(key))
    elif isinstance(a, list | tuple) and isinstance(b, list | tuple) and len(a) == len(b):
        for at, (one, other) in enumerate(zip(a, b, strict=True)):
            yield from _differences(f"{path}[{at}]", one, other)
    elif a != b:
        yield f"{path}: {a!r} in the original, {b!r} in the copy"
