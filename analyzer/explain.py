"""Explains why a prompt left its parent's: finds the cause of the first difference, restores, and goes on.

Single restores hide what comes later: with a clock in the head, nothing behind it shows. So the parent's
values are put back in the order of their position, each is kept, and each cause gets the tokens that its own
restoring brings back. What a cause is, is told in `analyzer.causes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from analyzer.blocks import common_prefix, full_blocks
from analyzer.body_paths import edited
from analyzer.causes import Cause, Found
from analyzer.change import Change, View
from analyzer.compare import Side, common_chars, excerpt, place_of
from analyzer.core import Finding, Span, TokenIds
from analyzer.registry import plugins
from analyzer.renderers import Job, RenderFailed, tokenized
from analyzer.sourced import plain, spans_of

MOST_FINDINGS = 8
"""How many differences of one turn are told apart; each costs a rendering."""

UNCLAIMED = Found(evidence="the prompts differ in a way that no known cause has", advice="compare both sides")


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
        causes = sorted(plugins("causes").values(), key=lambda cause: cause.rank)
        char = common_chars(parent.text, child.text)
        for _ in range(MOST_FINDINGS):
            change = Change(
                before=_view(parent, char), after=_view(child, char), history_end=self.history_end
            )
            cause, found, restored = self._confirmed(causes, parent, child, change)
            if cause is None and change.in_generation_prompt:
                return  # nothing that was sent is lost
            reached = None if restored is None else self._reached(restored)
            yield self._finding(change, cause, found, token, reached)
            if restored is None or reached is None:
                return
            child, token = restored, reached
            char = common_chars(parent.text, child.text)
            if char >= self.history_end:
                return

    def _confirmed(
        self, causes: list[Cause], parent: Drawn, child: Drawn, change: Change
    ) -> tuple[Cause | None, Found, Drawn | None]:
        """The first cause that claims the change, with the child as it is without it.

        A cause is wrong whose restoring can be rendered and does not move the divergence; one that cannot be
        tried is believed if no other is confirmed.
        """
        untried: tuple[Cause, Found] | None = None
        for cause in causes:
            found = cause.find(change)
            if found is None:
                continue
            restored = self._restored(parent, child, change, found)
            if restored is None:
                untried = untried or (cause, found)
            elif common_chars(parent.text, restored.text) > change.after.char:
                return cause, found, restored
        if untried is not None:
            return *untried, None
        return None, UNCLAIMED, _joined(parent, child, change)

    def _restored(self, parent: Drawn, child: Drawn, change: Change, found: Found) -> Drawn | None:
        """The child with the parent's values back, or None where that cannot be rendered."""
        if not found.restore:
            return _joined(parent, child, change)
        try:
            return self.redraw(edited(child.body, found.restore))
        except LookupError:
            return None

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
        size = self.block_size
        place = change.after.place or change.before.place
        path = found.path or (place.path if place else "template")
        return Finding(
            cause=None if cause is None else cause.name,
            kind=found.kind,
            path=path,
            char=found.char if found.path else place.char if place else None,
            token=token,
            tokens=None if reached is None else max(0, reached - token),
            blocks=None if reached is None else max(0, full_blocks(reached, size) - full_blocks(token, size)),
            expected=found.expected,
            before=excerpt(change.before.text, change.before.char),
            after=excerpt(change.after.text, change.after.char),
            evidence=found.evidence,
            advice=found.advice,
        )


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


def _joined(parent: Drawn, child: Drawn, change: Change) -> Drawn | None:
    """The child with the parent's text up to the next field character that both have, from there its own."""
    char = change.after.char
    known = {(span.path, span.path_char): span for span in parent.spans if span.exact}
    for span in child.spans:
        if span.char_end <= char or not span.exact:
            continue
        there = _same_place(parent.spans, known, span, char)
        if there is not None:
            before, after = there
            text = parent.text[:before] + child.text[after:]
            return replace(child, text=text, spans=spans_of(text))
    return None


def _same_place(
    spans: Any, known: dict[tuple[str, int], Span], span: Span, char: int
) -> tuple[int, int] | None:
    """Where both texts hold the same character of the same field, at or behind `char`; parent's, child's."""
    other = known.get((span.path, span.path_char))
    if other is None:
        return None
    skipped = max(0, char - span.char_start, char - other.char_start)
    if skipped >= min(span.char_end - span.char_start, other.char_end - other.char_start):
        return None
    return other.char_start + skipped, span.char_start + skipped
