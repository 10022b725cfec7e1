"""The sample upstream's view of a request: its messages, the prompt, the token ids, and what is cached.

Independent of the `analyzer` package on purpose: what it counts is what the analyzer is tested against.
Rules: vLLM 0.32 (chat_utils.py content flattening, anthropic/serving.py, responses/utils.py), simplified.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

type Json = dict[str, Any]
BOS, EOS = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"
BILLING = "x-anthropic-billing-header"


class PromptRenderer:
    """Chat template and tokenizer of one folder."""

    def __init__(self, folder: Path) -> None:
        self.tokenizer: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.assistant_id: int = self.tokenizer.token_to_id("<｜Assistant｜>") or -1
        self.template = (folder / "chat_template.jinja").read_text(encoding="utf-8")

    def render(self, messages: list[Json], tools: list[Json] | None, *, generate: bool = True) -> str:
        """The prompt as text."""
        render = _template_renderer()
        rendered: str = render(
            conversation=messages,
            tools=tools or None,
            chat_template=self.template,
            add_generation_prompt=generate,
            bos_token=BOS,
            eos_token=EOS,
        )
        return rendered

    def encode(self, text: str) -> list[int]:
        """Token ids; the template writes its own special tokens."""
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False).ids
        return ids


@cache
def _template_renderer() -> Any:
    from transformers.utils import chat_template_utils

    def render(*, conversation: list[Json], tools: Any, chat_template: str, **variables: Any) -> Any:
        rendered = chat_template_utils.render_jinja_template(
            conversations=[conversation], tools=tools, chat_template=chat_template, **variables
        )
        return rendered[0][0] if isinstance(rendered, tuple) else rendered[0]

    return render


class PrefixCache:
    """Which full blocks are resident: chained keys, never evicted (vLLM 0.32 v1/core, full attention)."""

    def __init__(self, block_size: int) -> None:
        self.block_size = block_size
        self._blocks: set[tuple[int, ...]] = set()
        self._chain: dict[tuple[int, tuple[int, ...]], int] = {}

    def hit(self, prompt_ids: list[int]) -> int:
        """How many prompt tokens earlier sequences left behind; the last token is always computed."""
        parent = hit = 0
        for start in range(0, (len(prompt_ids) - 1) // self.block_size * self.block_size, self.block_size):
            known = self._chain.get((parent, tuple(prompt_ids[start : start + self.block_size])))
            if known is None:
                break
            parent, hit = known, start + self.block_size
        return hit

    def keep(self, token_ids: list[int]) -> None:
        """Remember the full blocks of a sequence."""
        parent = 0
        for start in range(0, len(token_ids) // self.block_size * self.block_size, self.block_size):
            key = (parent, tuple(token_ids[start : start + self.block_size]))
            parent = self._chain.setdefault(key, len(self._chain) + 1)


def _text(content: Any) -> str:
    """Content as a string: text parts joined by newlines, empty ones left out."""
    if isinstance(content, list):
        return "\n".join(part["text"] for part in content if part.get("text"))
    return content or ""


def _arguments(raw: Any) -> Json:
    if isinstance(raw, dict):
        return raw
    try:
        parsed = json.loads(raw or "{}")
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def chat_messages(messages: list[Json]) -> list[Json]:
    """Chat messages as a template sees them."""
    result = []
    for message in messages:
        seen: Json = {"role": message["role"], "content": _text(message.get("content"))}
        if message["role"] == "system":
            seen["content"] = _without_billing(seen["content"])
        if message["role"] == "assistant":
            reasoning = message.get("reasoning") or message.get("reasoning_content")
            if reasoning is not None:
                seen |= {"reasoning": reasoning, "reasoning_content": reasoning}
            if message.get("tool_calls"):
                seen["tool_calls"] = [_tool_call(call) for call in message["tool_calls"]]
        if message["role"] == "tool" and "tool_call_id" in message:
            seen["tool_call_id"] = message["tool_call_id"]
        result.append(seen)
    return _without_developer(result)


def _without_developer(messages: list[Json]) -> list[Json]:
    """Developer messages as a template sees them that has no such role: all system text first, in one."""
    if all(message["role"] != "developer" for message in messages):
        return messages
    head = [message for message in messages if message["role"] in ("system", "developer")]
    rest = [message for message in messages if message not in head]
    text = "\n\n".join(message["content"] for message in head if message["content"])
    return [{"role": "system", "content": text}, *rest]


def _tool_call(call: Json) -> Json:
    function = call["function"]
    arguments = _arguments(function.get("arguments"))
    return {
        "id": call.get("id"),
        "function": {"arguments": arguments, "name": function["name"]},
        "type": "function",
    }


def _without_billing(text: str) -> str:
    return text.partition("\n")[2] if text.startswith(BILLING) else text


def chat_tools(tools: list[Json] | None) -> list[Json]:
    """Tools in the key order vLLM gives them; keys it does not know are dropped."""
    result = []
    for tool in tools or []:
        function = tool["function"]
        seen = {key: function.get(key) for key in ("name", "description", "parameters")}
        seen |= {key: function[key] for key in ("strict",) if function.get(key) is not None}
        result.append({"type": "function", "function": seen})
    return result


def messages_body(body: Json) -> tuple[list[Json], list[Json]]:
    """An Anthropic body as chat messages and tools."""
    system = body.get("system") or ""
    if isinstance(system, list):
        system = "".join(block["text"] for block in system if not block["text"].startswith(BILLING))
    messages: list[Json] = [{"role": "system", "content": system}] if system else []
    for message in body["messages"]:
        messages += _anthropic_message(message)
    tools: list[Json] = [
        {"type": "function", "function": {**tool, "parameters": {**tool["input_schema"]}}}
        for tool in body.get("tools") or []
    ]
    for tool in tools:
        tool["function"]["parameters"].setdefault("type", "object")
    return chat_messages(messages), chat_tools(tools)


def _anthropic_message(message: Json) -> list[Json]:
    content = message["content"]
    if isinstance(content, str):
        return [{"role": message["role"], "content": content}]
    texts = [block for block in content if block["type"] == "text" and block["text"]]
    calls = [
        {"id": block["id"], "function": {"name": block["name"], "arguments": block["input"]}}
        for block in content
        if block["type"] == "tool_use"
    ]
    results: list[Json] = [
        {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block.get("content", "")}
        for block in content
        if block["type"] == "tool_result"
    ]
    thinking = "".join(block["thinking"] for block in content if block["type"] == "thinking")
    if message["role"] != "assistant":
        return results + ([{"role": message["role"], "content": texts}] if texts else [])
    return [
        {"role": "assistant", "content": texts, "tool_calls": calls, "reasoning": thinking or None},
    ]


def responses_body(body: Json) -> tuple[list[Json], list[Json]]:
    """A Responses body as chat messages and tools; items of one assistant turn merge into one message."""
    messages: list[Json] = []
    if body.get("instructions"):
        messages.append({"role": "system", "content": body["instructions"]})
    items = body["input"]
    if isinstance(items, str):
        items = [{"role": "user", "content": items}]
    for item in items:
        _add_item(messages, item)
    tools = [function for tool in body.get("tools") or [] for function in _functions(tool)]
    return chat_messages(messages), chat_tools([{"function": function} for function in tools])


def _functions(tool: Json) -> list[Json]:
    """A Responses tool as functions: those of a namespace carry its name; the server's own are not shown."""
    if tool["type"] == "namespace":
        return [{**item, "name": f"{tool['name']}__{item['name']}"} for item in tool["tools"]]
    return [tool] if tool["type"] == "function" else []


def _add_item(messages: list[Json], item: Json) -> None:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
    elif kind == "message" and item["role"] != "assistant":
        messages.append({"role": item["role"], "content": item["content"]})
    elif kind == "reasoning":
        part = (item.get("content") or item["summary"])[0]
        _assistant_slot(messages, "reasoning")["reasoning"] = part["text"]
    elif kind == "function_call":
        call = {"id": item["call_id"], "function": {"name": item["name"], "arguments": item["arguments"]}}
        _assistant_slot(messages, None).setdefault("tool_calls", []).append(call)
    else:
        content = item["content"]
        text = content if isinstance(content, str) else content[0]["text"]
        _assistant_slot(messages, "content")["content"] = text


def _assistant_slot(messages: list[Json], slot: str | None) -> Json:
    if not messages or messages[-1]["role"] != "assistant" or (slot and messages[-1].get(slot)):
        messages.append({"role": "assistant"})
    return messages[-1]
