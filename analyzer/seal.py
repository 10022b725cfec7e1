"""Seals exchanges: reads and places each prompt as any analysis does, and keeps of it what holds no text.

Where exchanges come from and where the sealed parts go is the caller's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from pathlib import PurePath
from typing import Any, Protocol

from analyzer.core import Rendering
from analyzer.keyed_chain import KeyedChain, key_name
from analyzer.pipeline import Options, make_placer, make_reader
from analyzer.prompts import PromptReader
from analyzer.replies import read_reply
from analyzer.sealed_facts import bare_facts
from analyzer.sealed_overlap import CHAIN
from analyzer.sealed_reading import BASIS, PROMPT
from analyzer.sealed_rows import RowSealer
from analyzer.sealed_secrets import SECRETS, secrets_of
from analyzer.segments import segments_of
from analyzer.servers import ServerProfile, TokenizerFacts, model_config, read_profile, read_settings
from analyzer.settings import ServerSettings
from analyzer.structure import Sealer
from analyzer.token_lengths import TokenLengths
from analyzer.tokens import Tokenizer
from analyzer.vocabulary import Keys
from store.db import Capture
from store.records import Exchange
from store.sealed import Part

REQUEST, RESPONSE, SEGMENTS = "request", "response", "segments"
"""Kinds of sealed parts: structures of bodies, a prompt's segment map."""

SEALED_KINDS = (PROMPT, BASIS, REQUEST, RESPONSE, CHAIN, SEGMENTS, SECRETS)

_ANY_BLOCK_SIZE = 16
"""Blocks are counted again by whoever reads a sealed capture."""

_PLAIN = re.compile(r"[^/\s]{1,200}")
_OF_ITS_MAKER = frozenset(("_name_or_path", "name_or_path", "id2label", "label2id", "auto_map"))


class Source(Protocol):
    """Where exchanges with their bodies are."""

    def exchange(self, exchange_id: int) -> Exchange:
        """An exchange by its id."""

    def secret_kinds(self) -> Collection[str]:
        """The kinds of all secrets that were found so far."""


class ExchangeSealer:
    """Seals exchanges one after another, in the order of their start.

    `source` gives an exchange once more by its id, with its bodies; `key` is that of all fingerprints.
    """

    def __init__(self, reader: PromptReader, source: Source, known_names: frozenset[str], key: bytes) -> None:
        self._reader = reader
        self._source = source
        self._placer = make_placer(source.exchange, reader, _ANY_BLOCK_SIZE, explain=True)
        self._sealer = Sealer(key, self._count)
        self._keys = Keys(self._sealer.name)
        self._rows = RowSealer(known_names, self._keys)
        self._chain = KeyedChain(key)
        self._lengths = _lengths(reader.tokenizer)

    def seal(self, exchange: Exchange) -> list[Part]:
        """What a sealed capture keeps of an exchange."""
        parts = [
            _part(exchange.id, REQUEST, 0, self._structure(exchange.request.content)),
            _part(exchange.id, RESPONSE, 0, self._structure(exchange.response.content) or _counts(exchange)),
        ]
        for prompt in self._reader.read(exchange):
            placed = self._placer.place(prompt)
            parts.append(_part(exchange.id, PROMPT, prompt.index, self._rows.row(placed)))
            if placed.prompt.rendering is not None:
                parts += self._of_tokens(exchange, placed.prompt.index, placed.prompt.rendering)
        if counted := secrets_of(exchange, self._source.secret_kinds(), self._keys):
            parts.append(_part(exchange.id, SECRETS, 0, counted))
        return parts

    def _of_tokens(self, exchange: Exchange, index: int, rendering: Rendering) -> Iterator[Part]:
        ids = rendering.token_ids
        yield Part(exchange_id=exchange.id, kind=CHAIN, number=index, content=self._chain.links(ids))
        if self._lengths is not None:
            job, _ = self._reader.sourced_job(exchange, index)
            found = segments_of(job, ids, rendering.source, self._lengths, self._keys)
            if found is not None:
                yield _part(exchange.id, SEGMENTS, index, found)

    def _structure(self, content: bytes) -> Any:
        """A body without its text; None where it is no JSON object."""
        try:
            body = json.loads(content)
            return self._sealer.seal(body) if isinstance(body, dict) else None
        except (ValueError, RecursionError):
            return None

    def _count(self, text: str) -> int | None:
        tokenizer = self._reader.tokenizer
        return None if tokenizer is None else len(tokenizer.encode_apart([text])[0])


def _counts(exchange: Exchange) -> dict[str, Any]:
    """What is left of a stream: how it ended, and the server's counts."""
    reply = read_reply(exchange)
    return {
        "outcome": reply.outcome,
        "usage": asdict(reply.usage),
        "answers": [
            {"finish": answer.finish, "tool_calls": len(answer.tool_calls)} for answer in reply.answers
        ],
    }


def _lengths(tokenizer: Tokenizer | None) -> TokenLengths | None:
    try:
        return None if tokenizer is None else TokenLengths(tokenizer.directory)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def seal_capture(source: Capture, target: Capture, options: Options, key: bytes) -> None:
    """Seal all that an open capture holds into one that is sealed and empty. Raises as `analyze` does."""
    facts = source.facts()
    profile, settings = read_profile(facts), read_settings(facts, options.serve_command)
    reader, _ = make_reader(options, profile, settings)
    sealer = ExchangeSealer(reader, source, names_of(profile, settings), key)
    target.save_facts(bare_facts(facts))
    target.copy_runs(source.runs())
    target.save_sealed([basis_part(profile, reader.tokenizer, key)])
    for exchange in source.exchanges():
        target.copy_sealed(exchange)
        target.save_sealed(sealer.seal(exchange))


def names_of(profile: ServerProfile, settings: ServerSettings) -> frozenset[str]:
    """The names that the server goes by, which are no client's."""
    own = {profile.model, settings.model, *settings.served_model_name}
    return frozenset(name for name in own | profile.adapters | {*settings.lora_modules} if name)


def basis_part(profile: ServerProfile, tokenizer: TokenizerFacts | None, key: bytes) -> Part:
    """What is told of the key, the tokenizer and the model beside it; of a folder its own name alone."""
    told = {
        "tokenizer": None if tokenizer is None else PurePath(tokenizer.directory).name,
        "backend": None if tokenizer is None else tokenizer.backend,
        "config": _bare_config(model_config(profile, tokenizer) or {}),
        "secrets_counted": True,
        "key": key_name(key),
    }
    return _part(None, BASIS, 0, told)


def _part(exchange_id: int | None, kind: str, number: int, content: Any) -> Part:
    data = json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")
    return Part(exchange_id=exchange_id, kind=kind, number=number, content=data)


def _bare_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """A model's configuration without paths and sentences."""
    return {
        key: _bare_config(value) if isinstance(value, Mapping) else value
        for key, value in config.items()
        if key not in _OF_ITS_MAKER and _is_plain(value)
    }


def _is_plain(value: Any) -> bool:
    if isinstance(value, str):
        return bool(_PLAIN.fullmatch(value))
    return not isinstance(value, list) or all(map(_is_plain, value))
