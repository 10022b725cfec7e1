"""The upstream of the wire tests: plays the script that a request names, and keeps what it got.

It judges nothing.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time

from tests.upstream.misbehaving import MisbehavingUpstream
from tests.wire.reading import BrokenError, Reader, framing_of, value_of
from tests.wire.scripts import NUMBER, Got, Script

UNKNOWN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class ScriptedUpstream(MisbehavingUpstream):
    """Use as a context manager. `got` holds what came of each exchange, `again` the numbers that came twice.

    `left_at` is when the proxy was found to have let go of an exchange whose client went.
    """

    def __init__(self) -> None:
        super().__init__()
        self.scripts: dict[int, Script] = {}
        self.got: dict[int, Got] = {}
        self.again: list[int] = []
        self.left_at: dict[int, float] = {}
        self._arrived = threading.Condition()

    def wait_for(self, number: int, seconds: float) -> bool:
        """Wait until a request has come whole."""
        with self._arrived:
            return self._arrived.wait_for(lambda: number in self.got, seconds)

    def _serve(self, sock: socket.socket) -> None:
        self._open.add(sock)
        reader = Reader(sock)
        try:
            while self._exchange(reader):
                pass
        except (OSError, BrokenError):
            pass  # what is missing shows in `got`
        finally:
            self._open.discard(sock)
            sock.close()

    def _exchange(self, reader: Reader) -> bool:
        reader.sock.settimeout(None)
        got = reader.head()
        if got is None:
            return False
        script = self.scripts.get(int(value_of(got.fields, NUMBER.lower()) or -1))
        if script is None:
            reader.sock.sendall(UNKNOWN)
            return True
        if value_of(got.fields, b"expect"):
            reader.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        framing = framing_of(got.fields)
        if script.early:
            reader.body(got, framing, enough=len(script.request.body) // 2)
            self._play(reader, script)
        reader.body(got, framing)
        self._keep(script.number, got)
        if not got.complete:
            return False
        if not script.early:
            self._play(reader, script)
        return script.answer.ending == "whole"

    def _keep(self, number: int, got: Got) -> None:
        with self._arrived:
            if number in self.got:
                self.again.append(number)
            self.got[number] = got
            self._arrived.notify_all()

    def _play(self, reader: Reader, script: Script) -> None:
        for interim in script.interims:
            reader.sock.sendall(interim)
        if script.kind != "gone_waiting":
            send(reader.sock, script.answer.pieces)
        if script.kind.startswith("gone_"):
            with contextlib.suppress(BrokenError, TimeoutError):
                reader.sock.settimeout(20)
                reader.fill()
            self.left_at[script.number] = time.monotonic()
            raise BrokenError(reset=False)
        if script.answer.ending == "reset":
            reset(reader.sock)


def send(sock: socket.socket, pieces: tuple[bytes, ...]) -> None:
    """Send pieces one by one; few of them with a pause, so that each may come alone."""
    for at, piece in enumerate(pieces):
        sock.sendall(piece)
        if 0 < len(pieces) - 1 < 6 and at % 2 == 0:
            time.sleep(0.001)


def reset(sock: socket.socket) -> None:
    """Close with a TCP reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
