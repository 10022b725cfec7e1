"""The analysis from a capture to a report, in the order in which the data goes.

Each step is another file's; here they are only put in line. Nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from analyzer.blocks import common_prefix
from analyzer.calibration import calibrate
from analyzer.core import TokenIds
from analyzer.counters import engines_of, looks, restarts_ns
from analyzer.divergences import DivergenceFinder, PromptKey
from analyzer.evidence import Circumstances, reconcile, with_residuals
from analyzer.find_tokenizer import find_tokenizer
from analyzer.ledger import AUTO as AUTO_ENGINE
from analyzer.ledger import Prediction, engine_of, predict, traffic_of
from analyzer.lineage import Lineage
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
    """What a user may say about an analysis; None: found out, or assumed and said so."""

    tokenizer: str | None = None
    renderer: str = AUTO
    block_size: int | None = None
    pool_blocks: int | None = None
    serve_command: str | None = None
    server: str | None = None
    engine: str = AUTO_ENGINE


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
    placed = _place_all(capture, reader, server.block_size, progress)
    adapters = profile.adapters | set(settings.lora_modules)
    seen = looks(facts)
    account = _Account()
    prediction = account.take(
        "cache hits are not predicted",
        lambda: predict(
            engine, traffic_of((item.prompt for item in placed), adapters, restarts_ns(seen)), server
        ),
        Prediction(),
    )
    rows = [account.row(item, server.block_size, prediction) for item in placed]
    traits = {item.prompt.key: item.prompt.traits for item in placed}
    turns = account.take("rows are not weighed", lambda: calibrate(rows, traits), tuple(rows))
    counters = account.take(
        "the server's counters are not compared", lambda: reconcile(seen, prediction, turns), None
    )
    server = replace(server, metrics=counters)
    about = Circumstances(server=server, speculation=settings.drops_last_block, engines=engines_of(seen))
    turns = account.take(
        "residuals are not explained", lambda: with_residuals(turns, prediction, about), turns
    )
    return Report(
        exchanges=len({turn.id for turn in turns}),
        redaction=capture.redaction,
        server=server,
        summary=summarise(turns),
        turns=turns,
        problems=(*_problems(turns, missing, reader.server), *account.problems),
    )


class _Account:
    """Work on what is rendered already: an error that nobody foresaw is a sentence, and loses no report."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def take[T](self, what: str, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except Exception as error:
            self.problems.append(f"{what}: {unexpected(error)}")
            return otherwise

    def row(self, placed: Placed, block_size: int, prediction: Prediction) -> Turn:
        predicted = prediction.cached_tokens.get(placed.prompt.name)
        try:
            return make_turn(placed, block_size, predicted)
        except Exception as error:
            problem = f"not compared: {unexpected(error)}"
            bare = replace(placed.prompt, rendering=None, verdict=None, problem=problem)
            return make_turn(Placed(prompt=bare), block_size, None)


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


def _place_all(capture: Capture, reader: PromptReader, block_size: int, progress: Progress) -> list[Placed]:
    """Every prompt in the order of its start, with its parent and where it leaves it."""

    def job_of(key: PromptKey) -> Job:
        return reader.sourced_job(capture.exchange(key[0]), key[1])

    placer = _Placer(DivergenceFinder(job_of, block_size))
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
        common = common_prefix(self._ids[parent], self._ids[child])
        parting = self._finder.find(
            self._rendered[parent].key,
            self._rendered[child].key,
            common_tokens=common,
            parent_tokens=len(self._ids[parent]),
        )
        return Relation(
            parent=self._rendered[parent],
            parent_tokens=len(self._ids[parent]),
            common_tokens=common,
            parting=parting,
        )
