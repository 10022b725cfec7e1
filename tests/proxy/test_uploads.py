"""Request bodies on their way: streamed, of any size, broken off, or wanted by nobody."""

from __future__ import annotations

import gzip
import hashlib
import os
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from proxy import tee
from proxy.tee import Room, Tee
from store.db import Capture
from store.records import RequestSeen
from tests.conftest import proxy
from tests.proxy.bare import CHAT, Between, answer, between, post
from tests.upstream.bare import OK, BareUpstream
from tests.upstream.misbehaving import refused_url

MB = 2**20
CHUNKED = b"Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Between]:
    with between(tmp_path_factory.mktemp("uploads")) as made:
        yield made


def chunked(*pieces: bytes, path: str = CHAT, lines: tuple[bytes, ...] = ()) -> list[bytes]:
    """A chunked request in the pieces in which it is sent."""
    head = b"\r\n".join([b"POST %s HTTP/1.1" % path.encode(), b"Host: here", CHUNKED, *lines, b"", b""])
    return [head, *(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces), b"0\r\n\r\n"]


def resident_mb(pid: int, what: str = "VmHWM") -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.partition(f"{what}:")[2].split()[0]) / 1024


def drained(upstream: BareUpstream, size: int) -> tuple[threading.Thread, list[str]]:
    """Answers the next request once its body has come; the digest of it goes into the list."""
    digests: list[str] = []

    def drain() -> None:
        taken = upstream.take()
        found = hashlib.sha256(body := taken.data.partition(b"\r\n\r\n")[2])
        left = size - len(body)
        while left and (piece := taken.sock.recv(MB)):
            found.update(piece)
            left -= len(piece)
        digests.append(found.hexdigest())
        taken.send(OK)

    thread = threading.Thread(target=drain)
    thread.start()
    return thread, digests


def test_an_upload_reaches_the_upstream_while_it_is_being_sent(shared: Between) -> None:
    client = shared.client()
    client.send(post(body=b'{"model":', length=13))
    taken = shared.take()
    taken.read_until(b'{"model":')
    client.send(b'"m"}')
    taken.read_until(b'{"model":"m"}')
    taken.send(OK)
    assert client.read_until(b"{}").startswith(b"HTTP/1.1 200 OK")
    client.close()
    assert shared.recorded().request.content == b'{"model":"m"}'


def test_a_chunked_upload_arrives_and_is_recorded_without_its_framing(shared: Between) -> None:
    client = shared.client()
    client.send(*chunked(b'{"mo', b'del":"', b'm"}'))
    taken = shared.take()
    framed = taken.read_until(b"0\r\n\r\n").partition(b"\r\n\r\n")[2]
    assert framed == b'4\r\n{"mo\r\n6\r\ndel":"\r\n3\r\nm"}\r\n0\r\n\r\n'
    taken.send(OK)
    client.read_until(b"{}")
    client.close()
    assert shared.recorded().request.content == b'{"model":"m"}'


def test_a_client_that_expects_100_gets_it_and_then_its_answer(shared: Between) -> None:
    client = shared.client()
    client.send(post(b"Expect: 100-continue", body=b"", length=2))
    assert client.read_until(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"{}")
    taken = shared.take()
    assert b"expect" not in taken.read_until(b"{}").lower()
    taken.send(OK)
    assert client.read_until(b"{}").startswith(b"HTTP/1.1 200 OK")
    client.close()
    assert shared.recorded().request.content == b"{}"


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_client_gone_during_an_upload_is_seen_within_a_second(shared: Between, framing: str) -> None:
    client = shared.client()
    client.send(post(body=b'{"model":', length=100) if framing == "length" else b"".join(chunked(b"{")[:2]))
    taken = shared.take()
    taken.read_until(b"{")
    left = time.monotonic()
    client.close()
    while taken.read():
        pass
    assert time.monotonic() - left < 1
    exchange = shared.recorded()
    assert (exchange.ended, exchange.status) == ("client_gone", None)
    assert exchange.request.content.startswith(b"{")


