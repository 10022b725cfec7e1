"""Copies a body as it streams by, stamping when each piece came.

It sits in mitmproxy's stream callback, outside the guard that catches exceptions in hooks, so it lets none
out: a piece that cannot be kept is given back all the same. Copies stay in memory: nothing unredacted may
touch the disk.
"""

from __future__ import annotations

import time
from array import array

from store.encodings import KEPT_BYTES, MAX_BYTES
from store.records import Arrivals

ROOM_BYTES = 256 * 2**20
"""For all copies of bodies that are on their way."""

_MANY, _SMALL_BYTES = 256, 1024


class Room:
    """How many bytes all copies together may still take."""

    __slots__ = ("left",)

    def __init__(self, nbytes: int = ROOM_BYTES) -> None:
        self.left = nbytes


class Tee:
    """Collects one body. Call it with each piece; it returns the piece unchanged.

    `started_ns` is the monotonic moment (nanoseconds) from which arrivals are counted. Of a body that is
    longer than the store takes, or than there is `room` for, the beginning is kept; `length` counts all.
    """

    __slots__ = ("_joined", "_pieces", "_room", "_stamps", "_started_ns", "_whole", "failed", "length")

    def __init__(self, started_ns: int, room: Room) -> None:
        self._started_ns = started_ns
        self._room = room
        self._pieces: list[bytes] = []
        self._joined = 0
        # No object for each piece: many of them have the interpreter look for garbage, which holds up all.
        self._stamps = array("q")
        self._whole = True
        self.failed: Exception | None = None
        self.length = 0

    def __call__(self, piece: bytes) -> bytes:
        """Keep a copy and the time; `b""` is mitmproxy's end mark and is not a piece."""
        if piece and self.failed is None:
            try:
                self._keep(piece)
            except Exception as error:
                self.failed = error
        return piece

    def _keep(self, piece: bytes) -> None:
        self.length += len(piece)
        self._stamps.extend((self.length, time.monotonic_ns() - self._started_ns))
        if self._whole:
            if self.length <= MAX_BYTES and len(piece) <= self._room.left:
                self._room.left -= len(piece)
                self._pieces.append(piece)
                if len(self._pieces) - self._joined == _MANY:
                    self._join()
            else:
                self._whole = False
                self._cut()

    def _join(self) -> None:
        """Make one of the newest pieces if they are small: as objects, they take several times their size."""
        newest = self._pieces[self._joined :]
        if sum(map(len, newest)) < _MANY * _SMALL_BYTES:
            self._pieces[self._joined :] = [b"".join(newest)]
        self._joined = len(self._pieces)

    def _cut(self) -> None:
        kept = b"".join(self._pieces)
        self._pieces = [kept[:KEPT_BYTES]]
        self._room.left += len(kept) - len(self._pieces[0])

    def close(self) -> bytes:
        """Return what is kept, and free its room; what still passes is only counted."""
        body = b"".join(self._pieces)
        self._room.left += len(body)
        self._pieces = []
        self._whole = False
        return body

    @property
    def chunks(self) -> Arrivals:
        """Where each piece ended, and when it came."""
        return Arrivals(self._stamps)

    @property
    def first_ns(self) -> int | None:
        """When the first piece came, or None where none did."""
        return self._stamps[1] if self._stamps else None
