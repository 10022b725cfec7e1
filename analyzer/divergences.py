"""Finds where a prompt leaves its parent's, and in which field: renders both once more, with provenance.

Only prompts that part are rendered again, so that a session which appends costs nothing here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

from analyzer.compare import Side, common_chars, excerpt, field_at
from analyzer.core import Divergence
from analyzer.renderers import Job, RenderFailed, unexpected
from analyzer.rendering import render_text
from analyzer.sourced import spans_of

type PromptKey = tuple[int, int]
"""Exchange id and prompt index."""

_KEPT_SIDES = 2  # this turn's child is most often the next turn's parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """How a prompt stands to its parent: see `append` and `divergence` in the report.

    `problem` says why the two could not be compared, where that was not to be expected.
    """

    append: bool
    divergence: Divergence | None
    problem: str | None = None


class DivergenceFinder:
    """Compares prompts by their keys; `job_of` reads a prompt again with strings that know their fields."""

    def __init__(self, job_of: Callable[[PromptKey], Job | None], block_size: int) -> None:
        self._job_of = job_of
        self._block_size = block_size
        self._sides: OrderedDict[PromptKey, Side | None] = OrderedDict()

    def find(self, parent: PromptKey, child: PromptKey, *, common_tokens: int, parent_tokens: int) -> Parting:
        """Where the child leaves the parent, whose first `common_tokens` tokens it shares.

        Only the token and its block are told where the texts cannot be had.
        """
        if common_tokens == parent_tokens:
            return Parting(append=True, divergence=None)
        block = common_tokens // self._block_size
        bare = Divergence(token=common_tokens, block=block, path=None, char=None, before=None, after=None)
        try:
            return self._compared(parent, child, bare)
        except Exception as error:
            told = f"not compared with {parent[0]}: {unexpected(error)}"
            return Parting(append=False, divergence=bare, problem=told)

    def _compared(self, parent: PromptKey, child: PromptKey, bare: Divergence) -> Parting:
        before, after = self._side(parent), self._side(child)
        if before is None or after is None:
            return Parting(append=False, divergence=bare)
        char = common_chars(before.text, after.text)
        place = field_at(before, after, char)
        divergence = replace(
            bare,
            path=place.path,
            char=place.char,
            before=excerpt(before.text, char),
            after=excerpt(after.text, char),
        )
        return Parting(append=char >= self._history_end(parent, before), divergence=divergence)

    def _side(self, key: PromptKey) -> Side | None:
        if key not in self._sides:
            self._sides[key] = self._draw(key)
            if len(self._sides) > _KEPT_SIDES:
                self._sides.popitem(last=False)
        self._sides.move_to_end(key)
        return self._sides[key]

    def _draw(self, key: PromptKey) -> Side | None:
        job = self._job_of(key)
        if job is None:
            return None
        try:
            text = render_text(job)
        except RenderFailed:
            return None
        return Side(text=text, spans=spans_of(text))

    def _history_end(self, key: PromptKey, side: Side) -> int:
        """The character at which a prompt's generation prompt begins, or its length where it has none."""
        job = self._job_of(key)
        if job is None or not job.conversation.add_generation_prompt:
            return len(side.text)
        try:
            return common_chars(side.text, render_text(job, generation_prompt=False))
        except RenderFailed:
            return len(side.text)
