"""Random sessions, each broken in one known way: the first cause is the one that was put in.

And random changes of a body that reach no token, of which none is a finding.
"""

from __future__ import annotations

import copy
import random
from collections import Counter
from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.causes._templates import PRINTS_IDS
from tests.causes.faults import FAULTS
from tests.causes.pairs import Parting, grounds, parted_on
from tests.causes.sessions import Session, appended, body, request, session

DIALECTS = ("chat", "messages", "responses")
GROUNDS = ("plain", "sample", "deepseek_v4")
CASES = 3


def _broken(name: str, seed: int) -> Parting | None:
    """A turn broken in one way; None where it could not be, or where nothing of it is printed."""
    rng = random.Random(f"{name} {seed}")
    ground = "plain" if name in ("reasoning", "moving part") else rng.choice(GROUNDS)
    dialects = DIALECTS[:1] if "image" in name or name == "second system" else DIALECTS
    reasoning = ground != "deepseek_v4"  # which drops that of earlier turns
    before = copy.deepcopy(request(rng, session(rng, reasoning=reasoning, steps=12)))
    after = appended(rng, before, reasoning=reasoning)
    if not FAULTS[name][1](rng, before, after):
        return None
    dialect = rng.choice(dialects)
    example = Example(
        before=body(dialect, before),
        after=body(dialect, after),
        dialect=dialect,
        template=PRINTS_IDS if name == "ids" else None,
    )
    parting = parted_on(grounds("plain" if name == "ids" or "image" in name else ground), example)
    return None if parting.append else parting


@pytest.mark.parametrize("name", FAULTS)
def test_the_first_cause_is_the_one_that_was_put_in(name: str) -> None:
    found: Counter[str | None] = Counter()
    for seed in range(8 * CASES):
        parting = _broken(name, seed)
        if parting is not None:
            assert parting.problem is None
            found[parting.findings[0].cause if parting.findings else None] += 1
        if found.total() == CASES:
            break
    assert found == {FAULTS[name][0]: CASES}


def _quiet(rng: random.Random, dialect: str, made: dict[str, Any]) -> None:
    """Change what no template of these prints."""
    made |= {
        "temperature": rng.random(),
        "stream": rng.random() < 0.5,
        "metadata": {"n": rng.getrandbits(32)},
    }
    made["chat_template_kwargs"] = {"unread": rng.getrandbits(16)}
    if dialect == "messages":
        del made["chat_template_kwargs"]
        for message in made["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else []:
                block["cache_control"] = {"type": "ephemeral"}
                if "signature" in block:
                    block["signature"] = f"{rng.getrandbits(64):x}"
    if dialect == "chat":
        for message in made["messages"]:
            if message["role"] == "user" and rng.random() < 0.5:
                message["content"] = [{"type": "text", "text": message["content"]}]
    if dialect == "responses":
        for item in made["input"]:
            item["id"] = f"it_{rng.getrandbits(64):x}"


@pytest.mark.parametrize("seed", range(24))
def test_what_no_template_prints_is_no_finding(seed: int) -> None:
    rng = random.Random(seed)
    dialect, ground = DIALECTS[seed % 3], GROUNDS[seed % 2]
    before = request(rng, session(rng, steps=12))
    after: Session = appended(rng, before)
    FAULTS["ids"][1](rng, before, after)
    made = body(dialect, after)
    _quiet(rng, dialect, made)
    parting = parted_on(grounds(ground), Example(before=body(dialect, before), after=made, dialect=dialect))
    assert parting.problem is None
    assert parting.append
    assert parting.findings == ()
