"""Finds where a prompt leaves its parent's, and in which field: renders both once more, with provenance.

Only prompts that part are rendered again, so that a session which appends costs nothing here.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from analyzer.blocks import common_prefix
from analyzer.compare import common_chars, excerpt
from analyzer.core import Divergence, Finding, TokenIds
from analyzer.explain import Drawn, Explainer
from analyzer.media_texts import with_media_as_texts
from analyzer.renderers import Job, RenderFailed, unexpected
from analyzer.rendering import render_text
from analyzer.sourced import spans_of
from analyzer.token_text import text_of

type PromptKey = tuple[int, int]
"""Exchange id and prompt index."""

type ReadAgain = Callable[[PromptKey, Any | None], tuple[Job, Any]]
"""Reads a prompt once more, with strings that know their fields, and gives the parsed body it is from.

That is the captured one, or another one that is given.
"""

_KEPT = 2  # this turn's child is most often the next turn's parent
_SAID = ("messages", "input", "system", "instructions", "tools", "prompt")
"""Where a body holds what no generation prompt prints."""


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
    """A prompt and its parent with their token ids, and the parent's answer's where the server told them."""

    parent: PromptKey
    child: PromptKey
    parent_ids: TokenIds
    child_ids: TokenIds
    answer_ids: TokenIds | None = None


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
            return Parting(append=True, divergence=None, findings=self._in_answer(pair))
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
            return Parting(append=False, divergence=self._in_ids(pair, bare))
        char = common_chars(before.text, after.text)
        history_end = _history_end(before, char)
        explainer = self._explainer(pair, history_end)
        place = explainer.change(before, after, bare.token).place
        divergence = replace(
            bare,
            path=place.path,
            char=place.char,
            before=excerpt(before.text, char),
            after=excerpt(after.text, char),
        )
        parting = Parting(append=char >= history_end, divergence=divergence)
        return self._explained(explainer, parting, before, after) if self._explain else parting

    def _explainer(self, pair: Pair, history_end: int) -> Explainer:
        return Explainer(
            block_size=self._block_size,
            parent_ids=pair.parent_ids,
            history_end=history_end,
            redraw=lambda body: self._draw(pair.child, body),
        )

    def _explained(self, explainer: Explainer, parting: Parting, before: Drawn, after: Drawn) -> Parting:
        """The same with its causes; a cause may know the field at fault better than the divergence does."""
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

    def _in_ids(self, pair: Pair, bare: Divergence) -> Divergence:
        """The same with its place in a prompt that was given as token ids."""
        job, body = self._read_again(pair.child, None)
        given = job.conversation
        if given.token_ids is None or given.truncation is not None or given.dialect != "completions":
            return bare
        several = isinstance(body["prompt"][0], list)
        inside = f"[{pair.child[1]}]" if several else ""
        return replace(bare, path=f"prompt{inside}[{bare.token}]")

    def _in_answer(self, pair: Pair) -> tuple[Finding, ...]:
        """Why the parent's answer is not what this prompt goes on with, where its ids are known."""
        if not self._explain or pair.answer_ids is None:
            return ()
        cached = pair.answer_ids[:-1]  # the last token of an answer is never computed on
        token = len(pair.parent_ids) + common_prefix(pair.child_ids[len(pair.parent_ids) :], cached)
        if token == len(pair.parent_ids) + len(cached):
            return ()
        try:
            before, after = self._drawn(pair.parent), self._drawn(pair.child)
            if before is None or after is None or before.job.tokenizer is None:
                return ()
            answer = text_of(before.job.tokenizer.directory).decode(cached.tolist())
            explainer = self._explainer(pair, len(before.text))
            return tuple(explainer.explain_answer(before, after, answer, token, len(cached)))
        except Exception:  # the numbers of the row are right without it
            return ()

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


def _history_end(drawn: Drawn, char: int) -> int:
    """The character at which a prompt's generation prompt begins, or its length where it has none.

    Not more than the end of its last message or tool where `char` lies before that: to know more, the prompt
    is rendered once more.
    """
    said = next((span for span in reversed(drawn.spans) if span.path.startswith(_SAID)), None)
    if said is not None and char < said.char_end:
        return said.char_end
    if not drawn.job.conversation.add_generation_prompt:
        return len(drawn.text)
    try:
        text = render_text(replace(drawn.job, sourced=False), generation_prompt=False)
    except RenderFailed:
        return len(drawn.text)
    return common_chars(drawn.text, text)
