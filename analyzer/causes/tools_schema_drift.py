"""A tool of the same name is written otherwise: its schema's keys in another order, or another description.

Tools that moved, came or went are other causes'.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal

from analyzer.body_paths import Edit
from analyzer.causes import Example, Found
from analyzer.causes._heads import clocks, ids_made_anew, short
from analyzer.causes._tools import Lists, tool_lists
from analyzer.causes._toys import TOOLS, asked, toy
from analyzer.change import Change
from analyzer.text_changes import TextChange, text_changes, trimmed

type Drift = Literal["key_order", "nonce", "description", "schema"]

_ADVICE: Mapping[Drift, str] = {
    "key_order": "write the keys of {path} in one order, best sorted at every depth, whenever it is sent",
    "nonce": "take what changes from process to process (an id, a folder, a time) out of {path}",
    "description": "keep the text of {path} for the whole session",
    "schema": "keep the schema in {path} for the whole session",
}


class ToolsSchemaDrift:
    """A tool of the same name is written otherwise"""

    name = "tools.schema_drift"
    rank = 60
    example = Example(
        before=asked(TOOLS),
        after=asked([*TOOLS[:2], toy("shell", "Run a command in /tmp/nest.")]),
    )

    def find(self, change: Change) -> Found | None:
        """The same name at the divergence, and another text; all tools that drifted alike are one cause."""
        lists = tool_lists(change)
        if lists is None or not lists.same_tool:
            return None
        kind = _drift(lists, lists.at)
        if kind is None:
            return None
        alike = [at for at in range(lists.at, _shared(lists)) if _drift(lists, at) == kind]
        path = change.after.next_path or f"tools[{lists.at}]"
        return Found(
            evidence=f"the tool {lists.names_after[lists.at]} is written otherwise ({_told(lists, kind)})",
            advice=_ADVICE[kind].format(path=path if path.startswith("tools[") else f"tools[{lists.at}]"),
            kind=kind,
            restore=tuple(Edit(kind="set", path=f"tools[{at}]", value=lists.before[at]) for at in alike),
        )


def _shared(lists: Lists) -> int:
    """Up to where both lists name the same tools."""
    pairs = zip(lists.names_before, lists.names_after, strict=False)
    return next(
        (at for at, (one, other) in enumerate(pairs) if one != other),
        min(len(lists.before), len(lists.after)),
    )


def _drift(lists: Lists, at: int) -> Drift | None:
    before, after = lists.before[at], lists.after[at]
    if json.dumps(before) == json.dumps(after):
        return None
    if _canonical(before) == _canonical(after):
        return "key_order"
    changed = list(_leaves(before, after, ""))
    if not all(isinstance(one, str) and isinstance(other, str) for _, one, other in changed):
        return "schema"
    if all(_is_volatile(one, other) for _, one, other in changed):
        return "nonce"
    described = all(key == "description" for key, _, _ in changed)
    return "description" if described else "schema"


def _canonical(value: Any) -> str:
    return json.dumps(_sorted(value), sort_keys=True)


def _sorted(value: Any) -> Any:
    """The value with lists of plain words sorted: `required` and `enum` are sets."""
    if isinstance(value, Mapping):
        return {key: _sorted(item) for key, item in value.items()}
    if isinstance(value, list):
        items = [_sorted(item) for item in value]
        return sorted(items) if all(isinstance(item, str) for item in items) else items
    return value


def _leaves(before: Any, after: Any, key: str) -> Iterator[tuple[str, Any, Any]]:
    """The key and both values of each leaf that differs; what one side lacks is None there."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in before.keys() | after.keys():
            yield from _leaves(before.get(name), after.get(name), name)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for one, other in zip(before, after, strict=True):
            yield from _leaves(one, other, key)
    elif before != after:
        yield key, before, after


def _is_volatile(before: str, after: str) -> bool:
    changes = [trimmed(before, after, change) for change in text_changes(before, after)]
    return all(
        any(judge(before, after, change) for judge in (ids_made_anew, clocks))
        or (_in_path(before, change.before_start) and _in_path(after, change.after_start))
        for change in changes
    )


def _in_path(text: str, at: int) -> bool:
    start = max(text.rfind(space, 0, at) for space in (" ", "\n", "\t", '"', "`")) + 1
    word = text[start:].split()
    return bool(word) and ("/" in word[0] or "\\" in word[0]) and word[0].strip("/\\") != ""


def _told(lists: Lists, kind: Drift) -> str:
    before, after = lists.before[lists.at], lists.after[lists.at]
    if kind == "key_order":
        return "the same but for the order of keys"
    key, one, other = next(iter(_leaves(before, after, "")))
    return f"{key}: {_shown(one, other)}"


def _shown(one: Any, other: Any) -> str:
    if not isinstance(one, str) or not isinstance(other, str):
        return "came" if one is None else "went" if other is None else "another value"
    change: TextChange = trimmed(one, other, text_changes(one, other)[0])
    start = max(0, change.before_start - 12)
    return (
        f"{short(one[start : change.before_end + 12])} became {short(other[start : change.after_end + 12])}"
    )


CAUSE = ToolsSchemaDrift()
