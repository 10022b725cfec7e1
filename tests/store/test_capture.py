from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from store import engine, migrations
from store.db import Capture, CaptureError
from store.records import Chunk, RequestSeen, ResponseSeen, ServerFact

type AskFor = Callable[..., RequestSeen]
type Answer = Callable[..., ResponseSeen]

ROOT = Path(__file__).parents[2]

WRITER = """
import sys
from store.db import Capture
from store.records import RequestSeen, ResponseSeen
capture = Capture.create_or_open(sys.argv[1], redaction="secrets")
for number in range(10**6):
    key = str(number)
    capture.save_request(RequestSeen(key=key, started_at_ns=number, method="POST", path="/v1/x", query="",
        headers=(), body=b'{"n": %d}' % number))
    if number % 3 != 2:
        capture.save_response(ResponseSeen(key=key, status=200, headers=(), body=b"answer %d" % number,
            chunks=(), ttft_ns=None, duration_ns=None, ended="complete", error=None))
    print(number, flush=True)
"""


def test_an_exchange_reads_back_as_it_was_saved(capture: Capture, ask: AskFor, answer: Answer) -> None:
    request = ask(b'{"a": 1}', headers=(("Content-Type", "application/json"),), query="beta=true")
    exchange_id = capture.save_request(request)
    response = answer(request, b"data: {}\n\n", headers=(("date", "today"),))
    assert capture.save_response(response) == exchange_id
    read = capture.exchange(exchange_id)
    assert (read.method, read.path, read.query) == ("POST", "/v1/x", "beta=true")
    assert read.started_at_ns == request.started_at_ns
    assert read.request_headers == (("Content-Type", "application/json"),)
    assert read.request.content == b'{"a": 1}'
    assert read.request.wire_length == 8
    assert read.request.wire_sha256 == hashlib.sha256(b'{"a": 1}').hexdigest()
    assert read.response_headers == (("date", "today"),)
    assert read.response.content == b"data: {}\n\n"
    assert read.chunks == response.chunks
    assert (read.status, read.ttft_ns, read.duration_ns) == (200, 4_000_000, 6_000_000)
    assert (read.ended, read.error) == ("complete", None)


def test_a_request_without_an_answer_stays_open(capture: Capture, ask: AskFor) -> None:
    capture.save_request(ask(b"x"))
    (read,) = capture.exchanges()
    assert (read.ended, read.status, read.response_headers, read.chunks) == ("open", None, (), ())
    assert read.response.content == b""
    assert capture.counts().open == 1


def test_exchanges_come_in_the_order_of_their_start(capture: Capture, ask: AskFor) -> None:
    requests = [ask(b"%d" % number) for number in range(150)]
    for request in reversed(requests):
        capture.save_request(request)
    assert [read.request.content for read in capture.exchanges()] == [request.body for request in requests]


def test_an_answer_to_an_unknown_request_is_refused(capture: Capture, ask: AskFor, answer: Answer) -> None:
    request = ask()
    with pytest.raises(KeyError, match="save its request first"):
        capture.save_response(answer(request))
    capture.save_request(request)
    with pytest.raises(ValueError, match="already open"):
        capture.save_request(request)
    capture.save_response(answer(request))
    with pytest.raises(KeyError):
        capture.save_response(answer(request))
    with pytest.raises(KeyError):
        capture.exchange(999)


def test_facts_read_back(capture: Capture) -> None:
    facts = [
        ServerFact(at_ns=1, path="/version", status=200, body=b'{"version": "0.32"}'),
        ServerFact(at_ns=2, path="/metrics", status=None, body=b"connection refused"),
    ]
    capture.save_facts(facts)
    assert capture.facts() == facts
    assert capture.counts().facts == 2


def test_the_file_and_its_log_are_private_whatever_the_umask(path: Path, ask: AskFor) -> None:
    before = os.umask(0)
    try:
        with Capture.create_or_open(str(path), redaction="secrets") as capture:
            capture.save_request(ask())
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"run.db": 0o600, "run.db-wal": 0o600, "run.db-shm": 0o600}


