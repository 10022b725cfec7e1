"""The renderers that ask a server, against a stub that gives a real vLLM's recorded answers, or worse."""

from __future__ import annotations

import json
import socket
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer.core import Conversation, Rendering, Reply
from analyzer.reading import dialect_of
from analyzer.renderers import Job, RenderFailed
from analyzer.renderers.server import RENDERER as SERVER
from analyzer.renderers.tokenize import RENDERER as TOKENIZE
from analyzer.rendering import render, verdicts
from analyzer.server_api import ServerApi, ServerFailed
from analyzer.tokens import Tokenizer
from tests.analyzer.server_stub import GOLDEN, Answerer, always, answering, as_recorded, golden

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
CHAT_BODIES = [row["name"] for row in GOLDEN if row["path"] == f"{CHAT}/render" and row["status"] == 200]
HELLO = '{"model":"sample","messages":[{"role":"user","content":"hello"}]}'


def jobs(server: ServerApi | None, path: str, body: str, **given: Any) -> list[Job]:
    dialect = dialect_of(path)
    found = (
        dialect.conversations(json.loads(body)) if dialect else (Conversation(dialect="x", prompt_index=0),)
    )
    return [
        Job(
            conversation=conversation,
            reply=Reply(outcome="done"),
            clock=given.get("clock", datetime.now().astimezone()),
            tokenizer=given.get("tokenizer"),
            server=server,
            path=path,
            body=body.encode(),
        )
        for conversation in found
    ]


@pytest.mark.parametrize(
    "row",
    [row for row in GOLDEN if row["path"].endswith("/render") and row["status"] == 200],
    ids=lambda row: f"{row['path']} {row['name']}",
)
def test_render_gets_the_captured_bytes_and_its_ids_are_taken(row: dict[str, Any]) -> None:
    answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
    with answering(as_recorded) as stub:
        server = ServerApi(stub.url)
        asked = jobs(server, row["path"].removesuffix("/render"), row["body"])
        assert all(SERVER.fits(job) for job in asked)
        rendered = [SERVER.render(job) for job in asked]
    assert [item.token_ids.tolist() for item in rendered] == [item["token_ids"] for item in answers]
    assert {item.source for item in rendered} == {"server"}
    assert len(stub.asked) == 1, "a body of many prompts is one question"


@pytest.mark.parametrize("name", CHAT_BODIES)
def test_tokenize_is_asked_only_where_it_equals_the_chat_path(name: str) -> None:
    chat, alike = golden(f"{CHAT}/render", name), golden("/tokenize", name)
    with answering(as_recorded) as stub:
        (job,) = jobs(ServerApi(stub.url), CHAT, chat["body"])
        equal = chat["answer"]["token_ids"] == alike["answer"]["tokens"]
        assert TOKENIZE.fits(job) == equal
        if equal:
            assert TOKENIZE.render(job).token_ids.tolist() == chat["answer"]["token_ids"]
        else:
            with pytest.raises(RenderFailed, match="/tokenize"):
                TOKENIZE.render(job)


def test_tokenize_takes_text_prompts_one_by_one() -> None:
    recorded = golden(f"{COMPLETIONS}/render", "many")
    with answering(as_recorded) as stub:
        asked = jobs(ServerApi(stub.url), COMPLETIONS, recorded["body"])
        ids = [TOKENIZE.render(job).token_ids.tolist() for job in asked]
    assert ids == [item["token_ids"] for item in recorded["answer"]]


@pytest.mark.parametrize(
    "extra",
    [
        {"reasoning_effort": "low"},
        {"documents": [{"title": "a", "text": "b"}]},
        {"truncate_prompt_tokens": 5},
        {"tool_choice": "none"},
        {"tool_choice": {"type": "function", "function": {"name": "f"}}},
        {"chat_template": "x"},
        {"kv_transfer_params": {"prompt_token_ids": [1]}},
        {"prompt": "x"},
        {"model": "openai/gpt-oss-20b"},
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
    ],
    ids=lambda extra: next(iter(extra)),
)
def test_tokenize_does_not_fit_what_chat_treats_otherwise(extra: dict[str, Any]) -> None:
    server = ServerApi("http://127.0.0.1:1")
    (job,) = jobs(server, CHAT, HELLO)
    assert TOKENIZE.fits(job)
    (job,) = jobs(server, CHAT, json.dumps(json.loads(HELLO) | extra))
    assert not TOKENIZE.fits(job)


def test_neither_fits_without_a_named_server() -> None:
    (job,) = jobs(None, CHAT, HELLO)
    for renderer in (SERVER, TOKENIZE):
        assert not renderer.fits(job)
        with pytest.raises(RenderFailed, match="--server URL"):
            renderer.render(job)


def test_render_does_not_stand_for_disabled_thinking() -> None:
    body = '{"model":"sample","max_tokens":1,"thinking":{"type":"%s"},"messages":[]}'
    server = ServerApi("http://127.0.0.1:1")
    fits = {
        kind: SERVER.fits(
            Job(
                conversation=Conversation(dialect="messages", prompt_index=0),
                reply=Reply(outcome="done"),
                clock=datetime.now().astimezone(),
                tokenizer=None,
                server=server,
                path="/v1/messages",
                body=(body % kind).encode(),
            )
        )
        for kind in ("disabled", "enabled")
    }
    assert fits == {"disabled": False, "enabled": True}


