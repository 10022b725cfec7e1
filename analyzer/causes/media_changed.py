"""An image, sound or file of an earlier message is another one: encoded anew, or scaled to another size.

Media that is gone is `history.media_evicted`'s.
"""

from __future__ import annotations

from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat
from analyzer.change import Change
from analyzer.gaps import aligned, gap_of, given_back
from analyzer.pieces import Piece

_TEXT = {"type": "text", "text": "What do you see?"}


def _image(data: str) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}


class MediaChanged:
    """An image or other media of an earlier message is another one"""

    name = "media.changed"
    rank = 230
    example = Example(
        before=chat({"role": "user", "content": [_image("iVBORw0KGgo="), _TEXT]}, assistant("A quay.")),
        after=chat({"role": "user", "content": [_image("iVBORw0KGgp="), _TEXT]}, assistant("A quay."), NEXT),
    )

    def find(self, change: Change) -> Found | None:
        """Other media in the same place."""
        gap = gap_of(change)
        if gap is None or gap.one is None or gap.one[1].kind != "media":
            return None
        path = gap.one[1].path
        return Found(
            evidence=f"{path} holds other media than before",
            advice=f"send {path} with the same bytes at every turn, not encoded or scaled anew",
            path=path if change.in_template else None,
            restore=tuple(
                given_back(change, one, other) for one, other in aligned(gap) if _is_other(one, other)
            ),
        )


def _is_other(one: Piece, other: Piece) -> bool:
    return one.kind == "media" and one.text != other.text


CAUSE = MediaChanged()
