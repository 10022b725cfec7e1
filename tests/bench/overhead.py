"""What the proxy costs on the way, against bare mitmproxy in the same moments: ratios of pairs."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.rounds import Line
from tests.bench.streams import Stream, cpu_seconds, seconds_of_all
from tests.conftest import Running, proxy, running

SIZES = {"1 kB": 1_000, "100 kB": 100_000, "1 MB": 1_000_000}
BARE, BARE_REQUESTS, OURS, DIRECT = "bare", "bare, requests streamed", "ours", "direct"
EVENTS, STREAMS = 400, 32
SPIN_US = 1000


@dataclass(frozen=True, slots=True)
class Way:
    """One way to the upstream: its base URL, and the process that is passed (None: none is)."""

    url: str
    pid: int | None


@contextmanager
def ways(capture: Path) -> Iterator[dict[str, Way]]:
    """The four ways to one upstream, each through a process of its own."""
    with ExitStack() as stack:

        def start(*command: str) -> Running:
            return stack.enter_context(running(*command))

        source = start("tests.bench.source")
        ours = stack.enter_context(proxy(source.url, capture))
        bare = start("tests.bench.bare", source.url, "answers")
        both = start("tests.bench.bare", source.url, "both")
        yield {
            OURS: Way(ours.url, ours.process.pid),
            BARE: Way(bare.url, bare.process.pid),
            BARE_REQUESTS: Way(both.url, both.process.pid),
            DIRECT: Way(source.url, None),
        }


def body_of(size: int, number: int) -> bytes:
    """A request of about `size` bytes as an agent sends it: many messages, the last one new."""
    text = "The gulls went quiet before the tide turned, and the lanterns were lit early. "
    messages = [{"role": "user", "content": text * 12}] * (size // 1000 - 1)
    last = {"role": "user", "content": f"{number}: " + text * 10}
    return json.dumps({"model": "m", "stream": True, "messages": [*messages, last]}).encode()


def overhead(folder: Path, *, repeats: int = 1) -> list[Line]:
    """The lines; `repeats` times as many rounds as `make bench` takes."""
    with ways(folder / "overhead.sqlite") as found:
        lines = [line for name, size in SIZES.items() for line in _first_byte(found, name, size, repeats)]
        lines += _chunks(found, repeats)
        lines += _throughput(found, repeats)
    return lines


def _first_byte(found: Mapping[str, Way], name: str, size: int, repeats: int) -> Iterator[Line]:
    with ExitStack() as stack:
        streams = {way: stack.enter_context(Stream(found[way].url)) for way in found}
        works = {way: _first_of(stream, size) for way, stream in streams.items()}
        yield from _lines(f"first byte, {name} request", works, 30 * repeats, "<= 1.10", "ms")


def _first_of(stream: Stream, size: int) -> Callable[[int], float]:
    return lambda number: 1000 * stream.take(body_of(size, number), 3).first


def _chunks(found: Mapping[str, Way], repeats: int) -> Iterator[Line]:
    body = body_of(1000, 0)
    with ExitStack() as stack:
        streams = {way: stack.enter_context(Stream(found[way].url)) for way in found}

        def back_to_back(way: str) -> Callable[[int], float]:
            return lambda _: 1e6 * streams[way].take(body, EVENTS).whole / EVENTS

        def delay(way: str) -> Callable[[int], float]:
            return lambda _: 1e6 * statistics.median(streams[way].take(body, EVENTS, SPIN_US).delays[1:])

        def work(way: str) -> Callable[[int], float]:
            def cpu(_: int) -> float:
                pid = found[way].pid
                if pid is None:
                    return 0.0
                before = cpu_seconds(pid)
                streams[way].take(body, EVENTS, SPIN_US)
                return 1e6 * (cpu_seconds(pid) - before) / EVENTS

            return cpu

        name = f"{EVENTS} events back to back, each"
        yield from _lines(name, {way: back_to_back(way) for way in found}, 20 * repeats, "<= 1.25", "us")
        name = "events after 1 ms of work, delay"
        yield from _lines(name, {way: delay(way) for way in found}, 6 * repeats, "<= 1.25", "us")
        name = "events after 1 ms of work, proxy's CPU"
        yield from _lines(name, {way: work(way) for way in found}, 6 * repeats, "<= 1.25", "us")


def _throughput(found: Mapping[str, Way], repeats: int) -> Iterator[Line]:
    body = body_of(1000, 0)

    def rate(way: str) -> Callable[[int], float]:
        url = found[way].url
        return lambda _: STREAMS * EVENTS / seconds_of_all(url, body, streams=STREAMS, events=EVENTS) / 1000

    name = f"{STREAMS} streams at once, events a ms"
    yield from _lines(name, {way: rate(way) for way in found}, 5 * repeats, ">= 0.9", "")


def _lines(
    name: str, works: Mapping[str, Callable[[int], float]], rounds: int, target: str, unit: str
) -> Iterator[Line]:
    """The median of the ratios of each round, its quartiles, and the medians themselves."""
    values: dict[str, list[float]] = {way: [] for way in works}
    order = list(works)
    for number in range(rounds + 2):
        for way in order:
            value = works[way](number)
            if number >= 2:  # the first ones warm up
                values[way].append(value)
        order.append(order.pop(0))  # none is always the one after the same other
    median = ", ".join(f"{way} {statistics.median(found):.2f}" for way, found in values.items())
    for base in (BARE, BARE_REQUESTS):
        ratios = [ours / bare for ours, bare in zip(values[OURS], values[base], strict=True)]
        low, middle, high = statistics.quantiles(ratios, n=4)
        spread = f"quartiles {low:.2f} and {high:.2f} of {len(ratios)} pairs"
        beside = f"{spread}; medians {unit} {median}" if base == BARE else spread
        yield Line(f"{name} / {base}", f"{middle:.2f}", target, beside)


if __name__ == "__main__":
    import tempfile

    from tests.bench.rounds import print_table

    with tempfile.TemporaryDirectory() as name_:
        print_table(overhead(Path(name_), repeats=int((sys.argv[1:] or ["1"])[0])))