def test_a_file_open_to_others_is_closed_to_them(path: Path) -> None:
    path.touch(mode=0o644)
    Capture.create_or_open(str(path), redaction="secrets").close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_closing_leaves_one_file(path: Path, ask: AskFor) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_request(ask())
    assert [file.name for file in path.parent.iterdir()] == ["run.db"]


def test_a_reopened_capture_goes_on(path: Path, ask: AskFor) -> None:
    body = os.urandom(20_000).hex().encode()
    for turn in range(3):
        with Capture.create_or_open(str(path), redaction="secrets") as capture:
            capture.save_request(ask(body + b"%d" % turn))
            stored = capture.counts().stored_bytes
    with Capture.open(f"sqlite:///{path}") as capture:
        assert capture.redaction == "secrets"
        assert [read.request.content for read in capture.exchanges()] == [
            body + b"%d" % turn for turn in range(3)
        ]
    assert stored < 25_000  # The second and third run found the first one's body.


def test_a_killed_writer_leaves_every_finished_row(path: Path) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert writer.stdout is not None
    last = -1
    for line in writer.stdout:
        last = int(line)
        if last == 40:
            break
    writer.send_signal(signal.SIGKILL)
    last = max([last, *(int(line) for line in writer.stdout if line.endswith("\n"))])
    assert writer.wait() == -signal.SIGKILL
    writer.stdout.close()
    with Capture.open(str(path)) as capture:
        read = list(capture.exchanges())
        assert list(capture.verify()) == []
    assert last >= 40
    assert len(read) > last
    for exchange in read[: last + 1]:
        number = exchange.started_at_ns
        assert exchange.request.content == b'{"n": %d}' % number
        assert exchange.ended == ("open" if number % 3 == 2 else "complete")
        assert exchange.response.content == (b"" if number % 3 == 2 else b"answer %d" % number)


