"""Answers of the sample upstream as wire bytes: JSON bodies and server-sent events, one pair a dialect.

Shapes follow vLLM 0.32 (chat_completion/serving.py, anthropic/serving.py, responses/serving.py), simplified.
"""

import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from samples.session import Answer, ToolCall

type Json = dict[str, Any]
CREATED = 1772442000


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Everything a dialect needs to write one answer down."""

    id: str
    model: str
    answer: Answer
    prompt_ids: list[int]
    token_ids: list[int]
    cached_tokens: int
    created_tokens: int
    return_token_ids: bool = False
    include_usage: bool = False

    @property
    def finish_reason(self) -> str:
        """Why the answer ended, in chat's words."""
        return "tool_calls" if self.answer.calls else "stop"

    def usage(self, *, created: bool = True) -> Json:
        """Usage as chat and completions write it."""
        details = {"cached_tokens": self.cached_tokens}
        if created:
            details["created_cache_tokens"] = self.created_tokens
        return {
            "prompt_tokens": len(self.prompt_ids),
            "total_tokens": len(self.prompt_ids) + len(self.token_ids),
            "completion_tokens": len(self.token_ids),
            "prompt_tokens_details": details,
        }


def dumps(value: Any) -> str:
    """JSON as vLLM writes it: no spaces, no ASCII escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {data if isinstance(data, str) else dumps(data)}\n\n".encode()


def pieces(text: str) -> list[str]:
    """A text in runs of about four words, as a stream would bring it."""
    return re.findall(r"(?:\s*\S+){1,4}\s*", text) or ([text] if text else [])


def _spread(ids: list[int], parts: int) -> list[list[int]]:
    edges = [len(ids) * number // parts for number in range(parts + 1)]
    return [ids[start:end] for start, end in itertools.pairwise(edges)]


def _chat_call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def chat_json(reply: Reply) -> Json:
    """A chat completion in one piece."""
    answer = reply.answer
    message = {
        "role": "assistant",
        "content": answer.content,
        "reasoning": answer.reasoning or None,
        "tool_calls": [_chat_call(call) for call in answer.calls],
    }
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reply.finish_reason}
    choice["token_ids"] = reply.token_ids if reply.return_token_ids else None
    return {
        **_chat_head(reply, "chat.completion"),
        "choices": [choice],
        "usage": reply.usage(),
        "prompt_token_ids": reply.prompt_ids if reply.return_token_ids else None,
    }


def _chat_head(reply: Reply, kind: str) -> Json:
    return {"id": reply.id, "object": kind, "created": CREATED, "model": reply.model}


def chat_events(reply: Reply) -> Iterator[bytes]:
    """A chat completion as a stream; usage last, and only where it was asked for."""
    answer, head = reply.answer, _chat_head(reply, "chat.completion.chunk")
    deltas: list[Json] = [{"reasoning": piece} for piece in pieces(answer.reasoning)]
    deltas += [{"content": piece} for piece in pieces(answer.content)]
    for index, call in enumerate(answer.calls):
        start = {"name": call.name, "arguments": ""}
        deltas.append(
            {"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": start}]}
        )
        for piece in pieces(call.arguments):
            deltas.append({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    first = {**head, "choices": [_delta({"role": "assistant", "content": ""})]}
    if reply.return_token_ids:
        first["prompt_token_ids"] = reply.prompt_ids
    yield event(first)
    # The last share of the ids goes with the finish chunk: it holds the end token.
    shares = _spread(reply.token_ids, len(deltas) + 1)
    for number, (delta, ids) in enumerate(zip([*deltas, {}], shares, strict=True)):
        finish = reply.finish_reason if number == len(deltas) else None
        choice = _delta(delta, finish)
        if reply.return_token_ids:
            choice["token_ids"] = ids
        yield event({**head, "choices": [choice]})
    if reply.include_usage:
        yield event({**head, "choices": [], "usage": reply.usage()})
    yield event("[DONE]")


def _delta(delta: Json, finish: str | None = None) -> Json:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def completion_json(reply: Reply) -> Json:
    """A text completion in one piece."""
    choice: Json = {"index": 0, "text": reply.answer.content, "logprobs": None, "finish_reason": "stop"}
    if reply.return_token_ids:
        choice |= {"token_ids": reply.token_ids, "prompt_token_ids": reply.prompt_ids}
    return {**_chat_head(reply, "text_completion"), "choices": [choice], "usage": reply.usage(created=False)}


def completion_events(reply: Reply) -> Iterator[bytes]:
    """A text completion as a stream."""
    head = _chat_head(reply, "text_completion")
    texts = [*pieces(reply.answer.content), ""]
    for number, (text, ids) in enumerate(zip(texts, _spread(reply.token_ids, len(texts)), strict=True)):
        finish = "stop" if number == len(texts) - 1 else None
        choice: Json = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish}
        if reply.return_token_ids:
            choice |= {"token_ids": ids} | ({} if number else {"prompt_token_ids": reply.prompt_ids})
        yield event({**head, "choices": [choice]})
    if reply.include_usage:
        yield event({**head, "choices": [], "usage": reply.usage(created=False)})
    yield event("[DONE]")


def _messages_usage(reply: Reply) -> Json:
    return {
        "input_tokens": len(reply.prompt_ids) - reply.cached_tokens - reply.created_tokens,
        "output_tokens": len(reply.token_ids),
        "cache_creation_input_tokens": reply.created_tokens,
        "cache_read_input_tokens": reply.cached_tokens,
    }


def _messages_blocks(answer: Answer) -> list[Json]:
    blocks: list[Json] = []
    if answer.reasoning:
        blocks.append({"type": "thinking", "thinking": answer.reasoning, "signature": ""})
    if answer.content:
        blocks.append({"type": "text", "text": answer.content})
    for call in answer.calls:
        arguments = json.loads(call.arguments)
        blocks.append({"type": "tool_use", "id": call.id, "name": call.name, "input": arguments})
    return blocks


def _messages_head(reply: Reply) -> Json:
    return {"id": reply.id, "type": "message", "role": "assistant", "model": reply.model}


def messages_json(reply: Reply) -> Json:
    """An Anthropic message in one piece."""
    stop = "tool_use" if reply.answer.calls else "end_turn"
    body = {**_messages_head(reply), "content": _messages_blocks(reply.answer), "stop_reason": stop}
    return {**body, "stop_sequence": None, "usage": _messages_usage(reply)}


def messages_events(reply: Reply) -> Iterator[bytes]:
    """An Anthropic message as a stream; the cache fields stand in the last message_delta only."""
    start_usage = {"input_tokens": len(reply.prompt_ids), "output_tokens": 0}
    start = {**_messages_head(reply), "content": [], "stop_reason": None, "usage": start_usage}
    yield event({"type": "message_start", "message": start}, "message_start")
    for index, block in enumerate(_messages_blocks(reply.answer)):
        field = {"thinking": "thinking", "text": "text", "tool_use": "input"}[block["type"]]
        empty = {**block, field: {} if field == "input" else ""}
        yield _named("content_block_start", index=index, content_block=empty)
        for delta in _block_deltas(block):
            yield _named("content_block_delta", index=index, delta=delta)
        yield _named("content_block_stop", index=index)
    stop = "tool_use" if reply.answer.calls else "end_turn"
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield _named("message_delta", delta=delta, usage=_messages_usage(reply))
    yield _named("message_stop")


def _block_deltas(block: Json) -> list[Json]:
    if block["type"] == "tool_use":
        text = dumps(block["input"])
        return [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(text)]
    kind = block["type"]
    return [{"type": f"{kind}_delta", kind: piece} for piece in pieces(block[kind])]


def _named(kind: str, **fields: Any) -> bytes:
    return event({"type": kind, **fields}, kind)


def _output_items(reply: Reply) -> list[Json]:
    answer, items = reply.answer, list[Json]()
    if answer.reasoning:
        content = [{"type": "reasoning_text", "text": answer.reasoning}]
        items.append({"type": "reasoning", "id": f"rs_{reply.id}", "summary": [], "content": content})
    if answer.content:
        part = [{"type": "output_text", "text": answer.content, "annotations": []}]
        head = {"type": "message", "id": f"msg_{reply.id}", "role": "assistant", "status": "completed"}
        items.append({**head, "content": part})
    for call in answer.calls:
        names = {"type": "function_call", "id": f"fc_{call.id}", "call_id": call.id, "status": "completed"}
        items.append({**names, "name": call.name, "arguments": call.arguments})
    return items


def responses_json(reply: Reply) -> Json:
    """A Responses object in one piece."""
    details: Json = {"cached_tokens": reply.cached_tokens, "cache_write_tokens": reply.created_tokens}
    details |= {"input_tokens_per_turn": [], "cached_tokens_per_turn": []}
    usage = {
        "input_tokens": len(reply.prompt_ids),
        "input_tokens_details": details,
        "output_tokens": len(reply.token_ids),
        "total_tokens": len(reply.prompt_ids) + len(reply.token_ids),
    }
    head = {"id": reply.id, "object": "response", "created_at": CREATED, "model": reply.model}
    return {**head, "status": "completed", "output": _output_items(reply), "usage": usage}


def responses_events(reply: Reply) -> Iterator[bytes]:
    """A Responses object as a stream."""
    done = responses_json(reply)
    sequence = iter(range(10**6))
    begun = {**done, "status": "in_progress", "output": [], "usage": None}
    yield _named("response.created", sequence_number=next(sequence), response=begun)
    for index, item in enumerate(done["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        added = {**item, "arguments": ""} if item["type"] == "function_call" else {**item, "content": []}
        yield _named(
            "response.output_item.added", sequence_number=next(sequence), output_index=index, item=added
        )
        kind, text = _item_text(item)
        for piece in pieces(text):
            yield _named(f"response.{kind}.delta", sequence_number=next(sequence), **place, delta=piece)
        yield _named(
            "response.output_item.done", sequence_number=next(sequence), output_index=index, item=item
        )
    yield _named("response.completed", sequence_number=next(sequence), response=done)


def _item_text(item: Json) -> tuple[str, str]:
    if item["type"] == "function_call":
        return "function_call_arguments", item["arguments"]
    kind = "reasoning_text" if item["type"] == "reasoning" else "output_text"
    return kind, item["content"][0]["text"]
