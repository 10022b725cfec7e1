"""A capture's hits at other pool sizes, from its requests to what a person and a program read."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from analyzer.blocks import Namespace
from analyzer.engines import CacheRequest, Traffic
from analyzer.engines.vllm import ENGINE
from analyzer.replay import TokenCache
from analyzer.report import PoolSweep, Server
from analyzer.servers import ServerProfile, settle
from analyzer.sweeping import sweep_pool
from store.db import Capture
from store.records import RequestSeen, ResponseSeen, ServerFact
from tests.analyzer.cache_requests import request
from tests.conftest import locality


def server(pool_blocks: int | None) -> Server:
    return settle(ServerProfile(), block_size=4, pool_blocks=pool_blocks, tokenizer=None, engine=ENGINE)


def sweep(
    *requests: CacheRequest, pool_blocks: int | None = None, parents: dict[str, int] | None = None
) -> PoolSweep:
    return sweep_pool(Traffic(requests=requests), server(pool_blocks), parents or {})


def test_the_table_holds_todays_pool_its_halves_and_doubles_and_both_ends() -> None:
    # 40 strangers of 4 blocks and a partial one, twice: it all comes back where 160 + 1 + the null block fit.
    traffic = [request(n, [n] * 17) for n in range(40)]
    twice = [*traffic, *(request(40 + n, [n] * 17) for n in range(40))]
    found = sweep(*twice, pool_blocks=50)
    assert [size.pool_blocks for size in found.sizes] == [6, 12, 25, 50, 100, 162]
    assert (found.smallest_pool_blocks, found.saturated_pool_blocks) == (6, 162)
    assert found.sizes[0].hit_tokens == 0
    assert found.sizes[-1].hit_tokens == found.unlimited_hit_tokens == 40 * 16
    assert found.sizes[-1].hit_pct == found.unlimited_hit_pct == 47.1  # 640 of 1360


@pytest.mark.parametrize("pool_blocks", [6, 7, 8, 9, 11, 14])
def test_todays_pool_hits_what_the_simulator_predicts(pool_blocks: int) -> None:
    dice = np.random.default_rng(5)
    traffic = Traffic(
        requests=tuple(
            request(
                n, [int(dice.integers(2))] * 4 + dice.integers(2, size=1 + int(dice.integers(3))).tolist()
            )
            for n in range(60)
        )
    )
    cache, predicted = TokenCache(4, pool_blocks - 1), 0
    for item in traffic.requests:
        hit = cache.admit(item.key, item.token_ids)
        assert hit is not None
        predicted += hit.tokens
        cache.finish(item.key, item.generated)
    found = sweep_pool(traffic, server(pool_blocks), {})
    today = next(size for size in found.sizes if size.pool_blocks == pool_blocks)
    assert today.hit_tokens == predicted > 0


def test_a_pool_too_small_for_the_largest_request_is_not_known() -> None:
    found = sweep(request(0, [1] * 40), pool_blocks=5)
    assert (found.sizes[0].pool_blocks, found.sizes[0].hit_tokens, found.sizes[0].hit_pct) == (5, None, None)
    assert found.smallest_pool_blocks == 11


def test_what_appending_would_give_is_the_parents_prompt_in_whole_blocks_or_what_is_hit_already() -> None:
    first, second, third = list(range(10)), [*range(5), *range(50, 61)], list(range(10))
    found = sweep(request(0, first), request(1, second), request(2, third), parents={"1": 10, "2": 16})
    # 4 and 8 of the tokens are hit; 8 of the second's 16, and at most 8 of the third's 10, could be.
    assert (found.unlimited_hit_tokens, found.append_hit_tokens) == (12, 16)
    assert (found.unlimited_hit_pct, found.append_hit_pct) == (33.3, 44.4)


def test_generated_tokens_salts_and_prompt_logprobs_count_as_the_server_counts_them() -> None:
    prompt, answer = list(range(8)), (50, 51, 52, 53, 54)
    following = [*prompt, *answer, 99, 98]
    assert sweep(request(0, prompt, answer), request(1, following)).unlimited_hit_tokens == 12
    assert sweep(request(0, prompt, 5), request(1, following)).unlimited_hit_tokens == 8
    assert sweep(request(0, prompt, (-1,) * 5), request(1, following)).unlimited_hit_tokens == 8
    salted = request(1, following, namespace=Namespace(cache_salt="s"))
    assert sweep(request(0, prompt, answer), salted).unlimited_hit_tokens == 0
    skipping = request(1, following, skip_reading=True)
    found = sweep(request(0, prompt, answer), skipping, parents={"1": 8})
    assert (found.unlimited_hit_tokens, found.append_hit_tokens) == (0, 0)


def test_two_answers_of_unknown_ids_are_two() -> None:
    stranger, prompt = list(range(50, 59)), list(range(9))
    answered = [request(n, prompt, (-1,) * 5) for n in (1, 2)]
    found = sweep(request(0, stranger), *answered, request(3, stranger))
    # Above the stranger's two blocks lie two of the prompt, one of each answer and one that was not full.
    assert found.saturated_pool_blocks == 2 + 2 + 2 + 1 + 1


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Two turns of one conversation, the second's first line changed, on a server that said its sizes."""
    path = tmp_path / "c.sqlite"
    with Capture.create_or_open(str(path), redaction="secrets") as made:
        metrics = b'vllm:cache_config_info{block_size="16",num_gpu_blocks="160"} 1.0'
        made.save_facts([ServerFact(at_ns=1, path="/metrics", status=200, body=metrics)])
        for number, clock in enumerate(("one", "two")):
            turns = [{"role": "user", "content": "word " * 200}] * (number + 1)
            body = {"model": "m", "messages": [{"role": "system", "content": f"It is {clock}."}, *turns]}
            made.save_request(
                RequestSeen(
                    key=str(number),
                    started_at_ns=number * 10**9,
                    method="POST",
                    path="/v1/chat/completions",
                    query="",
                    headers=(("content-type", "application/json"),),
                    body=json.dumps(body).encode(),
                )
            )
            made.save_response(
                ResponseSeen(
                    key=str(number),
                    status=200,
                    headers=(("content-type", "application/json"),),
                    body=b"{}",
                    chunks=(),
                    ttft_ns=1,
                    duration_ns=2,
                    ended="complete",
                    error=None,
                )
            )
    return path


