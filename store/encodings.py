"""Undoing a Content-Encoding for the stored copy of a body.

It never raises and never returns bytes it could not decode, since those could hide a secret.
"""

from __future__ import annotations

import zlib

import brotli
import zstandard

MAX_BYTES = 64 << 20
KEPT_BYTES = 4 << 20
"""Of a body longer than the limit: no answer is, and searching all of it would hold up the writer."""
_CODINGS = {"gzip": "gzip", "x-gzip": "gzip", "deflate": "deflate", "br": "br", "zstd": "zstd"}
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A zstd block of 4 bytes can stand for 128 KB, so small bites keep a bomb from going off in one call.
_ZSTD_BITE = 256
_BITE = 1 << 20
_CONTROL = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b"))


def decode(
    wire: bytes, content_encoding: str | None, *, max_bytes: int = MAX_BYTES
) -> tuple[bytes, str | None]:
    """Return the decoded body, and what is wrong with it or None.

    `content_encoding` is the header's value, codings in the order they were applied. Where the
    bytes end early or are damaged, the part decoded until then comes back; where they would exceed
    `max_bytes`, only the first KEPT_BYTES do.
    """
    codings = [name.strip().lower() for name in (content_encoding or "").split(",")]
    codings = [name for name in codings if name not in ("", "identity")]
    if not codings:
        return _unlabelled(wire, max_bytes)
    content, problems = wire, []
    for name in reversed(codings):
        content, problem = _undo(name, content, max_bytes)
        if problem:
            problems.append(problem)
    return content, "; ".join(problems) or None


def _unlabelled(wire: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    # Compressed bytes without the header would carry their secrets past every pattern.
    for name, magic in (("gzip", _GZIP_MAGIC), ("zstd", _ZSTD_MAGIC)):
        if wire.startswith(magic):
            content, problem = _undo(name, wire, max_bytes)
            note = f"no Content-Encoding header, but the bytes are {name}"
            return content, f"{note}; {problem}" if problem else note
    if len(wire) > max_bytes:
        kept = min(max_bytes, KEPT_BYTES)
        return wire[:kept], f"longer than {max_bytes} bytes: only the first {kept} are stored"
    return wire, None


def _undo(name: str, data: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    if not data:
        return b"", None
    coding = _CODINGS.get(name)
    if coding is None:
        # Readable is not enough here: an unknown coding may be base64.
        if _is_text(data) and data.lstrip()[:1] in (b"{", b"["):
            return data, f"unknown Content-Encoding {name!r}, but the bytes are plain text"
        return b"", f"unknown Content-Encoding {name!r}: not stored"
    content, problem = _DECODERS[coding](data, max_bytes)
    if problem and not content and _is_text(data):
        return data, f"Content-Encoding says {name}, but the bytes are plain text"
    return content, f"{name}: {problem}" if problem else None


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(data.translate(None, _CONTROL)) == len(data)


def _gzip(data: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    return _zlib(data, max_bytes, 16 + zlib.MAX_WBITS)


def _deflate(data: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    # The standard means a zlib wrapper; some servers send the bare stream.
    content, problem = _zlib(data, max_bytes, zlib.MAX_WBITS)
    if problem and not content:
        bare, bare_problem = _zlib(data, max_bytes, -zlib.MAX_WBITS)
        if bare or not bare_problem:
            return bare, bare_problem
    return content, problem


def _zlib(data: bytes, max_bytes: int, wbits: int) -> tuple[bytes, str | None]:
    out: list[bytes] = []
    size, rest = 0, data
    while rest:
        member = zlib.decompressobj(wbits)
        while not member.eof:
            try:
                piece = member.decompress(rest, min(_BITE, max_bytes + 1 - size))
            except zlib.error as error:
                return b"".join(out), _damaged(size, error)
            out.append(piece)
            size += len(piece)
            if size > max_bytes:
                return _too_long(out, max_bytes)
            rest = member.unconsumed_tail
            if not member.eof and not rest and not piece:
                return b"".join(out), _truncated(size)
        # Zero padding after the last member is allowed; anything else must be another member.
        rest = member.unused_data.lstrip(b"\0") if wbits > zlib.MAX_WBITS else b""
    return b"".join(out), None


def _br(data: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    decoder = brotli.Decompressor()
    out: list[bytes] = []
    size, bite = 0, data
    while not decoder.is_finished():
        try:
            piece = decoder.process(bite, output_buffer_limit=_BITE)
        except brotli.error as error:
            return b"".join(out), _damaged(size, error)
        out.append(piece)
        size += len(piece)
        if size > max_bytes:
            return _too_long(out, max_bytes)
        if not piece and decoder.can_accept_more_data() and not decoder.is_finished():
            return b"".join(out), _truncated(size)
        bite = b""
    return b"".join(out), None


def _zstd(data: bytes, max_bytes: int) -> tuple[bytes, str | None]:
    out: list[bytes] = []
    size, start = 0, 0
    frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    while start < len(data):
        bite = data[start : start + _ZSTD_BITE]
        try:
            piece = frame.decompress(bite)
        except (zstandard.ZstdError, MemoryError) as error:
            return b"".join(out), _damaged(size, error)
        start += len(bite)
        out.append(piece)
        size += len(piece)
        if size > max_bytes:
            return _too_long(out, max_bytes)
        if frame.eof:
            start -= len(frame.unused_data)
            if start < len(data):
                frame = zstandard.ZstdDecompressor(max_window_size=1 << 27).decompressobj()
    return b"".join(out), None if frame.eof else _truncated(size)


_DECODERS = {"gzip": _gzip, "deflate": _deflate, "br": _br, "zstd": _zstd}


def _damaged(size: int, error: Exception) -> str:
    return f"damaged after {size} decoded bytes ({type(error).__name__}): the rest is not stored"


def _truncated(size: int) -> str:
    return f"ends early, after {size} decoded bytes"


def _too_long(pieces: list[bytes], max_bytes: int) -> tuple[bytes, str]:
    kept = min(max_bytes, KEPT_BYTES)
    content = b"".join(pieces)[:kept]
    return content, f"decodes to more than {max_bytes} bytes: only the first {kept} are stored"
