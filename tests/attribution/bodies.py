"""Random request bodies of all four dialects, and one change of one field of them."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from analyzer.sourced_json import member_path

# What says how a body is built, and ids that tie results to calls, are not what a prompt is about.
_BUILDS = re.compile(
    r"(^|\.)(role|id|call_id|tool_call_id|tool_use_id|model|signature|summary)$"
    r"|^(messages|input|system)\[\d+\](\.content\[\d+\](\.content\[\d+\])?|\.tool_calls\[\d+\]|\.output\[\d+\])?\.type$"
    r"|^tools\[\d+\]\.type$"
)
_CHARS = " \n\t\"'\\<>&abcdefgh.,:{}[]éß漢🙂"
_NEW = 'QZ7é\n"\\ a'


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """A body before and after one change, the paths that name it, and its character where it has one."""

    before: dict[str, Any]
    after: dict[str, Any]
    paths: tuple[str, ...]
    char: int | None
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Leaf:
    path: str
    holder: Any
    key: Any
    is_key: bool = False


def mutated(body: dict[str, Any], dice: random.Random) -> Mutation:
    """One field of a body changed by one character, digit, boolean or key."""
    changed = copy.deepcopy(body)
    leaf = dice.choice([*leaves(changed, "")])
    old = leaf.holder[leaf.key]
    if leaf.is_key:
        new_key = _edited(leaf.key, dice)
        while new_key in leaf.holder:
            new_key = _edited(leaf.key, dice)
        items = [(new_key if key == leaf.key else key, item) for key, item in leaf.holder.items()]
        leaf.holder.clear()
        leaf.holder.update(items)
        parent = leaf.path
        paths = member_path(parent, leaf.key), member_path(parent, new_key)
        return Mutation(before=body, after=changed, paths=paths, char=None, kind="key")
    new, char = _changed(leaf.path, old, dice)
    leaf.holder[leaf.key] = new
    return Mutation(before=body, after=changed, paths=(leaf.path,), char=char, kind=type(old).__name__)


def leaves(value: Any, path: str) -> Iterator[_Leaf]:
    """Every string, number, boolean and null that a prompt may print, and keys where they are free."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in pairs:
        there = member_path(path, key) if isinstance(key, str) else f"{path}[{key}]"
        if _BUILDS.search(there):
            continue
        if isinstance(item, dict | list):
            yield from leaves(item, there)
        else:
            yield _Leaf(path=there, holder=value, key=key)
        if isinstance(key, str) and re.search(r"(arguments|parameters|input_schema|\.input)\b", path):
            yield _Leaf(path=path, holder=value, key=key, is_key=True)


def _changed(path: str, old: Any, dice: random.Random) -> tuple[Any, int | None]:
    if isinstance(old, str):
        text = (path.endswith("arguments") and _edited_json(old, dice)) or _edited(old, dice)
        return text, _parts(old, text)
    if isinstance(old, bool):
        return not old, None
    if old is None:
        return dice.choice(["text", 3, True]), None
    return old + dice.choice([1, 10, -3]), None


def _edited(text: str, dice: random.Random) -> str:
    """One character put in, taken out or replaced; often at one of the two ends."""
    at = dice.choice([0, len(text), dice.randint(0, len(text))])
    kind = dice.choice(["in", "out", "other"])
    if kind == "in" or not text:
        return text[:at] + dice.choice([dice.choice(_NEW), text[at - 1 : at] or "x"]) + text[at:]
    at = min(at, len(text) - 1)
    new = "" if kind == "out" else dice.choice([char for char in _NEW if char != text[at]])
    return text[:at] + new + text[at + 1 :]


def _edited_json(text: str, dice: random.Random) -> str | None:
    """JSON text with one character changed that keeps it JSON, where a few tries find one."""
    for _ in range(20):
        new = _edited(text, dice)
        try:
            if isinstance(json.loads(new), dict):
                json.dumps(json.loads(new), ensure_ascii=False).encode()  # no half of a surrogate pair
                return new
        except ValueError:
            continue
    return None


def _parts(a: str, b: str) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


