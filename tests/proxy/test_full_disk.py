"""A disk that fills up, gets room again, or turns read-only under a running proxy: a real one."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from store.db import Capture
from tests.conftest import eventually, locality, proxy
from tests.proxy.disks import Disk, immutable, proxy_on_disk, why_no_disk
from tests.proxy.setup import Setup, started
from tests.upstream.faults import ANSWER, DONE, EVENTS
from tests.upstream.misbehaving import MisbehavingUpstream

NO_DISK = why_no_disk()
needs_a_disk = pytest.mark.skipif(NO_DISK is not None, reason=NO_DISK or "")


def asked(setup: Setup, number: int, size: int = 0) -> None:
    """One exchange whose stream comes through whole; its request compresses badly."""
    connection = setup.connect()
    text = f"{number} " + "".join(chr(33 + (at * at + number) % 90) for at in range(size))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    connection.request("POST", "/v1/chat/completions", body, {"x-fault": "events_joined"})
    assert connection.getresponse().read() == b"".join(EVENTS) + DONE


def written(disk: Disk, copy: Path, count: int) -> bool:
    """Whether so many exchanges come to be finished on the disk."""
    copy.mkdir(exist_ok=True)

    def there() -> bool:
        with Capture.open(str(disk.copied_to(copy))) as capture:
            counts = capture.counts()
            return counts.exchanges - counts.open == count

    return eventually(there)


@needs_a_disk
def test_a_full_disk_loses_records_and_no_answer_and_goes_on_where_it_gets_room(tmp_path: Path) -> None:
    with (
        MisbehavingUpstream() as upstream,
        proxy_on_disk(upstream.url, tmp_path / "disk", "size=2m,mode=700") as (listening, disk),
        ExitStack() as connections,
    ):
        setup = Setup(upstream, listening, tmp_path, connections)
        asked(setup, 0)
        assert written(disk, tmp_path / "early", 1)
        disk.fill()
        for number in range(1, 6):
            asked(setup, number, 20_000)
        assert setup.proxy.speaks()  # the writer has tried to write them
        disk.make_room()
        for number in range(6, 9):
            asked(setup, number)
        assert setup.proxy.stop() == 1
        capture = disk.copied_to(tmp_path)
    said = setup.proxy.said
    counts = re.search(r"(\d+) exchanges recorded, (\d+) lost", said)
    assert counts is not None
    recorded, lost = map(int, counts.groups())
    assert recorded + lost == 9
    assert lost >= 1
    assert "there is no room on the disk of" in said
    assert said.count("a record was lost") == 1
    with Capture.open(str(capture)) as opened:
        assert list(opened.verify()) == []
        sent = [json.loads(item.request.content)["messages"][0]["content"][0] for item in opened.exchanges()]
        (run,) = opened.runs()
    assert (sent[0], sent[-3:], run.lost) == ("0", ["6", "7", "8"], lost)
    report = locality("report", str(capture))
    assert f"incomplete: {lost} exchange" in report.stdout
    assert json.loads(locality("report", str(capture), "--format", "json").stdout)["capture"]["lost"] == lost


def test_a_capture_that_turns_read_only_loses_records_and_no_answer(tmp_path: Path) -> None:
    with started(tmp_path) as setup:
        assert setup.ask("fine") == (200, ANSWER)
        setup.recorded()
        with immutable(setup.capture, Path(f"{setup.capture}-wal")):
            for _ in range(3):
                assert setup.ask("fine") == (200, ANSWER)
            assert setup.proxy.stop() == 1
    assert "1 exchanges recorded, 3 lost" in setup.proxy.said
    assert "cannot be written" in setup.proxy.said
    with Capture.open(str(setup.capture)) as capture:
        assert [item.ended for item in capture.exchanges()] == ["complete"]


@needs_a_disk
@pytest.mark.parametrize("size", ["8k", "32k"])
def test_a_disk_without_room_for_a_capture_keeps_the_proxy_from_starting(tmp_path: Path, size: str) -> None:
    with (
        pytest.raises(RuntimeError, match=r"has room|make room") as refused,
        proxy_on_disk("http://127.0.0.1:1", tmp_path / "disk", f"size={size},mode=700"),
    ):
        pass
    assert "choose another path" in str(refused.value)
    assert "Traceback" not in str(refused.value)


@needs_a_disk
def test_a_read_only_disk_keeps_the_proxy_from_starting(tmp_path: Path) -> None:
    with (
        pytest.raises(
            RuntimeError, match=r"cannot write .*c\.sqlite \(Read-only file system\); choose another"
        ),
        proxy_on_disk("http://127.0.0.1:1", tmp_path / "disk", "ro,mode=700"),
    ):
        pass


def test_a_folder_that_takes_no_log_keeps_the_proxy_from_starting(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    capture = folder / "c.sqlite"
    Capture.create_or_open(str(capture), redaction="secrets").close()
    with (
        immutable(folder),
        pytest.raises(RuntimeError, match=r"c\.sqlite cannot be written .*its folder may be written too"),
        proxy("http://127.0.0.1:1", capture),
    ):
        pass


def test_a_log_that_nobody_else_could_read_keeps_the_proxy_from_starting(tmp_path: Path) -> None:
    # SQLite shares a write-ahead log through this file; where it cannot be one, there is no such log.
    (tmp_path / "c.sqlite-shm").mkdir()
    with (
        pytest.raises(RuntimeError, match=r"c\.sqlite cannot be written .*another path on a local disk"),
        proxy("http://127.0.0.1:1", tmp_path / "c.sqlite"),
    ):
        pass