def test_a_template_that_prints_the_date_is_not_asked_for_on_another_day(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    for file in sample_tokenizer.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "chat_template.jinja").unlink()
    (tmp_path / "chat_template.jinja").write_text("{{ strftime_now('%d') }}")
    server, tokenizer = ServerApi("http://127.0.0.1:1"), Tokenizer(tmp_path)
    now = datetime.now().astimezone()
    for clock, fits in ((now, True), (now - timedelta(days=2), False)):
        (job,) = jobs(server, CHAT, HELLO, clock=clock, tokenizer=tokenizer)
        assert SERVER.fits(job) == TOKENIZE.fits(job) == fits


REFUSALS: list[tuple[str, Answerer, str]] = [
    (
        "switched off",  # vLLM 0.32 entrypoints/scale_out/factories.py:86-96
        always(403, {"error": {"message": "Scale-out endpoints are disabled.", "code": 403}}),
        r"--enable-scale-out.*vllm launch render",
    ),
    ("no endpoint", always(404, {"detail": "Not Found"}), "is not there"),
    ("no model", always(404, golden(f"{CHAT}/render", "another model")["answer"]), "does not exist"),
    (
        "refused",
        always(400, golden(f"{CHAT}/render", "refused")["answer"]),
        "refused the body with 400: 19 val",
    ),
    ("key", always(401, {"error": "Unauthorized"}), "API key"),
    ("error", always(500, b"<html>"), "failed with 500"),
    ("no JSON", always(200, b"<html>"), "did not answer with JSON"),
    ("deep JSON", always(200, b"[" * 100_000), "did not answer with JSON"),
    ("no ids", always(200, {"token_ids": None}), "no token ids"),
    ("wrong ids", always(200, {"token_ids": [1, -2]}), "no token ids"),
    ("no prompt", always(200, []), "no rendering of prompt 0"),
]


@pytest.mark.parametrize(("answerer", "says"), [item[1:] for item in REFUSALS], ids=[i[0] for i in REFUSALS])
def test_a_server_that_does_not_render_is_a_message_with_the_next_step(answerer: Answerer, says: str) -> None:
    with answering(answerer) as stub:
        (job,) = jobs(ServerApi(stub.url), CHAT, HELLO)
        with pytest.raises(RenderFailed, match=says):
            SERVER.render(job)


def test_what_will_fail_again_is_asked_once() -> None:
    with answering(always(403, {})) as stub:
        server = ServerApi(stub.url)
        for number in range(3):
            with pytest.raises(ServerFailed, match="switched off"):
                server.post(f"{CHAT}/render", b"%d" % number)
        assert len(stub.asked) == 1
        assert sum(server.failures.values()) == 3


def test_one_refused_body_does_not_stand_for_the_next() -> None:
    with answering(always(400, {})) as stub:
        server = ServerApi(stub.url)
        for number in range(2):
            with pytest.raises(ServerFailed, match="refused"):
                server.post(f"{CHAT}/render", b"%d" % number)
        assert len(stub.asked) == 2


def test_nobody_there_is_a_message() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ServerFailed, match=f"127.0.0.1:{port} cannot be asked"):
        ServerApi(f"http://127.0.0.1:{port}").post("/tokenize", b"{}")


def test_an_answer_that_drips_is_given_up() -> None:
    with answering(always(200, b" " * 1000), pause_s=0.02) as stub:
        server = ServerApi(stub.url, timeout_s=0.2)
        with pytest.raises(ServerFailed, match=r"longer than 0\.2 s"):
            server.post("/tokenize", b"{}")


def test_an_answer_without_end_is_given_up() -> None:
    with (
        answering(always(200, b" " * 5000)) as stub,
        pytest.raises(ServerFailed, match="longer than 1000 bytes"),
    ):
        ServerApi(stub.url, max_bytes=1000).post("/tokenize", b"{}")


def test_a_redirect_leads_nowhere() -> None:
    with answering(always(200, {"token_ids": [1]})) as elsewhere:
        with (
            answering(always(307, {}), location=f"{elsewhere.url}/tokenize") as stub,
            pytest.raises(ServerFailed),
        ):
            ServerApi(stub.url).post("/tokenize", b"{}")
        assert elsewhere.asked == []


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:8000", "ftp://a", "http://", "http://a:b@c", "http://a:99999"]
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        ServerApi(url)


def test_auto_falls_back_where_the_server_does_not_render(sample_tokenizer: Path) -> None:
    tokenizer = Tokenizer(sample_tokenizer)
    recorded = golden(f"{CHAT}/render", "reasoning_content")
    with answering(always(403, {})) as stub:
        (job,) = jobs(ServerApi(stub.url), CHAT, recorded["body"], tokenizer=tokenizer)
        assert render(job).source == "jinja"
        assert job.server is not None and job.server.failures
        with pytest.raises(RenderFailed, match="--enable-scale-out"):
            render(job, "server")


def test_render_is_believed_unless_a_count_or_a_missing_secret_speaks_against_it() -> None:
    ids = Rendering(token_ids=np.arange(5, dtype=np.int32), source="server")
    assert verdicts([ids], None) == ["exact"]
    assert verdicts([ids], 5) == ["exact"]
    assert verdicts([ids], 6) == ["mismatch"]
    assert verdicts([ids], None, redacted=True) == ["unchecked"]
