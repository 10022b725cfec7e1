from __future__ import annotations

from pathlib import Path

import pytest

from analyzer.engines.vllm import ENGINE as VLLM
from analyzer.servers import ServerProfile, read_settings, settle
from analyzer.settings import FACT_PATH, note_on_ignored, parse_settings, worth_keeping
from store.records import ServerFact


def test_flags_are_read_in_every_spelling_vllm_takes() -> None:
    found = parse_settings(
        "vllm serve Qwen/Qwen3-8B --served-model-name a b --block_size=32 --max-model-len 32k"
        " --no-enable-prefix-caching --num-gpu-blocks-override 100 --tokenizer_mode deepseek_v4"
        " --exclude-tools-when-tool-choice-none --prefix-cache-retention-interval 64"
        """ --default-chat-template-kwargs '{"enable_thinking": false}' --tokenizer dir"""
        """ --speculative-config '{"method": "mtp"}' --spec-tokens 2"""
        """ --enable-lora --lora-modules x=/path '{"name": "y", "path": "/p"}' --port 8000"""
    )
    assert found.model == "Qwen/Qwen3-8B"
    assert found.served_model_name == ("a", "b")
    assert (found.block_size, found.max_model_len, found.num_gpu_blocks_override) == (32, 32_000, 100)
    assert found.enable_prefix_caching is False
    assert (found.tokenizer, found.tokenizer_mode) == ("dir", "deepseek_v4")
    assert found.exclude_tools_when_tool_choice_none
    assert found.trust_request_chat_template is False
    assert found.prefix_cache_retention_interval == 64
    assert found.default_chat_template_kwargs == {"enable_thinking": False}
    assert found.speculative_config == {"method": "mtp", "num_speculative_tokens": 2}
    assert found.enable_lora
    assert found.lora_modules == ("x", "y")
    assert found.ignored == ("port",)


@pytest.mark.parametrize(
    "line",
    [
        "vllm serve m --block-size 16",
        "/opt/bin/vllm serve --enforce-eager m --block-size=16",
        "vllm serve --model m --block-size 16 > log 2>&1 &",
        "VLLM_X=1 nohup vllm serve m \\\n  --block-size 16",
        "python -m vllm.entrypoints.openai.api_server --model m --block-size 16",
        "python3 -m vllm.entrypoints.cli.main serve m --block-size 16",
        "docker run --gpus all -p 8000:8000 vllm/vllm-openai:v0.32.0 --model m --block-size 16",
        "docker run --rm -e VLLM_X=1 vllm/vllm-openai m --block-size 16",
        "vllm launch render m --block-size 16",
        "--model m --block-size 16",
    ],
)
def test_a_start_line_is_found_behind_what_stands_before_it(line: str) -> None:
    found = parse_settings(line)
    assert (found.model, found.block_size) == ("m", 16)
    assert dict(found.environment) == ({"VLLM_X": "1"} if "VLLM_X" in line else {})


def test_members_of_a_json_flag_may_be_given_one_by_one() -> None:
    found = parse_settings(
        "vllm serve m --default-chat-template-kwargs.enable_thinking false"
        " --default-chat-template-kwargs.a.b=x --default-chat-template-kwargs.a.list+ 1,2"
    )
    assert found.default_chat_template_kwargs == {
        "enable_thinking": False,
        "a": {"b": "x", "list": ["1", "2"]},
    }


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("python app.py", "starts no vLLM server"),
        ("", "starts no vLLM server"),
        ("vllm serve 'm", "cannot be read"),
        ("vllm serve m --block-size", "--block-size has no value"),
        ("vllm serve m --block-size many", "--block-size has no value"),
        ("vllm serve m --chat-template-content-format list", "none of auto, string, openai"),
        ("vllm serve m --default-chat-template-kwargs [1]", "not a JSON object"),
    ],
)
def test_a_line_that_cannot_be_read_says_why(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_settings(line)


def test_a_capture_keeps_what_matters_and_no_keys(tmp_path: Path) -> None:
    template = tmp_path / "a.jinja"
    template.write_text("{{ messages }}\n'q'", encoding="utf-8")
    line = (
        f"HF_TOKEN=secret1 VLLM_A=1 vllm serve m --api-key secret2 --chat-template {template}"
        " --hf-token=secret3 --no-enable-prefix-caching --default-chat-template-kwargs.a 1"
    )
    kept = worth_keeping(line)
    assert "secret" not in kept
    read = parse_settings(kept)
    assert read.chat_template == "{{ messages }}\n'q'"
    assert (read.model, dict(read.environment), read.enable_prefix_caching) == ("m", {"VLLM_A": "1"}, False)
    assert read.default_chat_template_kwargs == {"a": 1}
    assert note_on_ignored(parse_settings(line)) == (
        "locality: --serve-command: nothing here depends on --api-key, --hf-token"
    )
    assert note_on_ignored(read) is None


def test_the_line_given_now_counts_before_the_one_kept_and_the_server_before_both() -> None:
    fact = ServerFact(at_ns=0, path=FACT_PATH, status=200, body=b"vllm serve kept --block-size 16")
    assert read_settings([fact], None).model == "kept"
    given = read_settings([fact], "vllm serve given --block-size 48 --num-gpu-blocks-override 9")
    assert given.model == "given"
    told = settle(ServerProfile(), given, block_size=None, pool_blocks=None, tokenizer=None, engine=VLLM)
    assert (told.block_size, told.pool_blocks, len(told.assumed)) == (48, 9, 1)
    profile = ServerProfile(block_size=32)
    for said, expected in ((None, 32), (64, 64)):
        settled = settle(profile, given, block_size=said, pool_blocks=None, tokenizer=None, engine=VLLM)
        assert settled.block_size == expected