def test_a_reader_in_another_process_sees_rows_while_they_are_written(
    capture: Capture, ask: AskFor, path: Path
) -> None:
    code = "import sys; from store.db import Capture; print(len(list(Capture.open(sys.argv[1]).exchanges())))"
    seen = []
    for _ in range(2):
        capture.save_request(ask())
        done = subprocess.run(
            [sys.executable, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        seen.append(int(done.stdout))
    assert seen == [1, 2]


def test_a_reader_in_the_middle_does_not_stop_the_writer(capture: Capture, ask: AskFor, path: Path) -> None:
    for _ in range(100):
        capture.save_request(ask())
    with Capture.open(str(path)) as reader:
        reading = reader.exchanges()
        next(reading)
        capture.save_request(ask(b"late"))
        assert [exchange.request.content for exchange in reading][-1] == b"late"


def test_a_reader_cannot_write(capture: Capture, ask: AskFor, path: Path) -> None:
    with Capture.open(str(path)) as reader, pytest.raises(ValueError, match="open for reading"):
        reader.save_request(ask())


def test_a_capture_in_a_read_only_folder_can_be_read(ask: AskFor) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "run.db")
        with Capture.create_or_open(str(path), redaction="secrets") as capture:
            capture.save_request(ask(b"here"))
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        # Root may write anywhere, so a test run by root steps down for a moment.
        root = os.geteuid() == 0
        if root:
            os.seteuid(65534)
        try:
            with Capture.open(str(path)) as reader:
                assert [read.request.content for read in reader.exchanges()] == [b"here"]
            assert not os.access(folder, os.W_OK, effective_ids=True)
        finally:
            if root:
                os.seteuid(0)
            Path(folder).chmod(0o755)


def test_an_empty_capture_is_fine(path: Path) -> None:
    Capture.create_or_open(str(path), redaction="secrets").close()
    with Capture.open(str(path)) as capture:
        assert list(capture.exchanges()) == []
        assert capture.facts() == []
        assert capture.counts().wire_bytes == 0


def test_what_is_no_capture_is_refused_with_the_next_step(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"no capture at .*start the proxy"):
        Capture.open(str(tmp_path / "missing.db"))
    with pytest.raises(CaptureError, match="is a folder"):
        Capture.open(str(tmp_path))
    text = tmp_path / "notes.txt"
    text.write_text("some notes, longer than a header")
    stranger = tmp_path / "stranger.db"
    connection = sqlite3.connect(stranger)
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    for opening in (Capture.open, lambda target: Capture.create_or_open(target, redaction="secrets")):
        with pytest.raises(CaptureError, match="no SQLite file; check the path"):
            opening(str(text))
        with pytest.raises(CaptureError, match="not a locality capture; check the path"):
            opening(str(stranger))
    assert text.read_text() == "some notes, longer than a header"
    nothing = tmp_path / "nothing.db"
    nothing.touch()
    with pytest.raises(CaptureError, match="empty database"):
        Capture.open(str(nothing))
    with pytest.raises(CaptureError, match="create the folder first"):
        Capture.create_or_open(str(tmp_path / "no" / "run.db"), redaction="secrets")
    with pytest.raises(CaptureError, match="give a file path"):
        Capture.open("nosuchdatabase://user:hunter2@host/db")
    with pytest.raises(CaptureError, match="in memory"):
        Capture.create_or_open("sqlite://", redaction="secrets")


def test_the_password_of_a_url_is_not_repeated_in_an_error() -> None:
    with pytest.raises(CaptureError) as caught:
        Capture.open("nosuchdatabase://user:hunter2@host/db")
    assert "hunter2" not in str(caught.value)


def test_a_capture_of_a_newer_version_is_refused(path: Path) -> None:
    Capture.create_or_open(str(path), redaction="secrets").close()
    connection = sqlite3.connect(path)
    connection.execute("INSERT INTO locality_migration VALUES (99)")
    connection.commit()
    connection.close()
    for opening in (Capture.open, lambda target: Capture.create_or_open(target, redaction="secrets")):
        with pytest.raises(CaptureError, match=r"newer version \(format 99.*upgrade locality"):
            opening(str(path))


def test_an_unknown_or_different_policy_is_refused(path: Path) -> None:
    with pytest.raises(ValueError, match="unknown redaction policy"):
        Capture.create_or_open(str(path), redaction="none")
    assert not path.exists()
    Capture.create_or_open(str(path), redaction="secrets").close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE capture SET value = 'sealed' WHERE name = 'redaction'")
    connection.commit()
    connection.close()
    with pytest.raises(CaptureError, match="started with redaction 'sealed'"):
        Capture.create_or_open(str(path), redaction="secrets")


def test_a_new_step_is_applied_once_to_an_old_capture(
    path: Path, ask: AskFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_request(ask(b"old"))
    calls = []
    monkeypatch.setattr(migrations, "STEPS", [*migrations.STEPS, lambda connection: calls.append(connection)])
    with Capture.open(str(path)) as capture:  # what is new are tables, which an old capture can do without
        assert [read.request.content for read in capture.exchanges()] == [b"old"]
    assert not calls
    for _ in range(2):
        with Capture.create_or_open(str(path), redaction="secrets") as capture:
            assert [read.request.content for read in capture.exchanges()] == [b"old"]
    assert len(calls) == 1
    Capture.open(str(path)).close()


def test_a_failing_step_leaves_the_capture_as_it_was(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Capture.create_or_open(str(path), redaction="secrets").close()

    def broken(connection: object) -> None:
        migrations.applied.create(connection, checkfirst=True)  # type: ignore[arg-type]
        raise RuntimeError("half way")

    with monkeypatch.context() as patch:
        patch.setattr(migrations, "STEPS", [*migrations.STEPS, broken])
        with pytest.raises(RuntimeError):
            Capture.create_or_open(str(path), redaction="secrets")
    Capture.open(str(path)).close()


def test_migrating_twice_changes_nothing(path: Path) -> None:
    database = engine.open_for_writing(str(path))
    with database.begin() as connection:
        assert migrations.version(connection) == 0
        assert migrations.migrate(connection) == len(migrations.STEPS)
    with database.begin() as connection:
        assert migrations.version(connection) == len(migrations.STEPS)
        assert migrations.migrate(connection) == 0
    database.dispose()


def test_verify_names_a_body_that_was_tampered_with(path: Path, ask: AskFor) -> None:
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        first = capture.save_request(ask(b"a body that is fine"))
        second = capture.save_request(ask(b"something else entirely", path="/other"))
        assert list(capture.verify()) == []
    connection = sqlite3.connect(path)
    connection.execute(
        "UPDATE blob SET sha256 = randomblob(32) WHERE id = "
        "(SELECT request_content FROM exchange WHERE id = ?)",
        (second,),
    )
    connection.execute(
        "UPDATE blob SET data = x'00' WHERE id = (SELECT request_content FROM exchange WHERE id = 1)"
    )
    connection.commit()
    connection.close()
    with Capture.open(str(path)) as capture:
        found = {damage.exchange_ids: damage.reason for damage in capture.verify()}
        with pytest.raises(ValueError, match="cannot be decompressed"):
            capture.exchange(first)
    assert set(found) == {(first,), (second,)}
    assert "hash" in found[(second,)]


def test_a_write_that_fails_leaves_the_capture_usable(
    capture: Capture, ask: AskFor, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'{"key": "sk-ant-api03-abcdefghijklmnop1234"}'
    request = ask(body)
    with monkeypatch.context() as patch:
        patch.setattr("store.rows.body_values", lambda *_, **__: {"nosuch": 1})
        with pytest.raises(Exception, match="nosuch"):
            capture.save_request(request)
    capture.save_request(request)
    capture.save_request(ask(body + b" "))
    assert [read.request.content for read in capture.exchanges()] == [
        b'{"key": "<secret:anthropic-key:1>"}',
        b'{"key": "<secret:anthropic-key:1>"} ',
    ]
    assert capture.counts().secrets == {"anthropic-key": 1}


def test_chunk_times_read_back_even_when_they_go_backwards(
    capture: Capture, ask: AskFor, answer: Answer
) -> None:
    chunks = (Chunk(byte_end=10, at_ns=2**62), Chunk(byte_end=5, at_ns=0), Chunk(byte_end=2**40, at_ns=7))
    request = ask()
    exchange_id = capture.save_request(request)
    response = answer(request)
    object.__setattr__(response, "chunks", chunks)
    capture.save_response(response)
    assert capture.exchange(exchange_id).chunks == chunks


def test_a_locked_capture_asks_for_another_try_and_then_takes_the_same_record(
    path: Path, ask: AskFor, answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "BUSY_SECONDS", 0.05)
    request = ask(b'{"key": "sk-ant-api03-abcdefghijklmnop1234"}')
    fact = ServerFact(at_ns=1, path="/version", status=200, body=b"{}")
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        for _ in range(2):
            with pytest.raises(TimeoutError, match="locked"):
                capture.save_request(request)
            with pytest.raises(TimeoutError):
                capture.save_facts([fact])
        other.rollback()
        capture.save_request(request)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TimeoutError):
            capture.save_response(answer(request))
        other.close()
        capture.save_response(answer(request))
        capture.save_facts([fact])
        assert [read.ended for read in capture.exchanges()] == ["complete"]
        assert capture.facts() == [fact]
        assert capture.counts().secrets == {"anthropic-key": 1}


def test_a_deleted_or_replaced_file_is_noticed_before_a_write_and_at_the_end(path: Path, ask: AskFor) -> None:
    for replacement in (None, b"", b"something else"):
        capture = Capture.create_or_open(str(path), redaction="secrets")
        capture.save_request(ask())
        path.unlink()
        if replacement is not None:
            path.write_bytes(replacement)
        with pytest.raises(CaptureError, match="deleted, moved or replaced"):
            capture.save_request(ask())
        with pytest.raises(CaptureError, match="deleted, moved or replaced"):
            capture.close()
        for file in path.parent.iterdir():
            file.unlink()
