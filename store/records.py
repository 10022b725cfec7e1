"""The shapes that cross from the proxy to the store and from the store to the analyzer.

Nothing here reads or writes; a body is what crossed the wire, after redaction.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

type Headers = tuple[tuple[str, str], ...]

ENDPOINTS = frozenset({"/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"})
"""The paths whose exchanges are recorded."""

type Ended = Literal["open", "complete", "reset", "client_gone", "stopped"]
"""How the transport ended. `open`: no end was ever seen; `stopped`: the proxy was told to stop.

Whether a complete response was also a whole answer (`[DONE]`, an error event) is for the analyzer
to say: the proxy understands HTTP and nothing else.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a response as it arrived: where it ends in the body, and when it came.

    `byte_end` counts bytes of the response body as sent on the wire; `at_ns` is monotonic
    nanoseconds since the request's first byte.
    """

    byte_end: int
    at_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    """A message body: its decoded bytes, and what was lost on the way to them.

    `content` has its Content-Encoding removed and its secrets replaced. `wire_length` (bytes) and
    `wire_sha256` (hex; '' where something was replaced) are of the bytes that crossed the wire.
    `problem` says why `content` is not all of it (an encoding that could not be undone), else None.
    `secrets` counts replacements by kind, `secret_paths` by kind and JSON path ('' where there is none).
    """

    content: bytes = b""
    wire_length: int = 0
    wire_sha256: str = ""
    problem: str | None = None
    secrets: dict[str, int] = field(default_factory=dict)
    secret_paths: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """One request and what came back, as read from a capture.

    `started_at_ns` is wall-clock nanoseconds since the epoch; `ttft_ns` and `duration_ns` are
    monotonic, from the request's first byte; None where the moment never came. `status` is None
    where no response head arrived.
    """

    id: int
    started_at_ns: int
    method: str
    path: str
    query: str
    request_headers: Headers
    request: Body
    status: int | None
    response_headers: Headers
    response: Body
    chunks: tuple[Chunk, ...]
    ttft_ns: int | None
    duration_ns: int | None
    ended: Ended
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSeen:
    """A complete request, handed over by the proxy: raw bytes, nothing redacted yet.

    `key` joins it to the ResponseSeen that follows; it is unique within one run of the proxy.
    `wire_length` (bytes) is the body's where `body` is only its beginning, else None.
    """

    key: str
    started_at_ns: int
    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    wire_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseSeen:
    """The end of an exchange: whatever came back, and how it ended. `wire_length` as in RequestSeen."""

    key: str
    status: int | None
    headers: Headers
    body: bytes
    chunks: tuple[Chunk, ...]
    ttft_ns: int | None
    duration_ns: int | None
    ended: Ended
    error: str | None
    wire_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFact:
    """What the upstream answered when asked what it is: one answer of one path.

    `status` is None where it could not be asked; `body` is then the reason. What the user told of it has
    the same shape: path `serve-command`, status 200.
    """

    at_ns: int
    path: str
    status: int | None
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of the proxy that wrote into a capture. `requests` counts those that were written.

    `ended_at_ns` is None where it has not ended in order: it is `running`, or was killed. `lost` counts the
    exchanges that are not there in whole or in part; of a killed run those of which nothing is, None where
    that cannot be told.
    """

    started_at_ns: int
    ended_at_ns: int | None
    running: bool
    requests: int
    lost: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSeen:
    """The beginning of a run of the proxy, and once more its end, with the exchanges it lost."""

    key: str
    started_at_ns: int
    ended_at_ns: int | None = None
    lost: int | None = None
