"""One connection of the misbehaving upstream: raw bytes in, raw bytes out, and when each was sent."""

import json
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any

LIMIT_SECONDS = 10.0


class ClientGoneError(Exception):
    """The other side closed while a fault was at work."""


@dataclass(slots=True, kw_only=True)
class Received:
    """A request exactly as it came, framing included."""

    head: bytes
    body: bytes = b""
    at: float = field(default_factory=time.monotonic)

    @property
    def method(self) -> str:
        return self.head.split(b" ", 1)[0].decode()

    @property
    def path(self) -> str:
        return self.head.split(b" ", 2)[1].decode()

    def header(self, name: str) -> str | None:
        for line in self.head.split(b"\r\n")[1:]:
            key, _, value = line.decode("latin-1").partition(":")
            if key.lower() == name.lower():
                return value.strip()
        return None

    @property
    def payload(self) -> bytes:
        """The body without chunk framing."""
        if (self.header("transfer-encoding") or "").lower() != "chunked":
            return self.body
        payload, rest = b"", self.body
        while rest:
            size, _, rest = rest.partition(b"\r\n")
            length = int(size.split(b";")[0], 16)
            payload, rest = payload + rest[:length], rest[length + 2 :]
        return payload

    def option(self, name: str) -> Any:
        """A setting of the fault: the header, else the field of the same name in a JSON body."""
        value: Any = self.header(name)
        if value is None and name.encode() in self.body:
            try:
                document = json.loads(self.payload)
            except ValueError:
                return None
            value = document.get(name) if isinstance(document, dict) else None
        return value


class Connection:
    """A client's socket, with every wait bounded and watched for the client leaving."""

    def __init__(self, sock: socket.socket, sent_at: list[tuple[float, bytes]]) -> None:
        self.sock, self.sent_at = sock, sent_at
        self.deadline = time.monotonic() + LIMIT_SECONDS
        self.keep = True
        self._left = b""
        sock.settimeout(LIMIT_SECONDS)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send, and note when; a client that left ends the fault."""
        # Noted before the send: a client must never seem to have it earlier than it left.
        self.sent_at.append((time.monotonic(), data))
        try:
            self.sock.sendall(data)
        except OSError as error:
            raise ClientGoneError from error

    def chunk(self, data: bytes) -> None:
        """Send one chunk of a chunked body."""
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def head(self, status: str = "200 OK", **headers: str) -> None:
        """Send a response head; underscores in names become hyphens."""
        lines = [f"HTTP/1.1 {status}"] + [
            f"{name.replace('_', '-')}: {text}" for name, text in headers.items()
        ]
        self.send("\r\n".join([*lines, "", ""]).encode())

    def body(
        self, data: bytes, status: str = "200 OK", kind: str = "application/json", **headers: str
    ) -> None:
        """Send a whole response with its length."""
        self.head(status, Content_Type=kind, Content_Length=str(len(data)), **headers)
        self.send(data)

    def events(self) -> None:
        """Send the head of a chunked event stream."""
        self.head(Content_Type="text/event-stream; charset=utf-8", Transfer_Encoding="chunked")

    def end(self) -> None:
        """Send the chunk that ends a chunked body."""
        self.send(b"0\r\n\r\n")

    @property
    def expired(self) -> bool:
        """Whether the time limit has come."""
        return time.monotonic() >= self.deadline

    def wait(self, seconds: float) -> None:
        """Do nothing for a while, unless the client leaves or the time limit comes first."""
        until = min(time.monotonic() + seconds, self.deadline)
        while (left := until - time.monotonic()) > 0:
            readable, _, _ = select.select([self.sock], [], [], left)
            if readable and not self._peek():
                raise ClientGoneError
            if readable:
                time.sleep(min(left, 0.01))

    def _peek(self) -> bytes:
        try:
            return self.sock.recv(1, socket.MSG_PEEK)
        except OSError:
            return b""

    def reset(self) -> None:
        """Close with a TCP reset instead of an orderly end."""
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()
        self.keep = False

    def read_head(self) -> Received | None:
        """The next request's head; None where the client has no more."""
        self.deadline = time.monotonic() + LIMIT_SECONDS
        while b"\r\n\r\n" not in self._left:
            if not self._fill(65536):
                return None
        head, _, self._left = self._left.partition(b"\r\n\r\n")
        return Received(head=head + b"\r\n\r\n")

    def read_body(self, request: Received, piece: int = 65536, pause: float = 0) -> None:
        """Read the rest of a request into it, in pieces, with a pause after each."""
        if (request.header("expect") or "").lower() == "100-continue":
            self.send(b"HTTP/1.1 100 Continue\r\n\r\n")
        if (request.header("transfer-encoding") or "").lower() == "chunked":
            while not (b"\r\n" + self._left).endswith(b"\r\n0\r\n\r\n") and self._fill(piece):
                time.sleep(pause)
            size = len(self._left)
        else:
            size = int(request.header("content-length") or 0)
            while len(self._left) < size and self._fill(piece):
                time.sleep(pause)
        request.body, self._left = self._left[:size], self._left[size:]

    def _fill(self, piece: int) -> bool:
        try:
            data = self.sock.recv(piece)
        except OSError:
            return False
        self._left += data
        return bool(data)
