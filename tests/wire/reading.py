"""Takes HTTP/1.1 messages off a socket for both ends of the wire tests, and keeps the prefix of a broken one.

It is written from RFC 9112 and knows no library, so that it shares no mistake with the proxy.
"""

from __future__ import annotations

import socket

from tests.wire.scripts import Fields, Framing, Got

PATIENCE_SECONDS = 10.0


class BrokenError(Exception):
    """The connection ended inside a message; `reset` tells whether without an orderly close."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__("reset" if reset else "closed")
        self.reset = reset


class Reader:
    """Reads from one socket; what came after a message waits for the next call."""

    def __init__(self, sock: socket.socket) -> None:
        sock.settimeout(PATIENCE_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock = sock
        self._left = bytearray()

    def fill(self) -> None:
        """Wait for more bytes. Raises BrokenError where there are none, TimeoutError where none come."""
        try:
            data = self.sock.recv(65536)
        except TimeoutError:
            raise
        except OSError as error:
            raise BrokenError(reset=True) from error
        if not data:
            raise BrokenError(reset=False)
        self._left += data

    def head(self) -> Got | None:
        """The next message's first line and fields; None where the other side closed instead."""
        try:
            while (end := self._left.find(b"\r\n\r\n")) < 0:
                self.fill()
        except BrokenError:
            if self._left:
                raise
            return None
        start, *lines = bytes(self._left[:end]).split(b"\r\n")
        del self._left[: end + 4]
        folded = any(line[:1] in (b" ", b"\t") for line in lines)
        return Got(start=start, fields=_fields(lines), folded=folded)

    def body(self, got: Got, framing: Framing, *, enough: int | None = None) -> None:
        """Read the body into `got`, and its trailers; with `enough`, only so many bytes of it.

        A body that breaks off leaves what came, `complete` stays False, and `problem` says how.
        """
        try:
            match framing:
                case "none":
                    pass
                case "length":
                    size = int(value_of(got.fields, b"content-length") or 0)
                    self._exactly(got, size if enough is None else min(size, enough))
                case "chunked":
                    self._chunks(got, enough)
                case "close":
                    self._until_closed(got, enough)
            got.complete = enough is None
        except BrokenError as error:
            got.problem = str(error)
        except ValueError as error:
            got.problem = f"framing: {error}"

    def _exactly(self, got: Got, size: int) -> None:
        """Read on until the body has `size` bytes."""
        body = bytearray(got.body)
        try:
            while len(body) < size:
                if not self._left:
                    self.fill()
                take = self._left[: size - len(body)]
                body += take
                del self._left[: len(take)]
        finally:
            got.body = bytes(body)

    def _chunks(self, got: Got, enough: int | None) -> None:
        while enough is None or len(got.body) < enough:
            size = int(self._line().partition(b";")[0], 16)
            if size == 0:
                lines = []
                while line := self._line():
                    lines.append(line)
                got.trailers = _fields(lines)
                return
            self._exactly(got, len(got.body) + size)
            if (end := self._line()) != b"":
                raise ValueError(f"after a chunk of {size} bytes comes {end[:20]!r}")

    def _line(self) -> bytes:
        while (end := self._left.find(b"\r\n")) < 0:
            self.fill()
        line = bytes(self._left[:end])
        del self._left[: end + 2]
        return line

    def _until_closed(self, got: Got, enough: int | None) -> None:
        try:
            while enough is None or len(self._left) < enough:
                self.fill()
        except BrokenError as error:
            if error.reset:
                raise
        finally:
            got.body = bytes(self._left)
            self._left.clear()


def _fields(lines: list[bytes]) -> Fields:
    """Field lines, a folded one joined to what it continues (RFC 9112 5.2)."""
    found: list[tuple[bytes, bytes]] = []
    for line in lines:
        if line[:1] in (b" ", b"\t") and found:
            name, value = found[-1]
            found[-1] = (name, value + b" " + line.strip(b" \t"))
        else:
            name, _, value = line.partition(b":")
            found.append((name, value.strip(b" \t")))
    return tuple(found)


def value_of(fields: Fields, wanted: bytes) -> bytes | None:
    """A field's first value; `wanted` in lower case."""
    return next((value for name, value in fields if name.lower() == wanted), None)


def framing_of(fields: Fields, *, answer_to: bytes | None = None, status: int = 0) -> Framing:
    """How the end of a message's body is told (RFC 9112 6.3); `answer_to`: the request's method."""
    if answer_to == b"HEAD" or status in (204, 304) or 100 <= status < 200:
        return "none"
    if (value_of(fields, b"transfer-encoding") or b"").lower().endswith(b"chunked"):
        return "chunked"
    if value_of(fields, b"content-length") is not None:
        return "length"
    return "none" if answer_to is None else "close"
