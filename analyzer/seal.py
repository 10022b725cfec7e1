"""Seals exchanges: reads and places each prompt as any analysis does, and keeps of it what holds no text.

Where exchanges come from and where the sealed parts go is the caller's business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from analyzer.pipeline import Fetch, Options, make_placer, make_reader
from analyzer.prompts import PromptReader
from analyzer.sealed_facts import bare_facts
from analyzer.sealed_reading import BASIS, PROMPT
from analyzer.sealed_rows import RowSealer
from analyzer.servers import ServerProfile, TokenizerFacts, model_config, read_profile, read_settings
from analyzer.settings import ServerSettings
from store.db import Capture
from store.records import Exchange
from store.sealed import Part

_ANY_BLOCK_SIZE = 16
"""Blocks are counted again by whoever reads a sealed capture."""

_PLAIN = re.compile(r"[^/\s]{1,200}")
_OF_ITS_MAKER = frozenset(("_name_or_path", "name_or_path", "id2label", "label2id", "auto_map"))


class ExchangeSealer:
    """Seals exchanges one after another, in the order of their start.

    `fetch` gives an exchange once more by its id, with its bodies.
    """

    def __init__(self, reader: PromptReader, fetch: Fetch, known_names: frozenset[str]) -> None:
        self._reader = reader
        self._placer = make_placer(fetch, reader, _ANY_BLOCK_SIZE, explain=True)
        self._rows = RowSealer(known_names)

    def seal(self, exchange: Exchange) -> list[Part]:
        """What a sealed capture keeps of an exchange."""
        return [
            _part(exchange.id, PROMPT, prompt.index, self._rows.row(self._placer.place(prompt)))
            for prompt in self._reader.read(exchange)
        ]


def seal_capture(source: Capture, target: Capture, options: Options) -> None:
    """Seal all that an open capture holds into one that is sealed and empty. Raises as `analyze` does."""
    facts = source.facts()
    profile, settings = read_profile(facts), read_settings(facts, options.serve_command)
    reader, _ = make_reader(options, profile, settings)
    sealer = ExchangeSealer(reader, source.exchange, names_of(profile, settings))
    target.save_facts(bare_facts(facts))
    target.save_sealed([basis_part(profile, reader.tokenizer)])
    for exchange in source.exchanges():
        target.copy_sealed(exchange)
        target.save_sealed(sealer.seal(exchange))


def names_of(profile: ServerProfile, settings: ServerSettings) -> frozenset[str]:
    """The names that the server goes by, which are no client's."""
    own = {profile.model, settings.model, *settings.served_model_name}
    return frozenset(name for name in own | profile.adapters | {*settings.lora_modules} if name)


def basis_part(profile: ServerProfile, tokenizer: TokenizerFacts | None) -> Part:
    """What a report tells of the tokenizer and of the model beside it; of a folder its own name alone."""
    told = {
        "tokenizer": None if tokenizer is None else PurePath(tokenizer.directory).name,
        "backend": None if tokenizer is None else tokenizer.backend,
        "config": _bare_config(model_config(profile, tokenizer) or {}),
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
