"""Tells conversations apart and finds each prompt's parent, by what the prompts hold and not by time.

A title request, a retry or a sub-agent between two turns must not become their predecessor. It compares
requests as sent; how far two renderings agree is asked of the caller.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from analyzer.core import Conversation
from analyzer.shared_json import once

_HEAD_ROLES = ("system", "developer")
_ALIKE = 0.5
"""Two texts are versions of each other when they share at least half of their words."""
_CANDIDATES = 8
"""How many of the latest equally good parents have their renderings compared."""
_PIECE_TOKENS = 64
_WORD = re.compile(r"\w+")

type CommonTokens = Callable[[int, int], int]
"""Common token prefix of two prompts, given by their numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a prompt stands: its conversation and turn (both from 1), and its parent's number, if any."""

    conversation: int
    turn: int
    parent: int | None


@dataclass(slots=True)
class _Prompt:
    """What lineage looks at: the head's text, and a number for each message behind it (equal = same)."""

    namespace: Hashable
    head: str
    tools: frozenset[str]
    opening: str
    pieces: tuple[int, ...]
    sizes: tuple[int, ...]
    answers: frozenset[int]

    @property
    def fresh(self) -> bool:
        """Whether nothing has been answered yet."""
        return not self.answers


@dataclass(slots=True)
class _Group:
    number: int
    members: list[int] = field(default_factory=list)
    known: set[int] = field(default_factory=set)


class Lineage:
    """Places prompts one after another, in the order of their start.

    `common_tokens(a, b)` decides between parents that share equally many messages.
    """

    def __init__(self, common_tokens: CommonTokens) -> None:
        self._common_tokens = common_tokens
        self._numbers: dict[Hashable, int] = {}
        self._prompts: list[_Prompt] = []
        self._groups: list[_Group] = []
        self._by_piece: dict[int, list[_Group]] = {}

    def place(self, conversation: Conversation, namespace: Hashable) -> Place:
        """Find the conversation and the parent of the next prompt.

        `namespace` keeps apart what can share nothing (endpoint, model). The prompt's number is how many
        were placed before it.
        """
        number = len(self._prompts)
        prompt = self._read(conversation, namespace)
        self._prompts.append(prompt)
        group = self._find(prompt)
        parent = self._parent(group, number, prompt) if group else None
        if group is None:
            group = _Group(number=len(self._groups) + 1)
            self._groups.append(group)
        group.members.append(number)
        for piece in set(prompt.pieces) - group.known:
            self._by_piece.setdefault(piece, []).append(group)
        group.known.update(prompt.pieces)
        return Place(conversation=group.number, turn=len(group.members), parent=parent)

    def _read(self, conversation: Conversation, namespace: Hashable) -> _Prompt:
        head = [item for item in conversation.messages if item.get("role") in _HEAD_ROLES]
        rest = [item for item in conversation.messages if item.get("role") not in _HEAD_ROLES]
        texts = [] if conversation.messages else _raw_pieces(conversation)
        content = [once(_frozen, item) for item in rest] if conversation.messages else texts
        sizes = [once(_size, item) for item in rest] if conversation.messages else list(map(len, texts))
        opening = _text(rest[0]) if rest else "".join(texts[:1])
        pieces = [self._numbers.setdefault((namespace, item), len(self._numbers)) for item in content]
        answers = (
            {piece for piece, item in zip(pieces, rest, strict=True) if item.get("role") != "user"}
            if conversation.messages
            else pieces
        )
        return _Prompt(
            namespace=namespace,
            head="\n".join(_text(item) for item in head),
            tools=frozenset(map(_name, conversation.tools or ())),
            opening=opening,
            pieces=tuple(pieces),
            sizes=tuple(size + 1 for size in sizes),
            answers=frozenset(answers),
        )

    def _find(self, prompt: _Prompt) -> _Group | None:
        """The conversation a prompt continues, or None where it begins one."""
        seen = {group.number: group for piece in prompt.pieces for group in self._by_piece.get(piece, ())}
        likeliest = sorted(seen.values(), key=lambda group: self._rank(group, prompt), reverse=True)
        for group in likeliest:
            if self._continues(group, prompt):
                return group
        return None if prompt.fresh else self._alike(prompt)

    def _rank(self, group: _Group, prompt: _Prompt) -> tuple[int, int]:
        """Characters the prompt shares with a conversation; between equals, the later one."""
        return sum(size for _, size in _shared(group, prompt)), group.members[-1]

    def _continues(self, group: _Group, prompt: _Prompt) -> bool:
        last = self._prompts[group.members[-1]]
        if _is_another_agent(last, prompt):
            return False
        shared = _shared(group, prompt)
        # Only an answer marks a history: two conversations may well begin with the same request.
        if any(piece in prompt.answers for piece, _ in shared):
            overlap = sum(size for _, size in shared)
            if overlap >= _ALIKE * min(sum(prompt.sizes), sum(last.sizes)):
                return True
        opened_alike = any(
            self._prompts[member].pieces[:1] == prompt.pieces[:1] for member in group.members[-_CANDIDATES:]
        )
        return opened_alike and _alike(last.head, prompt.head)

    def _alike(self, prompt: _Prompt) -> _Group | None:
        """A conversation that differs in every message and is the same all the same (a clock in each)."""
        for group in reversed(self._groups[-_CANDIDATES:]):
            last = self._prompts[group.members[-1]]
            apart = last.namespace != prompt.namespace
            if not apart and _alike(last.opening, prompt.opening) and _alike(last.head, prompt.head):
                return group
        return None

    def _parent(self, group: _Group, number: int, prompt: _Prompt) -> int:
        """The member that shares most leading messages; then most tokens; then the latest."""
        led = {member: _leading(self._prompts[member].pieces, prompt.pieces) for member in group.members}
        most = max(led.values())
        candidates = [member for member in group.members if led[member] == most]
        if most == len(prompt.pieces):
            # Played before: the copies that end where this one ends, not those that went on from there.
            shortest = min(len(self._prompts[member].pieces) for member in candidates)
            candidates = [m for m in candidates if len(self._prompts[m].pieces) == shortest]
        if len(candidates) == 1:
            return candidates[0]
        return max(
            candidates[-_CANDIDATES:], key=lambda member: (self._common_tokens(member, number), member)
        )


