"""The ids of earlier tool calls are new ones, and the template prints them.

Ids that are not printed may change as they like.
"""

from __future__ import annotations

from analyzer.body_paths import Edit, parse_path
from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, call, chat, result, user
from analyzer.causes._templates import PRINTS_IDS
from analyzer.change import Change, View
from analyzer.gaps import pieces_at
from analyzer.pieces import ID_KEYS

_LOOKED = (user("Read a.txt."), call('{"path": "a.txt"}', "call_7f"), result("x = 1", "call_7f"))
_ANEW = (user("Read a.txt."), call('{"path": "a.txt"}', "call_c4"), result("x = 1", "call_c4"))


class HistoryIdsReminted:
    """The ids of earlier tool calls are new ones, and the template prints them"""

    name = "history.ids_reminted"
    rank = 200
    example = Example(
        before=chat(*_LOOKED),
        after=chat(*_ANEW, assistant("x is 1."), NEXT),
        template=PRINTS_IDS,
    )

    def find(self, change: Change) -> Found | None:
        """Two ids at the divergence."""
        if change.in_generation_prompt or not _is_id(change.before) or not _is_id(change.after):
            return None
        restore = tuple(
            Edit(kind="set", path=other.id_path, value=one.id)
            for one, other in pieces_at(change)
            if one.id is not None and other.id_path is not None and one.id != other.id
        )
        path = change.after.path
        return Found(
            evidence=f"{path} is another id than before, as are {max(0, len(restore) - 1)} behind it",
            advice=f"keep {path} as the server gave it; where the template prints ids, a model also reads"
            " another form of them worse than its own",
            restore=restore,
        )


def _is_id(view: View) -> bool:
    steps = parse_path(view.path) if view.path else ()
    return len(steps) > 1 and steps[0] in ("messages", "input") and steps[-1] in ID_KEYS


CAUSE = HistoryIdsReminted()
