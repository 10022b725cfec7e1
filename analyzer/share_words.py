"""Words that a sealed copy may hold although prompts may too: ours, the server's, the endpoints'.

They are listed from the code and from what the server said, never from what is checked.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime

from analyzer.core import Divergence, Finding, Usage
from analyzer.lineage import Place
from analyzer.mismatch import Traits
from analyzer.no_text import withheld
from analyzer.reading import Request
from analyzer.registry import plugins
from analyzer.report import Report
from analyzer.sealed_rows import EVIDENCE, ROW_FIELDS
from analyzer.share_page import own_page
from analyzer.structure_words import OWN, PLAIN_VALUES
from analyzer.sweeping import no_sweep
from store.db import Capture
from store.records import ENDPOINTS
from store.sealed import WITHHELD

_SHAPES = (Request, Usage, Traits, Place, Divergence, Finding)


def allowed_words(sealed: Capture, report: Report, *, as_page: bool) -> Iterator[bytes]:
    """All of them, as they are spelt in the copy, or in the page that is made of it."""
    yield from (word.encode() for word in _words(report))
    yield from (fact.body for fact in sealed.facts())
    yield from (part.content for part in sealed.sealed("basis"))
    yield from (statement.encode() for statement in sealed.schema())
    if as_page:
        page = own_page(report)
        yield from (text.encode() for text in (page, html.unescape(page)))
        if refused := no_sweep(plugins("engines")[report.server.engine], report.server.layout):
            yield refused.encode()


def _words(report: Report) -> Iterator[str]:
    yield from (*OWN, *ENDPOINTS, *ROW_FIELDS, EVIDENCE, WITHHELD, withheld(""))
    yield from (f'"{word}":' for word in OWN)
    yield from (value for values in PLAIN_VALUES.values() for value in values)
    yield from (field.name for shape in _SHAPES for field in fields(shape))
    for folder in ("causes", "renderers", "dialects", "engines"):
        yield from plugins(folder)
    for turn in report.turns:
        yield turn.path
        # A prompt may well tell the time at which it was sent.
        yield datetime.fromtimestamp(turn.started_at_ns / 1e9, UTC).isoformat(timespec="milliseconds")
        yield from (finding.kind for finding in turn.findings if finding.kind)
