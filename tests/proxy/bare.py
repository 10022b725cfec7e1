"""A client and a server of bytes with the real proxy in between: for tests of what crosses the wire."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from store.records import Exchange
from tests.captures import ended_since
from tests.conftest import Running, proxy
from tests.upstream.bare import BareUpstream, Taken

CHAT = "/v1/chat/completions"


@dataclass
class Between:
    """A proxy with a bare upstream behind it."""

    upstream: BareUpstream
    proxy: Running
    capture: Path
    connections: ExitStack
    seen: int = 0

    def client(self) -> Client:
        """A new connection to the proxy."""
        parts = urlsplit(self.proxy.url)
        sock = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=30)
        return Client(self.connections.enter_context(sock))

    def take(self) -> Taken:
        """The next connection that reached the upstream."""
        return self.upstream.take()

    def recorded(self) -> Exchange:
        """The one exchange that is new in the capture, once it has ended."""
        (exchange,) = ended_since(self.capture, self.seen)
        self.seen += 1
        return exchange


@contextmanager
def between(folder: Path, *options: str, host: str = "127.0.0.1", prefix: str = "") -> Iterator[Between]:
    """A proxy in front of a bare upstream."""
    capture = folder / "c.sqlite"
    with (
        BareUpstream(host) as upstream,
        proxy(upstream.url + prefix, capture, *options) as running,
        ExitStack() as connections,
    ):
        yield Between(upstream, running, capture, connections)


class Client:
    """A socket to the proxy. Reads whole answers, or whatever comes."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.data = b""

    def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.sock.sendall(piece)

    def read_until(self, enough: bytes) -> bytes:
        """Everything up to and with `enough`; what comes after it waits."""
        while enough not in self.data:
            piece = self.sock.recv(65536)
            assert piece, f"the proxy closed after {self.data[-300:]!r}"
            self.data += piece
        found, end, self.data = self.data.partition(enough)
        return found + end

    def read_bytes(self, size: int) -> bytes:
        """So many bytes."""
        while len(self.data) < size:
            piece = self.sock.recv(65536)
            assert piece, f"the proxy closed after {len(self.data)} bytes"
            self.data += piece
        found, self.data = self.data[:size], self.data[size:]
        return found

    def read_all(self) -> bytes:
        """Everything up to the end of the connection, also where that is a reset."""
        with suppress(ConnectionResetError):
            while piece := self.sock.recv(65536):
                self.data += piece
        found, self.data = self.data, b""
        return found

    def close(self) -> None:
        self.sock.close()


def post(*lines: bytes, body: bytes = b"{}", path: str = CHAT, length: int | None = None) -> bytes:
    """A request with a length, its own or another."""
    size = len(body) if length is None else length
    head = [b"POST %s HTTP/1.1" % path.encode(), b"Host: here", b"Content-Length: %d" % size, *lines]
    return b"\r\n".join([*head, b"", b""]) + body


def answer(*lines: bytes, body: bytes = b"{}", status: bytes = b"200 OK") -> bytes:
    """An answer with a length."""
    head = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *lines]
    return b"\r\n".join([*head, b"", b""]) + body
