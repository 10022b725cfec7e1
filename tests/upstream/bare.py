"""An upstream without a mind of its own: a test takes its connections and plays the server's part itself."""

from __future__ import annotations

import contextlib
import queue
import socket
import ssl
import threading
from types import TracebackType
from typing import Self

LIMIT_SECONDS = 30.0
STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
_NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


class Taken:
    """A connection of a client, and what was read of it so far."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.data = b""

    def read_until(self, enough: bytes) -> bytes:
        """Read until something stands in the data."""
        while enough not in self.data:
            assert self.read(), f"the client left after {self.data[-200:]!r}"
        return self.data

    def read(self, size: int = 1 << 20) -> bytes:
        """Read on; b"" at the client's end, also where it is a reset."""
        try:
            piece = self.sock.recv(size)
        except ConnectionResetError:
            piece = b""
        self.data += piece
        return piece

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)


class BareUpstream:
    """Use as a context manager. The proxy's own questions are answered here; `take` waits for a client's."""

    def __init__(self, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port: int = self._listener.getsockname()[1]
        self._tls = tls
        scheme, name = "https" if tls else "http", f"[{host}]" if ":" in host else host
        self.url = f"{scheme}://{name}:{self.port}"
        self._waiting: queue.Queue[Taken] = queue.Queue()
        self._open = contextlib.ExitStack()
        self.connections = 0

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._open.close()

    def take(self) -> Taken:
        """The next connection of a client, its request's head read at least."""
        return self._waiting.get(timeout=LIMIT_SECONDS)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                sock.settimeout(LIMIT_SECONDS)
                self._open.callback(sock.close)
                threading.Thread(target=self._sort, args=(sock,), daemon=True).start()

    def _sort(self, sock: socket.socket) -> None:
        with contextlib.suppress(AssertionError, OSError):
            if self._tls:
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.callback(sock.close)
            taken = Taken(sock)
            if b"User-Agent: Python-urllib" in taken.read_until(b"\r\n\r\n"):
                taken.send(_NOTHING)
                sock.close()
            else:
                self.connections += 1
                self._waiting.put(taken)
