"""Makes random exchanges out of seeds: the same seed gives the same bytes on every machine.

A session is what one connection carries; it is the unit that can be played again alone.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from store.records import ENDPOINTS
from tests.wire import bodies, pools
from tests.wire.rendering import broken, closing, rendered
from tests.wire.scripts import NUMBER, Framing, Script, Side

MOST = 6
"""Exchanges on one connection."""

LARGE = 1_000_000
"""One body in seventy is of this order, in bytes."""

KINDS = {
    "plain": 58, "trickle": 8, "expect": 5, "expect_eager": 2, "interim": 3, "early": 2,
    "old": 2, "absolute": 2, "answer_close": 6, "answer_reset": 4, "hang_up": 2, "garbage": 1,
    "upload_cut": 3, "gone_waiting": 3, "gone_reading": 4,
}  # fmt: skip
"""How an exchange goes, and how often."""

BREAKS = {"answer_close", "answer_reset", "hang_up", "garbage", "upload_cut", "gone_waiting", "gone_reading"}


@dataclass(frozen=True, slots=True)
class Session:
    """What one connection carries; `pipelined`: all requests are sent before any answer is read."""

    seed: int
    scripts: tuple[Script, ...]
    pipelined: bool


def session(seed: int) -> Session:
    """The session of a seed; its exchanges are numbered from `seed * MOST`."""
    rng = random.Random(seed)
    pipelined = rng.random() < 0.15
    scripts: list[Script] = []
    for at in range(rng.randrange(1, MOST + 1)):
        kind = "plain" if pipelined else rng.choices(list(KINDS), list(KINDS.values()))[0]
        scripts.append(_script(rng, seed * MOST + at, kind))
        if scripts[-1].last:
            break
    return Session(seed, tuple(scripts), pipelined)


def _script(rng: random.Random, number: int, kind: str) -> Script:
    recorded = rng.random() < 0.6
    method = b"POST" if recorded else rng.choice(pools.METHODS)
    if kind in BREAKS and method == b"HEAD":
        method = b"GET"
    path = rng.choice(sorted(ENDPOINTS)).encode() if recorded else rng.choice(pools.TARGETS)
    target = path + (b"/" if recorded and rng.random() < 0.1 else b"") + rng.choice(pools.QUERIES)
    if not recorded and method == b"OPTIONS" and rng.random() < 0.3:
        target = b"*"
    elif kind == "absolute" and target.isascii() and not target.startswith(b"//"):
        target = b"http://elsewhere.example" + target
    expects = kind in ("expect", "expect_eager")
    answer, closes = _answer(rng, kind, method)
    script = Script(
        number=number,
        kind=kind,
        method=method,
        target=target,
        request=_request(rng, kind, number, method, target, expects=expects),
        answer=answer,
        interims=_interims(rng) if kind == "interim" else (),
        expects=expects,
        early=kind == "early",
        recorded=recorded,
        last=closes or kind in BREAKS or kind == "old",
    )
    asks_to_close = not script.last and rng.random() < 0.03
    return closing(script) if asks_to_close else script


def _request(
    rng: random.Random, kind: str, number: int, method: bytes, target: bytes, *, expects: bool
) -> Side:
    needs_body = expects or kind in ("early", "upload_cut")
    framing: Framing = "length" if kind == "old" else rng.choice(("length", "length", "chunked"))
    if not needs_body and method not in (b"POST", b"PUT", b"PATCH") and rng.random() < 0.8:
        framing = "none"
    codings, body = _content(rng, most=3000 if kind == "trickle" else 60000)
    if needs_body and not body:
        body = b"x"
    fields = [(b"Host", b"client.example:81"), (NUMBER, b"%d" % number), *_extra(rng)]
    fields += [(b"Content-Encoding", coding) for coding in codings]
    if framing != "none":
        fields.append((b"Content-Type", rng.choice(pools.TYPES)))
    if expects:
        fields.append((b"Expect", b"100-continue"))
    version = b" HTTP/1.0" if kind == "old" else b" HTTP/1.1"
    side = Side(start=method + b" " + target + version, fields=tuple(fields), framing=framing)
    side = rendered(rng, side, b"" if framing == "none" else body, trickle=kind == "trickle")
    return broken(rng, side, rng.choice(("close", "reset")), in_body=True) if kind == "upload_cut" else side


def _answer(rng: random.Random, kind: str, method: bytes) -> tuple[Side, bool]:
    """The answer, and whether its connection ends with it."""
    status = rng.choice(pools.STATUSES)
    if kind in BREAKS and status in (204, 304):
        status = 200
    framing: Framing = rng.choices(("length", "chunked", "close"), (5, 5, 1))[0]
    codings, body = _content(rng, most=600 if kind == "trickle" else 60000)
    fields = [*_extra(rng), (b"Content-Type", rng.choice(pools.TYPES))]
    fields += [(b"Content-Encoding", coding) for coding in codings]
    if kind in ("answer_close", "answer_reset", "gone_reading"):
        body = body or b"x"
        framing = "chunked" if framing == "close" else framing
    if kind == "old" and framing == "chunked":
        framing = "close"
    if kind == "early" and framing == "close":
        framing = "length"
    bodiless = method == b"HEAD" or status in (204, 304)
    if bodiless:
        framing, body = "none", b""
        if status != 204 and rng.random() < 0.7:
            fields.append(rng.choice([(b"Content-Length", b"1234"), (b"Transfer-Encoding", b"chunked")]))
    reason = rng.choice(pools.REASONS)
    version = b"1.0" if framing == "close" and rng.random() < 0.3 else b"1.1"
    side = Side(start=b"HTTP/%s %d %s" % (version, status, reason), fields=tuple(fields), framing=framing)
    side = rendered(rng, side, body, trickle=kind == "trickle")
    if kind in ("answer_close", "answer_reset"):
        side = broken(rng, side, "close" if kind == "answer_close" else "reset")
    elif kind == "gone_reading":
        side = replace(broken(rng, side, "close", in_body=True), ending="whole")
    elif kind == "hang_up":
        side = replace(side, pieces=(), ending="close")
    elif kind == "garbage":
        side = replace(side, pieces=(rng.choice(pools.GARBAGE),), ending="close")
    elif framing == "close":
        side = replace(side, ending="close")
    return side, side.ending != "whole"


def _content(rng: random.Random, *, most: int) -> tuple[list[bytes], bytes]:
    """Values of Content-Encoding, and a body."""
    way = rng.random()
    size = int(200 ** rng.random())
    if way < 0.1:
        return [], b""
    if way > 0.985 and most > LARGE // 100:
        return [], bodies.WORDS[rng.randrange(4)].encode() * rng.randrange(LARGE // 10)
    if way < 0.45:
        found = bodies.encoded(rng, bodies.prompt(rng, size))
    elif way < 0.84:
        found = bodies.encoded(rng, bodies.events(rng, 1 + size // 8))
    else:
        found = bodies.encoded(rng, bodies.random_bytes(rng, most))
    return found[0], found[1][:most]


def _extra(rng: random.Random) -> list[tuple[bytes, bytes]]:
    fields = [(rng.choice(pools.NAMES), rng.choice(pools.VALUES)) for _ in range(rng.randrange(0, 7))]
    if rng.random() < 0.3:
        fields += rng.choice(pools.HOPS)
        rng.shuffle(fields)
    return fields


def _interims(rng: random.Random) -> tuple[bytes, ...]:
    return tuple(rng.choices(pools.INTERIMS, (2, 1), k=rng.randrange(1, 3)))
