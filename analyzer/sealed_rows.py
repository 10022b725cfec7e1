"""A placed prompt as JSON without text, and back: all that a report is made from, so that numbers stay.

It seals no structure and places no prompt. Token ids are numbers of a `TokenTree`; sentences are withheld.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from analyzer.blocks import full_blocks
from analyzer.core import UNKNOWN_ID, Divergence, Finding, Generated, Rendering, Reply, TokenIds, Usage
from analyzer.divergences import Parting
from analyzer.lineage import Place
from analyzer.mismatch import Traits
from analyzer.no_text import divergence_without_text, finding_without_text, withheld
from analyzer.prompts import Prompt, ReadExchange
from analyzer.reading import Request
from analyzer.token_tree import TokenTree, as_ranges, from_ranges
from analyzer.turns import Placed, Relation
from analyzer.typed import typed
from analyzer.vocabulary import Keys, words
from store.records import Exchange

type Json = dict[str, Any]

type Parents = Mapping[tuple[int, int], Prompt]

ROW_FIELDS = words("""
    index source tokens token_source verdict problem traits generated place relation request outcome usage
    prompt_count redacted first_token_ns answered_ns body finish parent parent_tokens common_tokens append
    divergence
    findings
    """)
"""The names of a row's own members."""

EVIDENCE = "withheld: the capture is sealed, and this needs its text"

MOST_TOKENS = 1 << 26
"""Tokens of one prompt beyond which a row is not believed: it would fill the memory."""


@dataclass(slots=True, kw_only=True)
class Names:
    """Stands in for what clients named: numbers, the same for the same name. `known` are the server's own."""

    known: frozenset[str]
    _numbers: dict[str, dict[Any, int]] = field(default_factory=dict)

    def shown(self, kind: str, name: str | None) -> str | None:
        """The name where the server said it itself, else a placeholder."""
        return name if name is None or name in self.known else f"<{kind}{self.number(kind, name)}>"

    def number(self, kind: str, name: Any) -> int:
        """A number from 1 on for everything of a kind."""
        taken = self._numbers.setdefault(kind, {})
        return taken.setdefault(name, len(taken) + 1)


class RowSealer:
    """Makes rows of placed prompts, one after another in the order of their start."""

    def __init__(self, known_names: frozenset[str], keys: Keys) -> None:
        self._tree = TokenTree()
        self._keys = keys
        self._names = Names(known=known_names)

    def row(self, placed: Placed) -> Json:
        """One prompt's row."""
        prompt, rendering = placed.prompt, placed.prompt.rendering
        ids = None if rendering is None else rendering.token_ids
        return {
            "index": prompt.index,
            "source": self._source(prompt.source),
            "tokens": None if ids is None else as_ranges(self._tree.add(ids)),
            "token_source": None if rendering is None else rendering.source,
            "verdict": prompt.verdict,
            "problem": None if prompt.problem is None else withheld(prompt.problem),
            "traits": {name: True for name, value in asdict(prompt.traits).items() if value},
            "generated": [self._generated(ids, answer) for answer in prompt.generated],
            "place": None if placed.place is None else asdict(placed.place),
            "relation": None if placed.relation is None else self._relation(placed.relation),
        }

    def _source(self, source: ReadExchange) -> Json:
        request = source.request
        bare = replace(
            request,
            model=self._names.shown("model", request.model),
            cache_salt=self._names.shown("salt", request.cache_salt or None),
            conversations=(),
            problem=None,
        )
        return {
            "request": asdict(bare),
            "outcome": source.reply.outcome,
            "usage": asdict(source.reply.usage),
            "prompt_count": source.prompt_count,
            "redacted": source.redacted,
            "first_token_ns": source.first_token_ns,
            "answered_ns": source.answered_ns,
            "body": self._names.number("body", source.body_hash) if source.body_hash else 0,
        }

    def _generated(self, prompt_ids: TokenIds | None, answer: Generated) -> Json:
        ids = np.array(answer.token_ids, dtype=np.int32)
        unknown = ids == UNKNOWN_ID
        if prompt_ids is None or not len(ids):
            numbers = np.full(len(ids), UNKNOWN_ID, dtype=np.int32)
        else:
            numbers = self._tree.add(np.concatenate([prompt_ids, ids]))[len(prompt_ids) :].copy()
            numbers[unknown] = UNKNOWN_ID
        return {"tokens": as_ranges(numbers), "source": answer.source, "finish": answer.finish}

    def _relation(self, relation: Relation) -> Json:
        parting = relation.parting
        return {
            "parent": relation.parent.key,
            "parent_tokens": relation.parent_tokens,
            "common_tokens": relation.common_tokens,
            "append": parting.append,
            "divergence": None
            if parting.divergence is None
            else asdict(divergence_without_text(parting.divergence, self._keys)),
            "findings": [asdict(finding_without_text(item, self._keys)) for item in parting.findings],
            "problem": None if parting.problem is None else withheld(parting.problem),
        }


