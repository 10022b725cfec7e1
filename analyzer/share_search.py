"""Searches bytes for any run of text of some originals: as it is, and out of what can hide it.

A run is 12 characters: shorter ones are met by chance, since 12 are more than a count or a word has in
common with prose. Runs of digits and JSON marks alone, and of fewer than four different characters
(indentation, rulers), are no text. The endpoints' own words may stand in both.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import contextlib
import html
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote_to_bytes

import numpy as np
import zstandard
from numpy.typing import NDArray

RUN = 12

type Hashes = NDArray[np.uint64]

_PRIME = np.uint64(1099511628211)
_BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(rb"(?:[0-9a-fA-F]{2}){12,}")
_NUMBERS = re.compile(rb"[\d,.\[\]{}:\" nul-]+")
_DIGITS = re.compile(rb"\d+")
_ENTITY = re.compile(rb"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ESCAPE = re.compile(rb"\\+u([0-9a-fA-F]{4})")
_DECOMPRESSORS: Mapping[bytes, Callable[[], Any]] = {
    b"\x28\xb5\x2f\xfd": lambda: zstandard.ZstdDecompressor().decompressobj(),
    b"\x1f\x8b": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
    b"\x78\x9c": zlib.decompressobj,
    b"\x78\x01": zlib.decompressobj,
    b"\x78\xda": zlib.decompressobj,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ": lzma.LZMADecompressor,
}
"""What undoes a compression, by the bytes it begins with."""

_NOT_COMPRESSED = (zstandard.ZstdError, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError)
_DIFFERENT = 4
_LONG = 4096
"""Something that long was encoded by itself, and begins where it begins."""
_DEEPEST = 3


class TextSearch:
    """Finds runs of text that are in some bytes; `allowed` are words that may be there."""

    def __init__(self, searched: Iterable[bytes], allowed: Iterable[bytes]) -> None:
        self._text = b"\n".join(form for data in searched for form in forms(data)).lower()
        self._hashes = np.unique(_hashes(self._text))
        self._allowed = b"\n".join(allowed).lower()

    def found(self, originals: Iterable[bytes]) -> Iterator[bytes]:
        """The first run of each original that is in what is searched."""
        for original in originals if len(self._hashes) else ():
            text = original.lower()
            hashes = _hashes(text)
            # Not np.isin, which would sort all that is searched for every original.
            places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            for at in np.flatnonzero(self._hashes[places] == hashes).tolist():
                run = text[at : at + RUN]
                if _is_text(run) and run not in self._allowed and run in self._text:
                    yield run
                    break


def forms(data: bytes, depth: int = 0) -> Iterator[bytes]:
    """Bytes, and all that can be got out of them by undoing encodings and compressions."""
    yield data
    if depth == _DEEPEST:
        return
    for inner in _undone(data):
        if len(inner) >= RUN:
            yield from forms(inner, depth + 1)


def _undone(data: bytes) -> Iterator[bytes]:
    if b"\0" in data:
        yield data.replace(b"\0", b"")  # UTF-16 and UTF-32
    if b"%" in data and (plain := unquote_to_bytes(data)) != data:
        yield plain
    for run in _HEX.findall(data):
        yield bytes.fromhex(run.decode())
    for run in _BASE64.findall(data):
        for start in range(4 if len(run) < _LONG else 1):
            yield from _from_base64(run[start:].rstrip(b"="))
    if _ENTITY.search(data):
        yield _ENTITY.sub(lambda match: _utf8(html.unescape(match[0].decode())), data)
    if _ESCAPE.search(data):
        yield _ESCAPE.sub(lambda match: _utf8(chr(int(match[1], 16))), data)
    for magic, decompressor in _DECOMPRESSORS.items():
        start = data.find(magic)
        while start >= 0:
            with contextlib.suppress(*_NOT_COMPRESSED):
                yield decompressor().decompress(data[start:])
            start = data.find(magic, start + 1)


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _from_base64(run: bytes) -> Iterator[bytes]:
    whole = run[: len(run) // 4 * 4]
    try:
        yield base64.b64decode(whole, altchars=b"-_" if b"-" in whole or b"_" in whole else None)
    except (binascii.Error, ValueError):
        return


def _is_text(run: bytes) -> bool:
    return len(set(run)) >= _DIFFERENT and (not _NUMBERS.fullmatch(run) or bool(_DIGITS.fullmatch(run)))


def _hashes(text: bytes) -> Hashes:
    """A number for each run, equal for equal ones."""
    data = np.frombuffer(text, dtype=np.uint8).astype(np.uint64)
    count = max(0, len(data) - RUN + 1)
    found = np.zeros(count, dtype=np.uint64)
    for offset in range(RUN):
        found = found * _PRIME + data[offset : offset + count]
    return found
