"""The client of the wire tests: plays sessions, each on a connection of its own, and keeps what it got.

It judges nothing.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlsplit

from tests.wire.generate import Session
from tests.wire.reading import BrokenError, Reader, framing_of
from tests.wire.scripts import Got, Script
from tests.wire.upstream import ScriptedUpstream, reset, send

THREADS = 16


class Client:
    """`got` holds what came back of each exchange that was begun, `left_at` when its client went."""

    def __init__(self, url: str, upstream: ScriptedUpstream) -> None:
        parts = urlsplit(url)
        self.address = (parts.hostname or "", parts.port or 0)
        self.upstream = upstream
        self.got: dict[int, Got] = {}
        self.left_at: dict[int, float] = {}

    def play_all(self, sessions: Sequence[Session], *, threads: int = THREADS) -> None:
        """Play every session once, so many at a time."""
        for session in sessions:
            self.upstream.scripts |= {script.number: script for script in session.scripts}
        numbers = itertools.count()

        def work() -> None:
            while (at := next(numbers)) < len(sessions):
                self.play(sessions[at])

        running = [threading.Thread(target=work) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()

    def play(self, session: Session) -> None:
        """Play one session; it ends early where an exchange leaves no connection to go on with."""
        with socket.create_connection(self.address, timeout=20) as sock:
            reader = Reader(sock)
            if session.pipelined:
                send(sock, (b"".join(script.request.wire for script in session.scripts),))
            for script in session.scripts:
                got = self.got[script.number] = Got()
                try:
                    self._exchange(reader, script, got, sent=session.pipelined)
                except (BrokenError, OSError) as error:
                    got.problem = f"{type(error).__name__}: {error}"
                if not got.complete:
                    return

    def _exchange(self, reader: Reader, script: Script, got: Got, *, sent: bool) -> None:
        if not sent:
            self._send(reader, script, got)
        if script.kind == "gone_waiting":
            self.upstream.wait_for(script.number, 10)
        if script.kind not in ("gone_waiting", "upload_cut"):
            _read(reader, script, got)
        if script.kind in ("gone_waiting", "gone_reading", "upload_cut"):
            self.left_at[script.number] = time.monotonic()
            got.complete = False
            (reset if script.request.ending == "reset" else socket.socket.close)(reader.sock)
        elif script.last and script.kind != "old" and got.complete and reader.head() is not None:
            got.problem = "the connection goes on after its last answer"

    def _send(self, reader: Reader, script: Script, got: Got) -> None:
        side = script.request
        if not script.expects:
            send(reader.sock, side.pieces)
            return
        reader.sock.sendall(side.wire[: side.head_size])
        if script.kind == "expect":
            answer = reader.head()
            if answer is None or b" 100" not in answer.start:
                raise BrokenError(reset=False)
            got.interims.append(answer.start)
        reader.sock.sendall(side.wire[side.head_size :])


def _read(reader: Reader, script: Script, got: Got) -> None:
    while (head := reader.head()) is not None and head.start.startswith(b"HTTP/1.1 1"):
        got.interims.append(head.start)
    if head is None:
        got.problem = "closed without an answer"
        return
    got.start, got.fields, got.folded = head.start, head.fields, head.folded
    if not head.start.startswith(b"HTTP/1."):
        got.problem = f"no answer begins with {head.start[:40]!r}"
        return
    if script.kind == "gone_reading":
        return
    status = int(head.start.split(b" ")[1])
    reader.body(got, framing_of(head.fields, answer_to=script.method, status=status))
