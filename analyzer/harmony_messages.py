"""Harmony messages, made of chat messages or of the items of a Responses body, as vLLM 0.32 makes them.

It counts no tokens. Rules: entrypoints/openai/parser/harmony_utils.py:151-440, and for items
entrypoints/openai/responses/harmony.py:151-218.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from analyzer.sourced import concat, join
from analyzer.unread_parts import is_unread

_INSTRUCTING = ("system", "developer")


def developer(instructions: str | None, tools: Sequence[Mapping[str, Any]] = ()) -> Any:
    """Instructions and function tools; `strict` is not told to the model (harmony_utils.py:151-207)."""
    import openai_harmony as harmony

    content = harmony.DeveloperContent.new()
    if instructions is not None:
        content = content.with_instructions(instructions)
    functions = [tool["function"] for tool in tools]
    if functions:
        content = content.with_function_tools(
            [
                harmony.ToolDescription.new(
                    name=function["name"],
                    description=function.get("description") or "",
                    parameters=function.get("parameters"),
                )
                for function in functions
            ]
        )
    return harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, content)


def message(role: str, texts: Sequence[str], *, name: str | None = None, **header: str) -> Any:
    """A message of a role; `header` holds channel, recipient and content_type."""
    import openai_harmony as harmony

    made = harmony.Message(
        author=harmony.Author(role=harmony.Role(role), name=name),
        content=[harmony.TextContent(text=text) for text in texts],
        **header,
    )
    for part, text in zip(made.content, texts, strict=True):
        part.text = text  # the library keeps plain strings, which do not know their field
    if "recipient" in header:
        made.recipient = header["recipient"]
    return made


def flat(content: Any) -> str | None:
    """All text in a row, None where there is none (harmony_utils.py:261-279)."""
    if content is None or isinstance(content, str):
        return content
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    known = [text for text in texts if text is not None]
    return join("", known) if known else None


def told(message: Mapping[str, Any]) -> str | None:
    """The text of a chat message that instructs or answers a call; of unread parts there is none."""
    return None if is_unread(message) else flat(message.get("content"))


def from_messages(messages: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Chat messages; a tool is named by the call that its result answers (harmony_utils.py:210-227)."""
    names = {
        call.get("id"): call["function"].get("name")
        for item in messages
        for call in item.get("tool_calls") or ()
    }
    for item in messages:
        match item.get("role"):
            case "assistant" if item.get("tool_calls"):
                yield from _calling(item)
            case "assistant":
                yield from _answering(item)
            case "tool":
                name = names.get(item.get("tool_call_id", ""), "")
                yield _result(str(name), told(item) or "")
            case role if role in _INSTRUCTING:
                if (instructions := told(item)) is not None:
                    yield developer(instructions)
            case role:
                yield message(str(role), _texts(item.get("content")))


def from_items(items: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Input items, each by itself; reasoning counts by all its texts, and its summary not at all.

    Raises ValueError for what the server refuses.
    """
    names: dict[str, str] = {}
    for item in items:
        match item.get("type", "message"):
            case "message":
                yield from _spoken(item)
            case "function_call":
                names[item["call_id"]] = item["name"]
                yield _call(item["name"], item["arguments"])
            case "function_call_output":
                if item["call_id"] not in names:
                    raise ValueError(f"no call {item['call_id']!r} stands before its output")
                yield _result(names[item["call_id"]], item["output"])
            case "reasoning":
                if content := item.get("content"):
                    thought = join("\n", [part["text"] for part in content])
                    yield message("assistant", [thought], channel="analysis")
            case kind:
                raise ValueError(f"the server does not take an input item of type {kind!r}")


def _spoken(item: Mapping[str, Any]) -> Iterator[Any]:
    role, content = item["role"], item["content"]
    if role in _INSTRUCTING:
        if text := flat(content):
            yield developer(text)
    else:
        yield message(role, _texts(content), **({"channel": "final"} if role == "assistant" else {}))


def _calling(item: Mapping[str, Any]) -> Iterator[Any]:
    """What was said, then thought, then called (harmony_utils.py:364-394)."""
    if text := flat(item.get("content")):
        yield message("assistant", [text], channel="commentary")
    if reasoning := item.get("reasoning"):
        yield message("assistant", [reasoning], channel="analysis")
    for call in item["tool_calls"]:
        function = call.get("function", {})
        yield _call(function.get("name", ""), function.get("arguments") or "")


def _answering(item: Mapping[str, Any]) -> Iterator[Any]:
    """An answer is final; one without text is left out (harmony_utils.py:412-440)."""
    if reasoning := item.get("reasoning"):
        yield message("assistant", [reasoning], channel="analysis")
    texts = _texts(item.get("content"))
    if texts and texts[0]:
        yield message("assistant", texts, channel="final")


def _call(name: str, arguments: str) -> Any:
    """A call, with the arguments as they were sent."""
    return message(
        "assistant",
        [arguments],
        channel="commentary",
        recipient=concat(("functions.", name)),
        content_type="json",
    )


def _result(name: str, text: str) -> Any:
    # The recipient follows the channel, where openai-harmony by itself would put it first.
    return message("tool", [text], name=f"functions.{name}", channel="commentary to=assistant")


def _texts(content: Any) -> list[str]:
    """Each part by itself: harmony puts nothing between them."""
    if content is None or isinstance(content, str):
        return [content or ""]
    return [part.get("text", "") for part in content]
