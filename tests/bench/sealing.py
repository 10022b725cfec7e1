"""What sealing costs: the client while its response streams, and the disk."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import httpx

from analyzer.pipeline import Options
from samples.big_session import big_session
from tests.bench.rounds import Line
from tests.bench.sessions import CHAT
from tests.bench.streaming import delays_of
from tests.conftest import proxy
from tests.sealed.made import sealed_copy
from tests.upstream.misbehaving import MisbehavingUpstream

ROUNDS, BUSY = 8, 2
AT_ONCE = {"x-fault": "events_paused", "x-fault-ms": "0"}


def sealing(folder: Path, tokenizer: Path, capture: Path, sent: list[bytes]) -> list[Line]:
    """The lines; `capture` is the big session, recorded openly."""
    begin = time.perf_counter()
    copied = sealed_copy(capture, folder / "sealed.sqlite", Options(tokenizer=str(tokenizer)))
    seconds = time.perf_counter() - begin
    size, whole = copied.stat().st_size, sum(map(len, sent))
    return [
        Line(
            "sealed session / bytes sent", f"{100 * size / whole:.2f} %", "<= 1 %", f"{size:,} of {whole:,}"
        ),
        Line(
            "sealing a request of the big session",
            f"{1000 * seconds / len(sent):.0f} ms",
            "",
            f"mean of {len(sent)}, the last one 1 MB; in a process of its own",
        ),
        *_delays(folder, tokenizer),
    ]


def _delays(folder: Path, tokenizer: Path) -> list[Line]:
    """Streams through both, one after the other, while each has just been given large requests to keep."""
    sealed = ("--redact", "sealed", "--tokenizer", str(tokenizer))
    bodies = [body for body, _ in big_session()][-BUSY:]
    with (
        MisbehavingUpstream() as upstream,
        proxy(upstream.url, folder / "o.sqlite") as openly,
        proxy(upstream.url, folder / "s.sqlite", *sealed) as sealing_one,
    ):
        ways = {"open": openly.url, "sealed": sealing_one.url}
        delays: dict[str, list[list[float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, url in ways.items():
                for body in bodies:
                    httpx.post(f"{url}{CHAT}", content=body, headers=AT_ONCE, timeout=30)
                delays[name].append(delays_of(upstream, url))
    firsts = {name: [one[0] for one in found] for name, found in delays.items()}
    laters = {name: [at for one in found for at in one[1:]] for name, found in delays.items()}
    return [_line("first event, sealing proxy", firsts), _line("later event, sealing proxy", laters)]


def _line(name: str, delays: dict[str, list[float]]) -> Line:
    median = {way: f"{1000 * statistics.median(found):.2f} ms" for way, found in delays.items()}
    spread = statistics.quantiles([1000 * at for at in delays["open"]], n=4)
    beside = f"median; open {median['open']}, its quartiles {spread[0]:.2f} and {spread[2]:.2f}"
    return Line(name, median["sealed"], "as the open one", beside)
