"""The live ledger predicts as the whole one does, and notices what comes too late for that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from analyzer.blocks import Namespace
from analyzer.core import Generated
from analyzer.engines import CacheRequest, Engine, Traffic
from analyzer.live_ledger import LiveLedger
from analyzer.registry import plugins
from analyzer.servers import ServerProfile, settle

ENGINES: Mapping[str, Engine] = plugins("engines")
VLLM = ENGINES["vllm"]


def ledger_of(engine: Engine, pool_blocks: int | None = None, restarts: tuple[int, ...] = ()) -> LiveLedger:
    server = settle(ServerProfile(), block_size=None, pool_blocks=pool_blocks, tokenizer=None, engine=engine)
    return LiveLedger(engine, server, restarts)


def request(key: str, started: int, ended: int | None, tokens: int, choices: int = 1) -> CacheRequest:
    return CacheRequest(
        key=key,
        started_ns=started,
        ended_ns=ended,
        token_ids=np.arange(tokens, dtype=np.int32),
        namespace=Namespace(),
        skip_reading=False,
        generated=(),
        others=(Generated(),) * (choices - 1),
    )


@pytest.mark.parametrize("name", list(ENGINES))
def test_a_prompt_hits_what_came_before_it(name: str) -> None:
    ledger = ledger_of(ENGINES[name])
    first, second = request("a", 1, 5, 64), request("b", 6, None, 65)
    for item in (first, second):
        ledger.begin(item)
    ledger.end(first)
    assert (ledger.predicted("a"), ledger.predicted("b")) == (0, 64)
    assert not ledger.late


def test_what_began_before_a_told_prompt_is_late() -> None:
    ledger = ledger_of(VLLM)
    ledger.begin(request("b", 6, None, 64))
    assert ledger.predicted("b") == 0
    ledger.begin(request("a", 5, None, 64))
    assert ledger.late


def test_a_prompt_that_waits_for_room_is_told_once_the_other_has_ended() -> None:
    ledger = ledger_of(VLLM, pool_blocks=6)  # one of them is the null block
    first, second = request("a", 1, 10, 64), request("b", 2, None, 64)
    ledger.begin(first)
    ledger.begin(second)
    assert ledger.predicted("b") == 48  # it shares what the other holds, and takes a block of its own
    other = replace(request("c", 3, 20, 64), token_ids=np.arange(100, 164, dtype=np.int32))
    ledger.begin(other)
    assert ledger.predicted("c") is None
    ledger.end(first)
    ledger.end(replace(second, ended_ns=11))
    ledger.end(other)
    assert ledger.predicted("c") == 0
    assert not ledger.late


def test_an_answer_that_shows_another_beginning_is_late() -> None:
    ledger = ledger_of(VLLM)
    begun = request("a", 1, None, 64, choices=2)
    ledger.begin(begun)
    one_token = replace(begun, ended_ns=4, generated=(7,), finish="length")
    ledger.end(one_token)  # vLLM then ends the first choice before the second begins
    assert ledger.late


def test_a_restart_empties_the_cache() -> None:
    ledger = ledger_of(VLLM, restarts=(5,))
    for item in (request("a", 1, 2, 64), request("b", 6, 7, 64)):
        ledger.begin(item)
        ledger.end(item)
    expected = VLLM.predict(
        Traffic(requests=(request("a", 1, 2, 64), request("b", 6, 7, 64)), restarts_ns=(5,)),
        settle(ServerProfile(), block_size=None, pool_blocks=None, tokenizer=None, engine=VLLM),
    )
    assert ledger.predicted("b") == expected["b"] == 0
