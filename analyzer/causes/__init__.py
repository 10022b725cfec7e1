"""Why a prompt left its parent's, one kind of change a file; a file's CAUSE is found by the registry.

The labels and their rules are the field's: what is reported as a cause is found in the rendered prompts, so
that a difference of bodies that reaches no token is never one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from analyzer.body_paths import Edit
from analyzer.change import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a cause says of a change that is its own.

    `evidence` is one sentence that may quote the prompt, `advice` one that names field and setting and never
    quotes. `kind` tells apart what one label covers (`rollover`, `whitespace`). `path` and `char` name
    the field at fault where it is not the one that the divergence lies in. `expected` is for a loss that is
    the price of something wanted.

    `restore` gives the child's body the parent's values back, so that what else differs can be seen; without
    it the texts are joined behind the difference, which is right only where both bodies hold the same there.
    """

    evidence: str
    advice: str
    kind: str | None = None
    path: str | None = None
    char: int | None = None
    expected: bool = False
    restore: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """Two chat bodies of which the second shows the cause, and the template that prints them.

    `template` is a chat template's text, None for one that prints what was sent. `dialect` names the
    bodies' endpoint; the `hours` between the two requests matter to whoever reads a clock. `answer` is the
    text that the first was answered with, where the server told its ids. `settings` are what the server's
    start line says, where that matters.
    """

    before: Mapping[str, Any]
    after: Mapping[str, Any]
    template: str | None = None
    dialect: str = "chat"
    hours: float = 0
    answer: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class Cause(Protocol):
    """One kind of change.

    `rank` orders them, lowest first: the first that finds itself is the cause. `example` is its test.
    """

    name: str
    rank: int
    example: Example

    def find(self, change: Change) -> Found | None:
        """What this cause says of a change, or None where it is another's."""
