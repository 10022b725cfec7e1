"""What a server said of itself, and what is assumed where it did not."""

from __future__ import annotations

import json

from analyzer.engines.vllm import ENGINE as VLLM
from analyzer.servers import ServerProfile, read_profile, settle
from store.records import ServerFact

MODELS = {
    "data": [
        {"id": "lora-a", "root": "/adapters/a", "parent": "served"},
        {"id": "served", "root": "/models/base", "max_model_len": 32768, "parent": None},
    ]
}
# The shape of vLLM 0.32's line (v1/metrics/loggers.py:1114); a longer label comes first on purpose.
METRICS = (
    b"# HELP vllm:cache_config_info x\n"
    b'vllm:cache_config_info{effective_attention_block_size="64",block_size="32",num_gpu_blocks="160",'
    b'mamba_block_size="None",note="a \\"b\\", c"} 1.0\n'
)


def fact(path: str, body: bytes, status: int | None = 200) -> ServerFact:
    return ServerFact(at_ns=0, path=path, status=status, body=body)


def test_version_model_and_cache_settings_are_read() -> None:
    facts = [
        fact("/version", b'{"version": "0.32.0"}'),
        fact("/v1/models", json.dumps(MODELS).encode()),
        fact("/metrics", METRICS),
    ]
    assert read_profile(facts) == ServerProfile(
        version="0.32.0",
        model="served",
        root="/models/base",
        max_model_len=32768,
        block_size=32,
        pool_blocks=160,
        adapters=frozenset({"lora-a"}),
        cache_labels={
            "effective_attention_block_size": "64",
            "block_size": "32",
            "num_gpu_blocks": "160",
            "mamba_block_size": "None",
            "note": 'a \\"b\\", c',
        },
    )


def test_a_later_answer_replaces_an_earlier_one_and_a_refusal_does_not() -> None:
    facts = [
        fact("/version", b'{"version": "1"}'),
        fact("/version", b'{"version": "2"}'),
        fact("/version", b"gone", status=503),
        fact("/version", b"Connection refused", status=None),
    ]
    assert read_profile(facts).version == "2"


def test_answers_of_any_other_shape_are_not_known() -> None:
    facts = [fact("/version", b"[1]"), fact("/v1/models", b'{"data": 3}'), fact("/metrics", b"<html>")]
    assert read_profile(facts) == ServerProfile()


def test_what_is_assumed_is_named() -> None:
    server = settle(ServerProfile(), block_size=None, pool_blocks=None, tokenizer=None, engine=VLLM)
    assert server.block_size == 16
    assert [item.split(" ")[0] for item in server.assumed] == ["block_size", "pool_blocks", "KV"]


def test_the_users_word_comes_before_the_servers() -> None:
    told = ServerProfile(block_size=32, pool_blocks=160)
    server = settle(told, block_size=64, pool_blocks=None, tokenizer=None, engine=VLLM)
    assert (server.block_size, server.pool_blocks, len(server.assumed)) == (64, 160, 1)
    assert server.assumed[0].startswith("KV layout: full attention")
