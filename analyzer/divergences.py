"""Finds where a prompt leaves its parent's, and in which field: renders both once more, with provenance.

Only prompts that part are rendered again, so that a session which appends costs nothing here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from analyzer.blocks import common_prefix
from analyzer.compare import common_chars, excerpt, field_at
from analyzer.core import Divergence, Finding, TokenIds
from analyzer.explain import Drawn, Explainer
from analyzer.media_texts import with_media_as_texts
from analyzer.renderers import Job, RenderFailed, unexpected
from analyzer.rendering import render_text
from analyzer.sourced import spans_of

type PromptKey = tuple[int, int]
"""Exchange id and prompt index."""

type ReadAgain = Callable[[PromptKey, Any | None], tuple[Job, Any]]
"""Reads a prompt once more, with strings that know their fields, and gives the parsed body it is from.

That is the captured one, or another one that is given.
"""

_KEPT = 2  # this turn's child is most often the next turn's parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """How a prompt stands to its parent: see `append` and `divergence` in the report.

    `findings` say why. `problem` says why the two could not be compared, where that was not to be expected.
    """

    append: bool
    divergence: Divergence | None
    findings: tuple[Finding, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A prompt and its parent, with their token ids."""

    parent: PromptKey
    child: PromptKey
    parent_ids: TokenIds
    child_ids: TokenIds


class DivergenceFinder:
    """Compares prompts; with `explain`, it also says why they part."""

    def __init__(self, read_again: ReadAgain, block_size: int, *, explain: bool = True) -> None:
        self._read_again = read_again
        self._block_size = block_size
        self._explain = explain
        self._kept: OrderedDict[PromptKey, Drawn | None] = OrderedDict()

    def find(self, pair: Pair) -> Parting:
        """Where the child leaves the parent; only the token and its block where no text can be had."""
        common = common_prefix(pair.parent_ids, pair.child_ids)
        if common == len(pair.parent_ids):
            return Parting(append=True, divergence=None)
        block = common // self._block_size
        bare = Divergence(token=common, block=block, path=None, char=None, before=None, after=None)
        try:
            return self._compared(pair, bare)
        except Exception as error:
            told = f"not compared with {pair.parent[0]}: {unexpected(error)}"
            return Parting(append=False, divergence=bare, problem=told)

    def _compared(self, pair: Pair, bare: Divergence) -> Parting:
        before, after = self._drawn(pair.parent), self._drawn(pair.child)
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
        history_end = _history_end(before)
        parting = Parting(append=char >= history_end, divergence=divergence)
        return self._explained(pair, parting, before, after, history_end) if self._explain else parting

    def _explained(
        self, pair: Pair, parting: Parting, before: Drawn, after: Drawn, history_end: int
    ) -> Parting:
        """The same with its causes; a cause may know the field at fault better than the divergence does."""
        explainer = Explainer(
            block_size=self._block_size,
            parent_ids=pair.parent_ids,
            history_end=history_end,
            redraw=lambda body: self._draw(pair.child, body),
        )
        divergence = parting.divergence
        assert divergence is not None
        try:
            findings = tuple(explainer.explain(before, after, divergence.token))
        except Exception as error:
            told = f"not explained: {unexpected(error)}"
            return replace(parting, problem=told)
        if findings:
            divergence = replace(divergence, path=findings[0].path, char=findings[0].char)
        return replace(parting, findings=findings, divergence=divergence)

    def _drawn(self, key: PromptKey) -> Drawn | None:
        if key not in self._kept:
            self._kept[key] = self._draw(key, None)
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _draw(self, key: PromptKey, body: Any | None) -> Drawn | None:
        job, read = self._read_again(key, body)
        shown = with_media_as_texts(job.conversation)
        if shown is not None:
            job = replace(job, conversation=shown)
        try:
            text = render_text(job)
        except RenderFailed:
            return None
        return Drawn(text=text, spans=spans_of(text), body=read, job=job, countable=shown is None)


def _history_end(drawn: Drawn) -> int:
    """The character at which a prompt's generation prompt begins, or its length where it has none."""
    if not drawn.job.conversation.add_generation_prompt:
        return len(drawn.text)
    try:
        text = render_text(replace(drawn.job, sourced=False), generation_prompt=False)
    except RenderFailed:
        return len(drawn.text)
    return common_chars(drawn.text, text)