def test_json_has_the_sizes_and_what_they_are_to_be_seen_against(
    capture: Path, sample_tokenizer: Path
) -> None:
    options = ("--tokenizer", str(sample_tokenizer), "--format", "json")
    told = json.loads(locality("report", str(capture), "--pool-sweep", *options).stdout)
    assert all(set(size) == {"pool_blocks", "hit_pct", "hit_tokens"} for size in told["pool_sweep"])
    today = next(size for size in told["pool_sweep"] if size["pool_blocks"] == 160)
    assert today["hit_tokens"] == sum(turn["predicted_cached_tokens"] for turn in told["turns"])
    against = told["pool_sweep_against"]
    assert against["prompt_tokens"] == told["summary"]["prompt_tokens"]
    assert against["unlimited"]["hit_tokens"] == today["hit_tokens"] < against["append"]["hit_tokens"]
    assert len(against["assumed"]) == 3
    unasked = json.loads(locality("report", str(capture), *options).stdout)
    assert (unasked["pool_sweep"], unasked["pool_sweep_against"]) == (None, None)


def test_the_text_says_whether_a_larger_cache_or_a_better_prompt_helps(
    capture: Path, sample_tokenizer: Path
) -> None:
    made = locality(
        "report", str(capture), "--pool-sweep", "--tokenizer", str(sample_tokenizer), COLUMNS="300"
    )
    lines = made.stdout.split("\n")
    at = next(number for number, line in enumerate(lines) if line.startswith("pool blocks"))
    assert any(line.split()[0] == "160" and "today" in line for line in lines[at + 1 :] if line)
    story = next(line for line in lines if line.startswith("hit rate, of "))
    assert "(+0.0 points by a larger pool, at most)" in story
    assert "points by better prompts" in story and "(+0.0 points by better prompts" not in story
    assert "pool sizes assume: requests ran one after the other" in made.stdout


@pytest.mark.parametrize(("name", "title"), [("sglang", "SGLang"), ("llama_cpp", "llama.cpp")])
def test_a_server_without_a_pool_of_blocks_is_told_so_and_marked_as_less_exact(
    name: str, title: str, capture: Path, sample_tokenizer: Path
) -> None:
    options = ("--pool-sweep", "--engine", name, "--tokenizer", str(sample_tokenizer))
    made = locality("report", str(capture), *options, COLUMNS="300")
    assert made.returncode == 0
    assert f"--pool-sweep: {title}'s cache is not one pool of blocks" in made.stdout
    assert f"hits predicted by {title}'s rules, less exactly (≈)" in made.stdout.split("\n")[2]
    assert "cached ≈" in made.stdout
    json_made = locality("report", str(capture), *options, "--format", "json")
    told = json.loads(json_made.stdout)
    assert told["pool_sweep"] is None
    assert f"--pool-sweep: {title}'s" in json_made.stderr
    assert (told["server"]["engine"], told["server"]["engine_exact"]) == (name, False)
