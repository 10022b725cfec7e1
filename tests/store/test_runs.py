"""What a capture says of the runs that wrote it: ended in order, running, or killed."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from store.db import Capture
from store.records import RunSeen
from store.tally import Tally, read_tally, tally_path
from tests.conftest import ROOT, eventually
from tests.store.conftest import AskFor

KILLED = """
import sys, time
from pathlib import Path
from store.tally import Tally
tally = Tally(Path(sys.argv[1]))
for _ in range(7):
    tally.add()
print("counted", flush=True)
time.sleep(60)
"""
BEGUN = RunSeen(key="k1", started_at_ns=1)


def killed_tally(path: Path) -> None:
    """What a killed process leaves that had begun seven exchanges."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "counted\n"
    assert eventually(lambda: read_tally(path).begun == 7)
    assert read_tally(path).running
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()


def test_a_run_that_ended_tells_what_it_wrote_and_lost(path: Path, ask: AskFor) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_request(ask())  # of nobody's run
        capture.save_run(BEGUN)
        capture.save_request(ask())
        capture.save_request(ask())
        capture.save_run(RunSeen(key="k1", started_at_ns=1, ended_at_ns=9, lost=3))
        (run,) = capture.runs()
    assert (run.requests, run.lost, run.ended_at_ns, run.running) == (2, 3, 9, False)


def test_a_killed_run_is_told_from_a_running_one_and_its_missing_exchanges_are_counted(
    path: Path, ask: AskFor
) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_run(BEGUN)
        capture.save_request(ask())
        tally = Tally(tally_path(path, "k1"))
        (running,) = capture.runs()
        assert (running.running, running.lost) == (True, None)
        tally.close(keep=False)
        killed_tally(tally_path(path, "k1"))
        with Capture.open(str(path)) as reading:
            (killed,) = reading.runs()
    assert (killed.running, killed.ended_at_ns, killed.requests, killed.lost) == (False, None, 1, 6)


def test_the_next_run_takes_over_what_a_killed_one_left_and_removes_its_file(path: Path, ask: AskFor) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_run(BEGUN)
        capture.save_request(ask())
    killed_tally(tally_path(path, "k1"))
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        assert not tally_path(path, "k1").exists()
        capture.save_run(RunSeen(key="k2", started_at_ns=2))
        assert [(run.lost, run.ended_at_ns) for run in capture.runs()] == [(6, None), (None, None)]


def test_a_count_that_is_gone_is_not_known(path: Path) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_run(BEGUN)
    with Capture.open(str(path)) as capture:
        (run,) = capture.runs()
    assert (run.running, run.lost) == (False, None)


@pytest.mark.parametrize("umask", [0, 0o077])
def test_the_count_is_private_and_gone_after_an_end_in_order(path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        tally = Tally(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    tally.close(keep=False)
    assert not path.exists()


def test_a_capture_of_an_earlier_version_has_no_runs(path: Path, ask: AskFor) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_request(ask())
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE run")
    connection.execute("DELETE FROM locality_migration WHERE number = 3")
    connection.commit()
    connection.close()
    with Capture.open(str(path)) as capture:
        assert capture.runs() == ()
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_run(BEGUN)
        assert len(capture.runs()) == 1
