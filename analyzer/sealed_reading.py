"""Reads a sealed capture: its prompts as they were placed when it was sealed.

It renders nothing: there is no text. What was not sealed before its proxy was killed is a row that says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from analyzer.core import Reply
from analyzer.prompts import Prompt, ReadExchange
from analyzer.reading import Request, dialect_of
from analyzer.sealed_rows import read_row
from analyzer.turns import Placed
from store.db import Capture
from store.errors import CaptureError
from store.records import Exchange
from store.sealed import POLICY

PROMPT, BASIS = "prompt", "basis"
"""Kinds of sealed parts: a placed prompt; what is told of the tokenizer."""

NOT_SEALED = "the proxy ended before this was sealed: only its times and sizes are known"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldTokenizer:
    """What a sealed capture tells of the tokenizer it was sealed with (`servers.TokenizerFacts`)."""

    directory: PurePath
    backend: str
    model_config: Mapping[str, Any] = field(default_factory=dict)


def is_sealed(capture: Capture) -> bool:
    """Whether a capture holds no text."""
    return capture.redaction == POLICY


def read_tokenizer(capture: Capture) -> ToldTokenizer | None:
    """The tokenizer it was sealed with, None where there was none. Raises CaptureError where damaged."""
    try:
        told = [json.loads(part.content) for part in capture.sealed(BASIS)][-1:]
        return next((_told(item) for item in told if item["tokenizer"] is not None), None)
    except (ValueError, KeyError, TypeError) as error:
        raise CaptureError(f"what the capture tells of its tokenizer is damaged: {error}") from error


def _told(item: Mapping[str, Any]) -> ToldTokenizer:
    return ToldTokenizer(
        directory=PurePath(item["tokenizer"]), backend=item["backend"], model_config=item["config"]
    )


def read_placed(capture: Capture, block_size: int) -> list[Placed]:
    """Every prompt in the order of its start. Raises CaptureError where a row is damaged."""
    exchanges = {exchange.id: exchange for exchange in capture.exchanges()}
    parents: dict[tuple[int, int], Prompt] = {}
    placed: dict[int, list[Placed]] = defaultdict(list)
    try:
        # As they were written: a parent's row comes before its child's.
        for part in capture.sealed(PROMPT):
            row = read_row(json.loads(part.content), exchanges[part.exchange_id or 0], parents, block_size)
            parents[row.prompt.key] = row.prompt
            placed[row.prompt.key[0]].append(row)
    except (ValueError, KeyError) as error:
        raise CaptureError(f"the sealed capture is damaged: {error}") from error
    return list(_in_order(exchanges, placed))


def _in_order(exchanges: Mapping[int, Exchange], placed: Mapping[int, list[Placed]]) -> Iterator[Placed]:
    for exchange in exchanges.values():
        yield from placed.get(exchange.id) or [not_sealed(exchange)]


def not_sealed(exchange: Exchange) -> Placed:
    """The row of an exchange of which nothing was sealed."""
    dialect = dialect_of(exchange.path)
    source = ReadExchange(
        exchange=exchange,
        request=Request(dialect=dialect.name if dialect else exchange.path.rpartition("/")[2]),
        reply=Reply(outcome="done" if exchange.ended == "complete" else exchange.ended),
        prompt_count=0,
    )
    return Placed(
        prompt=Prompt(
            source=source, index=0, conversation=None, rendering=None, verdict=None, problem=NOT_SEALED
        )
    )
