"""llama.cpp's rules on traffics small enough for paper; each with the function of its server that has it."""

from __future__ import annotations

import numpy as np

from analyzer.blocks import Namespace
from analyzer.engines import CacheRequest, Traffic
from analyzer.engines.llama_cpp import ENGINE
from analyzer.servers import ServerProfile, settle


def ids(first: int, count: int) -> list[int]:
    return list(range(first, first + count))


type Timed = tuple[list[int], int, int | None]
"""A prompt, when it starts, when it ends."""


def timed(*requests: Timed, slots: int, generated: tuple[int, ...] | int = 1) -> list[int | None]:
    traffic = Traffic(
        requests=tuple(
            CacheRequest(
                key=str(number),
                started_ns=start,
                ended_ns=end,
                token_ids=np.array(prompt, dtype=np.int32),
                namespace=Namespace(),
                skip_reading=False,
                generated=generated,
            )
            for number, (prompt, start, end) in enumerate(requests)
        )
    )
    profile = ServerProfile(slots=slots)
    server = settle(profile, block_size=None, pool_blocks=None, tokenizer=None, engine=ENGINE)
    return list(ENGINE.predict(traffic, server).values())


def hits(*prompts: list[int], slots: int = 1, generated: tuple[int, ...] | int = 1) -> list[int | None]:
    """Hits of prompts that come one after the other."""
    after: list[Timed] = [(prompt, 2 * number, 2 * number + 1) for number, prompt in enumerate(prompts)]
    return timed(*after, slots=slots, generated=generated)


def test_one_slot_reuses_only_what_it_saw_last() -> None:
    # update_slots: n_past = get_common_prefix, keep_first(n_past)
    assert hits(ids(0, 20), [*ids(0, 8), 99], ids(0, 20)) == [0, 8, 8]


def test_a_prompt_seen_whole_evaluates_its_last_token() -> None:
    # update_slots: TAG_PROMPT_LOGITS
    assert hits(ids(0, 20), ids(0, 20), ids(0, 5)) == [0, 19, 4]


def test_an_answer_is_kept_but_for_its_last_token() -> None:
    # 2389 prompt tokens and 6 generated ones leave 2394 in a slot: the last was never fed back.
    prompt = ids(0, 10)
    assert hits(prompt, [*prompt, 50, 51, 52, 53], generated=(50, 51, 52)) == [0, 12]


def test_the_slot_that_shares_most_is_taken_if_it_is_more_than_a_tenth() -> None:
    # get_available_slot: f_sim_cur > slot_prompt_similarity, which is 0.1
    a, b = ids(0, 20), ids(100, 20)
    assert hits(a, b, [*a, 1], [*b, 1], slots=2) == [0, 0, 20, 20]
    # Two of 20 are not more than a tenth: the slot used longest ago gets it, and loses `a`.
    assert hits(a, b, [*b[:2], *ids(200, 18)], [*b, 1], [*a, 1], slots=2) == [0, 0, 0, 20, 0]
    # Three are.
    assert hits(a, b, [*b[:3], *ids(200, 17)], [*a, 1], slots=2) == [0, 0, 3, 20]


def test_without_a_similar_slot_the_one_used_longest_ago_is_taken() -> None:
    # get_available_slot: t_last_used
    a, b, c = ids(0, 10), ids(100, 10), ids(200, 10)
    assert hits(a, b, c, [*b, 1], [*a, 1], slots=2) == [0, 0, 0, 10, 0]
    assert hits(a, b, c, [*c, 1], [*b, 1], slots=3) == [0, 0, 0, 10, 10]


def test_a_slot_at_work_is_passed_over_and_a_request_waits_where_all_are() -> None:
    # get_available_slot: is_processing; a task that finds no slot is deferred
    a = ids(0, 10)
    assert timed((a, 0, 9), ([*a, 1], 5, 6), slots=2) == [0, 0]
    # One slot: the second starts when the first has ended, and finds its tokens; the third ended waiting.
    assert timed((a, 0, 9), ([*a, 1], 5, 20), (a, 7, 8), slots=1) == [0, 10, None]