def test_an_answer_before_the_upload_is_complete_reaches_a_client_that_goes_on_sending(
    shared: Between,
) -> None:
    client = shared.client()
    client.send(post(body=b"x" * MB, length=30 * MB))
    taken = shared.take()
    refusal = answer(b"Connection: close", body=b"too large", status=b"413 Content Too Large")
    taken.send(refusal)
    taken.sock.shutdown(socket.SHUT_WR)
    reading = threading.Thread(target=lambda: [None for _ in iter(taken.read, b"")])
    reading.start()
    for _ in range(29):  # as a client does that looks at the answer only afterwards
        client.send(b"x" * MB)
    assert b"413 Content Too Large" in (got := client.read_all())
    assert got.endswith(b"too large")
    client.close()
    reading.join()
    exchange = shared.recorded()
    assert (exchange.status, exchange.response.content) == (413, b"too large")


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_upload_that_no_upstream_takes_gets_502_and_is_recorded(tmp_path: Path, framing: str) -> None:
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"high water " * 400_000 + b'"}]}'
    with (
        refused_url() as url,
        proxy(url, tmp_path / "c.sqlite") as running,
        BareUpstream() as unused,
        ExitStack() as connections,
    ):
        setup = Between(unused, running, tmp_path / "c.sqlite", connections)
        client = setup.client()
        client.send(*([post(body=body)] if framing == "length" else chunked(body[:9], body[9:])))
        got = client.read_all()
        exchange = setup.recorded()
    assert got.startswith(b"HTTP/1.1 502 Bad Gateway")
    assert b"Connect call failed" in got
    assert exchange.request.content == body
    assert (exchange.status, exchange.ended) == (None, "reset")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read off /proc")
@pytest.mark.parametrize(("path", "limit_mb"), [("/v1/files", 16), (CHAT, 48)])
def test_40_mb_pass_in_bounded_memory(tmp_path: Path, path: str, limit_mb: int) -> None:
    size = 40 * MB
    # Not recorded: only what is on its way. Recorded: also one copy, until it is handed to the writer.
    with between(tmp_path) as setup:
        body = os.urandom(size)
        thread, digests = drained(setup.upstream, size)
        client = setup.client()
        client.send(post(body=body[:1], path=path, length=size))
        before = resident_mb(setup.proxy.process.pid)
        client.send(body[1:-1])
        time.sleep(0.2)
        during = resident_mb(setup.proxy.process.pid)
        client.send(body[-1:])
        client.read_until(b"{}")
        thread.join()
    assert digests == [hashlib.sha256(body).hexdigest()]
    assert during - before < limit_mb


@pytest.mark.skipif(sys.platform != "linux", reason="open files are read off /proc")
def test_a_copy_of_an_upload_is_kept_in_no_file(tmp_path: Path) -> None:
    with between(tmp_path) as setup:
        pid = setup.proxy.process.pid
        thread, _ = drained(setup.upstream, 20 * MB)
        client = setup.client()
        before = files_of(pid)
        client.send(post(body=b"x" * (20 * MB - 1), length=20 * MB))
        assert files_of(pid) == before
        client.send(b"x")
        client.read_until(b"{}")
        thread.join()


def files_of(pid: int) -> set[str]:
    """The files a process has open, deleted ones too."""
    targets = [str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()]
    return {target for target in targets if target.startswith("/") and not target.startswith("/dev/")}


def test_of_a_body_that_is_too_long_the_beginning_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tee, "MAX_BYTES", 10)
    monkeypatch.setattr(tee, "KEPT_BYTES", 4)
    room = Room(100)
    copy = Tee(0, room)
    for piece in (b"abcdef", b"ghij"):
        assert copy(piece) == piece
    assert room.left == 90
    assert copy(b"k") == b"k"
    assert room.left == 96
    copy(b"l" * 200)
    assert (copy.close(), copy.length, room.left) == (b"abcd", 211, 100)


def test_copies_take_no_more_than_their_room() -> None:
    room = Room(10)
    first, second = Tee(0, room), Tee(0, room)
    first(b"1234567")
    second(b"abc")
    second(b"d")
    assert room.left == 0
    assert (second.close(), second.length) == (b"abc", 4)
    first(b"89a")
    assert (first.close(), first.length, room.left) == (b"123456789a", 10, 10)
    first(b"an answer came before this")
    assert (first.close(), room.left) == (b"", 10)


def test_a_body_that_was_cut_on_the_way_says_how_long_it_was(tmp_path: Path) -> None:
    request = RequestSeen(
        key="1",
        started_at_ns=0,
        method="POST",
        path=CHAT,
        query="",
        headers=(("Content-Encoding", "gzip"),),
        body=gzip.compress(b"a long one" * 99)[:20],
        wire_length=70 * MB,
    )
    with Capture.create_or_open(str(tmp_path / "c.sqlite"), redaction="secrets") as capture:
        capture.save_request(request)
        (exchange,) = capture.exchanges()
    assert exchange.request.wire_length == 70 * MB
    assert exchange.request.wire_sha256 == ""
    assert exchange.request.problem == f"of {70 * MB} bytes only the first 20 were kept on the way"


def test_many_small_pieces_take_little_more_than_their_bytes() -> None:
    copy, pieces = Tee(0, Room()), 100_000
    tracemalloc.start()
    for number in range(pieces):
        copy(number.to_bytes(3, "big"))
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 3 * pieces + 16 * pieces * 9 / 8 + 1_000_000  # bytes, and two numbers a piece
    assert copy.close() == b"".join(number.to_bytes(3, "big") for number in range(pieces))
