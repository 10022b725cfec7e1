"""A block moved from an earlier message to a later one, or was put in at a place that shifts every turn.

Reminders and pictures of the surroundings do so that are put into whatever message is the newest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from analyzer.body_paths import Edit
from analyzer.causes import Example, Found
from analyzer.causes._chats import assistant, chat, user
from analyzer.causes._wholes import is_tagged, messages_in
from analyzer.change import Change
from analyzer.gaps import Gap, exchanged, gap_of, given_back
from analyzer.pieces import Piece
from analyzer.text_changes import text_changes, trimmed

_LEAST_CHARS = 6
_VARIES = re.compile(r"[0-9]+|\s+")
_TAG = re.compile(r"\s*(<[A-Za-z][\w-]*)")
_MOVES = ("user", "system", "developer")


class HistoryMovingBlock:
    """A block moved from an earlier message to a later one"""

    name = "history.moving_block"
    rank = 245
    example = Example(
        before=chat(user("Do it.\n<note>build mode</note>")),
        after=chat(user("Do it."), assistant("Done."), user("Thanks.\n<note>build mode</note>")),
    )

    def find(self, change: Change) -> Found | None:
        """Text gone that stands in a later message, or a message put in before the last answer."""
        gap = gap_of(change)
        if gap is None:
            return None
        if gap.one is not None and gap.one[0].kind in ("text", "result"):
            return _within(change, gap, *gap.one)
        if (
            gap.gone
            and not gap.come
            and gap.resumes
            and _are_notes(gap.gone)
            and _stands_in(_text(gap.gone), gap.after[gap.end_after :])
        ):
            return _found(gap.gone[0].path, exchanged(change, gap))
        if _is_put_in(gap) or _is_tail_note(gap) or _kept_behind(gap):
            return _found(gap.come[0].path, exchanged(change, gap))
        return None


def _found(path: str, restore: tuple[Edit, ...]) -> Found:
    return Found(
        evidence=f"a block of text at {path} stands in another place than in the request before",
        advice=f"leave the block at {path} where it was first sent, and add a new one to the newest message",
        restore=restore,
    )


def _within(change: Change, gap: Gap, before: Piece, after: Piece) -> Found | None:
    removed = list(_only(before.text, after.text))
    if removed and all(_stands_in(text, gap.after[gap.end_after :]) for text in removed):
        return _found(after.path, (given_back(change, before, after),))
    added = list(_only(after.text, before.text))
    if added and all(_stands_in(text, gap.before[gap.end_before :]) for text in added):
        return _found(after.path, (given_back(change, before, after),))
    return None


def _only(text: str, other: str) -> Iterator[str]:
    """What stands in one text alone; nothing where the other has something in its place."""
    changes = [trimmed(text, other, change) for change in text_changes(text, other)]
    if any(other[change.after_start : change.after_end].strip() for change in changes):
        return
    for change in changes:
        if part := text[change.before_start : change.before_end].strip():
            yield part


def _stands_in(text: str, pieces: Sequence[Piece]) -> bool:
    """Whether one of the pieces holds the text, numbers aside, or a block that opens alike."""
    wanted = _VARIES.sub(" ", text).strip()
    first, _, rest = text.partition("\n")
    tag = _TAG.match(text)
    opening = tag[1] if tag else first if rest and len(first) >= _LEAST_CHARS else None
    return len(text) >= _LEAST_CHARS and any(
        wanted in _VARIES.sub(" ", piece.text) or (opening is not None and opening in piece.text)
        for piece in pieces
        if piece.kind in ("text", "result")
    )


def _text(pieces: Sequence[Piece]) -> str:
    return "\n".join(piece.text for piece in pieces if piece.kind == "text")


def _are_notes(pieces: Sequence[Piece]) -> bool:
    """Whether the pieces are texts and no model's."""
    return all(piece.role in _MOVES and piece.kind == "text" for piece in pieces)


def _is_put_in(gap: Gap) -> bool:
    """Whether messages that are no model's were put in: moved from behind, or before the last answer."""
    if gap.gone or not gap.resumes:
        return False
    if not _are_notes(gap.come):
        return False
    following = gap.before[gap.start_before :]
    answers = messages_in([piece for piece in following if piece.role == "assistant"])
    return answers == 1 or _stands_in(_text(gap.come), following)


def _is_tail_note(gap: Gap) -> bool:
    """Whether the parent's last message is a program's note that the child has at its own end again."""
    last = gap.before[gap.start_before :]
    if not gap.come or (gap.gone and gap.resumes) or messages_in(last) != 1:
        return False
    moved = _are_notes(last) and _stands_in(_text(last), gap.after[gap.start_after + 1 :])
    return moved and (last[0].role != "user" or is_tagged(last[0].text))


def _kept_behind(gap: Gap) -> bool:
    """Whether a text of the user's is kept behind what is newest: what came before it is what followed it.

    aider does so with the files of the chat, and with the model's promise to change no others.
    """
    if not gap.gone or not gap.come or not _are_notes((gap.gone[0], gap.come[0])):
        return False
    behind, ahead = gap.after[gap.start_after + 1 :], gap.before[gap.start_before + 1 :]
    return _stands_in(gap.gone[0].text, behind) and _stands_in(gap.come[0].text, ahead)


CAUSE = HistoryMovingBlock()