def read_row(row: Json, exchange: Exchange, parents: Parents, block_size: int) -> Placed:
    """A row as it was placed, in blocks of `block_size` tokens. Raises ValueError where it is none."""
    try:
        return _read(row, exchange, parents, block_size)
    except (KeyError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(
            f"a sealed row of exchange {exchange.id} is damaged: {type(error).__name__}"
        ) from error


def _read(row: Json, exchange: Exchange, parents: Parents, block_size: int) -> Placed:
    rendering = None
    if row["tokens"] is not None:
        told = {"token_ids": _numbers(row["tokens"]), "source": row["token_source"]}
        rendering = typed(Rendering, told)
    prompt = typed(
        Prompt,
        {
            "source": _read_source(row["source"], exchange),
            "index": row["index"],
            "conversation": None,
            "rendering": rendering,
            "verdict": row["verdict"],
            "problem": row["problem"],
            "traits": typed(Traits, row["traits"]),
            "generated": tuple(map(_read_generated, row["generated"])),
        },
    )
    place = None if row["place"] is None else typed(Place, row["place"])
    relation = None if row["relation"] is None else _read_relation(row["relation"], parents, block_size)
    return Placed(prompt=prompt, place=place, relation=relation)


def _read_generated(answer: Json) -> Generated:
    ids = tuple(_numbers(answer["tokens"]).tolist())
    return typed(Generated, {"token_ids": ids, "source": answer["source"], "finish": answer["finish"]})


def _numbers(ranges: list[list[int]]) -> TokenIds:
    if sum(count for _, count in ranges) > MOST_TOKENS or any(count < 0 for _, count in ranges):
        raise ValueError("a sealed row has more tokens than any prompt")
    return from_ranges((first, count) for first, count in ranges)


def _read_source(source: Json, exchange: Exchange) -> ReadExchange:
    known = ("prompt_count", "redacted", "first_token_ns", "answered_ns")
    return typed(
        ReadExchange,
        {
            **{name: source[name] for name in known},
            "exchange": exchange,
            "request": typed(Request, {**source["request"], "conversations": ()}),
            "reply": typed(Reply, {"outcome": source["outcome"], "usage": typed(Usage, source["usage"])}),
            "body_hash": source["body"],
        },
    )


def _read_relation(relation: Json, parents: Parents, block_size: int) -> Relation:
    exchange_id, index = relation["parent"]
    parting = typed(
        Parting,
        {
            "append": relation["append"],
            "divergence": _read_divergence(relation["divergence"], block_size),
            "findings": tuple(_read_finding(item, block_size) for item in relation["findings"]),
            "problem": relation["problem"],
        },
    )
    counts = {name: relation[name] for name in ("parent_tokens", "common_tokens")}
    return typed(Relation, {"parent": parents[exchange_id, index], "parting": parting, **counts})


def _read_divergence(found: Json | None, block_size: int) -> Divergence | None:
    if found is None:
        return None
    return typed(Divergence, {**found, "block": found["token"] // block_size})


def _read_finding(found: Json, block_size: int) -> Finding:
    token, tokens = found["token"], found["tokens"]
    blocks = None
    if tokens is not None:
        blocks = full_blocks(token + tokens, block_size) - full_blocks(token, block_size)
    return typed(Finding, {**found, "blocks": blocks, "evidence": EVIDENCE})
