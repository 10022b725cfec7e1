"""The analysis from a capture to a report, in the order in which the data goes.

Each step is another file's; here they are only put in line. Nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analyzer.blocks import common_prefix
from analyzer.calibration import calibrate
from analyzer.core import TokenIds
from analyzer.divergences import DivergenceFinder, Pair, PromptKey
from analyzer.find_tokenizer import find_tokenizer
from analyzer.ledger import AUTO as AUTO_ENGINE
from analyzer.ledger import engine_of, predict
from analyzer.lineage import Lineage
from analyzer.notes import notes_of
from analyzer.prompts import Prompt, PromptReader
from analyzer.renderers import Job, unexpected
from analyzer.rendering import AUTO, prepare
from analyzer.report import Report, Turn
from analyzer.server_api import ServerApi
from analyzer.servers import ServerProfile, read_profile, read_settings, settle
from analyzer.settings import ServerSettings
from analyzer.tokens import TokenizerError, start_loading
from analyzer.turns import Placed, Relation, make_turn, summarise
from store.db import Capture

type Progress = Callable[[int, int], None]
"""Called with (exchanges done, exchanges in all)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user may say about an analysis; None: found out, or assumed and said so.

    `explain` says whether causes are looked for.
    """

    tokenizer: str | None = None
    renderer: str = AUTO
    block_size: int | None = None
    pool_blocks: int | None = None
    serve_command: str | None = None
    server: str | None = None
    engine: str = AUTO_ENGINE
    explain: bool = True


def analyze(capture: Capture, options: Options, progress: Progress = lambda done, total: None) -> Report:
    """Analyse a whole capture.

    Raises TokenizerError where the user named a tokenizer that cannot be used, ValueError for an unknown
    renderer, what is no server's URL or no start line, RenderFailed where a renderer was named and fails.
    Anything wrong with a single exchange is a sentence on its row.
    """
    facts = capture.facts()
    profile, settings = read_profile(facts), read_settings(facts, options.serve_command)
    engine = engine_of(profile, options.engine)
    reader, missing = make_reader(options, profile, settings)
    server = settle(
        profile,
        settings,
        block_size=options.block_size,
        pool_blocks=options.pool_blocks,
        tokenizer=reader.tokenizer,
        engine=engine.name,
    )
    placed = _place_all(capture, reader, server.block_size, progress, explain=options.explain)
    adapters = profile.adapters | set(settings.lora_modules)
    predicted = predict(engine, (item.prompt for item in placed), server, adapters)
    rows = [make_turn(item, server.block_size, predicted.get(item.prompt.name)) for item in placed]
    rows = [replace(row, notes=notes) for row, notes in zip(rows, notes_of(placed), strict=True)]
    turns = calibrate(rows, {item.prompt.key: item.prompt.traits for item in placed})
    return Report(
        exchanges=len({turn.id for turn in turns}),
        redaction=capture.redaction,
        server=server,
        summary=summarise(turns),
        turns=turns,
        problems=tuple(_problems(turns, missing, reader.server)),
    )


def _problems(turns: tuple[Turn, ...], missing: str | None, server: ServerApi | None) -> Iterator[str]:
    if missing and any(turn.prompt_tokens is None for turn in turns):
        yield missing
    for failure, times in server.failures.items() if server else ():
        yield f"the server was asked in vain ({times} times): {failure}"


def make_reader(
    options: Options, profile: ServerProfile, settings: ServerSettings
) -> tuple[PromptReader, str | None]:
    """The reader, and what to say where there is no tokenizer. Raises as `analyze` does."""
    server = None if options.server is None else ServerApi(options.server)
    tokenizer, missing = None, None
    try:
        loading = start_loading(find_tokenizer(options.tokenizer, profile, settings))
        prepare(options.renderer)
        tokenizer = loading.result()
    except TokenizerError as error:
        if options.tokenizer is not None:
            raise
        prepare(options.renderer)
        missing = str(error)
    reader = PromptReader(
        tokenizer,
        choice=options.renderer,
        missing=missing,
        settings=settings,
        max_model_len=profile.max_model_len or settings.max_model_len,
        server=server,
    )
    return reader, missing


def _place_all(
    capture: Capture, reader: PromptReader, block_size: int, progress: Progress, *, explain: bool
) -> list[Placed]:
    """Every prompt in the order of its start, with its parent and where it leaves it."""

    def read_again(key: PromptKey, body: Any | None) -> tuple[Job, Any]:
        return reader.sourced_job(capture.exchange(key[0]), key[1], body)

    placer = _Placer(DivergenceFinder(read_again, block_size, explain=explain))
    total = capture.counts().exchanges
    placed: list[Placed] = []
    for done, exchange in enumerate(capture.exchanges(), start=1):
        placed.extend(placer.place(prompt) for prompt in reader.read(exchange))
        progress(done, total)
    return placed


class _Placer:
    """Gives each prompt its place, one after another."""

    def __init__(self, finder: DivergenceFinder) -> None:
        self._finder = finder
        self._rendered: list[Prompt] = []
        self._ids: list[TokenIds] = []
        self._lineage = Lineage(lambda a, b: common_prefix(self._ids[a], self._ids[b]))

    def place(self, prompt: Prompt) -> Placed:
        """The next prompt's place; a prompt that was not rendered has none, and becomes no parent."""
        rendering = prompt.rendering
        if rendering is None or prompt.conversation is None:
            return Placed(prompt=prompt)
        self._ids.append(rendering.token_ids)
        request = prompt.source.request
        try:
            place = self._lineage.place(prompt.conversation, (request.dialect, request.model))
        except Exception as error:  # it has read the prompt in vain, and holds nothing of it
            self._ids.pop()
            problem = f"not placed: {unexpected(error)}"
            return Placed(prompt=replace(prompt, rendering=None, verdict=None, problem=problem))
        # The parsed messages of all turns would outweigh everything else that is kept.
        prompt = replace(prompt, conversation=None)
        self._rendered.append(prompt)
        if place.parent is None:
            return Placed(prompt=prompt, place=place)
        return Placed(prompt=prompt, place=place, relation=self._relate(place.parent, len(self._ids) - 1))

    def _relate(self, parent: int, child: int) -> Relation:
        pair = Pair(
            parent=self._rendered[parent].key,
            child=self._rendered[child].key,
            parent_ids=self._ids[parent],
            child_ids=self._ids[child],
            answer_ids=_told_ids(self._rendered[parent]),
        )
        return Relation(
            parent=self._rendered[parent],
            parent_tokens=len(self._ids[parent]),
            common_tokens=common_prefix(self._ids[parent], self._ids[child]),
            parting=self._finder.find(pair),
        )


def _told_ids(prompt: Prompt) -> TokenIds | None:
    """The ids of a prompt's answer, where the server told them and there was one answer."""
    generated = prompt.generated
    return np.array(generated, dtype=np.int32) if isinstance(generated, tuple) and generated else None
