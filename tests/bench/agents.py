"""Whether the writer of a sealed capture keeps up with eight agents at once, and what waits for it.

The writer's time is its processor's: where other programs take the processor away, it is late all the same.
"""

from __future__ import annotations

import resource
import statistics
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from analyzer.pipeline import Options
from analyzer.sealing_process import SealingProcess
from proxy.recorder import QUEUE_BYTES, Recorder
from samples.big_session import big_session
from store.db import Capture
from tests.bench.rounds import Line
from tests.bench.sessions import request_seen, response_seen

AGENTS = 8
EVERY = 3
"""Of the big session's turns each third is sent: bodies grow three times as fast, up to 1 MB."""

TURN_SECONDS = 1.0
"""How long a server takes to answer a turn: none that serves eight agents prompts of this size is faster."""


@dataclass(slots=True)
class _Run:
    recorder: Recorder
    began_at: float = field(default_factory=time.perf_counter)
    sent: int = 0
    sent_bytes: int = 0
    waiting: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def agent(self, number: int) -> None:
        """One session, turn by turn, each as long as a server takes."""
        time.sleep(TURN_SECONDS * number / AGENTS)
        for turn, (body, stream) in enumerate(list(big_session())[::EVERY]):
            mine = body.replace(b'"content":"', b'"content":"%d: ' % number)
            key, started_at = f"{turn}.{number}", time.perf_counter()
            self.recorder.put(request_seen(key, time.time_ns(), mine))
            time.sleep(max(0.0, started_at + TURN_SECONDS - time.perf_counter()))
            self.recorder.put(response_seen(key, stream))
            with self.lock:
                self.sent, self.sent_bytes = self.sent + 1, self.sent_bytes + len(mine)
                self.waiting.append(QUEUE_BYTES - self.recorder.room)


def agents(folder: Path, tokenizer: Path) -> list[Line]:
    """The lines."""
    capture = folder / "agents.sqlite"
    before = _children_seconds()
    sink = SealingProcess(str(capture), Options(tokenizer=str(tokenizer)), bytes(32))
    run = _Run(Recorder(sink))
    threads = [threading.Thread(target=run.agent, args=(number,)) for number in range(AGENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    agents_took = time.perf_counter() - run.began_at
    run.recorder.close(600)
    sink.close()
    written_after = time.perf_counter() - run.began_at
    writer_took = _children_seconds() - before
    with Capture.open(str(capture)) as opened:
        sealed = {part.exchange_id for part in opened.sealed("prompt")}
    assert len(sealed) == run.sent == run.recorder.recorded and not run.recorder.lost, "a record is missing"
    half = run.sent // 2
    early, late = (statistics.median(part) / 2**20 for part in (run.waiting[:half], run.waiting[half:]))
    return [
        Line(
            "sealing for eight agents: writer / agents",
            f"{writer_took / agents_took:.2f}",
            "< 1",
            f"a turn a second each: {run.sent} requests, {run.sent_bytes:,} bytes in {agents_took:.0f} s, and"
            f" {writer_took:.0f} s of a processor; all sealed, none lost, after {written_after:.0f} s",
        ),
        Line(
            "sealing for eight agents: most that waited",
            f"{max(run.waiting) / 2**20:.0f} MiB",
            f"< {QUEUE_BYTES >> 20} MiB",
            f"medians: {early:.1f} in the first half, {late:.1f} in the second",
        ),
    ]


def _children_seconds() -> float:
    """Processor seconds of the processes that this one has started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
