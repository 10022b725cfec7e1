"""The analysis from a capture to a report, in the order in which the data goes.

Each step is another file's; here they are only put in line. Nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from analyzer.accounting import Basis, account
from analyzer.completeness import completeness
from analyzer.counters import looks
from analyzer.divergences import DivergenceFinder, PromptKey
from analyzer.find_tokenizer import find_tokenizer
from analyzer.ledger import AUTO as AUTO_ENGINE
from analyzer.ledger import engine_of
from analyzer.placing import Placer
from analyzer.prompts import PromptReader
from analyzer.renderers import Job
from analyzer.rendering import AUTO, prepare
from analyzer.report import Report, Turn
from analyzer.sealed_reading import is_sealed, read_placed, read_tokenizer
from analyzer.secret_counts import SecretTally
from analyzer.server_api import ServerApi
from analyzer.servers import ServerProfile, read_profile, read_settings, settle
from analyzer.settings import ServerSettings
from analyzer.tokens import Tokenizer, TokenizerError, start_loading
from analyzer.turns import Placed
from store.db import Capture
from store.records import Exchange

type Fetch = Callable[[int], Exchange]
"""An exchange by its id."""

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
    pool_sweep: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """A report with what it was made from: every prompt in its place, and the tokenizer, if there was one."""

    report: Report
    placed: tuple[Placed, ...]
    tokenizer: Tokenizer | None


def analyze(capture: Capture, options: Options, progress: Progress = lambda done, total: None) -> Analysis:
    """Analyse a whole capture.

    Raises TokenizerError where the user named a tokenizer that cannot be used, ValueError for an unknown
    renderer, what is no server's URL or no start line, RenderFailed where a renderer was named and fails,
    CaptureError for a sealed capture that is damaged. Anything wrong with a single exchange is a sentence on
    its row.
    """
    facts = capture.facts()
    profile, settings = read_profile(facts), read_settings(facts, options.serve_command)
    engine = engine_of(profile, options.engine)
    sealed = is_sealed(capture)
    reader, missing = (None, None) if sealed else make_reader(options, profile, settings)
    tokenizer = None if reader is None else reader.tokenizer
    server = settle(
        profile,
        settings,
        block_size=options.block_size,
        pool_blocks=options.pool_blocks,
        tokenizer=read_tokenizer(capture) if sealed else tokenizer,
        engine=engine,
    )
    tally = SecretTally()
    if reader is None:
        placed = read_placed(capture, server.block_size)
    else:
        placed = _place_all(
            capture, reader, server.block_size, progress, explain=options.explain, tally=tally
        )
    basis = Basis(
        server=server,
        engine=engine,
        looks=looks(facts),
        adapters=profile.adapters | set(settings.lora_modules),
        speculation=settings.drops_last_block,
        pool_sweep=options.pool_sweep,
    )
    report = account(placed, basis, redaction=capture.redaction)
    said = _problems(report.turns, missing, None if reader is None else reader.server)
    unusable = _unusable(options) if sealed else ()
    kept = completeness(capture)
    report = replace(
        report,
        problems=(*kept.sentences, *unusable, *said, *report.problems),
        missing=missing,
        secrets=None if sealed else tally.counts(),
        completeness=kept,
        quotes=not sealed,
    )
    return Analysis(report=report, placed=tuple(placed), tokenizer=tokenizer)


def _unusable(options: Options) -> Iterator[str]:
    """What was asked for in vain: a sealed capture has nothing to render."""
    asked = {
        "--renderer": options.renderer != AUTO,
        "--tokenizer": options.tokenizer is not None,
        "--server": options.server is not None,
    }
    for name in (name for name, given in asked.items() if given):
        yield f"{name} changes nothing: a sealed capture holds no text that could be rendered again"


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
    capture: Capture,
    reader: PromptReader,
    block_size: int,
    progress: Progress,
    *,
    explain: bool,
    tally: SecretTally,
) -> list[Placed]:
    """Every prompt in the order of its start, with its parent and where it leaves it."""
    placer = make_placer(capture.exchange, reader, block_size, explain=explain)
    total = capture.counts().exchanges
    placed: list[Placed] = []
    for done, exchange in enumerate(capture.exchanges(), start=1):
        tally.add(exchange)
        placed.extend(placer.place(prompt) for prompt in reader.read(exchange))
        progress(done, total)
    return placed


def make_placer(fetch: Fetch, reader: PromptReader, block_size: int, *, explain: bool) -> Placer:
    """What gives prompts their places; `fetch` gives an exchange once more."""

    def read_again(key: PromptKey, body: Any | None) -> tuple[Job, Any]:
        return reader.sourced_job(fetch(key[0]), key[1], body)

    return Placer(DivergenceFinder(read_again, block_size, explain=explain))
