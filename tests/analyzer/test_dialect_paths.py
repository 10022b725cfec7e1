"""Fields are named as the request's own body names them, on every endpoint."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from analyzer import sourced_json
from analyzer.anthropic_probes import disabled_effort, refuse_inline_system
from analyzer.core import Conversation, Reply
from analyzer.divergences import DivergenceFinder, Pair, PromptKey
from analyzer.reading import dialect_of, read_request
from analyzer.renderers import Job, RenderFailed
from analyzer.renderers.wire import RENDERER as WIRE
from analyzer.rendering import render, render_text
from analyzer.settings import parse_settings
from analyzer.sourced import spans_of
from analyzer.tokens import Tokenizer
from store.records import Body, Exchange

TEMPLATE = (
    "{% for tool in tools or [] %}{{ tool.function | tojson }}\n{% endfor %}"
    "{% for m in messages %}[{{ m.role }}]{{ m.reasoning_content or '' }}{{ m.content }}"
    "{% for call in m.tool_calls or [] %}{{ call.function.name }}{{ call.function.arguments | tojson }}"
    "{% endfor %}\n{% endfor %}"
)
BILLED = "x-anthropic-billing-header: a\n"
PATHS = {"messages": "/v1/messages", "responses": "/v1/responses", "completions": "/v1/completions"}


@pytest.fixture(scope="module")
def tokenizer(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    folder = tmp_path_factory.mktemp("plain")
    shutil.copy(sample_tokenizer / "tokenizer.json", folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return Tokenizer(folder)


def conversation(dialect: str, body: dict[str, Any], *, sourced: bool = False) -> Conversation:
    found = dialect_of(PATHS[dialect])
    assert found is not None
    return found.conversations(sourced_json.wrap(body) if sourced else body)[0]


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "text": content}


def messages(change: Callable[[dict[str, Any]], None]) -> tuple[dict[str, Any], dict[str, Any]]:
    return changed(
        {
            "max_tokens": 9,
            "system": [text(BILLED), text("You keep"), text(" the tables.")],
            "tools": [{"name": "tide", "input_schema": {"properties": {"day": {"type": "string"}}}}],
            "messages": [
                {"role": "user", "content": [text("one"), text("two")]},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {
                            "type": "tool_use",
                            "id": "t",
                            "name": "tide",
                            "input": {"day": "2026", "é": [1, 2]},
                        },
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        text("after"),
                        {"type": "tool_result", "tool_use_id": "t", "content": [text("r1"), text("r2")]},
                    ],
                },
                {"role": "system", "content": [text("inline")]},
            ],
        },
        change,
    )


def responses(change: Callable[[dict[str, Any]], None]) -> tuple[dict[str, Any], dict[str, Any]]:
    return changed(
        {
            "instructions": "You keep tables.",
            "tools": [{"type": "function", "name": "tide", "parameters": {"type": "object", "x": "y"}}],
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "one"}]},
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]},
                {"type": "function_call", "call_id": "c", "name": "tide", "arguments": '{"day": "2026"}'},
                {"type": "function_call_output", "call_id": "c", "output": "08:00"},
                {"type": "custom_tool_call", "call_id": "d", "name": "patch", "input": "+a"},
            ],
        },
        change,
    )


def completions(change: Callable[[dict[str, Any]], None]) -> tuple[dict[str, Any], dict[str, Any]]:
    return changed({"prompt": ["One text."]}, change)


def changed(
    body: dict[str, Any], change: Callable[[dict[str, Any]], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    other = json.loads(json.dumps(body))
    change(other)
    return body, other


def put(*keys: Any) -> Callable[[dict[str, Any]], None]:
    """Write other text into the field that the keys lead to."""

    def change(body: dict[str, Any]) -> None:
        holder: Any = body
        for key in keys[1:-1]:
            holder = holder[key]
        holder[keys[-1]] = keys[0]

    return change


@pytest.mark.parametrize(
    ("dialect", "keys", "path"),
    [
        (messages, ("Zzz", "system", 1, "text"), "system[1].text"),
        (messages, ("Zzz", "system", 2, "text"), "system[2].text"),
        (messages, ("Zzz", "tools", 0, "name"), "tools[0].name"),
        (messages, ("Zzz", "messages", 0, "content", 1, "text"), "messages[0].content[1].text"),
        (messages, ("Zzz", "messages", 1, "content", 0, "thinking"), "messages[1].content[0].thinking"),
        (messages, ("Zzz", "messages", 1, "content", 1, "name"), "messages[1].content[1].name"),
        (messages, ("Zzz", "messages", 1, "content", 1, "input", "day"), "messages[1].content[1].input.day"),
        (messages, ("Zzz", "messages", 2, "content", 0, "text"), "messages[2].content[0].text"),
        (
            messages,
            ("Zzz", "messages", 2, "content", 1, "content", 1, "text"),
            "messages[2].content[1].content[1].text",
        ),
        (messages, ("Zzz", "messages", 3, "content", 0, "text"), "messages[3].content[0].text"),
        (responses, ("Zzz", "instructions"), "instructions"),
        (responses, ("Zzz", "tools", 0, "parameters", "x"), "tools[0].parameters.x"),
        (responses, ("Zzz", "input", 0, "content", 0, "text"), "input[0].content[0].text"),
        (responses, ("Zzz", "input", 1, "content", 0, "text"), "input[1].content[0].text"),
        (responses, ("Zzz", "input", 2, "content", 0, "text"), "input[2].content[0].text"),
        (responses, ('{"day": "Zzz"}', "input", 3, "arguments"), "input[3].arguments"),
        (responses, ("Zzz", "input", 4, "output"), "input[4].output"),
        (responses, ("Zzz", "input", 5, "input"), "input[5].input"),
        (completions, ("One Zzz.", "prompt", 0), "prompt[0]"),
    ],
)
def test_a_divergence_names_the_field_of_the_request(
    dialect: Any, keys: tuple[Any, ...], path: str, tokenizer: Tokenizer
) -> None:
    bodies = dialect(put(*keys))
    ids = [render(job(conversation(dialect.__name__, body), tokenizer)).token_ids for body in bodies]

    def read_again(key: PromptKey, body: Any) -> tuple[Job, Any]:
        read = bodies[key[0]] if body is None else body
        return job(conversation(dialect.__name__, read, sourced=True), tokenizer, sourced=True), read

    pair = Pair(parent=(0, 0), child=(1, 0), parent_ids=ids[0], child_ids=ids[1])
    found = DivergenceFinder(read_again, block_size=16, explain=False).find(pair).divergence
    assert found is not None
    assert found.path == path


def job(asked: Conversation, tokenizer: Tokenizer, *, sourced: bool = False) -> Job:
    clock = datetime(2026, 3, 2, tzinfo=UTC)
    return Job(
        conversation=asked, reply=Reply(outcome="done"), clock=clock, tokenizer=tokenizer, sourced=sourced
    )


def test_a_number_inside_an_input_knows_its_field() -> None:
    body, _ = messages(lambda _: None)
    call = conversation("messages", body, sourced=True).messages[2]["tool_calls"][0]
    known = {span.path for span in spans_of(call["function"]["arguments"])}
    assert "messages[1].content[1].input.é[1]" in {path.replace('["é"]', ".é") for path in known}


@pytest.mark.parametrize("name", ["chat", "completions", "messages", "responses"])
def test_every_sample_session_is_read(name: str) -> None:
    path = {"chat": "/v1/chat/completions", **PATHS}[name]
    content = (Path(__file__).parents[2] / "samples" / "sessions" / f"{name}.json").read_bytes()
    request = read_request(exchange(path, content))
    assert (request.dialect, request.problem) == (name, None)
    assert request.conversations


def exchange(path: str, content: bytes) -> Exchange:
    return Exchange(
        id=1,
        started_at_ns=0,
        method="POST",
        path=path,
        query="",
        request_headers=(),
        request=Body(content=content, wire_length=len(content)),
        status=200,
        response_headers=(),
        response=Body(),
        chunks=(),
        ttft_ns=None,
        duration_ns=None,
        ended="complete",
        error=None,
    )


def test_of_several_answers_each_prompt_takes_its_own_ids(tokenizer: Tokenizer) -> None:
    found = dialect_of("/v1/completions")
    assert found is not None
    asked = found.conversations({"prompt": ["ab c", "d"], "n": 2})
    # As vLLM 0.32 answers: choice 2 is the first of the second prompt.
    reply = Reply(outcome="done", prompt_token_ids=((370, 272), (370, 272), (67,), (67,)))
    jobs = [replace(job(item, tokenizer), reply=reply) for item in asked]
    assert [WIRE.render(item).token_ids.tolist() for item in jobs] == [[370, 272], [67]]


@pytest.mark.parametrize(
    ("templates", "refuse"),
    [
        ((), True),
        (("{% for m in messages %}{{ m.content }}{% endfor %}",), False),
        (("{{ messages[0].content }}", "{{ raise_exception('no') }}"), True),
        # What only transformers' environment knows fails in the server's barer one, and so refuses.
        (("{{ strftime_now('%Y') }}",), True),
        (("{% generation %}{% endgeneration %}",), True),
        (("{% for m in messages %}{% for n in range(99999999) %}{% endfor %}{% endfor %}",), True),
        (("{% if loop %}{% endif",), True),
    ],
)
def test_a_template_that_fails_on_a_second_system_message_refuses_it(
    templates: tuple[str, ...], refuse: bool
) -> None:
    # vLLM 0.32 entrypoints/anthropic/serving.py:240-299
    assert refuse_inline_system(templates) == refuse


def test_disabled_thinking_is_a_low_effort_where_none_is_ignored_or_refused() -> None:
    # vLLM 0.32 entrypoints/anthropic/serving.py:206-219
    assert disabled_effort(lambda effort: effort != "none") == "none"
    assert disabled_effort(lambda _: "the same") == "low"
    assert disabled_effort(lambda effort: effort.replace("none", "max")) == "low"
    assert disabled_effort(lambda effort: None if effort == "none" else "x") == "low"


def test_disabled_thinking_renders_with_the_effort_the_server_found(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    shutil.copy(sample_tokenizer / "tokenizer.json", tmp_path)
    # A server with this end of its template said low, and counted so (vLLM 0.32, /v1/messages).
    effort = "{% if reasoning_effort %}effort {{ reasoning_effort | replace('none', 'max') }}{% endif %}"
    (tmp_path / "chat_template.jinja").write_text("{{ messages[0].content }} " + effort, encoding="utf-8")
    body = {"messages": [{"role": "user", "content": "Say"}], "thinking": {"type": "disabled"}}
    asked = conversation("messages", body | {"output_config": {"effort": "xhigh"}})
    assert render_text(job(asked, Tokenizer(tmp_path))) == "Say effort low"


def test_an_effort_of_the_start_line_stands_for_disabled_thinking(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    # vLLM 0.32 entrypoints/anthropic/serving.py:190-205
    shutil.copy(tokenizer.directory / "tokenizer.json", tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ reasoning_effort }}", encoding="utf-8")
    body = {"messages": [{"role": "user", "content": "q"}], "thinking": {"type": "disabled"}}
    asked = job(conversation("messages", body), Tokenizer(tmp_path))
    told = parse_settings("vllm serve m --anthropic-disabled-thinking-effort medium")
    assert render_text(replace(asked, settings=told)) == "medium"
    assert render_text(asked) == "none"


def test_an_id_that_the_server_made_up_is_a_reason_where_the_prompt_shows_it(
    tokenizer: Tokenizer, tmp_path: Path
) -> None:
    # vLLM 0.32 entrypoints/anthropic/serving.py:511 takes its clock for the id.
    call = {"role": "assistant", "content": [{"type": "tool_use", "name": "tide", "input": {}}]}
    asked = conversation("messages", {"messages": [{"role": "user", "content": "q"}, call]})
    assert render(job(asked, tokenizer)).source == "jinja"
    shutil.copy(tokenizer.directory / "tokenizer.json", tmp_path)
    (tmp_path / "chat_template.jinja").write_text("{{ messages[1] | tojson }}", encoding="utf-8")
    with pytest.raises(RenderFailed, match="the server made up"):
        render(job(asked, Tokenizer(tmp_path)))


@pytest.mark.parametrize(
    ("dialect", "body", "tokens"),
    [
        # 15,000 words to vLLM 0.32 with --max-model-len 32768 came out as 32,767 tokens each time.
        ("completions", {"truncate_prompt_tokens": -1}, 29),
        ("completions", {"truncate_prompt_tokens": -1, "max_tokens": None}, 29),
        ("completions", {"truncate_prompt_tokens": -1, "truncation_side": "right"}, 29),
        ("responses", {"truncation": "auto", "max_output_tokens": 5}, 29),
        ("responses", {"truncation": None, "max_output_tokens": 5}, 29),
        ("responses", {"truncation": "disabled", "max_output_tokens": 5}, None),
    ],
)
def test_a_prompt_is_cut_to_the_models_length_less_a_token(
    dialect: str, body: dict[str, Any], tokens: int | None, tokenizer: Tokenizer
) -> None:
    long = " ".join(f"w{number}" for number in range(99))
    key = {"completions": "prompt", "responses": "input"}[dialect]
    asked = replace(job(conversation(dialect, {key: long} | body), tokenizer), max_model_len=30)
    whole = len(render(replace(asked, max_model_len=None)).token_ids)
    assert len(render(asked).token_ids) == (tokens or whole)
