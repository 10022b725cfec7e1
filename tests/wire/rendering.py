"""Puts a side's bytes together: its framing, its chunks, its folded lines, and where all of it is cut."""

from __future__ import annotations

import random
from dataclasses import replace

from tests.wire.pools import FOLDABLE
from tests.wire.scripts import Ending, Fields, Script, Side


def rendered(rng: random.Random, side: Side, body: bytes, *, trickle: bool) -> Side:
    """The side with its framing fields, its bytes, and where they are cut."""
    fields = list(side.fields)
    trailers: Fields = ()
    framed = b""
    if side.framing == "length":
        fields.insert(rng.randrange(1, len(fields) + 1), (b"Content-Length", b"%d" % len(body)))
        framed = body
    elif side.framing == "chunked":
        name, value = rng.choice([(b"Transfer-Encoding", b"chunked"), (b"transfer-encoding", b"Chunked")])
        fields.insert(rng.randrange(1, len(fields) + 1), (name, value))
        trailers = ((b"X-Checksum", b"7"),) if rng.random() < 0.1 else ()
        framed = _chunked(rng, body) + b"".join(b"%s: %s\r\n" % one for one in trailers) + b"\r\n"
    elif side.framing == "close":
        framed = body
    lines = [side.start, *(_line(rng, name, value) for name, value in fields)]
    head = b"\r\n".join([*lines, b"", b""])
    return replace(
        side,
        fields=tuple(fields),
        body=body,
        trailers=trailers,
        wire=head + framed,
        head_size=len(head),
        pieces=_cut(rng, head + framed, trickle=trickle),
    )


def _line(rng: random.Random, name: bytes, value: bytes) -> bytes:
    if value in FOLDABLE and rng.random() < 0.1:
        value = value.replace(b" ", b"\r\n ", 1)  # obs-fold, RFC 9112 5.2
    before, after = rng.choice((b" ", b" ", b" ", b"", b"\t", b"  ")), rng.choice((b"", b"", b" ", b"\t "))
    return name + b":" + before + value + after


def _chunked(rng: random.Random, body: bytes) -> bytes:
    """The body in chunks of random sizes, and the last chunk without the end of its trailers."""
    parts, at, most = [], 0, rng.choice((1, 7, 100, 5000, 70000)) if len(body) < 2000 else 70000
    while at < len(body):
        size = min(rng.randrange(1, most + 1), len(body) - at)
        written = b"%X" % size if rng.random() < 0.3 else b"%x" % size
        extension = rng.choice((b"", b"", b"", b"", b";a=b")) if most > 7 else b""
        parts.append(
            b"%s%s\r\n%s\r\n" % (written.rjust(rng.choice((0, 0, 6)), b"0"), extension, body[at : at + size])
        )
        at += size
    return b"".join(parts) + b"0\r\n"


def _cut(rng: random.Random, wire: bytes, *, trickle: bool) -> tuple[bytes, ...]:
    if trickle and len(wire) < 4000:
        return tuple(wire[at : at + 1] for at in range(len(wire)))
    places = sorted(rng.randrange(len(wire)) for _ in range(rng.choice((0, 0, 0, 1, 2, 5))))
    return tuple(
        wire[low:high] for low, high in zip([0, *places], [*places, len(wire)], strict=True) if high > low
    )


def broken(rng: random.Random, side: Side, ending: Ending, *, in_body: bool = False) -> Side:
    """The side up to a random byte, which is never its last one."""
    low = side.head_size if in_body or rng.random() < 0.8 else 1
    kept = rng.randrange(low, len(side.wire))
    left, pieces = kept, []
    for piece in side.pieces:
        pieces.append(piece[:left])
        left -= len(pieces[-1])
    return replace(side, pieces=tuple(filter(None, pieces)), ending=ending)


def closing(script: Script) -> Script:
    """The script with a request that asks for the end of the connection."""
    line = b"\r\nConnection: close\r\n\r\n"
    side = script.request
    head, rest = side.wire[: side.head_size], side.wire[side.head_size :]
    wire = head[:-4] + line + rest
    fields: Fields = (*side.fields, (b"Connection", b"close"))
    side = replace(side, fields=fields, wire=wire, head_size=side.head_size + len(line) - 4, pieces=(wire,))
    return replace(script, request=side, last=True)