class Maker:
    """Makes bodies out of a seed."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice

    def words(self) -> str:
        return "x" + "".join(self.dice.choice(_CHARS) for _ in range(self.dice.randint(1, 16))) + "y"

    def arguments(self) -> dict[str, Any]:
        given: dict[str, Any] = {
            "city": self.words(),
            "n": self.dice.choice([7, 12, -3, 1.5, 100000]),
            "deep": [{"x y": self.words(), "on": self.dice.random() < 0.5}, None, [1, 2]],
            "none": None,
        }
        keys = self.dice.sample(sorted(given), self.dice.randint(0, 4))
        return {key: given[key] for key in keys}

    def schema(self) -> dict[str, Any]:
        city = {"type": "string", "description": self.words(), "enum": [self.words(), "b", None, 3]}
        number = {"type": "integer", "minimum": 1, "maximum": 12.5, "default": self.dice.choice([None, 0])}
        return {
            "type": "object",
            "properties": {"city": city, "n": number},
            "required": ["city"],
            "additionalProperties": self.dice.random() < 0.5,
        }

    def maybe(self, **members: Any) -> dict[str, Any]:
        return members if self.dice.random() < 0.6 else {}

    def parts(self, kind: str = "text") -> Any:
        if self.dice.random() < 0.5:
            return self.words()
        return [{"type": kind, "text": self.words()} for _ in range(self.dice.randint(1, 3))]

    def chat(self) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        if self.dice.random() < 0.7:
            messages.append({"role": "system", "content": self.parts()})
        for turn in range(self.dice.randint(1, 3)):
            messages += [{"role": "user", "content": self.parts()}, *self._chat_answer(turn)]
        last = self.dice.choice(["user", "user", "developer"])
        messages.append({"role": last, "content": self.parts()})
        return {"model": "m", "messages": messages, **self.maybe(tools=self._chat_tools())}

    def _chat_answer(self, turn: int) -> list[dict[str, Any]]:
        calls = []
        for name in ("a", "b")[: self.dice.randint(0, 2)]:
            given: Any = self.arguments()
            if self.dice.random() < 0.6:
                given = json.dumps(given, ensure_ascii=self.dice.random() < 0.5)
            function = {"name": self.words(), "arguments": given}
            calls.append({"id": f"{turn}{name}", "type": "function", "function": function})
        key = self.dice.choice(["reasoning", "reasoning_content"])
        answer: dict[str, Any] = {
            "role": "assistant",
            "content": self.parts(),
            **self.maybe(**{key: self.words()}),
        }
        results = [{"role": "tool", "tool_call_id": call["id"], "content": self.parts()} for call in calls]
        return [answer | ({"tool_calls": calls} if calls else {}), *results]

    def _chat_tools(self) -> list[dict[str, Any]]:
        return [{"type": "function", "function": self._function("parameters")} for _ in range(2)]

    def _function(self, schema: str) -> dict[str, Any]:
        return {
            "name": self.words(),
            **self.maybe(description=self.words()),
            schema: self.schema(),
            **self.maybe(strict=self.dice.random() < 0.5),
        }

    def messages(self) -> dict[str, Any]:
        messages: list[dict[str, Any]] = []
        for turn in range(self.dice.randint(1, 3)):
            uses = [
                {"type": "tool_use", "id": f"{turn}{name}", "name": self.words(), "input": self.arguments()}
                for name in "ab"[: self.dice.randint(0, 2)]
            ]
            thinking = self.maybe(type="thinking", thinking=self.words(), signature="s")
            said = {"type": "text", "text": self.words()}
            results = [
                {"type": "tool_result", "tool_use_id": use["id"], "content": self.parts()} for use in uses
            ]
            messages += [
                {"role": "user", "content": self.parts()},
                {"role": "assistant", "content": [*([thinking] if thinking else []), said, *uses]},
                *([{"role": "user", "content": [*results, *self._text_blocks()]}] if results else []),
            ]
        messages.append({"role": "user", "content": self.parts()})
        tools = [self._function("input_schema") for _ in range(2)]
        return {
            "max_tokens": 9,
            "messages": messages,
            **self.maybe(system=self.parts()),
            **self.maybe(tools=tools),
        }

    def _text_blocks(self) -> list[dict[str, Any]]:
        return [{"type": "text", "text": self.words()} for _ in range(self.dice.randint(0, 2))]

    def responses(self) -> dict[str, Any]:
        items: list[dict[str, Any]] = []
        for turn in range(self.dice.randint(1, 3)):
            items.append({"role": "user", "content": self.parts("input_text")})
            if self.dice.random() < 0.5:
                thought = [{"type": "reasoning_text", "text": self.words()}]
                items.append({"type": "reasoning", "summary": [], "content": thought})
            said = [{"type": "output_text", "text": self.words()}]
            items.append({"type": "message", "role": "assistant", "content": said})
            for name in "ab"[: self.dice.randint(0, 2)]:
                call = {
                    "call_id": f"{turn}{name}",
                    "name": self.words(),
                    "arguments": json.dumps(self.arguments()),
                }
                items.append({"type": "function_call", **call})
                output = {"call_id": f"{turn}{name}", "output": self.parts("input_text")}
                items.append({"type": "function_call_output", **output})
        items.append({"role": "user", "content": self.parts("input_text")})
        tools = [{"type": "function", **self._function("parameters")} for _ in range(2)]
        return {"input": items, **self.maybe(instructions=self.words()), **self.maybe(tools=tools)}

    def completions(self) -> dict[str, Any]:
        ids = [self.dice.randint(100, 5000) for _ in range(20)]
        return {"prompt": self.dice.choice([self.words(), [self.words()], ids, [ids]])}


DIALECTS: dict[str, Callable[[Maker], dict[str, Any]]] = {
    "chat": Maker.chat,
    "messages": Maker.messages,
    "responses": Maker.responses,
    "completions": Maker.completions,
}
