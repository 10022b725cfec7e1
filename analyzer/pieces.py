"""A request body as a row of pieces: texts, reasoning, tool calls, results and media, in the order sent.

It reads all dialects alike and refuses nothing: what it does not know is no piece. Nothing here is
rendered. Every piece knows where in the body it stands.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from analyzer.sourced import plain

type Kind = Literal["text", "reasoning", "call", "result", "media"]

ID_KEYS = ("id", "call_id", "tool_call_id", "tool_use_id")
_TEXTS = ("text", "refusal", "thinking")
_MEDIA = ("image", "audio", "video", "file", "document")
_ORDER = {"reasoning": 0, "result": 1, "text": 2, "media": 2, "call": 3}
_REASONING = ("reasoning", "reasoning_content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of a prompt.

    `text` is what it says: of a call its arguments as sent, or dumped where they were no string. `path` is
    that field's, and `block` the path of what comes and goes with the piece. `item` is the message or input
    item that holds it, None for what stands at the top of a body. `name` is the called function.
    """

    kind: Kind
    role: str
    text: str
    path: str
    block: str
    item: int | None = None
    name: str = ""
    id: str | None = None
    id_path: str | None = None

    @property
    def essence(self) -> tuple[str, ...]:
        """What is equal where only spacing and spelling differ; ids are no part of it."""
        return self.kind, self.role, self.name, _essence(self.text)

    @property
    def exact(self) -> tuple[str, ...]:
        """What is equal where nothing but an id differs."""
        return self.kind, self.role, self.name, self.text


def items_key(body: Any) -> str:
    """The name of the array that holds a body's messages or items."""
    return "input" if isinstance(body, Mapping) and "input" in body else "messages"


def pieces_of(body: Any) -> list[Piece]:
    """All pieces of a body, those of its own system field first."""
    if not isinstance(body, Mapping):
        return []
    found: list[Piece] = []
    for key, role in (("system", "system"), ("instructions", "system"), ("prompt", "prompt")):
        found += _parts(body.get(key), key, role, None)
    key = items_key(body)
    given = body.get(key)
    if isinstance(given, str):
        return [*found, Piece(kind="text", role="user", text=given, path=key, block=key)]
    for at, item in enumerate(given if isinstance(given, list) else []):
        if isinstance(item, Mapping):
            # As templates print them: thoughts first, then results, texts, calls.
            found += sorted(_item(item, f"{key}[{at}]", at), key=lambda piece: _ORDER[piece.kind])
    return [piece for piece in found if piece.text or piece.kind in ("call", "result")]


def _item(item: Mapping[str, Any], path: str, at: int) -> Iterator[Piece]:
    match item.get("type"):
        case "function_call" | "custom_tool_call":
            key = "arguments" if "arguments" in item else "input"
            yield _call(item, item.get(key), f"{path}.{key}", path, at)
        case "function_call_output" | "custom_tool_call_output":
            yield from _parts(item.get("output"), f"{path}.output", "tool", at, _id(item, path))
        case "reasoning":
            yield from _reasoning_item(item, path, at)
        case _:
            yield from _message(item, path, at)


def _message(item: Mapping[str, Any], path: str, at: int) -> Iterator[Piece]:
    role = str(item.get("role"))
    for key in _REASONING:
        if isinstance(text := item.get(key), str):
            there = f"{path}.{key}"
            yield Piece(kind="reasoning", role=role, text=plain(text), path=there, block=there, item=at)
            break
    role = "tool" if role == "function" else role
    yield from _parts(item.get("content"), f"{path}.content", role, at, _id(item, path))
    calls = item.get("tool_calls")
    for n, call in enumerate(calls if isinstance(calls, list) else []):
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            there = f"{path}.tool_calls[{n}]"
            named = {**call, "name": function.get("name")}
            yield _call(named, function.get("arguments"), f"{there}.function.arguments", there, at)


def _reasoning_item(item: Mapping[str, Any], path: str, at: int) -> Iterator[Piece]:
    key = "content" if item.get("content") else "summary"
    parts = item.get(key)
    for n, part in enumerate(parts if isinstance(parts, list) else []):
        if isinstance(part, Mapping) and isinstance(text := part.get("text"), str):
            there = f"{path}.{key}[{n}].text"
            yield Piece(kind="reasoning", role="assistant", text=plain(text), path=there, block=path, item=at)


def _parts(
    content: Any, path: str, role: str, at: int | None, ids: tuple[str | None, str | None] = (None, None)
) -> Iterator[Piece]:
    if isinstance(content, str):
        yield _text(content, path, role, at, ids)
    for n, part in enumerate(content if isinstance(content, list) else []):
        there = f"{path}[{n}]"
        if isinstance(part, str):
            yield _text(part, there, role, at, ids)
        elif isinstance(part, Mapping):
            yield from _part(part, there, role, at, ids)


def _text(text: str, path: str, role: str, at: int | None, ids: tuple[str | None, str | None]) -> Piece:
    kind: Kind = "result" if role == "tool" else "text"
    return Piece(
        kind=kind,
        role=role,
        text=plain(text),
        path=path,
        block=path,
        item=at,
        id=ids[0],
        id_path=ids[1],
    )


def _part(
    part: Mapping[str, Any], path: str, role: str, at: int | None, ids: tuple[str | None, str | None]
) -> Iterator[Piece]:
    kind = str(part.get("type", "text"))
    if kind == "tool_use":
        yield _call(part, part.get("input"), f"{path}.input", path, at)
    elif kind == "tool_result":
        yield from _parts(part.get("content"), f"{path}.content", "tool", at, _id(part, path))
    elif any(word in kind for word in _MEDIA):
        text = json.dumps(part, sort_keys=True, default=str)
        yield Piece(kind="media", role=role, text=text, path=path, block=path, item=at)
    else:
        for key in _TEXTS:
            if isinstance(said := part.get(key), str):
                thought = kind == "thinking" and role == "assistant"
                piece = _text(said, f"{path}.{key}", role, at, ids)
                yield replace(piece, block=path, kind="reasoning" if thought else piece.kind)
                return


def _call(holder: Mapping[str, Any], arguments: Any, path: str, block: str, at: int | None) -> Piece:
    text = plain(arguments) if isinstance(arguments, str) else json.dumps(arguments, default=str)
    made, there = _id(holder, block)
    name = holder.get("name")
    return Piece(
        kind="call",
        role="assistant",
        text=text,
        path=path,
        block=block,
        item=at,
        name=plain(name) if isinstance(name, str) else "",
        id=made,
        id_path=there,
    )


def _id(holder: Mapping[str, Any], path: str) -> tuple[str | None, str | None]:
    """The id that ties a call to its result; an item's own `id` is only taken where there is no other."""
    for key in reversed(ID_KEYS):
        if isinstance(value := holder.get(key), str):
            return plain(value), f"{path}.{key}"
    return None, None


def _essence(text: str) -> str:
    parsed = parsed_json(text)
    return " ".join(text.split()) if parsed is None else json.dumps(parsed, sort_keys=True)


def parsed_json(text: str) -> Any:
    """The object or array that a text is, None where it is neither."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
