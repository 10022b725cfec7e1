"""What is counted, said and returned when records cannot be written."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from proxy.recorder import Record, Recorder
from store.records import RequestSeen, ResponseSeen, ServerFact
from tests.proxy.setup import started


class BusySink:
    """A sink that is busy until it is let go, and keeps the order of what it took."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.taken: list[object] = []

    def _take(self, record: object) -> None:
        if not self.free.is_set():
            raise TimeoutError("busy")
        self.taken.append(record)

    def save_request(self, seen: RequestSeen) -> None:
        self._take(seen)

    def save_response(self, seen: ResponseSeen) -> None:
        self._take(seen)

    def save_facts(self, facts: Sequence[ServerFact]) -> None:
        self._take(facts)


def request(key: str) -> RequestSeen:
    return RequestSeen(key=key, started_at_ns=0, method="POST", path="/", query="", headers=(), body=b"")


def writer_of(pid: int) -> int:
    """The process that writes a proxy's capture: of its children the last (another minds semaphores)."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(
        next(child for child in children if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes())
    )


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_capture_that_is_deleted_meanwhile_loses_and_says_so(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    with started(folder) as setup:
        setup.ask("fine")
        setup.recorded()
        if what == "folder":
            shutil.rmtree(folder)
        else:
            for file in folder.iterdir():
                file.unlink()
        for _ in range(3):
            assert setup.ask("fine")[0] == 200
        assert setup.proxy.stop() == 1
    assert "1 exchanges recorded, 3 lost" in setup.proxy.said
    assert setup.proxy.said.count("a record was lost") == 1
    assert "was deleted, moved or replaced" in setup.proxy.said
    assert "store/db.py" not in setup.proxy.said


def test_a_capture_deleted_after_the_last_record_is_a_failure_too(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        setup.ask("fine")
        setup.recorded()
        setup.capture.rename(tmp_path / "elsewhere.sqlite")
        assert setup.proxy.stop() == 1
    assert "was deleted, moved or replaced" in setup.proxy.said


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_a_full_disk_ends_with_counts_and_not_with_a_stack_trace(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        setup.ask("fine")
        setup.recorded()
        # Files may not grow any more: for SQLite that is a failing write, as on a full disk.
        resource.prlimit(writer_of(setup.proxy.process.pid), resource.RLIMIT_FSIZE, (4096, 4096))
        assert setup.ask("fine")[0] == 200
        assert setup.proxy.stop() == 1
    assert "1 exchanges recorded, 1 lost" in setup.proxy.said
    assert "could not be moved from the -wal file" in setup.proxy.said
    assert "store/db.py" not in setup.proxy.said
    # Whatever was written before is whole, with its log beside it.
    assert [exchange.ended for exchange in setup.recorded()] == ["complete"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's children")
def test_a_writer_that_is_killed_is_counted_and_the_traffic_goes_on(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        setup.ask("fine")
        setup.recorded()
        os.kill(writer_of(setup.proxy.process.pid), signal.SIGKILL)
        for _ in range(3):
            assert setup.ask("fine")[0] == 200
        assert setup.proxy.stop() == 1
    assert "1 exchanges recorded, 3 lost" in setup.proxy.said
    assert "the process that writes the capture has ended" in setup.proxy.said
    assert "Traceback" not in setup.proxy.said
    assert [exchange.ended for exchange in setup.recorded()] == ["complete"]


def test_a_busy_sink_is_asked_again_until_it_takes_everything_in_order() -> None:
    sink = BusySink()
    recorder = Recorder(sink)
    facts = (ServerFact(at_ns=0, path="/version", status=200, body=b"{}"),)
    records: list[Record] = [facts, request("1"), request("2")]
    for record in records:
        recorder.put(record)
    time.sleep(0.3)
    assert (recorder.lost, sink.taken) == (0, [])
    sink.free.set()
    recorder.close()
    assert (recorder.lost, sink.taken) == (0, records)


def test_a_sink_that_stays_busy_loses_all_once_the_time_for_closing_is_over() -> None:
    recorder = Recorder(BusySink())
    for key in "123":
        recorder.put(request(key))
    started_at = time.monotonic()
    recorder.close(timeout=0.3)
    assert time.monotonic() - started_at < 3
    assert recorder.lost == 3
