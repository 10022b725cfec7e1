"""Chat messages as vLLM hands them to a chat template (vLLM 0.32 renderers/chat_utils.py).

Works on the strings of a request whether or not they know their field, and never changes the request's
own objects. Renderers that read the original messages do not come here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from analyzer import sourced_json
from analyzer.chat_requests import ordered
from analyzer.shared_json import once
from analyzer.sourced import join

type ContentFormat = Literal["string", "openai"]
"""Whether the template gets a message's content as one string or as a list of parts."""

# chat_utils.py:1647 and 1815: these become plain text, whatever they are called; two hold their own key.
_TEXT_KEYS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "refusal": "refusal",
    "thinking": "thinking",
}
_MAY_BE_NULL = ("text", "refusal")
"""Part types that are passed over where their text is null (chat_utils.py:1809)."""

# Keys that some kind of part declares, chat_utils.py:1676: a text part loses them, and keeps all others.
_DECLARED_KEYS = frozenset(
    "audio_embeds audio_url closed data file image_embeds image_pil image_url input_audio name"  # noqa: SIM905
    " prompt_cache_breakpoint refusal text thinking type uuid video_embeds video_url".split()
)
_BILLING_LINE = "x-anthropic-billing-header"


def parse_chat_messages(
    messages: Iterable[Mapping[str, Any]], content_format: ContentFormat
) -> list[dict[str, Any]]:
    """The messages a template sees: only the keys vLLM lets through, content in the given format.

    Raises ValueError for what the server would refuse.
    """
    return [once(_parse, message, content_format) for message in messages]


def _parse(message: Mapping[str, Any], content_format: ContentFormat) -> dict[str, Any]:
    role = message.get("role")
    if not isinstance(role, str):
        raise ValueError("a message has no role")
    parsed: dict[str, Any] = {"role": role, "content": _content(role, message.get("content"), content_format)}
    if role == "assistant":
        _assistant_fields(message, parsed)
    elif role == "tool" and "tool_call_id" in message:
        parsed["tool_call_id"] = message["tool_call_id"]
    parsed |= {key: message[key] for key in ("name", "task") if isinstance(message.get(key), str)}
    if role == "developer":
        parsed["tools"] = _developer_tools(message.get("tools"))
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
    if not isinstance(tools, list) or not all(is_function_tool(tool) for tool in tools):
        return tools
    keys = ("name", "description", "parameters", "strict")
    return [
        ordered({**tool, "function": ordered(tool["function"], keys)}, ("function", "type")) for tool in tools
    ]


def is_function_tool(tool: Any) -> bool:
    """Whether a tool has the fields that chat declares for a function, and of the declared types."""
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
    """A call with its arguments parsed: what is no JSON object becomes an empty one (chat_utils.py:2153)."""
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or call.get("type", "function") != "function":
        raise ValueError("a tool call is not a function call")
    return {**call, "function": {**function, "arguments": _arguments(function.get("arguments"))}}


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
    # An empty object passes as an empty list (seen on the server).
    if content and not isinstance(content, str | list | tuple):
        raise ValueError("the content of a message is neither text nor a list of parts")
    given = [content] if isinstance(content, str) else list(content or ())
    if role == "system":
        given = [kept for part in given if (kept := _without_billing_line(part)) is not None]
    parts = [part for part in map(_part, given) if part is not None]
    if content_format == "string":
        return _joined(text for part in parts if (text := part.get("text", part.get("name"))))
    if role == "tool" and all(part["type"] == "text" for part in parts):
        return _joined(part["text"] for part in parts)
    return parts


def _joined(texts: Iterable[Any]) -> str:
    # A part may hold a number for its text; only a template that gets the parts themselves takes it.
    given = list(texts)
    if not all(isinstance(text, str) for text in given):
        raise ValueError("a part of a message holds no text")
    return join("\n", given)


def _part(part: Any) -> dict[str, Any] | None:
    """A part as a template sees it in openai format (chat_utils.py:1908); None where it is passed over."""
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type") if isinstance(part, Mapping) else None
    if not isinstance(kind, str):
        raise ValueError("a part of a message has no type")
    if kind == "tool_reference":
        return {"type": kind, "name": part.get("name")}
    if kind not in _TEXT_KEYS:
        # Placeholders become as many tokens as the model's image processor says; nothing here knows that.
        raise ValueError(f"a message holds a part of type {kind!r}, and only text can be rendered here")
    text = part.get(_TEXT_KEYS[kind])
    if text is None and kind in _MAY_BE_NULL:
        return None
    extras = {key: value for key, value in part.items() if key not in _DECLARED_KEYS}
    return {"type": "text", "text": text} | extras


def _without_billing_line(part: Any) -> Any:
    """Drop a system part's first line where it is a client's billing header (chat_utils.py:2036-2071)."""
    text: Any = part
    if isinstance(part, Mapping):
        text = part.get("text") if part.get("type") == "text" else None
    if not isinstance(text, str) or not text.startswith(_BILLING_LINE):
        return part
    rest = text.partition("\n")[2]
    if not rest:
        return None
    return rest if isinstance(part, str) else {**part, "text": rest}


def for_template(messages: Sequence[dict[str, Any]], template: str) -> list[dict[str, Any]]:
    """Developer messages as system messages, where the template's text does not name that role in quotes.

    With a developer message there, all system messages become one, at the front (hf.py:503-568, 801).
    """
    spoken = "'developer'" in template or '"developer"' in template
    if spoken or not any(message["role"] == "developer" for message in messages):
        return list(messages)
    renamed = [_as_system(message) for message in messages]
    system = [message for message in renamed if message["role"] == "system"]
    if len(system) == 1 and renamed[0]["role"] == "system":
        return renamed
    merged = join("\n\n", [text for message in system if (text := _system_text(message))])
    others = [message for message in renamed if message["role"] != "system"]
    return [{"role": "system", "content": merged}, *others]


def _as_system(message: dict[str, Any]) -> dict[str, Any]:
    if message["role"] != "developer":
        return message
    return {key: value for key, value in message.items() if key != "tools"} | {"role": "system"}


def _system_text(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return join("\n", [part["text"] for part in content if "text" in part])
