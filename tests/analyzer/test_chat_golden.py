from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analyzer.core import Reply
from analyzer.dialects.chat import DIALECT
from analyzer.renderers import Job, RenderFailed
from analyzer.rendering import render, render_text
from analyzer.settings import ServerSettings, parse_settings
from analyzer.sourced import plain
from analyzer.sourced_json import wrap
from analyzer.tokens import Tokenizer
from tests.byte_tokenizer import make_folder, text_of
from tests.chat_cases import CASES, SERVERS, TOLD

GOLDEN = Path(__file__).parent.parent / "golden" / "chat"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("bytes"))


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    return Tokenizer(folder)


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Any]:
    template = tmp_path_factory.mktemp("told") / "template.jinja"
    template.write_text(TOLD, encoding="utf-8")
    flags = SERVERS[request.param].replace("TEMPLATE", str(template))
    return request.param, parse_settings(f"vllm serve bytes {flags}")


def job_of(
    body: dict[str, Any], tokenizer: Tokenizer, settings: ServerSettings, *, sourced: bool = False
) -> Job:
    (conversation,) = DIALECT.conversations(wrap(body) if sourced else body)
    return Job(
        conversation=conversation,
        reply=Reply(outcome="done"),
        clock=datetime(2026, 11, 29, tzinfo=UTC),
        tokenizer=tokenizer,
        settings=settings,
        max_model_len=settings.max_model_len,
        sourced=sourced,
    )


def answers(name: str) -> dict[str, str | int]:
    found: dict[str, str | int] = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))["answers"]
    assert list(found) == list(CASES[name]), "run python -m tests.oracle.chat_vllm again"
    return found


def test_every_body_renders_to_the_ids_of_the_server(
    server: tuple[str, ServerSettings], tokenizer: Tokenizer, folder: Path
) -> None:
    name, settings = server
    wrong = {}
    for case, wanted in answers(name).items():
        if isinstance(wanted, int):
            continue
        try:
            rendering = render(job_of(CASES[name][case], tokenizer, settings))
            made = text_of(folder, rendering.token_ids.tolist())
        except (RenderFailed, ValueError) as error:
            made = f"failed: {error}"
        if made != wanted:
            wrong[case] = (made, wanted)
    assert wrong == {}


def test_strings_that_know_their_field_render_alike(
    server: tuple[str, ServerSettings], tokenizer: Tokenizer
) -> None:
    name, settings = server
    for case, wanted in answers(name).items():
        body = CASES[name][case]
        if isinstance(wanted, str) and case != "forwarded ids":
            marked = render_text(job_of(body, tokenizer, settings, sourced=True))
            assert plain(marked) == render_text(job_of(body, tokenizer, settings)), case


@pytest.mark.parametrize(
    "case",
    [
        "an image, string",
        "no tools in a list",
        "no messages",
        "continued with a prompt",
        "template error",
        "a call of another type, string",
    ],
)
def test_what_the_server_refuses_is_not_rendered_here_either(case: str, tokenizer: Tokenizer) -> None:
    assert answers("trusting")[case] == 400
    with pytest.raises((RenderFailed, ValueError)):
        render(job_of(CASES["trusting"][case], tokenizer, ServerSettings()))


def test_a_template_of_the_request_is_refused_where_the_start_line_does_not_trust_it(
    tokenizer: Tokenizer,
) -> None:
    case = "told: own template refused"
    assert answers("told")[case] == 400
    with pytest.raises(RenderFailed, match="--trust-request-chat-template"):
        render(job_of(CASES["told"][case], tokenizer, parse_settings("vllm serve bytes")))


def test_a_bundled_template_that_is_missing_is_named(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "siglip", model_type="siglip")
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    del config["chat_template"]
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    body = {"messages": [{"role": "user", "content": "hi"}]}
    with pytest.raises(RenderFailed, match=r"template_basic\.jinja"):
        render(job_of(body, Tokenizer(folder), ServerSettings()))
