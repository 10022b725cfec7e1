"""What a client sent is what the upstream got, the other way round, and what the capture holds: at random.

`LOCALITY_WIRE_EXCHANGES` says how many exchanges (`make test-wire`: 10,000), `LOCALITY_WIRE_SEED` plays the
one session of a seed that a failure names.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.wire import rules
from tests.wire.generate import KINDS, Session, session
from tests.wire.playing import Broken, play
from tests.wire.reading import value_of
from tests.wire.scripts import Got, Script, end_to_end

EXCHANGES = int(os.environ.get("LOCALITY_WIRE_EXCHANGES", "1500"))
ONLY = os.environ.get("LOCALITY_WIRE_SEED")

NOT_YET = {"hop-by-hop", "interim answers", "fold"}
"""Rules that the proxy does not keep yet."""


def sessions() -> list[Session]:
    if ONLY is not None:
        return [session(int(ONLY))]
    found: list[Session] = []
    left = EXCHANGES
    while left > 0:
        found.append(session(len(found)))
        left -= len(found[-1].scripts)
    return found


def _after_a_304_in_chunks(broken: Broken, played: list[Session]) -> bool:
    """Whether mitmproxy had sent a last chunk that no body belongs to: a 304 has none (RFC 9112 6.1)."""
    scripts = next(one.scripts for one in played if broken.script in one.scripts)
    before = scripts[: scripts.index(broken.script) + 1]
    return any(
        b" 304 " in one.answer.start and value_of(one.answer.fields, b"transfer-encoding") for one in before
    )


def test_random_exchanges_are_the_same_at_both_ends_and_in_the_capture(tmp_path: Path) -> None:
    found = sessions()
    played = play(found, tmp_path)
    broken = [
        one for one in played.broken if one.rule not in NOT_YET and not _after_a_304_in_chunks(one, found)
    ]
    assert not broken, "\n".join(
        [f"{len(broken)} differences; play one again with LOCALITY_WIRE_SEED=…", *map(str, broken[:20])]
    )
    recorded = sum(script.recorded for one in found for script in one.scripts)
    assert played.status == 0, played.said
    assert ", 0 lost" in played.said
    if ONLY is None:
        # Without those behind an exchange that broke off, which was never sent.
        assert played.exchanges > 0.97 * EXCHANGES
        assert recorded > EXCHANGES / 2


def a_script(kind: str) -> Script:
    scripts = (script for seed in range(5000) for script in session(seed).scripts)
    return next(one for one in scripts if one.kind == kind and one.request.body and one.answer.body)


def received(script: Script) -> tuple[Got, Got]:
    """What both sides have when nothing is changed on the way."""
    request, answer = script.request, script.answer
    host = [(name, b"up:1" if name == b"Host" else value) for name, value in end_to_end(request.fields)]
    return (
        Got(start=request.start, fields=tuple(host), body=request.body, complete=True),
        Got(start=answer.start, fields=tuple(end_to_end(answer.fields)), body=answer.body, complete=True),
    )


@pytest.mark.parametrize("kind", ["plain", "trickle"])
def test_the_rules_find_nothing_where_nothing_is_changed(kind: str) -> None:
    script = a_script(kind)
    request, answer = received(script)
    assert list(rules.request_differences(script, request, b"up:1")) == []
    assert list(rules.answer_differences(script, answer)) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda got: replace(got, body=got.body[:-1] + bytes([got.body[-1] ^ 1])), "body"),
        (lambda got: replace(got, body=got.body + b"x"), "body"),
        (lambda got: replace(got, complete=False), "end"),
        (lambda got: replace(got, fields=got.fields[:-1]), "fields"),
        (lambda got: replace(got, fields=got.fields[::-1]), "fields"),
        (lambda got: replace(got, fields=(*got.fields, (b"Via", b"1.1 x"))), "fields"),
        (lambda got: replace(got, fields=(*got.fields, (b"Keep-Alive", b"max=1"))), "hop-by-hop"),
        (lambda got: replace(got, trailers=((b"a", b"b"),)), "trailers"),
    ],
)
def test_the_rules_find_each_change_on_either_way(change: object, rule: str) -> None:
    assert callable(change)
    script = a_script("plain")
    request, answer = received(script)
    there = [name for name, _ in rules.request_differences(script, change(request), b"up:1")]
    back = [name for name, _ in rules.answer_differences(script, change(answer))]
    assert (there, back) == ([rule], [rule])


def test_every_kind_of_exchange_is_among_the_first_thousand_and_a_seed_gives_the_same_again() -> None:
    scripts = [script for seed in range(400) for script in session(seed).scripts]
    assert {script.kind for script in scripts} == set(KINDS)
    assert session(7) == session(7)
