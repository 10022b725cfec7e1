"""The proxy's own parts break, one at a time, and traffic goes on: what is missing is counted and said."""

from __future__ import annotations

import http.client
import json
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest
from mitmproxy.hooks import all_hooks

from proxy.addon import LocalityAddon
from proxy.recorder import Recorder
from store.db import Capture
from store.errors import CaptureError
from tests.conftest import eventually, locality, running
from tests.proxy.sabotage import HOOKS, PARTS
from tests.proxy.setup import CHAT, Setup, started
from tests.proxy.test_losses import BusySink, request
from tests.upstream.faults import ANSWER, DONE, EVENTS
from tests.upstream.misbehaving import MisbehavingUpstream

HOLDING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def sabotaged(folder: Path, part: str) -> Iterator[Setup]:
    capture = folder / "c.sqlite"
    options = ("--upstream", "URL", "--capture", str(capture), "--listen", "127.0.0.1:0")
    with MisbehavingUpstream() as upstream, ExitStack() as connections:
        arguments = ("proxy", *(upstream.url if option == "URL" else option for option in options))
        with running("tests.proxy.sabotage", part, *arguments) as proxy:
            yield Setup(upstream, proxy, capture, connections)


@contextmanager
def locked(capture: Path) -> Iterator[None]:
    """The capture held by another process, for as long as the block lasts."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(capture)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    try:
        yield
    finally:
        holder.communicate(timeout=30)


def counts(said: str) -> tuple[int, int]:
    found = re.search(r"(\d+) exchanges recorded, (\d+) lost", said)
    assert found is not None, said
    return int(found[1]), int(found[2])


def test_every_hook_of_the_addon_is_broken_here() -> None:
    assert {name for name in all_hooks if hasattr(LocalityAddon, name)} == set(HOOKS)


@pytest.mark.parametrize("part", PARTS)
def test_traffic_goes_on_as_it_comes_and_the_loss_is_counted(tmp_path: Path, part: str) -> None:
    with sabotaged(tmp_path, part) as setup:
        for _ in range(2):
            connection = setup.connect()
            connection.request("POST", CHAT, b"{}", {"x-fault": "events_paused", "x-fault-ms": "150"})
            answer = connection.getresponse()
            assert answer.read1(65536) == EVENTS[0]  # not held back for those to come
            assert answer.read() == b"".join(EVENTS[1:]) + DONE
        if part == "error":
            with suppress(http.client.HTTPException, OSError):
                setup.ask("reset")
        assert setup.ask("fine") == (200, ANSWER)
        assert setup.proxy.stop() == 1
    recorded, lost = counts(setup.proxy.said)
    assert 1 <= lost <= 4
    said = setup.proxy.said_before + setup.proxy.said
    assert said.count("locality: a record was lost") == 1
    assert "Traceback" not in said
    with Capture.open(str(setup.capture)) as capture:
        assert list(capture.verify()) == []
        complete = [item for item in capture.exchanges() if item.ended == "complete"]
        (run,) = capture.runs()
    assert run.lost == lost
    assert recorded <= len(complete)
    report = json.loads(locality("report", str(setup.capture), "--format", "json").stdout)
    assert report["capture"]["lost"] == lost
    assert "could not be recorded, in whole or in part" in report["problems"][0]


def test_a_capture_that_another_process_holds_for_long_gets_everything_afterwards(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        setup.ask("fine")
        setup.recorded()
        with locked(setup.capture):
            began = time.monotonic()
            took = []
            while time.monotonic() < began + 12:  # longer than SQLite waits by itself
                asked = time.monotonic()
                assert setup.ask("fine") == (200, ANSWER)
                took.append(time.monotonic() - asked)
                time.sleep(0.5)
        assert setup.proxy.stop(timeout=60) == 0
    assert sorted(took)[len(took) // 2] < 0.5
    assert counts(setup.proxy.said) == (len(took) + 1, 0)
    assert len(setup.recorded()) == len(took) + 1


def test_a_third_signal_ends_the_waiting_for_a_capture_that_stays_locked(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        setup.ask("fine")
        setup.recorded()
        with locked(setup.capture):
            setup.ask("fine")
            began = time.monotonic()
            for _ in range(2):
                setup.proxy.process.send_signal(signal.SIGINT)
                time.sleep(0.7)
            assert setup.proxy.stop(signal.SIGINT, timeout=60) == 1
            took = time.monotonic() - began
    assert took < 40  # and not the minute that it waits else
    assert counts(setup.proxy.said) == (1, 1)
    assert "Traceback" not in setup.proxy.said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_in_the_middle_of_a_stream_ends_it_at_once(tmp_path: Path, number: int) -> None:
    with sabotaged(tmp_path, "nothing") as setup:
        setup.ask("fine")
        connection = setup.connect()
        connection.request("POST", CHAT, b"{}", {"x-fault": "endless"})
        connection.getresponse().read1(65536)
        setup.proxy.process.send_signal(number)
        time.sleep(0.5)
        assert setup.proxy.process.poll() is None  # it waits for the stream
        assert setup.proxy.stop(number) == 0
        assert eventually(lambda: bool(setup.upstream.gone_at))  # left, before the stream came to its end
    assert counts(setup.proxy.said) == (2, 0)
    assert [item.ended for item in setup.recorded()][1] in ("stopped", "reset")
    with Capture.open(str(setup.capture)) as capture:
        (run,) = capture.runs()
    assert (run.lost, run.ended_at_ns is None) == (0, False)


def test_a_capture_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        assert setup.ask("fine") == (200, ANSWER)
        connection = setup.connect()
        connection.request("POST", CHAT, b"{}", {"x-fault": "endless"})
        connection.getresponse().read1(65536)

        def both() -> bool:
            with Capture.open(str(setup.capture)) as capture:
                return capture.counts().exchanges == 2

        assert eventually(both)
        report = json.loads(locality("report", str(setup.capture), "--format", "json").stdout)
        assert report["capture"]["unfinished"] == 1
        assert "still being recorded: 1 exchange without an end" in report["problems"]
        setup.proxy.stop(signal.SIGKILL)
    report = json.loads(locality("report", str(setup.capture), "--format", "json").stdout)
    assert (report["capture"]["lost"], report["capture"]["unfinished"]) == (0, 1)
    assert report["problems"][0].startswith("incomplete: 1 exchange without an end: the proxy was killed")


def test_a_capture_that_is_locked_at_the_start_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.engine.BUSY_SECONDS", 0.05)
    path = tmp_path / "c.sqlite"
    Capture.create_or_open(str(path), redaction="secrets").close()
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(CaptureError, match=r"another process holds .* locked; wait until it is done"):
        Capture.create_or_open(str(path), redaction="secrets")
    holder.close()


def test_a_queue_that_is_full_by_items_or_by_bytes_loses_and_never_waits() -> None:
    for items, nbytes in ((2, 1 << 20), (100, 3 * 1024)):
        sink = BusySink()
        recorder = Recorder(sink, items=items, nbytes=nbytes)
        began = time.monotonic()
        for number in range(10):
            recorder.put(request(str(number)))
        assert time.monotonic() - began < 0.5
        sink.free.set()
        recorder.close()
        assert recorder.lost + len(sink.taken) == 10
        assert 2 <= len(sink.taken) <= 3  # one of them was being written


def _has_taken(sink: BusySink, count: int) -> bool:
    return len(sink.taken) == count


def test_a_record_that_waits_is_counted_by_its_bytes_and_given_back() -> None:
    sink = BusySink()
    recorder = Recorder(sink, nbytes=10_000)
    sink.free.set()
    for number in range(100):  # ten times what there is room for
        recorder.put(request(str(number)))
        assert eventually(partial(_has_taken, sink, number + 1))
    recorder.close()
    assert recorder.lost == 0


def test_a_stderr_that_nobody_reads_any_more_costs_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    class Closed:
        def write(self, _: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Closed())
    recorder = Recorder(BusySink(), items=1)
    for number in range(5):
        recorder.put(request(str(number)))
    recorder.close(timeout=0.1)
    assert recorder.lost == 5
    assert not any(thread.name == "locality-writer" for thread in threading.enumerate())
