import gzip
import itertools
import json
import socket
import time
import zlib
from collections.abc import Iterator

import brotli
import pytest
import zstandard

from tests.upstream.faults import ANSWER, DONE, EVENTS, FAULTS
from tests.upstream.misbehaving import MisbehavingUpstream, refused_url
from tests.upstream.wire import Received

STREAM = b"".join(EVENTS) + DONE


@pytest.fixture
def upstream() -> Iterator[MisbehavingUpstream]:
    with MisbehavingUpstream() as running:
        yield running


def connect(upstream: MisbehavingUpstream) -> socket.socket:
    return socket.create_connection(("127.0.0.1", upstream.port), timeout=5)


def request(fault: str, *lines: str, body: bytes = b"", method: str = "POST") -> bytes:
    head = [f"{method} /fault/{fault} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *lines]
    return "\r\n".join([*head, "", ""]).encode() + body


def read_all(sock: socket.socket) -> bytes:
    data = b""
    while piece := sock.recv(65536):
        data += piece
    return data


def read_answer(sock: socket.socket) -> bytes:
    """The head of one answer with a length; its body is read and left out."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += sock.recv(4096)
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.partition(b"Content-Length: ")[2].split(b"\r\n")[0])
    while len(body) < length:
        body += sock.recv(4096)
    return head


def exchange(
    upstream: MisbehavingUpstream, fault: str, *lines: str, body: bytes = b""
) -> tuple[bytes, bytes]:
    """Head and raw body of one answer, read until the upstream closes."""
    with connect(upstream) as sock:
        sock.sendall(request(fault, *lines, body=body))
        sock.shutdown(socket.SHUT_WR)
        head, _, rest = read_all(sock).partition(b"\r\n\r\n")
    return head, rest


def chunks(raw: bytes) -> list[bytes]:
    found = []
    while raw:
        size, _, raw = raw.partition(b"\r\n")
        length = int(size, 16)
        if length:
            found.append(raw[:length])
        raw = raw[length + 2 :]
    return found


def stream_of(upstream: MisbehavingUpstream, fault: str) -> list[bytes]:
    """The chunks of a stream, from a client that keeps its side open."""
    with connect(upstream) as sock:
        sock.sendall(request(fault))
        data = b""
        while not data.endswith(b"\r\n0\r\n\r\n"):
            data += sock.recv(65536)
    return chunks(data.partition(b"\r\n\r\n")[2])


def test_paused_events_are_sent_when_their_times_say(upstream: MisbehavingUpstream) -> None:
    with connect(upstream) as sock:
        sock.sendall(request("events_paused", "x-fault-ms: 60"))
        data, seen = b"", list[float]()
        while not data.endswith(b"0\r\n\r\n"):
            data += sock.recv(65536)
            seen += [time.monotonic()] * (data.count(b"data:") - len(seen))
    sent = [at for at, piece in upstream.sent_at if b"data:" in piece]
    assert all(later - earlier > 0.05 for earlier, later in itertools.pairwise(sent))
    assert all(0 <= got - at < 0.05 for got, at in zip(seen, sent, strict=True))


@pytest.mark.parametrize("fault", ["event_split", "utf8_split", "byte_by_byte", "events_joined"])
def test_a_cut_stream_holds_the_same_bytes(upstream: MisbehavingUpstream, fault: str) -> None:
    assert b"".join(stream_of(upstream, fault)) == STREAM


def test_events_are_cut_in_the_middle(upstream: MisbehavingUpstream) -> None:
    assert not any(piece.endswith(b"\n\n") for piece in stream_of(upstream, "event_split")[:-1:2])


def test_characters_are_cut_after_each_of_their_bytes(upstream: MisbehavingUpstream) -> None:
    begins = [piece[0] for piece in stream_of(upstream, "utf8_split")]
    assert sum(byte & 0xC0 == 0x80 for byte in begins) == sum(byte & 0xC0 == 0x80 for byte in STREAM)


def test_one_byte_comes_at_a_time(upstream: MisbehavingUpstream) -> None:
    assert {len(piece) for piece in stream_of(upstream, "byte_by_byte")} == {1}


def test_all_events_come_in_one_chunk(upstream: MisbehavingUpstream) -> None:
    assert stream_of(upstream, "events_joined") == [STREAM]


def test_a_stream_may_end_without_done(upstream: MisbehavingUpstream) -> None:
    assert stream_of(upstream, "no_done") == EVENTS


def test_an_error_event_follows_a_200(upstream: MisbehavingUpstream) -> None:
    assert b'"error"' in stream_of(upstream, "error_event")[-1]


def test_the_line_separator_stands_unescaped(upstream: MisbehavingUpstream) -> None:
    assert "\u2028".encode() in stream_of(upstream, "line_separator")[0]


def test_odd_lines_begin_with_a_byte_order_mark(upstream: MisbehavingUpstream) -> None:
    assert stream_of(upstream, "odd_lines")[0].startswith(b"\xef\xbb\xbf: hello\r\n")


def test_a_reset_reaches_the_client_as_one(upstream: MisbehavingUpstream) -> None:
    with connect(upstream) as sock, pytest.raises(ConnectionResetError):
        sock.sendall(request("reset"))
        read_all(sock)


def test_an_early_close_leaves_the_length_unfulfilled(upstream: MisbehavingUpstream) -> None:
    head, body = exchange(upstream, "early_close")
    assert f"Content-Length: {len(ANSWER)}".encode() in head
    assert body == ANSWER[: len(ANSWER) // 2]


def test_a_chunked_body_may_stop_before_its_end(upstream: MisbehavingUpstream) -> None:
    assert not exchange(upstream, "early_close_chunked")[1].endswith(b"0\r\n\r\n")


def test_a_hang_up_sends_nothing(upstream: MisbehavingUpstream) -> None:
    assert exchange(upstream, "hang_up") == (b"", b"")


def test_silence_lasts_as_long_as_asked(upstream: MisbehavingUpstream) -> None:
    started = time.monotonic()
    with connect(upstream) as sock:
        sock.sendall(request("silent", body=b'{"x-fault-ms": 200}'))
        assert sock.recv(1) == b"H"
    assert 0.2 <= time.monotonic() - started < 1


def test_an_endless_stream_ends_with_its_client(upstream: MisbehavingUpstream) -> None:
    with connect(upstream) as sock:
        sock.sendall(request("endless"))
        sock.recv(65536)
    left = time.monotonic()
    while not upstream.gone_at and time.monotonic() < left + 2:
        time.sleep(0.01)
    assert upstream.gone_at
    assert upstream.gone_at[0] - left < 1


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_compressed_body_decodes_to_the_answer(upstream: MisbehavingUpstream, name: str) -> None:
    decoders = {
        "gzip": gzip.decompress,
        "deflate": zlib.decompress,
        "br": brotli.decompress,
        "zstd": zstandard.decompress,
    }
    head, body = exchange(upstream, name)
    assert f"Content-Encoding: {name}".encode() in head
    assert decoders[name](body) == ANSWER


def test_bodies_that_do_not_fit_their_encoding_do_not_decode(upstream: MisbehavingUpstream) -> None:
    assert exchange(upstream, "gzip_in_name_only")[1] == ANSWER
    with pytest.raises(zstandard.ZstdError):
        zstandard.decompress(exchange(upstream, "zstd_truncated")[1])


def test_a_compressed_stream_decodes_to_the_events(upstream: MisbehavingUpstream) -> None:
    assert gzip.decompress(b"".join(stream_of(upstream, "gzip_events"))) == STREAM


@pytest.mark.parametrize(
    ("fault", "status", "text"),
    [
        ("bad_request", b"400", b"maximum context length"),
        ("not_found_html", b"404", b"<html>"),
        ("too_large", b"413", b"Too Large"),
        ("gzip_404", b"404", b"\x1f\x8b"),
        ("no_such_fault", b"501", b"there are"),
    ],
)
def test_refusals_have_their_status(
    upstream: MisbehavingUpstream, fault: str, status: bytes, text: bytes
) -> None:
    head, body = exchange(upstream, fault)
    assert head.split(b" ")[1] == status
    assert text in body


def test_a_huge_body_is_as_big_as_asked(upstream: MisbehavingUpstream) -> None:
    assert len(exchange(upstream, "huge", "x-fault-mb: 3")[1]) == 3 << 20


def test_head_gets_a_length_and_no_body(upstream: MisbehavingUpstream) -> None:
    with connect(upstream) as sock:
        sock.sendall(request("fine", method="HEAD"))
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock).endswith(b"Content-Length: 640\r\n\r\n")


def test_an_echo_is_the_request_byte_for_byte(upstream: MisbehavingUpstream) -> None:
    body = '{"b" : 1,  "a":"é\\u00e9"}'.encode()
    assert exchange(upstream, "echo", "X-Odd:  two  spaces", body=body)[1] == request(
        "echo", "X-Odd:  two  spaces", body=body
    )
    assert upstream.received[0].body == body


def test_a_chunked_upload_is_kept_with_its_framing(upstream: MisbehavingUpstream) -> None:
    framed = b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"
    with connect(upstream) as sock:
        sock.sendall(b"POST /fault/echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + framed)
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock).endswith(framed)
    assert upstream.received[0].payload == b"abcdefg"


def test_the_fault_may_stand_in_a_header_or_in_the_body(upstream: MisbehavingUpstream) -> None:
    with connect(upstream) as sock:
        body = json.dumps({"x-fault": "too_large"}).encode()
        sock.sendall(b"POST /v1/x HTTP/1.1\r\nx-fault: bad_request\r\n\r\n")
        assert b" 400 " in read_answer(sock)
        sock.sendall(b"POST /v1/x HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert b" 413 " in read_answer(sock)


def test_a_slow_reader_takes_its_time(upstream: MisbehavingUpstream) -> None:
    started = time.monotonic()
    body = exchange(upstream, "slow_reader", "x-fault-ms: 20", body=bytes(1 << 20))[1]
    assert json.loads(body) == {"received": 1 << 20}
    assert time.monotonic() - started > 0.3


def test_a_refused_port_refuses() -> None:
    with refused_url() as url, pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=2)


def test_every_fault_says_what_it_does() -> None:
    assert [name for name, fault in FAULTS.items() if not name.isidentifier()] == []
    assert Received(head=b"GET /v1 HTTP/1.1\r\nA: b\r\n\r\n").header("a") == "b"
