"""Which tokens of a prompt came from which field: the segment map of a sealed prompt.

A token that reaches over the end of a field belongs to both. Without text nothing finer can be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from analyzer.core import Span, TokenIds
from analyzer.renderers import Job, RenderFailed
from analyzer.rendering import FROM_SERVER, render_text
from analyzer.sourced import plain, spans_of
from analyzer.token_lengths import TokenLengths, char_offsets
from analyzer.vocabulary import Keys

type Segment = tuple[str | None, int, int]
"""A field's path, and the first token that holds some of it, and the one behind its last."""


def segments_of(
    job: Job, token_ids: TokenIds, source: str, lengths: TokenLengths, keys: Keys
) -> list[Segment] | None:
    """The segments of a prompt rendered here; None where tokens cannot be matched to its text."""
    if source in FROM_SERVER:
        return None
    try:
        text = render_text(job)
        chars = char_offsets(plain(text))
    except (RenderFailed, UnicodeEncodeError):
        return None
    starts = lengths.offsets(token_ids, int(chars[-1]))
    if starts is None:
        return None
    return [
        (
            keys.path(path),
            int(np.searchsorted(starts, chars[first], side="right")) - 1,
            int(np.searchsorted(starts, chars[end], side="left")),
        )
        for path, first, end in _runs(spans_of(text))
    ]


def _runs(spans: tuple[Span, ...]) -> Iterator[tuple[str, int, int]]:
    """Spans that follow each other from the same field, as one."""
    for path, group in groupby(spans, key=lambda span: span.path):
        found = list(group)
        yield path, found[0].char_start, found[-1].char_end
