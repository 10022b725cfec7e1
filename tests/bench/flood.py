"""Many agents at once: whether one's recording holds up another's stream, and what a day costs in memory.

`python -m tests.bench.flood` measures both in full; a test takes less of each.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from store.db import Capture
from tests.bench.overhead import body_of
from tests.bench.rounds import Line
from tests.bench.streams import Stream, delays_of_all
from tests.conftest import eventually, proxy, running

RECORDED, UNRECORDED = "/v1/chat/completions", "/v1/rerank"
OBSERVED = BESIDE = 32
SIZE = 200_000
EVENTS, PAUSE_US = 60, 20_000
AHEAD = 200
"""How many exchanges the writer may be behind: agents wait for their answers, this traffic does not."""


@contextmanager
def _beside(url: str, path: str) -> Iterator[None]:
    """Agents that send one large request after the other, for as long as the block lasts."""
    over = threading.Event()

    def agent(number: int) -> None:
        turn = 0
        with Stream(url, path) as stream:
            while not over.is_set():
                turn += 1
                stream.take(body_of(SIZE, 1000 * number + turn), EVENTS // 2)
                over.wait(1.5)  # a turn every other second from each

    agents = [threading.Thread(target=agent, args=(number,)) for number in range(BESIDE)]
    for one in agents:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in agents:
            one.join()


def delays(url: str, beside: str) -> list[float]:
    """The delays of observed streams, which are not recorded, while agents beside them send to a path."""
    with _beside(url, beside):
        return delays_of_all(url, UNRECORDED, streams=OBSERVED, events=EVENTS, pause=PAUSE_US)


def held_up(folder: Path, rounds: int) -> list[Line]:
    """The delays beside recorded agents over those beside agents that pass unrecorded."""
    found: dict[str, list[list[float]]] = {RECORDED: [], UNRECORDED: []}
    with running("tests.bench.source") as source, proxy(source.url, folder / "flood.sqlite") as ours:
        for number in range(rounds + 1):
            for path in found if number % 2 else reversed(found):
                taken = delays(ours.url, path)
                if number:
                    found[path].append(taken)
    lines = []
    for name, at in (("median", 50), ("99th percentile", 99)):
        cut = {
            path: [statistics.quantiles(one, n=100)[at - 1] for one in all_] for path, all_ in found.items()
        }
        ratios = [a / b for a, b in zip(cut[RECORDED], cut[UNRECORDED], strict=True)]
        both = [1000 * statistics.median(cut[path]) for path in (RECORDED, UNRECORDED)]
        beside = (
            f"{min(ratios):.2f} to {max(ratios):.2f}; ms {both[0]:.2f}, beside unrecorded ones {both[1]:.2f}"
        )
        name = f"delay of {OBSERVED} streams beside {BESIDE} recorded agents, {name}"
        lines.append(Line(name, f"{statistics.median(ratios):.2f}", "", beside))
    return lines


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the proxy's process after so many exchanges, in bytes."""

    exchanges: int
    resident: int


def memory(folder: Path, exchanges: int, *, every: int) -> list[Memory]:
    """Pass so many exchanges of 200 kB, and look at the proxy's memory each time so many are written."""
    capture = folder / "memory.sqlite"
    samples: list[Memory] = []
    with (
        running("tests.bench.source") as source,
        proxy(source.url, capture) as ours,
        Stream(ours.url) as stream,
    ):
        for number in range(1, exchanges + 1):
            stream.take(body_of(SIZE, number), 3)
            if number % min(AHEAD, every) == 0:
                assert eventually(lambda number=number: _written(capture) >= number, 120)  # type: ignore[misc]
            if number % every == 0:
                samples.append(Memory(number, _resident(ours.process.pid)))
        assert ours.stop(timeout=100) == 0
    assert f"{exchanges} exchanges recorded, 0 lost" in ours.said
    return samples


def _written(capture: Path) -> int:
    with Capture.open(str(capture)) as opened:
        counts = opened.counts()
        return counts.exchanges - counts.open


def _resident(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def slope(samples: list[Memory]) -> float:
    """Bytes more for each exchange, by the line through the samples of the second half."""
    half = samples[len(samples) // 2 :]
    return statistics.linear_regression([one.exchanges for one in half], [one.resident for one in half]).slope


if __name__ == "__main__":
    import tempfile

    from tests.bench.rounds import print_table

    with tempfile.TemporaryDirectory() as name_:
        print_table(held_up(Path(name_), 10))
        begin = time.monotonic()
        taken_ = memory(Path(name_), 10_000, every=500)
        print(*(f"{one.exchanges}: {one.resident / 2**20:.1f} MiB" for one in taken_), sep=", ")
        print(f"{slope(taken_):.0f} bytes an exchange, {time.monotonic() - begin:.0f} s")
