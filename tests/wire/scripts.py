"""What one random exchange is to be: the bytes of either side, where they are cut, and how each side ends.

It makes nothing up (`generate` does) and opens no socket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

type Fields = tuple[tuple[bytes, bytes], ...]

type Framing = Literal["none", "length", "chunked", "close"]
"""How a body's end is told (RFC 9112 6.3); `close`: by the end of the connection."""

type Ending = Literal["whole", "close", "reset"]
"""What a side does after its bytes: go on, close in order, or reset the connection."""

HOP_BY_HOP = frozenset(
    {b"connection", b"proxy-connection", b"keep-alive", b"te", b"transfer-encoding", b"upgrade"}
)
"""Fields that concern one connection only (RFC 9110 7.6.1), besides those that Connection names."""

NUMBER = b"X-Request-Id"
"""The field that tells both sides, and whoever reads the capture, which exchange this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One message: its first line, its fields as they are written, its body, and the pieces it is sent in."""

    start: bytes
    fields: Fields
    body: bytes = b""
    framing: Framing = "none"
    trailers: Fields = ()
    wire: bytes = b""
    head_size: int = 0
    pieces: tuple[bytes, ...] = ()
    ending: Ending = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """One exchange. `kind` is for the reader of a failure, and decides how the client behaves.

    `interims` go before the answer. An `early` answer is sent when half of the request's body is there.
    """

    number: int
    kind: str
    method: bytes
    target: bytes
    request: Side
    answer: Side
    interims: tuple[bytes, ...] = ()
    expects: bool = False
    early: bool = False
    recorded: bool = False
    last: bool = False


@dataclass(slots=True, kw_only=True)
class Got:
    """What one side received: `complete` is whether the message came to its own end."""

    start: bytes = b""
    fields: Fields = ()
    body: bytes = b""
    trailers: Fields = ()
    complete: bool = False
    interims: list[bytes] = field(default_factory=list)
    problem: str | None = None
    folded: bool = False


def named_by_connection(fields: Fields) -> set[bytes]:
    """The fields that a message itself declares to concern this connection only, in lower case."""
    values = [value for name, value in fields if name.lower() == b"connection"]
    return {token.strip().lower() for value in values for token in value.split(b",")}


def end_to_end(fields: Fields) -> list[tuple[bytes, bytes]]:
    """The fields that a proxy has to pass on, in their order."""
    dropped = HOP_BY_HOP | named_by_connection(fields)
    return [(name, value) for name, value in fields if name.lower() not in dropped]
