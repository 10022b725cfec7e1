"""The encoders against ids frozen from a real vLLM (tests/oracle/encoders_vllm.py says how)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from analyzer.registry import plugins
from analyzer.renderers import RenderFailed
from analyzer.rendering import render, render_text, renderers
from analyzer.settings import parse_settings
from analyzer.sourced import plain, spans_of
from tests import tokenizers
from tests.oracle.encoders import GOLDEN, golden, ids_of, jobs_of
from tests.tokenizers import reason_missing

# What each server rendered, and the tokenizer it had.
TOKENIZERS = {
    "deepseek_v4": "deepseek_v4",
    "deepseek_v32": "deepseek_v3",
    "gpt-oss": "gptoss",
    "mistral": "mistral",
}
RENDERERS = {
    "deepseek_v4": "deepseek_v4",
    "deepseek_v32": "deepseek_v32",
    "gpt-oss": "harmony",
    "mistral": "mistral",
}
HELLO = {"messages": [{"role": "user", "content": "Hi"}]}
MODELS = [model for model in TOKENIZERS if (GOLDEN / f"{model}.json").is_file()]


def folder_of(model: str) -> Path:
    """The model's tokenizer."""
    if reason := reason_missing(TOKENIZERS[model]):
        pytest.skip(reason)
    return tokenizers.folder_of(TOKENIZERS[model])


def cases(model: str) -> list[dict[str, Any]]:
    """The frozen cases whose endpoint this program reads."""
    known = {dialect.path for dialect in plugins("dialects").values()}
    return [case for case in golden(model)["cases"] if case["path"] in known]


def clock_of(model: str) -> datetime:
    return datetime.fromisoformat(golden(model)["rendered_on"]).astimezone()


@pytest.mark.parametrize(
    ("model", "case"),
    [pytest.param(m, case, id=f"{m}-{case['path'][4:]}-{case['name']}") for m in MODELS for case in cases(m)],
)
def test_ids_are_the_servers(model: str, case: dict[str, Any]) -> None:
    ours = ids_of(model, folder_of(model), case["path"], case["body"], clock_of(model), RENDERERS[model])
    if case["path"] == "/v1/completions" and "suffix" not in case["body"]:
        pytest.skip("a raw prompt is not an encoder's")
    assert ours == case["token_ids"]


@pytest.mark.parametrize("model", ["deepseek_v4", "deepseek_v32"])
def test_text_is_the_same_with_and_without_provenance(model: str) -> None:
    directory, compared = folder_of(model), 0
    (renderer,) = renderers(model)
    for case in cases(model):
        if case["token_ids"] is None or case["path"] == "/v1/completions":
            continue
        for sent in (True, False):
            known, bare = (
                renderer.render_text(
                    jobs_of(directory, case["path"], case["body"], clock_of(model), sourced=sourced)[0],
                    generation_prompt=sent,
                )
                for sourced in (True, False)
            )
            assert plain(known) == bare
            assert spans_of(bare) == ()
            compared += 1
        assert spans_of(known) or not any(message.get("content") for message in case["body"]["messages"])
    assert compared > 60


def folder_with(directory: Path, tokenizer: Path, **files: Any) -> Path:
    """A tokenizer's folder with other files beside it, each given as JSON."""
    directory.mkdir()
    (directory / "tokenizer.json").symlink_to(tokenizer / "tokenizer.json")
    for name, value in files.items():
        (directory / f"{name}.json").write_text(json.dumps(value), encoding="utf-8")
    return directory


@pytest.mark.parametrize(
    ("config", "mode"),
    [
        ({"architectures": ["DeepseekV4ForCausalLM"]}, "deepseek_v4"),
        ({"architectures": ["DeepseekV32ForCausalLM"]}, "deepseek_v32"),
        ({"architectures": ["DeepseekV41ForCausalLM"]}, "deepseek_v41"),
        ({"architectures": ["DeepseekV3ForCausalLM"]}, "hf"),
        ({"architectures": ["GptOssForCausalLM"], "model_type": "gpt_oss"}, "harmony"),
        ({"model_type": "llama"}, "hf"),
    ],
)
def test_the_architecture_alone_chooses_who_renders(tmp_path: Path, config: Any, mode: str) -> None:
    template = {"chat_template": "{% for m in messages %}{{ m.content }}{% endfor %}"}
    directory = folder_with(
        tmp_path / "model", folder_of("deepseek_v4"), config=config, tokenizer_config=template
    )
    (job,) = jobs_of(directory, "/v1/chat/completions", HELLO, clock_of("deepseek_v4"))
    fitting = [renderer.name for renderer in renderers() if renderer.fits(job)]
    known = {"hf": ["jinja"], "deepseek_v41": []}
    assert fitting == known.get(mode, [mode])


def test_a_v4_tokenizer_with_a_chat_template_and_no_configuration_is_rendered_by_it(tmp_path: Path) -> None:
    template = {"chat_template": "{{ messages[0].content }}"}
    directory = folder_with(tmp_path / "model", folder_of("deepseek_v4"), tokenizer_config=template)
    (job,) = jobs_of(directory, "/v1/chat/completions", HELLO, clock_of("deepseek_v4"))
    assert [renderer.name for renderer in renderers() if renderer.fits(job)] == ["jinja"]
    assert renderers("deepseek_v4")[0].render(job).source == "deepseek_v4"


def test_what_the_encoder_refuses_is_not_rendered_by_a_template(tmp_path: Path) -> None:
    template = {"chat_template": "{{ messages[0].content }}"}
    config = {"architectures": ["DeepseekV4ForCausalLM"]}
    directory = folder_with(
        tmp_path / "model", folder_of("deepseek_v4"), config=config, tokenizer_config=template
    )
    body = {"messages": [{"role": "user", "content": "Hi"}, {"role": "critic", "content": "no"}]}
    (job,) = jobs_of(directory, "/v1/chat/completions", body, clock_of("deepseek_v4"))
    with pytest.raises(RenderFailed, match="the role critic"):
        render(job)


def test_a_v4_tokenizer_is_known_without_a_configuration() -> None:
    (job,) = jobs_of(folder_of("deepseek_v4"), "/v1/chat/completions", HELLO, clock_of("deepseek_v4"))
    assert render_text(job) == (
        plugins("renderers")["deepseek_v4"].render_text(job, generation_prompt=False)
        + "<｜Assistant｜><think>"
    )


def test_gpt_oss_is_told_the_day_that_the_servers_environment_pins() -> None:
    # vLLM 0.32 entrypoints/openai/parser/harmony_utils.py:134-140; the golden's day, at another time.
    case = next(
        item for item in cases("gpt-oss") if item["token_ids"] and item["path"].endswith("/completions")
    )
    day = golden("gpt-oss")["rendered_on"]
    told = parse_settings(f"VLLM_SYSTEM_START_DATE={day} vllm serve m")
    long_ago = datetime.fromisoformat("2020-02-02").astimezone()
    (asked,) = jobs_of(folder_of("gpt-oss"), case["path"], case["body"], long_ago)
    assert render(replace(asked, settings=told), "harmony").token_ids.tolist() == case["token_ids"][0]
    assert render(asked, "harmony").token_ids.tolist() != case["token_ids"][0]
    moved = parse_settings("VLLM_GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS=1 vllm serve m")
    with pytest.raises(RenderFailed, match="SYSTEM_INSTRUCTIONS set"):
        render(replace(asked, settings=moved), "harmony")
