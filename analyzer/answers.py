"""Reads the answers out of a response: their texts in pieces, calls, reasoning, ids, and why each ended.

One reader for all dialects, streamed or not. It judges nothing: whether the text is what the model wrote is
for `analyzer.generated`. The shapes are vLLM 0.32's: entrypoints/openai/{chat_completion,completion}/
protocol.py, entrypoints/openai/responses/protocol.py, entrypoints/anthropic/protocol.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analyzer.core import TOKEN_ID_LIMIT, Answer, Finish, ToolCall

MOST_CHOICES = 1 << 12
"""Answers to one prompt; more are no number of answers, but a body that is broken or hostile."""

_FINISHES: Mapping[str, Finish] = {
    "stop": "stop",
    "tool_calls": "stop",
    "function_call": "stop",
    "length": "length",
    "end_turn": "stop",
    "tool_use": "stop",
    "max_tokens": "length",
    "completed": "stop",
    "max_output_tokens": "length",
}


@dataclass(slots=True)
class _Draft:
    """An answer while it is being read; tool calls are by their index, name and arguments in parts."""

    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    token_texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: dict[object, list[str]] = field(default_factory=dict)
    newest_id: str = ""
    finish: Finish | None = None
    stop_string: str | None = None

    def say(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self.pieces.append(text)

    def think(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self.thoughts.append(text)

    def call(self, key: object, name: Any, arguments: Any) -> None:
        parts = self.calls.setdefault(key, ["", ""])
        parts[0] += name if isinstance(name, str) else ""
        parts[1] += arguments if isinstance(arguments, str) else ""

    def key_of(self, call: Mapping[str, Any], place: int) -> str:
        """A call's index; without one a new id begins a call, and what has neither goes on with it."""
        if (index := call.get("index")) is not None:
            return str(index)
        if isinstance(begun := call.get("id"), str) and begun:
            self.newest_id = begun
        return self.newest_id or str(place)

    def end(self, reason: Any, stopped_at: Any) -> None:
        if isinstance(stopped_at, str) and stopped_at:
            self.finish, self.stop_string = "stop_string", stopped_at
        elif isinstance(reason, str):
            self.finish = _FINISHES.get(reason, self.finish)

    def done(self) -> Answer:
        calls = tuple(ToolCall(name=name, arguments=arguments) for name, arguments in self.calls.values())
        return Answer(
            pieces=tuple(self.pieces),
            token_ids=tuple(self.token_ids),
            token_texts=tuple(self.token_texts),
            thoughts=tuple(self.thoughts),
            tool_calls=calls,
            finish=self.finish,
            stop_string=self.stop_string,
        )


def read_answers(objects: Iterable[Mapping[str, Any]]) -> tuple[Answer, ...]:
    """One answer for each choice, from a whole body or a stream's events; empty where there is none.

    A choice of which nothing came before later ones has an empty answer.
    """
    drafts: dict[int, _Draft] = {}
    for item in objects:
        for choice in choices_of(item):
            _read_choice(choice, drafts.setdefault(choice_index(choice), _Draft()))
        kind = item.get("type")
        if isinstance(kind, str) and kind.startswith(("message", "content_block")):
            _read_anthropic(item, drafts.setdefault(0, _Draft()))
        elif item.get("object") == "response" or (isinstance(kind, str) and kind.startswith("response.")):
            _read_responses(item, drafts.setdefault(0, _Draft()))
    count = max(drafts, default=-1) + 1
    return tuple(drafts.get(index, _Draft()).done() for index in range(count))


def choices_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of one body or event."""
    return _mappings(item.get("choices"))


def choice_index(choice: Mapping[str, Any]) -> int:
    """A choice's index; 0 where it has none that can be one."""
    index = choice.get("index")
    return index if type(index) is int and 0 <= index < MOST_CHOICES else 0


def ids_of(value: Any) -> tuple[int, ...]:
    """A list of token ids, or nothing where it is none."""
    if isinstance(value, list) and all(type(item) is int and 0 <= item < TOKEN_ID_LIMIT for item in value):
        return tuple(value)
    return ()


def _read_choice(choice: Mapping[str, Any], draft: _Draft) -> None:
    draft.token_ids += ids_of(choice.get("token_ids"))
    draft.token_texts += _token_texts(choice.get("logprobs"))
    draft.say(choice.get("text"))
    for holder in (choice.get("message"), choice.get("delta")):
        if isinstance(holder, Mapping):
            draft.say(holder.get("content"))
            draft.think(holder.get("reasoning") or holder.get("reasoning_content"))
            for place, call in enumerate(_mappings(holder.get("tool_calls"))):
                function = call.get("function")
                if isinstance(function, Mapping):
                    key = draft.key_of(call, place)
                    draft.call(key, function.get("name"), function.get("arguments"))
    draft.end(choice.get("finish_reason"), choice.get("stop_reason"))


def _token_texts(logprobs: Any) -> list[str]:
    """The tokens that were sampled, as completions name them (`tokens`) and as chat does (`content`)."""
    if not isinstance(logprobs, Mapping):
        return []
    named = [entry.get("token") for entry in _mappings(logprobs.get("content"))]
    listed = logprobs.get("tokens")
    named += listed if isinstance(listed, list) else []
    return [text if isinstance(text, str) else "" for text in named]


def _read_anthropic(item: Mapping[str, Any], draft: _Draft) -> None:
    for block in _mappings(item.get("content")):
        _read_block(block, str(len(draft.calls)), draft)
    index, begun = str(item.get("index")), item.get("content_block")
    if isinstance(begun, Mapping):
        _read_block(begun, index, draft)
    for holder in (item, item.get("delta")):
        if isinstance(holder, Mapping):
            draft.end(holder.get("stop_reason"), holder.get("stop_sequence"))
    if isinstance(delta := item.get("delta"), Mapping):
        draft.say(delta.get("text"))
        draft.think(delta.get("thinking"))
        if delta.get("type") == "input_json_delta":
            draft.call(index, None, delta.get("partial_json"))


def _read_block(block: Mapping[str, Any], key: str, draft: _Draft) -> None:
    draft.say(block.get("text"))
    draft.think(block.get("thinking"))
    if block.get("type") == "tool_use":
        given = block.get("input")  # a stream sends {} here, and the arguments after it
        draft.call(key, block.get("name"), json.dumps(given) if given else None)


def _read_responses(item: Mapping[str, Any], draft: _Draft) -> None:
    if item.get("type") == "response.output_text.delta":
        draft.say(item.get("delta"))
    response = item.get("response", item)
    if not isinstance(response, Mapping) or response.get("status") not in ("completed", "incomplete"):
        return
    said = bool(draft.pieces)
    for place, output in enumerate(_mappings(response.get("output"))):
        if output.get("type") == "function_call":
            draft.call(str(place), output.get("name"), output.get("arguments"))
        for part in _mappings(output.get("content")):
            if output.get("type") == "reasoning":
                draft.think(part.get("text"))
            elif not said:  # a stream has brought it in pieces already
                draft.say(part.get("text"))
    details = response.get("incomplete_details")
    draft.end(details.get("reason") if isinstance(details, Mapping) else response.get("status"), None)


def _mappings(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
