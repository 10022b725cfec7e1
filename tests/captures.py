"""Captures written directly, exchange by exchange, for tests that need no proxy and no server."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from store.db import Capture
from store.records import Body, Chunk, Exchange, RequestSeen, ResponseSeen, ServerFact
from tests.conftest import eventually

START_NS = 1_700_000_000_000_000_000
MODELS = {"data": [{"id": "tiny", "root": "/nowhere", "owned_by": "vllm", "max_model_len": 65536}]}
METRICS = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="4096"} 1.0'


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One exchange: a request body (JSON, or bytes as they are) and the answer to it.

    A `ttft_ms` makes the answer a stream whose first token came then; `usage` is what it reports.
    """

    body: Any
    path: str = "/v1/chat/completions"
    status: int = 200
    usage: dict[str, Any] | None = None
    ttft_ms: float | None = None
    answer: Any = None
    ids: list[int] | None = None


def write_capture(path: Path, exchanges: Iterable[Sent], *, block_size: int | None = 16) -> Path:
    """A capture of these exchanges, a second apart; `block_size` None: the server said nothing of itself."""
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        for number, sent in enumerate(exchanges, start=1):
            _write(capture, number, sent)
        if block_size is not None:
            metrics = METRICS.replace('"16"', f'"{block_size}"').encode()
            capture.save_facts(
                [
                    ServerFact(at_ns=1, path="/v1/models", status=200, body=json.dumps(MODELS).encode()),
                    ServerFact(at_ns=1, path="/metrics", status=200, body=metrics),
                    ServerFact(at_ns=1, path="/version", status=200, body=b'{"version": "0.32.0"}'),
                ]
            )
    return path


def _write(capture: Capture, number: int, sent: Sent) -> None:
    body = sent.body if isinstance(sent.body, bytes) else json.dumps(sent.body).encode()
    answer, kind = answer_of(sent)
    first_ns = 5_000_000 if sent.ttft_ms is None else round(sent.ttft_ms * 1e6)
    capture.save_request(
        RequestSeen(
            key=f"k{number}",
            started_at_ns=START_NS + number * 10**9,
            method="POST",
            path=sent.path,
            query="",
            headers=(("content-type", "application/json"),),
            body=body,
        )
    )
    capture.save_response(
        ResponseSeen(
            key=f"k{number}",
            status=sent.status,
            headers=(("content-type", kind),),
            body=answer,
            chunks=(Chunk(byte_end=len(answer), at_ns=first_ns),),
            ttft_ns=first_ns,
            duration_ns=first_ns + 1_000_000,
            ended="complete",
            error=None,
        )
    )


def answer_of(sent: Sent) -> tuple[bytes, str]:
    """The bytes of the answer, and their content type."""
    if sent.answer is not None:
        raw = sent.answer if isinstance(sent.answer, bytes) else json.dumps(sent.answer).encode()
        return raw, "application/json"
    ids = {} if sent.ids is None else {"prompt_token_ids": sent.ids}
    said = {"usage": sent.usage, **ids}
    if sent.ttft_ms is None:
        return json.dumps(said).encode(), "application/json"
    return f"data: {json.dumps(said)}\n\ndata: [DONE]\n\n".encode(), "text/event-stream"


def chat(clock: str, *said: str) -> dict[str, Any]:
    """A chat request of a user and an assistant in turn, with a clock in the head of its system text."""
    messages = [{"role": "system", "content": f"It is {clock}. " + "You are a coding agent. " * 20}]
    for at, text in enumerate(said):
        messages.append({"role": "assistant" if at % 2 else "user", "content": text})
    return {"model": "tiny", "messages": messages}


def usage(prompt: int, cached: int | None = None) -> dict[str, Any]:
    """A chat answer's usage; without `cached`, the server reports no hits."""
    details = {} if cached is None else {"prompt_tokens_details": {"cached_tokens": cached}}
    return {"prompt_tokens": prompt, "completion_tokens": 3, **details}


def ended_since(path: Path, seen: int) -> list[Exchange]:
    """The exchanges after the first `seen`, once there are any and none of the capture is open any more."""

    def settled() -> bool:
        with Capture.open(str(path)) as capture:
            counts = capture.counts()
            return counts.exchanges > seen and counts.open == 0

    assert eventually(settled)
    with Capture.open(str(path)) as capture:
        return list(capture.exchanges())[seen:]


def tokenizer_with(folder: Path, tokenizer: Path, template: str) -> Path:
    """A tokenizer folder with another chat template."""
    folder.mkdir()
    (folder / "tokenizer.json").symlink_to(tokenizer / "tokenizer.json")
    (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
    return folder


def exchange_of(path: str, content: bytes) -> Exchange:
    """A request as a capture gives it; its answer is 200 and an empty body."""
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


def request_seen(key: str, body: Any, at_ns: int = START_NS + 10**17) -> RequestSeen:
    """A chat request as the proxy hands it over; by default it begins long after those of `write_capture`."""
    return RequestSeen(
        key=key,
        started_at_ns=at_ns,
        method="POST",
        path="/v1/chat/completions",
        query="",
        headers=(),
        body=json.dumps(body).encode(),
    )


def response_seen(key: str) -> ResponseSeen:
    """Its answer, whole and without usage."""
    return ResponseSeen(
        key=key,
        status=200,
        headers=(),
        body=b'{"usage": null}',
        chunks=(),
        ttft_ns=1,
        duration_ns=2,
        ended="complete",
        error=None,
    )
