"""What has to be equal between the two ends of an exchange, and between them and the capture.

The rules are HTTP's (RFC 9110, 9112), not the proxy's: what it may change is named here, and why.
It opens no socket and no capture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from store.encodings import decode
from store.records import Exchange
from tests.wire.reading import value_of
from tests.wire.scripts import HOP_BY_HOP, Fields, Got, Script, Side, end_to_end, named_by_connection

GONE_SECONDS = 5.0
"""How long the upstream may go on after its client went: a second on a machine that does nothing else."""

OWN = {b"host", b"expect"}
"""Not compared: Host names the upstream instead (checked apart); an expectation that the proxy itself met
is left out. All else that RFC 9110 7.6.1 does not name is passed on as it is written, in its order."""

type Difference = tuple[str, str]
"""The name of a rule, and how it is broken."""


def request_differences(script: Script, got: Got | None, host: bytes) -> Iterator[Difference]:
    """What the upstream got, against what the client sent."""
    sent = script.request
    if script.kind == "upload_cut":
        # The proxy may also find out before it has asked the upstream anything.
        if got is not None and (got.complete or not sent.body.startswith(got.body)):
            yield "cut upload", f"{len(got.body)} bytes, complete: {got.complete}"
        return
    if got is None:
        yield "request", "never came"
        return
    if _request_line(got.start) != _request_line(sent.start):
        yield "request line", f"{got.start!r}"
    yield from _fields("request", sent.fields, got)
    if value_of(got.fields, b"host") != host or sum(name.lower() == b"host" for name, _ in got.fields) != 1:
        yield "host", f"{value_of(got.fields, b'host')!r}"
    yield from _body("request", sent, got)


def answer_differences(script: Script, got: Got) -> Iterator[Difference]:
    """What the client got, against what the upstream sent."""
    sent = script.answer
    if script.kind in ("upload_cut", "gone_waiting"):
        return
    if script.kind in ("hang_up", "garbage") or sum(map(len, sent.pieces)) < sent.head_size:
        # There is no answer to pass on: the proxy says so in one of its own, or closes as the upstream did.
        if got.start and b" 502 " not in got.start:
            yield "no answer", f"{got.start!r}"
        return
    if _status_line(got.start) != _status_line(sent.start):
        yield "status line", f"{got.start!r}, {got.problem}"
        return
    interims = [text.partition(b"\r\n")[0] for text in script.interims]
    if [start for start in got.interims if b" 100" not in start] != interims:
        yield "interim answers", f"{got.interims}"
    yield from _fields("answer", sent.fields, got)
    if script.kind == "gone_reading":
        return
    if script.kind.startswith("answer_"):
        yield from _broken_body(script, got)
    else:
        yield from _body("answer", sent, got)


def _request_line(line: bytes) -> tuple[bytes, ...]:
    """Method and target in origin form: the version is each hop's own (RFC 9112 2.3, 3.2.2)."""
    method, _, rest = line.partition(b" ")
    target, _, _ = rest.rpartition(b" ")
    if target.startswith(b"http://"):
        target = b"/" + target.removeprefix(b"http://").partition(b"/")[2]
    return method, target


def _status_line(line: bytes) -> bytes:
    return line.partition(b" ")[2]


def _fields(whose: str, sent: Fields, message: Got) -> Iterator[Difference]:
    got = message.fields
    if message.folded:
        yield "fold", f"{whose}: a folded line is passed on (RFC 9112 5.2 forbids it)"
    hops = HOP_BY_HOP | named_by_connection(sent)
    if stray := [item for item in got if item[0].lower() in hops and not _of_this_hop(item)]:
        yield "hop-by-hop", f"{whose}: {stray}"
    wanted = [item for item in end_to_end(sent) if item[0].lower() not in OWN]
    have = [item for item in got if item[0].lower() not in hops | OWN]
    if wanted != have:
        missing, others = Counter(wanted) - Counter(have), Counter(have) - Counter(wanted)
        yield "fields", f"{whose}: missing {list(missing)}, not sent {list(others)}"


def _of_this_hop(item: tuple[bytes, bytes]) -> bool:
    """Whether a hop-by-hop field may well be the proxy's own."""
    name, value = item[0].lower(), item[1].lower()
    return name == b"transfer-encoding" or (name == b"connection" and value in (b"close", b"keep-alive"))


