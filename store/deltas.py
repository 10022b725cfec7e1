"""Byte strings compressed against a predecessor, and which predecessor to take.

It knows no database: `blobs` keeps the results.
"""

from __future__ import annotations

from collections.abc import Sequence

import zstandard

# Level 5 is the first whose match finder reaches all of a 1 MB dictionary: level 3 takes 12 % more room.
LEVEL = 5
MAX_BYTES = 1 << 31
MAX_STORED = 256 << 20
"""Longer than any body is kept (`encodings.MAX_BYTES`): a file that claims more was made to fill memory."""
_STEP = 1 << 16
_PIECE_BYTES = 24


def compress(content: bytes, base: bytes | None) -> bytes:
    """Return `content` as one zstd frame; with `base`, only what `base` does not already hold."""
    reach = len(content) + len(base or b"")
    parameters = zstandard.ZstdCompressionParameters.from_level(
        LEVEL,
        source_size=len(content),
        dict_size=len(base or b""),
        # The window must cover the whole predecessor as well, or its head is out of reach at the end.
        window_log=min(max(reach.bit_length(), 18), zstandard.WINDOWLOG_MAX),
        write_checksum=False,
        write_dict_id=False,
    )
    compressor = zstandard.ZstdCompressor(dict_data=_dictionary(base), compression_params=parameters)
    return compressor.compress(content)


def decompress(data: bytes, base: bytes | None, *, length: int) -> bytes:
    """Return what `compress(content, base)` was given; raise ValueError where `data` is damaged."""
    if length == 0:
        return b""
    if max(length, _claimed(data)) > MAX_STORED:
        raise ValueError(f"a stored body claims to be longer than {MAX_STORED} bytes")
    decompressor = zstandard.ZstdDecompressor(dict_data=_dictionary(base), max_window_size=MAX_BYTES)
    try:
        return decompressor.decompress(data, max_output_size=length)
    except zstandard.ZstdError as error:
        raise ValueError(f"a stored body cannot be decompressed: {error}") from error


def _claimed(data: bytes) -> int:
    """The length that a frame claims in its head, by which its room is taken; -1 where it claims none."""
    try:
        return zstandard.frame_content_size(data)
    except zstandard.ZstdError as error:
        raise ValueError(f"a stored body cannot be decompressed: {error}") from error


def _dictionary(base: bytes | None) -> zstandard.ZstdCompressionDict | None:
    # zstd takes no raw dictionary shorter than 8 bytes.
    if base is None or len(base) < 8:
        return None
    return zstandard.ZstdCompressionDict(base, dict_type=zstandard.DICT_TYPE_RAWCONTENT)


def common_prefix(left: bytes, right: bytes) -> int:
    """Return how many leading bytes are equal."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left.startswith(right[start : start + _STEP], start):
        start += _STEP
    start, end = min(start, shorter), min(start + _STEP, shorter)
    while start < end:
        middle = (start + end + 1) // 2
        if left[start:middle] == right[start:middle]:
            start = middle
        else:
            end = middle - 1
    return start


def choose(content: bytes, candidates: Sequence[bytes]) -> int | None:
    """Return the index of the best predecessor of `content`, None where there is none.

    `candidates` come oldest first. The longest common prefix wins, ties going to the latest. Where no
    prefix reaches half of the body (a clock in the system prompt cuts them all short), the
    candidate that shares most of its pieces between quotes wins instead, by bytes.
    """
    if not candidates:
        return None
    prefixes = [common_prefix(content, candidate) for candidate in candidates]
    best = max(range(len(candidates)), key=lambda index: (prefixes[index], index))
    if len(candidates) == 1 or prefixes[best] * 2 >= min(len(content), len(candidates[best])):
        return best
    pieces = _pieces(content)
    shared = [sum(map(len, pieces & _pieces(candidate))) for candidate in candidates]
    return max(range(len(candidates)), key=lambda index: (shared[index], prefixes[index], index))


def _pieces(content: bytes) -> set[bytes]:
    # Short pieces (keys, roles) are the same in every session and tell nothing.
    return {piece for piece in content.split(b'"') if len(piece) >= _PIECE_BYTES}
