"""Two prompts that part, and the place where they do: all that a cause may look at.

It judges nothing. Everything here is what was sent or what was rendered from it; `before` is always the
parent's side, `after` the child's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from analyzer.body_paths import parse_path, value_at
from analyzer.compare import FieldPlace
from analyzer.core import Conversation, Span
from analyzer.fields import differing_field, differs, shifted_field

_MESSAGE = re.compile(r"(?:messages|input)\[(\d+)\]")
_TOOL = re.compile(r"tools\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One of the two prompts. Characters count in `text`, the rendered prompt.

    `body` is the request's parsed JSON; `conversation` its normalised form, whose strings may know their
    fields. `spans` say which field each character came from. `char` is the first character in which the two
    texts differ, and `place` the field that holds it, None where the template wrote it. `clock` is the moment
    of the request.
    """

    body: Any
    conversation: Conversation
    text: str
    spans: Sequence[Span]
    char: int
    place: FieldPlace | None
    clock: datetime

    @property
    def path(self) -> str | None:
        """The path of the field at the divergence."""
        return self.place.path if self.place else None

    @property
    def next_path(self) -> str | None:
        """The path of the field at the divergence, or of the next one behind it."""
        if self.place is not None:
            return self.place.path
        return next((span.path for span in self.spans if span.char_start >= self.char), None)

    @property
    def last_path(self) -> str | None:
        """The path of the last field that both prompts still share in part or in full."""
        return next((span.path for span in reversed(self.spans) if span.char_start < self.char), None)

    @property
    def field(self) -> str | None:
        """The whole string of the field at the divergence, where it is one and can be counted off."""
        if self.place is None or self.place.char is None:
            return None
        value = value_at(self.body, self.place.path)
        return value if isinstance(value, str) else None

    @property
    def message(self) -> int | None:
        """The index, in the body, of the message or item that holds the divergence."""
        found = _MESSAGE.match(self.path or "")
        return int(found[1]) if found else None

    @property
    def next_tool(self) -> int | None:
        """The index, in the body, of the tool at the divergence, where one stands there or follows it."""
        found = _TOOL.match(self.next_path or "")
        return int(found[1]) if found else None

    @property
    def role(self) -> str | None:
        """Who speaks at the divergence: the message's role; `system` for a body's own system field."""
        if self.path and parse_path(self.path)[0] in ("system", "instructions"):
            return "system"
        if self.message is None:
            return None
        item = value_at(self.body, f"{'input' if 'input' in self.body else 'messages'}[{self.message}]")
        role = item.get("role") if isinstance(item, dict) else None
        return role if isinstance(role, str) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Change:
    """A child prompt beside its parent's: both texts are equal up to the divergence.

    The parent's generation prompt begins at `history_end` of its text, and `lost_tokens` are those of its
    tokens from the divergence on. For the parent's answer, where its text is known and part of
    `before.text`, `answer` is the character at which it begins. A change equals itself alone, so that what
    one cause works out about it can be kept for the next.
    """

    before: View
    after: View
    history_end: int
    lost_tokens: int
    answer: int | None = None

    @property
    def place(self) -> FieldPlace:
        """The field that the two differ in."""
        before, after = self.before, self.after
        bodies = before.body, after.body
        place = differing_field(before.place, after.place, bodies)
        if differs(place, bodies):
            return place
        return shifted_field(before.spans, after.spans, after.char, bodies) or place

    @property
    def in_template(self) -> bool:
        """Whether no field holds the divergence, on either side."""
        return self.before.place is None and self.after.place is None

    @property
    def in_generation_prompt(self) -> bool:
        """Whether all that was sent before is still there, and only the parent's generation prompt is not."""
        return self.answer is None and self.before.char >= self.history_end
