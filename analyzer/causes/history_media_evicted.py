"""An image, sound or file is gone from an earlier message: everything behind it is computed anew.

One that was replaced by another is `media.changed`'s.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat
from analyzer.change import Change
from analyzer.gaps import exchanged, gap_of

_TEXT = {"type": "text", "text": "What do you see?"}
_IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


class HistoryMediaEvicted:
    """An image or other media is gone from an earlier message"""

    name = "history.media_evicted"
    rank = 220
    example = Example(
        before=chat({"role": "user", "content": [_IMAGE, _TEXT]}, assistant("A quay.")),
        after=chat({"role": "user", "content": [_TEXT]}, assistant("A quay."), NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Media at the divergence that the child's body lacks, or has a text for."""
        gap = gap_of(change)
        if gap is None or not gap.resumes or not gap.gone or gap.gone[0].kind != "media":
            return None
        if any(piece.kind == "media" for piece in gap.come):
            return None
        path = gap.gone[0].path
        return Found(
            evidence=f"{path} was sent before and is not any more",
            advice=f"leave {path} in its place; drop media only when the history is compacted anyway",
            path=path if change.in_template else None,
            restore=exchanged(change, gap),
        )


CAUSE = HistoryMediaEvicted()
