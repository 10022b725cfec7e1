"""What it costs to watch a session turn by turn, beside one report on the whole of it."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

from analyzer.live_capture import LiveCapture
from analyzer.pipeline import Options, analyze
from analyzer.rendering import prepare
from samples.big_session import big_session
from store.db import Capture
from tests.bench.rounds import Line
from tests.bench.sessions import save

ROUNDS = 3
_FIRST, _LAST = slice(1, 11), slice(-10, None)


def watching(folder: Path, tokenizer: Path) -> list[Line]:
    """All lines of the big session against one report, and a late line against an early one."""
    prepare()
    options = Options(tokenizer=str(tokenizer))
    rounds = [_round(folder / f"watched-{number}.sqlite", options) for number in range(ROUNDS)]
    lines = [median(each) for each in zip(*(seconds for seconds, _ in rounds), strict=True)]
    whole = median(seconds for _, seconds in rounds)
    early, late = median(lines[_FIRST]), median(lines[_LAST])
    return [
        Line(
            "watching all turns / one report",
            f"{sum(lines) / whole:.2f}",
            "<= 2.0",
            f"{sum(lines):.2f} s and {whole:.2f} s of processor time",
        ),
        Line(
            "watch, a line late in the session",
            f"{1000 * late:.0f} ms",
            "",
            f"a prompt of 1 MB; early, with prompts up to 110 kB: {1000 * early:.0f} ms",
        ),
    ]


def _round(path: Path, options: Options) -> tuple[list[float], float]:
    """Seconds of processor time for each turn's line, and for a report at the end."""
    seconds = []
    with (
        Capture.create_or_open(str(path), redaction="secrets") as writer,
        Capture.open(str(path)) as reader,
    ):
        live = LiveCapture(reader, options)
        for turn, (body, stream) in enumerate(big_session()):
            save(writer, str(turn), turn * 10**9, body, stream)
            start = time.process_time()
            told = list(live.updates())
            seconds.append(time.process_time() - start)
            assert len(told) == 1
    with Capture.open(str(path)) as capture:
        start = time.process_time()
        analyze(capture, options)
        return seconds, time.process_time() - start
