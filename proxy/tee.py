"""Copies a body as it streams by, stamping when each piece came.

It sits in mitmproxy's stream callback, outside the guard that catches exceptions in hooks, so it does
nothing that can fail: append, and give the same bytes back.
"""

from __future__ import annotations

import time
from array import array

from store.records import Arrivals


class Tee:
    """Collects one body. Call it with each piece; it returns the piece unchanged.

    `started_ns` is the monotonic moment (nanoseconds) from which arrivals are counted.
    """

    __slots__ = ("_byte_end", "_pieces", "_stamps", "_started_ns")

    def __init__(self, started_ns: int) -> None:
        self._started_ns = started_ns
        self._pieces: list[bytes] = []
        # No object for each piece: many of them have the interpreter look for garbage, which holds up all.
        self._stamps = array("q")
        self._byte_end = 0

    def __call__(self, piece: bytes) -> bytes:
        """Keep a copy and the time; `b""` is mitmproxy's end mark and is not a piece."""
        if piece:
            self._byte_end += len(piece)
            self._pieces.append(piece)
            self._stamps.append(self._byte_end)
            self._stamps.append(time.monotonic_ns() - self._started_ns)
        return piece

    @property
    def body(self) -> bytes:
        """All bytes so far."""
        return b"".join(self._pieces)

    @property
    def chunks(self) -> Arrivals:
        """Where each piece ended, and when it came."""
        return Arrivals(self._stamps)

    @property
    def first_ns(self) -> int | None:
        """When the first piece came, or None where none did."""
        return self._stamps[1] if self._stamps else None
