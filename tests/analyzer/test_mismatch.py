"""The reasons given for a count that is not the server's, and what it does to a conversation's rows."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analyzer.calibration import calibrate
from analyzer.core import Conversation, Rendering
from analyzer.mismatch import Traits, likely_reason, traits_of, worst
from analyzer.report import Turn

ROW = Turn(
    id=1,
    prompt_index=0,
    conversation=1,
    turn=1,
    parent=None,
    dialect="chat",
    path="/v1/chat/completions",
    model="m",
    status=200,
    outcome="done",
    started_at_ns=0,
    ttft_ns=None,
    duration_ns=None,
    prompt_tokens=100,
    reported_prompt_tokens=100,
    token_source="jinja",
    rendering="exact",
    conversation_rendering=None,
    common_prefix_tokens=None,
    reusable_tokens=None,
    reusable_prefix_pct=None,
    block_size=16,
    prompt_blocks=6,
    reusable_blocks=None,
    invalidated_blocks=None,
    predicted_cached_tokens=None,
    reported_cached_tokens=None,
    cache=None,
    append=None,
    divergence=None,
    problem=None,
)


@pytest.mark.parametrize(
    ("traits", "rendered", "reported", "others", "says"),
    [
        (Traits(redacted=True, media=True), 100, 101, [1], "secrets in the body were replaced"),
        (Traits(media=True), 100, 700, [600], "media"),
        (Traits(truncates=True), 100, 50, [-50], "asks for truncation"),
        (Traits(), 100, 40, [-60], "likely truncated"),
        (Traits(bos=True), 100, 101, [1, 1], "a BOS that its tokenizer adds"),
        (Traits(bos=True, doubled=True), 100, 99, [-1], "BOS is doubled here"),
        (Traits(bos=True, tools=True), 100, 101, [1, 3], "prints tools otherwise"),
        (Traits(), 100, 101, [1, 1], "1 token more at every turn.*--serve-command"),
        (Traits(tools=True), 100, 90, [-10, -10, -10], "10 tokens less at every turn.*--serve-command"),
        (Traits(tools=True, reasoning=True), 100, 90, [-10, 0], "prints tools or reasoning otherwise"),
        (Traits(reasoning=True), 100, 90, [-10], "prints reasoning otherwise"),
        (Traits(), 100, 90, [-10], "10 tokens less; locality verify"),
        (Traits(), 100, None, [], "do not add up"),
    ],
)
def test_the_likeliest_reason_comes_first(
    traits: Traits, rendered: int, reported: int | None, others: list[int], says: str
) -> None:

    assert re.search(says, likely_reason(traits, rendered, reported, others))


@pytest.mark.parametrize(
    ("given", "trait"),
    [
        ({"tools": ({"type": "function"},)}, "tools"),
        ({"messages": ({"role": "assistant", "tool_calls": [{}]},)}, "tools"),
        ({"messages": ({"role": "assistant", "reasoning": "x"},)}, "reasoning"),
        ({"messages": ({"role": "user", "content": [{"type": "image_url"}]},)}, "media"),
        ({"messages": ({"role": "user", "content": [{"type": "input_audio"}]},)}, "media"),
    ],
)
def test_traits_are_read_from_the_conversation(given: dict[str, Any], trait: str) -> None:
    conversation = Conversation(dialect="chat", prompt_index=0, **given)
    found = traits_of(conversation, None, redacted=False, truncates=False, bos=False)
    assert [name for name in ("tools", "reasoning", "media") if getattr(found, name)] == [trait]


@pytest.mark.parametrize(
    ("ids", "doubled"), [([5, 5, 6], True), ([5, 6, 5], False), ([5], False), ([], False)]
)
def test_a_doubled_first_token_is_seen(ids: list[int], doubled: bool) -> None:
    rendering = Rendering(token_ids=np.array(ids, dtype=np.int32), source="jinja")
    conversation = Conversation(dialect="chat", prompt_index=0)
    found = traits_of(conversation, rendering, redacted=False, truncates=False, bos=True)
    assert found.doubled == doubled


def test_one_mismatch_is_on_every_row_of_its_conversation_and_on_no_other() -> None:
    rows = [
        ROW,
        replace(ROW, id=2, rendering="mismatch", reported_prompt_tokens=103),
        replace(ROW, id=3, conversation=2),
        replace(ROW, id=4, conversation=2, rendering="unchecked", reported_prompt_tokens=None),
        replace(ROW, id=5, conversation=None, rendering=None),
    ]
    weighed = calibrate(rows, {(2, 0): Traits(redacted=True)})
    assert [row.conversation_rendering for row in weighed] == [
        "mismatch",
        "mismatch",
        "unchecked",
        "unchecked",
        None,
    ]
    assert [row.rendering for row in weighed] == [row.rendering for row in rows], (
        "a row keeps its own verdict"
    )
    assert weighed[1].problem is not None and "secrets" in weighed[1].problem
    assert [row.problem for row in weighed if row.id != 2] == [None] * 4


def test_a_reason_joins_what_was_wrong_already() -> None:
    row = replace(ROW, rendering="mismatch", reported_prompt_tokens=103, problem="the stream broke")
    (weighed,) = calibrate([row], {(1, 0): Traits(media=True)})
    assert weighed.problem is not None and weighed.problem.startswith(
        "the stream broke; the body holds media"
    )


def test_a_constant_difference_is_seen_beside_rows_whose_ids_the_server_sent() -> None:
    rows = [
        replace(ROW, id=1, rendering="mismatch", reported_prompt_tokens=105),
        replace(ROW, id=2, token_source="wire"),
        replace(ROW, id=3, rendering="mismatch", reported_prompt_tokens=105),
    ]
    weighed = calibrate(rows, {(1, 0): Traits(), (3, 0): Traits()})
    assert "at every turn" in str(weighed[0].problem) and "at every turn" in str(weighed[2].problem)


def test_the_worst_verdict_counts() -> None:
    assert worst(["exact", "unchecked", "mismatch"]) == "mismatch"
    assert worst(["exact", None]) == "exact"
    assert worst([None]) is None
