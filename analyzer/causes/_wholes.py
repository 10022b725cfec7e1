"""For causes in which whole messages came or went: what a message says, and how many there are.

It reads gaps; what a gap means is each cause's own to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from analyzer.gaps import Gap
from analyzer.pieces import Piece

_SUMMARY = re.compile(
    r"summar|compact|recap|condens|abridged|continued from"
    r"|(?:previous|earlier|prior|preceding) (?:conversation|messages|context|session|turns|discussion)"
    r"|(?:conversation|history|session|discussion|progress|work) so far"
    r"|handoff|hand-off|key (?:facts|points|decisions)|what (?:was|has been) done",
    re.IGNORECASE,
)
_OMITTED = re.compile(
    r"omitted|truncated|left out|removed|dropped|trimmed|cut off|no longer shown", re.IGNORECASE
)
_TAGGED = re.compile(r"\s*(?:<[\w-]+[^>]*>|\[[^\]]+\]|#+ |\*\*)")
_SYSTEM = ("system", "developer", "prompt")
LONG = 240
"""A message of fewer characters is no summary unless it says that it is one."""


def is_summary(text: str) -> bool:
    """Whether a text says of itself that it stands for a history."""
    return not is_note(text) and bool(_SUMMARY.search(text[:600]) or _SUMMARY.search(text[-200:]))


def is_note(text: str) -> bool:
    """Whether a text is a short one that stands for what was left out, and tells nothing of it."""
    return len(text) < LONG and (bool(_OMITTED.search(text)) or not _SUMMARY.search(text))


def is_tagged(text: str) -> bool:
    """Whether a text is a block that a program writes: in a tag, brackets or under a heading."""
    return bool(_TAGGED.match(text))


def spoken(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces that are not the system's leading ones."""
    first = next((at for at, piece in enumerate(pieces) if piece.role not in _SYSTEM), len(pieces))
    return list(pieces[first:])


def messages_in(pieces: Sequence[Piece]) -> int:
    """Of how many messages or items the pieces are parts."""
    return len({piece.item for piece in pieces if piece.item is not None})


def kept_share(gap: Gap) -> float:
    """Which share of the parent's conversation, without its leading system text, the child still has."""
    ours = spoken(gap.before)
    theirs = {piece.essence for piece in gap.after}
    return sum(piece.essence in theirs for piece in ours) / len(ours) if ours else 1.0


def at_front(gap: Gap) -> bool:
    """Whether what is gone stood at the conversation's front: at most one message of a user is before it."""
    kept = spoken(gap.before[: gap.start_before])
    return not kept or (messages_in(kept) == 1 and kept[0].role == "user" and messages_in(gap.gone) > 1)
