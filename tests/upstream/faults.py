"""The faults of the misbehaving upstream, one function each; FAULTS maps their names to them.

Every one ends by itself: waits are bounded by the connection's time limit.
"""

import gzip
import json
import zlib
from collections.abc import Callable

import brotli
import zstandard

from tests.upstream.wire import Connection, Received

type Fault = Callable[[Connection, Received], None]
FAULTS: dict[str, Fault] = {}
TEXTS = ("Ahoy", " 潮汐", " ⚓🚢")
DONE = b"data: [DONE]\n\n"
ANSWER = json.dumps({"object": "chat.completion", "note": "high water " * 40}).encode()


def fault(function: Fault) -> Fault:
    """Enter a function into FAULTS under its own name."""
    FAULTS[function.__name__] = function
    return function


def delta(text: str) -> bytes:
    """One chat event."""
    chunk = {"id": "chatcmpl-1", "choices": [{"index": 0, "delta": {"content": text}}]}
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


EVENTS = [delta(text) for text in TEXTS]


def milliseconds(request: Received, default: float) -> float:
    """The setting `x-fault-ms` of a request, in seconds."""
    value = request.option("x-fault-ms")
    return float(default if value is None else value) / 1000


def _in_chunks(connection: Connection, chunks: list[bytes]) -> None:
    connection.events()
    for data in chunks:
        connection.chunk(data)
        connection.wait(0.001)
    connection.end()


@fault
def events_paused(connection: Connection, request: Received) -> None:
    """Three events with a pause (default 300 ms) after each."""
    connection.events()
    for data in EVENTS:
        connection.chunk(data)
        connection.wait(milliseconds(request, 300))
    connection.chunk(DONE)
    connection.end()


@fault
def event_split(connection: Connection, request: Received) -> None:
    """Every event in two chunks, cut in the middle of its JSON."""
    halves = [half for data in EVENTS for half in (data[:25], data[25:])]
    _in_chunks(connection, [*halves, DONE])


@fault
def utf8_split(connection: Connection, request: Received) -> None:
    """Cut inside every character that has more than one byte, after each of its bytes."""
    stream, chunks, start = b"".join(EVENTS), list[bytes](), 0
    for at in range(1, len(stream)):
        if stream[at] & 0xC0 == 0x80:
            chunks.append(stream[start:at])
            start = at
    _in_chunks(connection, [*chunks, stream[start:], DONE])


@fault
def byte_by_byte(connection: Connection, request: Received) -> None:
    """One byte a chunk."""
    _in_chunks(connection, [bytes([byte]) for byte in b"".join(EVENTS) + DONE])


@fault
def events_joined(connection: Connection, request: Received) -> None:
    """All events in one chunk."""
    _in_chunks(connection, [b"".join(EVENTS) + DONE])


@fault
def odd_lines(connection: Connection, request: Received) -> None:
    """A byte order mark, comments, CRLF, unknown fields, data in two lines, no space after the colon."""
    text = (
        '\ufeff: hello\r\n\r\nid: 7\r\nretry: 10\r\nevent: message\r\ndata:{"choices":\r\ndata: []}\r\n\r\n'
    )
    _in_chunks(connection, [text.encode(), DONE.replace(b"\n", b"\r\n")])


@fault
def line_separator(connection: Connection, request: Received) -> None:
    """U+2028 and U+0085 unescaped inside the data of an event."""
    _in_chunks(connection, [delta("one\u2028two\u0085three"), DONE])


@fault
def no_done(connection: Connection, request: Received) -> None:
    """A stream that ends in order, but without [DONE]."""
    _in_chunks(connection, EVENTS)


@fault
def error_event(connection: Connection, request: Received) -> None:
    """Status 200, three events, then an error event."""
    error = {"error": {"message": "the engine died", "type": "InternalServerError", "code": 500}}
    _in_chunks(connection, [*EVENTS, b"data: " + json.dumps(error).encode() + b"\n\n"])


@fault
def reset(connection: Connection, request: Received) -> None:
    """A TCP reset after two events."""
    connection.events()
    connection.chunk(EVENTS[0])
    connection.chunk(EVENTS[1])
    connection.wait(0.1)
    connection.reset()


