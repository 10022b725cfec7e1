"""Chunk times as a few bytes each: differences, byte plane by byte plane, compressed.

It interprets no time and no offset; whatever fits 64 bits comes back as it was.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate

import zstandard

from store import deltas
from store.records import Chunk

_WIDTH = 8


def pack(chunks: Sequence[Chunk]) -> bytes | None:
    """Return the chunks as one byte string, None where there are none."""
    if not chunks:
        return None
    ends = _planes(chunk.byte_end for chunk in chunks)
    times = _planes(chunk.at_ns for chunk in chunks)
    return zstandard.ZstdCompressor(level=9, write_checksum=False).compress(ends + times)


def unpack(packed: bytes | None) -> tuple[Chunk, ...]:
    """Return what `pack` was given."""
    if packed is None:
        return ()
    planes = deltas.decompress(packed, None, length=deltas.MAX_STORED)
    half = len(planes) // 2
    pairs = zip(_values(planes[:half]), _values(planes[half:]), strict=True)
    return tuple(Chunk(byte_end=byte_end, at_ns=at_ns) for byte_end, at_ns in pairs)


def _planes(values: Iterable[int]) -> bytes:
    differences = array("q")
    before = 0
    for value in values:
        differences.append(value - before)
        before = value
    if sys.byteorder == "big":
        differences.byteswap()
    # All lowest bytes first: the high ones of small differences are all zero and cost nothing.
    octets = differences.tobytes()
    return b"".join(octets[plane::_WIDTH] for plane in range(_WIDTH))


def _values(planes: bytes) -> Iterable[int]:
    count = len(planes) // _WIDTH
    octets = bytearray(len(planes))
    for plane in range(_WIDTH):
        octets[plane::_WIDTH] = planes[plane * count : (plane + 1) * count]
    differences = array("q")
    differences.frombytes(bytes(octets))
    if sys.byteorder == "big":
        differences.byteswap()
    return accumulate(differences)