def _is_another_agent(last: _Prompt, prompt: _Prompt) -> bool:
    """Whether a prompt is told to be something else, with other tools: it may hold the history all the same.

    Qwen Code has its memory written so, behind a user's back. Other tools alone are a switch of mode.
    """
    return last.tools != prompt.tools and not _alike(last.head, prompt.head)


def _shared(group: _Group, prompt: _Prompt) -> list[tuple[int, int]]:
    """The prompt's messages that a conversation has had, each with its size in characters."""
    pairs = zip(prompt.pieces, prompt.sizes, strict=True)
    return [(piece, size) for piece, size in pairs if piece in group.known]


def _leading(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    shorter = min(len(a), len(b))
    if a[:shorter] == b[:shorter]:
        return shorter
    return next(at for at in range(shorter) if a[at] != b[at])


def _alike(a: str, b: str) -> bool:
    if a == b:
        return True
    words_a, words_b = set(_WORD.findall(a)), set(_WORD.findall(b))
    return len(words_a & words_b) >= _ALIKE * len(words_a | words_b) > 0


def _raw_pieces(conversation: Conversation) -> list[str]:
    if conversation.token_ids is not None:
        ids = conversation.token_ids
        return [str(ids[at : at + _PIECE_TOKENS]) for at in range(0, len(ids), _PIECE_TOKENS)]
    return (conversation.text or "").split("\n")


def _name(tool: Mapping[str, Any]) -> str:
    function = tool.get("function", tool)
    return str(function.get("name")) if isinstance(function, Mapping) else str(function)


def _text(message: Mapping[str, Any]) -> str:
    """All strings of a message, for measuring; not what a template would print."""
    return "\n".join(_strings(message))


def _size(message: Mapping[str, Any]) -> int:
    return len(_text(message))


def _strings(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, Mapping)):  # dict comes first: asking an abstract class takes long
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def _frozen(value: Any) -> Hashable:
    """A JSON value as something that can be a dictionary key; equal values are equal keys."""
    if isinstance(value, str):
        return value
    if isinstance(value, (dict, Mapping)):
        return tuple(sorted((key, _frozen(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return tuple(_frozen(item) for item in value)
    # JSON keeps 1, 1.0 and true apart; Python's equality does not.
    return (type(value).__name__, value)