@fault
def early_close(connection: Connection, request: Received) -> None:
    """An orderly close after half of the bytes the content-length promised."""
    connection.head(Content_Type="application/json", Content_Length=str(len(ANSWER)))
    connection.send(ANSWER[: len(ANSWER) // 2])
    connection.keep = False


@fault
def early_close_chunked(connection: Connection, request: Received) -> None:
    """An orderly close in a chunked body, before its last chunk."""
    connection.events()
    connection.chunk(EVENTS[0])
    connection.keep = False


@fault
def hang_up(connection: Connection, request: Received) -> None:
    """A close without a single byte of answer."""
    connection.keep = False


@fault
def silent(connection: Connection, request: Received) -> None:
    """Nothing at all for a while (default 2000 ms), then a whole answer."""
    connection.wait(milliseconds(request, 2000))
    connection.body(ANSWER)


@fault
def endless(connection: Connection, request: Received) -> None:
    """A chunked stream with no end: an event every 50 ms until the client leaves or time is up."""
    connection.events()
    while not connection.expired:
        connection.chunk(EVENTS[0])
        connection.wait(milliseconds(request, 50))
    connection.keep = False


def _encoded(name: str, data: bytes) -> Fault:
    def answer(connection: Connection, request: Received) -> None:
        connection.body(data, Content_Encoding=name)

    return answer


FAULTS["gzip"] = _encoded("gzip", gzip.compress(ANSWER, mtime=0))
FAULTS["deflate"] = _encoded("deflate", zlib.compress(ANSWER))
FAULTS["br"] = _encoded("br", brotli.compress(ANSWER))
FAULTS["zstd"] = _encoded("zstd", zstandard.compress(ANSWER))
FAULTS["zstd_truncated"] = _encoded("zstd", zstandard.compress(ANSWER)[:-9])
FAULTS["gzip_in_name_only"] = _encoded("gzip", ANSWER)


@fault
def gzip_404(connection: Connection, request: Received) -> None:
    """An error body that is compressed."""
    data = gzip.compress(b'{"error":{"message":"no such model","code":404}}', mtime=0)
    connection.body(data, "404 Not Found", Content_Encoding="gzip")


@fault
def gzip_events(connection: Connection, request: Received) -> None:
    """A compressed event stream, flushed after every event."""
    connection.head(Content_Type="text/event-stream", Content_Encoding="gzip", Transfer_Encoding="chunked")
    packer = zlib.compressobj(wbits=31)
    for data in [*EVENTS, DONE]:
        connection.chunk(packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))
    connection.chunk(packer.flush())
    connection.end()


@fault
def bad_request(connection: Connection, request: Received) -> None:
    """400 with a JSON error, as for a context that is too long."""
    message = "This model's maximum context length is 4096 tokens."
    error = {"error": {"message": message, "type": "BadRequestError", "param": None, "code": 400}}
    connection.body(json.dumps(error).encode(), "400 Bad Request")


@fault
def not_found_html(connection: Connection, request: Received) -> None:
    """404 with a page of HTML."""
    connection.body(b"<html><body><h1>Not here</h1></body></html>", "404 Not Found", "text/html")


@fault
def too_large(connection: Connection, request: Received) -> None:
    """413 and a close."""
    connection.body(b'{"detail":"Request Entity Too Large"}', "413 Content Too Large", Connection="close")
    connection.keep = False


@fault
def huge(connection: Connection, request: Received) -> None:
    """A body of `x-fault-mb` megabytes (default 8)."""
    blocks = int(request.option("x-fault-mb") or 8)
    connection.head(Content_Type="application/octet-stream", Content_Length=str(blocks << 20))
    for _ in range(blocks):
        connection.send(b"0123456789abcdef" * 65536)


@fault
def slow_reader(connection: Connection, request: Received) -> None:
    """An upload read in pieces of 64 KiB with a pause after each; MisbehavingUpstream does the reading."""
    connection.body(json.dumps({"received": len(request.body)}).encode())


@fault
def echo(connection: Connection, request: Received) -> None:
    """The request, head and body and framing, as it came."""
    connection.body(request.head + request.body, kind="application/octet-stream")


@fault
def interim(connection: Connection, request: Received) -> None:
    """Two interim responses that nobody asked for, the second in two pieces, then the answer."""
    connection.send(b"HTTP/1.1 100 Continue\r\n\r\n")
    connection.wait(0.05)
    connection.send(b"HTTP/1.1 103 Early Hints\r\nlink: </a>")
    connection.wait(0.05)
    connection.send(b"\r\n\r\n")
    connection.body(ANSWER)


@fault
def trailers(connection: Connection, request: Received) -> None:
    """A chunked answer with a trailer."""
    connection.events()
    connection.chunk(b"".join(EVENTS) + DONE)
    connection.send(b"0\r\nx-checksum: 1\r\n\r\n")


@fault
def two_lengths(connection: Connection, request: Received) -> None:
    """Two headers that contradict each other, which mitmproxy refuses to pass on."""
    connection.head(Content_Type="application/json", Content_Length="2", Transfer_Encoding="chunked")
    connection.send(b"{}")


@fault
def fine(connection: Connection, request: Received) -> None:
    """No fault: a plain JSON answer."""
    connection.body(ANSWER)
