"""What sealing costs: the client while its response streams, the disk, and the writer with eight agents."""

from __future__ import annotations

import time
from pathlib import Path

from analyzer.pipeline import Options
from samples.big_session import big_session
from store.db import Capture
from tests.bench.rounds import Line
from tests.bench.streaming import delays_of, delays_line
from tests.conftest import proxy
from tests.sealed.made import sealed_copy
from tests.upstream.misbehaving import MisbehavingUpstream

ROUNDS = 12


def sealing(folder: Path, tokenizer: Path, capture: Path, sent: list[bytes]) -> list[Line]:
    """The lines; `capture` is the big session, recorded openly."""
    begin = time.perf_counter()
    copied = sealed_copy(capture, folder / "sealed.sqlite", Options(tokenizer=str(tokenizer)))
    seconds = time.perf_counter() - begin
    size, whole = copied.stat().st_size, sum(map(len, sent))
    return [
        Line("sealed session / bytes sent", f"{100 * size / whole:.2f} %", "<= 1 %", f"{size:,} of {whole:,}"),
        Line(
            "sealing a request of the big session",
            f"{1000 * seconds / len(sent):.0f} ms",
            "",
            f"mean of {len(sent)}, the last one 1 MB; in a process of its own",
        ),
        *_delays(folder, tokenizer),
    ]


def _delays(folder: Path, tokenizer: Path) -> list[Line]:
    """Streams through both, one after the other, while each is busy with an agent's large requests."""
    sealed = ("--redact", "sealed", "--tokenizer", str(tokenizer))
    with (
        MisbehavingUpstream() as upstream,
        proxy(upstream.url, folder / "o.sqlite") as openly,
        proxy(upstream.url, folder / "s.sqlite", *sealed) as sealing_one,
    ):
        ways = {"openly": openly.url, "sealed": sealing_one.url}
        return delays_line(upstream, ways, ROUNDS)
