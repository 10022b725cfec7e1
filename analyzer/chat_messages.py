"""Chat messages as vLLM hands them to a chat template (vLLM 0.32 renderers/chat_utils.py).

Works on the strings of a request whether or not they know their field, and never changes the request's
own objects. Renderers that read the original messages do not come here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from analyzer import sourced_json
from analyzer.sourced import join

type ContentFormat = Literal["string", "openai"]
"""Whether the template gets a message's content as one string or as a list of parts."""

# chat_utils.py:1815: these become plain text, whatever they are called. `thinking` holds its own key.
_TEXT_KEYS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
_BILLING_LINE = "x-anthropic-billing-header"


def parse_chat_messages(
    messages: Iterable[Mapping[str, Any]], content_format: ContentFormat
) -> list[dict[str, Any]]:
    """The messages a template sees: only the keys vLLM lets through, content in the given format.

    Raises ValueError for what the server would refuse.
    """
    return [_parse(message, content_format) for message in messages]


def _parse(message: Mapping[str, Any], content_format: ContentFormat) -> dict[str, Any]:
    role = message.get("role")
    if not isinstance(role, str):
        raise ValueError("a message has no role")
    parsed: dict[str, Any] = {"role": role, "content": _content(role, message.get("content"), content_format)}
    if role == "assistant":
        _assistant_fields(message, parsed)
    elif role == "tool" and "tool_call_id" in message:
        parsed["tool_call_id"] = message["tool_call_id"]
    elif role == "developer":
        parsed["tools"] = _developer_tools(message.get("tools"))
    parsed |= {key: message[key] for key in ("name", "task") if isinstance(message.get(key), str)}
    return parsed


def _assistant_fields(message: Mapping[str, Any], parsed: dict[str, Any]) -> None:
    # An empty list of calls is removed, one that is null never set (chat_utils.py:2153-2227).
    if calls := message.get("tool_calls"):
        parsed["tool_calls"] = [_tool_call(call) for call in calls]
    if (reasoning := message.get("reasoning")) is not None:
        parsed["reasoning"] = parsed["reasoning_content"] = reasoning


def _developer_tools(tools: Any) -> Any:
    """A developer message's tools: their functions' keys in declared order, if all are well formed.

    One that is not makes the whole message fall to a type that keeps them as sent (chat_utils.py:361-397).
    """
    if not isinstance(tools, list) or not all(_is_function_tool(tool) for tool in tools):
        return tools
    keys = ("name", "description", "parameters", "strict")
    return [{**tool, "function": _ordered(tool["function"], keys)} for tool in tools]


def _is_function_tool(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or tool.get("type") != "function":
        return False
    return (
        isinstance(function.get("name"), str)
        and isinstance(function.get("description", ""), str)
        and isinstance(function.get("parameters", {}), Mapping)
        and isinstance(function.get("strict"), bool | None)
    )


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call with its arguments parsed: what is no JSON object becomes an empty one (chat_utils.py:2153).

    Keys come in the order in which the server's models declare them; extras follow.
    """
    function = call.get("function")
    if call.get("type", "function") != "function" or not isinstance(function, Mapping):
        raise ValueError("a tool call is not a function call")
    function = _ordered(function, ("arguments", "name"))
    function["arguments"] = _arguments(function.get("arguments"))
    return _ordered({**call, "function": function}, ("id", "function", "type"))


def _ordered(holder: Mapping[str, Any], first: Sequence[str]) -> dict[str, Any]:
    head = {key: holder[key] for key in first if key in holder}
    return head | {key: value for key, value in holder.items() if key not in head}


def _arguments(arguments: Any) -> Mapping[str, Any]:
    if isinstance(arguments, Mapping):
        return arguments
    if not isinstance(arguments, str) or not arguments:
        return {}
    try:
        parsed = sourced_json.loads(arguments)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, Mapping) else {}


def _content(role: str, content: Any, content_format: ContentFormat) -> Any:
    if content is None:
        return "" if content_format == "string" or role == "tool" else []
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
    if role == "system":
        parts = [kept for part in parts if (kept := _without_billing_line(part)) is not None]
    if role == "tool" and all(_text_of(part) is not None for part in parts):
        return _joined(parts, keep_empty=content_format == "openai")
    if content_format == "string":
        return _joined(parts, keep_empty=False)
    return [_part(part) for part in parts]


def _joined(parts: Iterable[Any], *, keep_empty: bool) -> str:
    texts = [_text_of(part) for part in parts]
    if any(text is None for text in texts):
        raise ValueError("a message holds something other than text, which is not rendered yet")
    return join("\n", [text for text in texts if text is not None and (text or keep_empty)])


def _part(part: Any) -> dict[str, Any]:
    """A text part as the template sees it: `text` before `type`, extra keys kept (chat_utils.py:1942)."""
    text = _text_of(part)
    if text is None:
        raise ValueError("a message holds something other than text, which is not rendered yet")
    if isinstance(part, str):
        return {"type": "text", "text": text}
    extras = {key: value for key, value in part.items() if key not in ("type", *_TEXT_KEYS.values())}
    return {"type": "text", "text": text} | extras


def _text_of(part: Any) -> str | None:
    """The text of a part, or None where it is not text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return None
    key = _TEXT_KEYS.get(part.get("type", "text"))
    text = part.get(key) if key else None
    return text if isinstance(text, str) else None


def _without_billing_line(part: Any) -> Any:
    """Drop a system part's first line where it is a client's billing header (chat_utils.py:2036-2071)."""
    text = _text_of(part)
    if text is None or not text.startswith(_BILLING_LINE):
        return part
    rest = text.partition("\n")[2]
    return {"type": "text", "text": rest} if rest else None
