"""Explains why a prompt left its parent's: finds the cause of the first difference, restores, and goes on.

Single restores hide what comes later: with a clock in the head, nothing behind it shows. So the parent's
values are put back in the order of their position, each is kept, and each cause gets the tokens that its own
restoring brings back. What a cause is, is told in `analyzer.causes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import Any

from analyzer.blocks import common_prefix, full_blocks
from analyzer.body_paths import edited
from analyzer.causes import Cause, Found
from analyzer.change import Change, View
from analyzer.compare import Side, common_chars, excerpt, place_of
from analyzer.core import Finding, TokenIds
from analyzer.joining import Joiner
from analyzer.registry import plugins
from analyzer.renderers import Job, RenderFailed, tokenized
from analyzer.sourced import concat, plain, spans_of

MOST_FINDINGS = 8
"""How many differences of one turn are told apart; each costs a rendering."""

ANSWER_CAUSE = "template.roundtrip"
"""The one cause that is asked where only the generated part is lost."""

_UNCLAIMED = Found(
    evidence="the prompts differ in a way that no known cause has", advice="compare both sides"
)

MOST_JOINED = 1000
"""How many further places of one cause are taken for one difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn(Side):
    """One of the two prompts, rendered with provenance from `body`, its request's parsed JSON.

    It is not `countable` where it has a text in the place of an image: its tokens are not the server's.
    """

    body: Any
    job: Job
    countable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """Explains one turn after another.

    `parent_ids` are the parent's token ids, and its generation prompt begins at the character `history_end`.
    `redraw` renders the child once more from another body, None where that fails.
    """

    block_size: int
    parent_ids: TokenIds
    history_end: int
    redraw: Callable[[Any], Drawn | None]

    def explain(self, parent: Drawn, child: Drawn, token: int) -> Iterator[Finding]:
        """The causes of a difference that begins at `token`, in order of their position."""
        for _ in range(MOST_FINDINGS):
            change = self.change(parent, child, token)
            if change.in_generation_prompt:
                for named, found in islice(_found(change), 1):  # with none, nothing that was sent is lost
                    yield self._finding(change, named, found, token, len(self.parent_ids))
                return
            cause, found, restored = self._confirmed(parent, child, change)
            reached = None if restored is None else self._reached(restored)
            yield self._finding(change, cause, found, token, reached)
            if restored is None or reached is None:
                return
            child, token = restored, reached
            if common_chars(parent.text, child.text) >= self.history_end:
                return

    def explain_answer(
        self, parent: Drawn, child: Drawn, answer: str, token: int, answer_tokens: int
    ) -> Iterator[Finding]:
        """Why a child that begins with the parent's prompt does not go on with the parent's `answer`."""
        with_answer = replace(parent, text=concat((parent.text, answer)))
        change = replace(self.change(with_answer, child, token), answer=len(parent.text))
        cause = next(each for each in _causes() if each.name == ANSWER_CAUSE)
        if (found := cause.find(change)) is not None:
            yield self._finding(change, cause, found, token, len(self.parent_ids) + answer_tokens)

    def change(self, parent: Drawn, child: Drawn, token: int) -> Change:
        """The two side by side."""
        char = common_chars(parent.text, child.text)
        return Change(
            before=_view(parent, char),
            after=_view(child, char),
            history_end=self.history_end,
            lost_tokens=len(self.parent_ids) - token,
        )

    def _confirmed(
        self, parent: Drawn, child: Drawn, change: Change
    ) -> tuple[Cause | None, Found, Drawn | None]:
        """The first cause that claims the change, with the child as it is without it.

        A cause is wrong whose restoring can be rendered and does not move the divergence; one that cannot be
        tried is believed if no other is confirmed.
        """
        untried: tuple[Cause, Found] | None = None
        for cause, found in _found(change):
            restored = self._restored(parent, child, change, found)
            if restored is None:
                untried = untried or (cause, found)
            elif common_chars(parent.text, restored.text) > change.after.char:
                return cause, found, restored
        if untried is not None:
            return *untried, None
        return None, _UNCLAIMED, self._joined(parent, child, change)

    def _restored(self, parent: Drawn, child: Drawn, change: Change, found: Found) -> Drawn | None:
        """The child with the parent's values back, or None where that cannot be rendered."""
        if not found.restore:
            return self._joined(parent, child, change)
        try:
            return self.redraw(edited(child.body, found.restore))
        except LookupError:
            return None

    def _joined(self, parent: Drawn, child: Drawn, change: Change) -> Drawn | None:
        """The child joined to its parent behind this difference, and behind what follows of the same cause.

        A template that drops something drops it in many places.
        """
        joiner = Joiner(parent, child)
        cause = _first(change)
        reached = joiner.joint((change.before.char, change.after.char))
        joint = None
        for _ in range(MOST_JOINED):
            if reached is None:
                break
            joint = reached
            before, after = joiner.parted(joint)
            if before >= self.history_end:
                break
            following = replace(change, before=_view(parent, before), after=_view(child, after))
            reached = joiner.joint((before, after)) if _first(following) is cause else None
        if joint is None:
            return None
        text = joiner.text(joint)
        return replace(child, text=text, spans=spans_of(text))

    def _reached(self, restored: Drawn) -> int | None:
        """The common token prefix once a difference is restored; None where it cannot be counted."""
        if not restored.countable:
            return None
        try:
            ids = tokenized(restored.job, plain(restored.text), "").token_ids
        except RenderFailed:
            return None
        return common_prefix(self.parent_ids, ids)

    def _finding(
        self, change: Change, cause: Cause | None, found: Found, token: int, reached: int | None
    ) -> Finding:
        size, place = self.block_size, change.place
        return Finding(
            cause=None if cause is None else cause.name,
            kind=found.kind,
            path=found.path or place.path,
            char=found.char if found.path else place.char,
            token=token,
            tokens=None if reached is None else max(0, reached - token),
            blocks=None if reached is None else max(0, full_blocks(reached, size) - full_blocks(token, size)),
            expected=found.expected,
            before=excerpt(change.before.text, change.before.char),
            after=excerpt(change.after.text, change.after.char),
            evidence=found.evidence,
            advice=found.advice,
        )


@cache
def _causes() -> list[Cause]:
    return sorted(plugins("causes").values(), key=lambda cause: cause.rank)


def _found(change: Change) -> Iterator[tuple[Cause, Found]]:
    for cause in _causes():
        found = cause.find(change)
        if found is not None:
            yield cause, found


def _first(change: Change) -> Cause | None:
    return next((cause for cause, _ in _found(change)), None)


def _view(drawn: Drawn, char: int) -> View:
    return View(
        body=drawn.body,
        conversation=drawn.job.conversation,
        text=drawn.text,
        spans=drawn.spans,
        char=char,
        place=place_of(drawn.spans, char),
        clock=drawn.job.clock,
    )
