"""What a server, a start line or a model's folder tells may be anything: it is read, or it is not known."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from analyzer.counters import looks
from analyzer.engines.llama_cpp import ENGINE as LLAMA_CPP
from analyzer.kv_groups import read_layout
from analyzer.servers import ServerProfile, read_profile, settle
from analyzer.settings import UNTOLD, load_template, parse_settings
from analyzer.tokens import Tokenizer, TokenizerError
from store.records import ServerFact
from tests.analyzer.test_llama_cpp import ids, timed

DEEP = b"[" * 100_000


def fact(path: str, body: bytes) -> ServerFact:
    return ServerFact(at_ns=0, path=path, status=200, body=body)


@pytest.mark.parametrize("body", [DEEP, b'{"data":' + DEEP, b'{"data": 1' + b"0" * 5000 + b"}", b"\xff"])
@pytest.mark.parametrize("path", ["/v1/models", "/version", "/props"])
def test_json_that_cannot_be_read_tells_nothing(path: str, body: bytes) -> None:
    assert read_profile([fact(path, body)]) == ServerProfile()


@pytest.mark.parametrize(
    "size", ["0", "-1", "abc", "16.0", "1e3", "None", "", "²", "٣", "9" * 5000, "9" * 17]
)
@pytest.mark.parametrize("line", ['vllm:cache_config_info{{block_size="{0}",num_gpu_blocks="{0}"}} 1.0'])
def test_a_label_that_is_no_size_is_not_known(line: str, size: str) -> None:
    found = read_profile([fact("/metrics", line.format(size).encode())])
    assert (found.block_size, found.pool_blocks) == (None, None)
    window = {"sliding_window": size, "prefix_cache_retention_interval": size}
    assert all(group.window is None for group in read_layout(None, window, UNTOLD, 16)[0].groups)


@pytest.mark.parametrize("size", [True, 0, -4, 10**400, 2**53, "x", 1.5, [], {}])
def test_a_length_that_is_no_size_is_not_known(size: Any) -> None:
    body = json.dumps({"data": [{"id": "m", "max_model_len": size}]}).encode()
    assert read_profile([fact("/v1/models", body)]).max_model_len is None


@pytest.mark.parametrize(
    "page",
    [
        b"vllm:cache_config_info{" + b"a" * 1_000_000,
        b'vllm:cache_config_info{a="' + b"\\" * 1_000_001,
        b"a{\n" * 300_000,
        b"<html>" * 200_000,
    ],
    ids=("a long name", "escapes", "labels that do not end", "html"),
)
def test_a_page_of_metrics_is_read_in_a_time_that_grows_with_its_length(page: bytes) -> None:
    began = time.process_time()
    read_profile([fact("/metrics", page)])
    assert looks([fact("/metrics", page)]) == ()
    assert time.process_time() - began < 5  # the long name took more than 40 s


def test_a_counter_without_bounds_is_no_count() -> None:
    page = b"vllm:prefix_cache_queries_total 9e999\nvllm:prefix_cache_hits_total 9e999\n"
    assert looks([fact("/metrics", page)]) == ()


@pytest.mark.parametrize(
    "config",
    [
        {"num_hidden_layers": 10**9},
        {"num_hidden_layers": 10**9, "model_type": "gemma2"},
        {"num_hidden_layers": 4, "attn_layer_period": 0},
        {"num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": "x"},
        {"num_hidden_layers": 4, "model_type": "gemma3_text", "sliding_window_pattern": [1]},
        {"num_hidden_layers": 4, "model_type": "qwen3_next", "full_attention_interval": {"a": 1}},
        {"layer_types": ["full_attention"] * 3, "num_kv_shared_layers": "x"},
        {"layer_types": ["full_attention"] * 3, "num_kv_shared_layers": [1]},
        {"layer_types": ["full_attention"] * 3, "num_kv_shared_layers": float("inf")},
    ],
    ids=str,
)
def test_a_configuration_no_model_has_is_an_assumption_that_is_named(config: dict[str, Any]) -> None:
    layout, assumed = read_layout(config, {}, UNTOLD, 16)
    assert [group.kind for group in layout.groups] == ["full"]
    assert "in the model's config.json" in assumed[0]


def test_a_configuration_may_lie_however_deep_in_others() -> None:
    config: dict[str, Any] = {"layer_types": ["linear_attention"]}
    for _ in range(5000):
        config = {"text_config": config}
    assert [group.kind for group in read_layout(config, {}, UNTOLD, 16)[0].groups] == ["mamba"]


@pytest.mark.parametrize(
    "flags",
    [
        "--block-size 0",
        "--block-size -5",
        "--block-size 1e999k",
        "--block-size 99999999999999999999",
        "--block-size",
        "--max-model-len infk",
        "--max-num-batched-tokens 0",
        "--num-gpu-blocks-override 0",
        "--spec-tokens",
        "--lora-modules [1]",
        """--lora-modules '{"a": 1}'""",
        f"--lora-modules '{DEEP.decode()}'",
        f"--default-chat-template-kwargs '{DEEP.decode()}'",
    ],
    ids=lambda flags: flags[:40],
)
def test_a_flag_whose_value_is_none_is_named(flags: str) -> None:
    with pytest.raises(ValueError, match=flags.split()[0]):
        parse_settings(f"vllm serve m {flags}")


@pytest.mark.parametrize("path", ["/dev/zero", "/", "/nowhere"])
def test_a_chat_template_is_read_from_a_file_and_nothing_else(path: str) -> None:
    with pytest.raises(ValueError, match="cannot be read here"):
        load_template(path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_a_folder_with_json_nested_too_deeply_is_no_tokenizer(
    tmp_path: Path, sample_tokenizer: Path, name: str
) -> None:
    for file in sample_tokenizer.iterdir():
        if file.name != name:
            (tmp_path / file.name).symlink_to(file)
    (tmp_path / name).write_bytes(DEEP)
    with pytest.raises(TokenizerError, match="cannot be read"):
        Tokenizer(tmp_path)


def test_slots_beyond_the_number_of_requests_change_nothing_and_cost_nothing() -> None:
    prompts = [(ids(0, 30), 0, 9), ([*ids(0, 8), 99], 1, 2), (ids(0, 30), 3, 4)]
    assert timed(*prompts, slots=10**9) == timed(*prompts, slots=3) == [0, 0, 8]


def test_a_number_of_slots_is_told_as_the_server_said_it() -> None:
    told = ServerProfile(slots=10**9)
    server = settle(told, block_size=None, pool_blocks=None, tokenizer=None, engine=LLAMA_CPP)
    assert server.slots == 10**9
