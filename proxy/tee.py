"""Copies a body as it streams by, stamping when each piece came.

It sits in mitmproxy's stream callback, outside the guard that catches exceptions in hooks, so it lets none
out: a piece that cannot be kept is given back all the same.
"""

from __future__ import annotations

import time

from store.records import Chunk


class Tee:
    """Collects one body. Call it with each piece; it returns the piece unchanged.

    `started_ns` is the monotonic moment (nanoseconds) from which arrivals are counted.
    """

    __slots__ = ("_byte_end", "_pieces", "_stamps", "_started_ns", "failed")

    def __init__(self, started_ns: int) -> None:
        self._started_ns = started_ns
        self._pieces: list[bytes] = []
        self._stamps: list[tuple[int, int]] = []
        self._byte_end = 0
        self.failed: Exception | None = None

    def __call__(self, piece: bytes) -> bytes:
        """Keep a copy and the time; `b""` is mitmproxy's end mark and is not a piece."""
        if piece and self.failed is None:
            try:
                self._keep(piece)
            except Exception as error:
                self.failed = error
        return piece

    def _keep(self, piece: bytes) -> None:
        self._byte_end += len(piece)
        self._pieces.append(piece)
        self._stamps.append((self._byte_end, time.monotonic_ns() - self._started_ns))

    @property
    def body(self) -> bytes:
        """All bytes so far."""
        return b"".join(self._pieces)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """Where each piece ended, and when it came."""
        return tuple(Chunk(byte_end=end, at_ns=at) for end, at in self._stamps)

    @property
    def first_ns(self) -> int | None:
        """When the first piece came, or None where none did."""
        return self._stamps[0][1] if self._stamps else None
