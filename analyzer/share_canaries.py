"""Exchanges with a canary in every place where text can stand: what is sealed of them must not hold it.

It proves the way of sealing, with bodies that no user sent.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

from store.records import Chunk, RequestSeen, ResponseSeen

type Json = dict[str, Any]


def canary_exchanges(canary: str) -> Iterator[tuple[RequestSeen, ResponseSeen]]:
    """One exchange of each endpoint, answered, streamed, refused, and broken off."""
    answer = {"choices": [{"index": 0, "message": {"role": "assistant", "content": f"{canary} said"}}]}
    stream = f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': canary}}]})}\n\n".encode()
    refusal = json.dumps({"error": {"message": f"no such thing as {canary}"}}).encode()
    for number, (path, body) in enumerate(_bodies(canary)):
        for status, said in ((200, json.dumps(answer).encode()), (200, stream), (400, refusal), (None, b"")):
            yield _exchange(
                f"{number}.{status}.{len(said)}", path, json.dumps(body).encode(), canary, (status, said)
            )
    yield _exchange(
        "broken", "/v1/chat/completions", f'{{"messages": {canary}'.encode(), canary, (200, b"{}")
    )


def _exchange(
    key: str, path: str, body: bytes, canary: str, answer: tuple[int | None, bytes]
) -> tuple[RequestSeen, ResponseSeen]:
    status, said = answer
    headers = (("user-agent", canary), ("x-session-id", canary), (f"x-{canary}", "1"))
    return (
        RequestSeen(
            key=key,
            started_at_ns=time.time_ns(),
            method="POST",
            path=path,
            query=f"page={canary}",
            headers=headers,
            body=body,
        ),
        ResponseSeen(
            key=key,
            status=status,
            headers=headers,
            body=said,
            chunks=(Chunk(byte_end=len(said), at_ns=1),) if said else (),
            ttft_ns=1,
            duration_ns=2,
            ended="complete" if said else "reset",
            error=None if said else f"broke off at {canary}",
        ),
    )


def _bodies(canary: str) -> Iterator[tuple[str, Json]]:
    schema = {"type": "object", "properties": {canary: {"type": "string", "enum": [canary]}}, canary: canary}
    function = {"name": canary, "description": canary, "parameters": schema}
    call = {"id": canary, "type": "function", "function": {"name": canary, "arguments": f'{{"{canary}": 1}}'}}
    common: Json = {"model": canary, "user": canary, "metadata": {canary: canary}, "cache_salt": canary}
    yield (
        "/v1/chat/completions",
        common
        | {
            "messages": [
                {"role": "system", "content": canary},
                {"role": "user", "name": canary, "content": [{"type": "text", "text": canary}]},
                {"role": "assistant", "content": canary, "reasoning": canary, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": canary, "content": canary},
            ],
            "tools": [{"type": "function", "function": function}],
            "stop": [canary],
        },
    )
    used = {"type": "tool_use", "id": canary, "name": canary, "input": {canary: [canary, 5]}}
    yield (
        "/v1/messages",
        common
        | {
            "system": canary,
            "messages": [{"role": "user", "content": canary}, {"role": "assistant", "content": [used]}],
            "tools": [{"name": canary, "input_schema": schema}],
        },
    )
    item = {"type": "function_call", "call_id": canary, "name": canary, "arguments": canary}
    yield (
        "/v1/responses",
        common | {"instructions": canary, "input": [{"role": "user", "content": canary}, item]},
    )
    yield "/v1/completions", common | {"prompt": canary, "suffix": canary}
