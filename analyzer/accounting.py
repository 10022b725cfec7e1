"""From placed prompts to the report: what the cache would hit, the rows, and how far both can be trusted.

It reads no capture and renders nothing. An error that nobody foresaw is a sentence, and loses no report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from analyzer.calibration import calibrate
from analyzer.counters import Look, engines_of
from analyzer.engines import Engine, Traffic
from analyzer.evidence import Circumstances, reconcile, with_residuals
from analyzer.ledger import Prediction, predict, traffic_of
from analyzer.notes import notes_of
from analyzer.prefill_rate import prefill_rate, with_seconds
from analyzer.renderers import unexpected
from analyzer.report import Note, PoolSweep, PrefillRate, Report, Server, Turn
from analyzer.sweeping import no_sweep, sweep_pool
from analyzer.turns import Placed, make_turn, summarise


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What holds for all rows of a capture.

    `looks` are at the server's counters; `adapters` the names of its LoRA modules; `speculation` says that
    a drafter takes the last block of a hit.
    """

    server: Server
    engine: Engine
    looks: Sequence[Look]
    adapters: frozenset[str]
    speculation: bool
    pool_sweep: bool


def account(placed: Sequence[Placed], basis: Basis, *, redaction: str) -> Report:
    """The report on a whole capture, whose policy was `redaction`."""
    careful = _Careful()
    server, looks = basis.server, basis.looks
    prompts = [item.prompt for item in placed]
    traffic = careful.take(
        "cache hits are not predicted",
        lambda: traffic_of(prompts, basis.adapters, looks),
        Traffic(requests=()),
    )
    prediction = careful.take(
        "cache hits are not predicted", lambda: predict(basis.engine, traffic, server), Prediction()
    )
    rows = [careful.row(item, server.block_size, prediction) for item in placed]
    none: list[tuple[Note, ...]] = [()] * len(rows)
    notes = careful.take("rows have no notes", lambda: notes_of(placed), none)
    rows = [replace(row, notes=noted) for row, noted in zip(rows, notes, strict=True)]
    traits = {prompt.key: prompt.traits for prompt in prompts}
    turns = careful.take("rows are not weighed", lambda: calibrate(rows, traits), tuple(rows))
    counters = careful.take(
        "the server's counters are not compared", lambda: reconcile(looks, prediction, turns), None
    )
    server = replace(server, metrics=counters)
    about = Circumstances(server=server, speculation=basis.speculation, engines=engines_of(looks))
    turns = careful.take(
        "residuals are not explained", lambda: with_residuals(turns, prediction, about), turns
    )
    rate = careful.take("no rate of prefill", lambda: prefill_rate(turns), PrefillRate())
    turns = with_seconds(turns, rate)
    swept = careful.take("the pool is not swept", lambda: _swept(placed, traffic, basis, careful), None)
    return Report(
        exchanges=len({turn.id for turn in turns}),
        redaction=redaction,
        server=server,
        summary=summarise(turns, rate),
        turns=turns,
        problems=tuple(careful.problems),
        pool_sweep=swept,
    )


class _Careful:
    """Does work on what is rendered already, and goes on where it fails."""

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


def _swept(placed: Sequence[Placed], traffic: Traffic, basis: Basis, careful: _Careful) -> PoolSweep | None:
    """The hits at other pool sizes, where they were asked for and can be told."""
    if not basis.pool_sweep:
        return None
    if refused := no_sweep(basis.engine, basis.server.layout):
        careful.problems.append(refused)
        return None
    parents = {item.prompt.name: item.relation.parent_tokens for item in placed if item.relation}
    return sweep_pool(traffic, basis.server, parents)