def _body(whose: str, sent: Side, got: Got) -> Iterator[Difference]:
    if not got.complete or got.problem:
        yield "end", f"{whose}: {got.problem or 'did not come to its end'}"
    if got.body != sent.body:
        at = next((at for at, (a, b) in enumerate(zip(sent.body, got.body, strict=False)) if a != b), None)
        yield "body", f"{whose}: {len(sent.body)} bytes sent, {len(got.body)} came, first other one at {at}"
    # A proxy may leave trailers out (RFC 9110 6.5.1), and must not change them.
    if got.trailers and got.trailers != sent.trailers:
        yield "trailers", f"{whose}: {got.trailers}"


def _broken_body(script: Script, got: Got) -> Iterator[Difference]:
    if got.complete:
        yield "broke", "the client was told that it is whole"
    if not script.answer.body.startswith(got.body):
        yield "prefix", f"{len(got.body)} bytes that are no prefix"
    # After a reset the kernel may throw away what had come (RFC 9293 3.10.7.4), after a close not.
    if script.kind == "answer_close" and len(got.body) != (sent := payload_sent(script.answer)):
        yield "prefix", f"{sent} bytes were sent before the close, {len(got.body)} came"


def payload_sent(side: Side) -> int:
    """How many bytes of the body are in what was sent of a message that breaks off."""
    left = sum(map(len, side.pieces)) - side.head_size
    if side.framing != "chunked":
        return left
    wire, at, found = side.wire[side.head_size : side.head_size + left], 0, 0
    while (end := wire.find(b"\r\n", at)) >= 0:
        size = int(wire[at:end].partition(b";")[0], 16)
        found += max(0, min(size, len(wire) - end - 2))
        at = end + 2 + size + 2
        if size == 0 or at > len(wire):
            break
    return found


def leaving_differences(
    script: Script, client_left: float | None, upstream_left: float | None
) -> Iterator[Difference]:
    """Whether the upstream was let go of as soon as the client had gone."""
    if not script.kind.startswith("gone_") or client_left is None:
        return
    if upstream_left is None:
        yield "gone", "the upstream's connection stayed open"
    elif upstream_left - client_left > GONE_SECONDS:
        yield "gone", f"the upstream's connection stayed open for {upstream_left - client_left:.1f} s"


def record_differences(script: Script, client: Got, found: list[Exchange]) -> Iterator[Difference]:
    """What the capture holds, against both ends."""
    if len(found) != int(script.recorded):
        yield "capture", f"{len(found)} records"
        return
    if not found:
        return
    (exchange,) = found
    path, _, query = _request_line(script.request.start)[1].decode().partition("?")
    if (exchange.method.encode(), exchange.path, exchange.query) != (script.method, path.rstrip("/"), query):
        yield "capture", f"{exchange.method} {exchange.path} {exchange.query}"
    if script.kind != "upload_cut":
        yield from _recorded_body("request", script.request.body, exchange)
    ended = "complete"
    if script.kind.startswith("gone_") or script.kind == "upload_cut":
        ended = "client_gone"
    elif script.kind in ("answer_close", "answer_reset", "hang_up", "garbage"):
        ended = "reset"
    if exchange.ended != ended:
        yield "capture", f"ended {exchange.ended} ({exchange.error})"
    if ended == "complete":
        yield from _recorded_body("response", script.answer.body, exchange)
        if exchange.status != int(script.answer.start.split(b" ")[1]):
            yield "capture", f"status {exchange.status}"
        ends = [chunk.byte_end for chunk in exchange.chunks]
        if ends != sorted(set(ends)) or (ends or [0])[-1] != exchange.response.wire_length:
            yield "capture", f"chunks end at {ends[-3:]} of {exchange.response.wire_length} bytes"
    elif exchange.response.wire_length < len(client.body) and client.start == script.answer.start:
        yield (
            "capture",
            f"the client got {len(client.body)} bytes, {exchange.response.wire_length} are recorded",
        )


def _recorded_body(whose: str, sent: bytes, exchange: Exchange) -> Iterator[Difference]:
    body = exchange.request if whose == "request" else exchange.response
    fields = exchange.request_headers if whose == "request" else exchange.response_headers
    if body.wire_length != len(sent):
        yield "capture", f"{whose}: {len(sent)} bytes sent, {body.wire_length} recorded"
    codings = ", ".join(value for name, value in fields if name.lower() == "content-encoding")
    content, problem = decode(sent, codings)
    if not body.secrets and (body.content, body.problem) != (content, problem):
        yield "capture", f"{whose}: the content differs, {body.problem} instead of {problem}"
