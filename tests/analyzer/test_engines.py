"""What every kind of server must keep to, whichever file it stands in, and how each is recognised."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analyzer.blocks import Namespace
from analyzer.engines import CacheRequest, Engine, Moment, Traffic, first_come_first_served, in_order
from analyzer.ledger import engine_of
from analyzer.registry import plugins
from analyzer.report import Server
from analyzer.servers import ServerProfile, read_profile, settle
from store.records import ServerFact
from tests.analyzer.cache_requests import request

ENGINES: Mapping[str, Engine] = plugins("engines")


def server_of(engine: Engine, pool_blocks: int | None = None, block_size: int | None = None) -> Server:
    return settle(
        ServerProfile(), block_size=block_size, pool_blocks=pool_blocks, tokenizer=None, engine=engine
    )


@pytest.fixture(params=list(ENGINES))
def engine(request: pytest.FixtureRequest) -> Engine:
    return ENGINES[request.param]


token_lists = st.lists(st.integers(0, 2), min_size=1, max_size=40)
flights = st.tuples(st.integers(0, 30), st.one_of(st.none(), st.integers(0, 20)))
requests = st.tuples(
    token_lists,
    st.one_of(st.integers(0, 30), st.lists(st.integers(-1, 2), max_size=30).map(tuple)),
    flights,
    st.sampled_from([None, "a"]),
    st.sampled_from([False, False, True]),
)


@pytest.mark.parametrize("name", list(ENGINES))
@settings(max_examples=150, deadline=None)
@given(st.lists(requests, max_size=12), st.one_of(st.none(), st.integers(4, 60)), st.integers(1, 4))
def test_any_traffic_hits_less_than_its_prompts_and_nobody_is_left_out(
    name: str,
    drawn: list[tuple[list[int], tuple[int, ...] | int, tuple[int, int | None], str | None, bool]],
    pool: int | None,
    size: int,
) -> None:
    engine = ENGINES[name]
    if engine.block_pool and pool is not None:
        pool += 100  # what fits in no pool is for the rules' own tests
    traffic = Traffic(
        requests=tuple(
            request(
                number,
                prompt,
                generated,
                started_ns=start,
                ended_ns=None if took is None else start + took + 1,
                namespace=Namespace(cache_salt=salt),
                skip_reading=skips,
            )
            for number, (prompt, generated, (start, took), salt, skips) in enumerate(drawn)
        )
    )
    hits = engine.predict(traffic, server_of(engine, pool, size))
    assert set(hits) == {item.key for item in traffic.requests}
    for item in traffic.requests:
        hit = hits[item.key]
        assert hit is None or 0 <= hit <= len(item.token_ids) - 1
        assert not (item.skip_reading and hit)


def test_no_traffic_is_no_prediction(engine: Engine) -> None:
    assert engine.predict(Traffic(requests=()), server_of(engine)) == {}


def test_a_longer_common_prefix_is_never_worth_less(engine: Engine) -> None:
    prompt = list(range(100))
    hits = []
    for common in range(0, 100, 7):
        second = prompt[:common] + list(range(500, 500 + 100 - common))
        traffic = Traffic(requests=(request(0, prompt), request(1, second)))
        hits.append(engine.predict(traffic, server_of(engine))["1"] or 0)
    assert hits == sorted(hits)
    assert hits[-1] > 80


def test_the_same_prompt_again_computes_at_least_its_last_token(engine: Engine) -> None:
    prompt = list(range(96))  # whole blocks of every usual size
    traffic = Traffic(requests=tuple(request(number, prompt) for number in range(3)))
    hits = engine.predict(traffic, server_of(engine))
    expected = 80 if engine.usual_block_size == 16 else 95
    assert hits == {"0": 0, "1": expected, "2": expected}


def test_generated_tokens_are_reused_where_known_and_not_where_only_counted(engine: Engine) -> None:
    prompt, answer = list(range(64)), tuple(range(900, 960))
    following = [*prompt, *answer, *range(100)]
    for generated, expected in ((answer, 64 + 59), (60, 64), ((-1,) * 60, 64)):
        traffic = Traffic(requests=(request(0, prompt, generated), request(1, following)))
        hit = engine.predict(traffic, server_of(engine))["1"]
        # All but the token sampled last have been computed.
        assert hit == expected // engine.usual_block_size * engine.usual_block_size


def test_a_prompt_that_was_never_seen_to_end_is_reused_all_the_same(engine: Engine) -> None:
    prompt = list(range(64))
    traffic = Traffic(requests=(request(0, prompt, ended_ns=None), request(1, [*prompt, 7])))
    hit = engine.predict(traffic, server_of(engine))["1"]
    assert hit == 64


def test_requests_that_were_never_seen_to_end_keep_nobody_waiting(engine: Engine) -> None:
    killed = tuple(request(number, [number] * 40, ended_ns=None) for number in range(8))
    traffic = Traffic(requests=(*killed, request(8, [7] * 48)))
    expected = 40 // engine.usual_block_size * engine.usual_block_size
    assert engine.predict(traffic, server_of(engine))["8"] == expected


def test_ends_come_before_starts_of_the_same_moment_but_never_before_their_own() -> None:
    first, second = request(0, [1], ended_ns=10), request(1, [1], started_ns=10, ended_ns=10)
    seen = []

    class Endless:
        def can_ever_fit(self, request: CacheRequest) -> bool:
            return True

        def start(self, request: CacheRequest) -> int:
            seen.append((request.key, True))
            return 0

        def end(self, request: CacheRequest) -> None:
            seen.append((request.key, False))

    first_come_first_served(Traffic(requests=(first, second)), Endless())
    assert seen == [("0", True), ("0", False), ("1", True), ("1", False)]


def test_requests_played_one_after_another_hit_what_they_hit_in_a_whole_capture(engine: Engine) -> None:
    dice = random.Random(7)
    requests = []
    for number in range(60):
        prompt = [*range(dice.randrange(120)), *(1000 + dice.randrange(3) for _ in range(30))]
        ended = number * 10 + dice.choice((5, 25, 60))
        answer = tuple(range(500, 500 + dice.randrange(20)))
        made = request(number, prompt, answer, started_ns=number * 10, ended_ns=ended)
        requests.append(made)
    whole = engine.predict(Traffic(requests=tuple(requests)), server_of(engine))
    replay = engine.replay(server_of(engine))
    pending: list[Moment] = []
    for made in requests:
        pending += (*replay.starts(made), *replay.ends(made))
        pending.sort(key=lambda moment: moment[:2])
        while pending and pending[0][0] <= made.started_ns:
            pending.pop(0)[2]()
        assert replay.hit(made) in (whole[made.key], None)  # None: it waits for one of few slots
    in_order(pending)
    assert {made.key: replay.hit(made) for made in requests} == whole
    assert len(set(whole.values())) > 3


def fact(path: str, body: object) -> ServerFact:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ServerFact(at_ns=0, path=path, status=200, body=text)


@pytest.mark.parametrize(
    ("owner", "expected"),
    # What each writes into /v1/models: vLLM 0.32 entrypoints/openai/models, SGLang
    # srt/entrypoints/openai/protocol.py ModelCard, llama.cpp tools/server.
    [("vllm", "vllm"), ("sglang", "sglang"), ("llamacpp", "llama_cpp"), ("library", "vllm")],
)
def test_a_server_is_taken_for_what_it_says_it_is(owner: str, expected: str) -> None:
    profile = read_profile([fact("/v1/models", {"data": [{"id": "m", "owned_by": owner}]})])
    assert engine_of(profile).name == expected
    assert engine_of(profile, "sglang").name == "sglang"


def test_slots_are_read_from_llama_cpps_properties_and_assumed_otherwise() -> None:
    profile = read_profile([fact("/props", {"total_slots": 2, "model_path": "x.gguf"})])
    engine = engine_of(profile)
    assert (engine.name, profile.slots) == ("llama_cpp", 2)
    told = settle(profile, block_size=None, pool_blocks=None, tokenizer=None, engine=engine)
    assert (told.slots, told.block_size, told.engine_exact) == (2, 1, False)
    assert not any("slots" in item for item in told.assumed)
    untold = server_of(engine)
    assert untold.slots == 4
    assert untold.assumed[0].startswith("4 slots")
    assert not any("--pool-blocks" in item for item in untold.assumed)


@pytest.mark.parametrize(
    "metrics",
    [
        # before SGLang 0.5.11, and since
        b'sglang:cache_config_info{model_name="m",page_size="64",num_pages="500"} 1.0',
        b'sglang:page_size{tp_rank="0"} 64.0\nsglang:num_pages{tp_rank="0"} 500.0\nsglang:token_usage 0.5',
    ],
)
def test_pages_are_read_from_sglangs_metrics(metrics: bytes) -> None:
    profile = read_profile([fact("/metrics", metrics)])
    assert (profile.block_size, profile.pool_blocks) == (64, 500)


def test_what_is_less_exact_says_so(engine: Engine) -> None:
    told = server_of(engine)
    assert told.engine_exact is (engine.name == "vllm")
    assert any("no running server" in item for item in told.assumed) is not told.engine_exact
    assert (told.engine_title in told.assumed[-1]) or told.engine_exact or told.slots
