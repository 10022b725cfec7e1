"""The same text is a string in one body and a list of parts in the other, and the template tells them apart.

Where it does not, nothing is lost and nothing is said.
"""

from __future__ import annotations

from typing import Any

from analyzer.body_paths import parse_path, restored, value_at
from analyzer.causes import Example, Found
from analyzer.causes._bodies import shown_next
from analyzer.causes._templates import MARKS_PARTS
from analyzer.change import Change

_KEYS = ("content", "system", "output", "prompt")
_JOINS = ("", "\n", "\n\n")
_PARTS = [{"type": "text", "text": "List the files."}, {"type": "text", "text": " Be brief."}]


class TemplateContentShape:
    """The template prints a list of parts otherwise than the same text as a string"""

    name = "template.content_shape"
    rank = 62
    example = Example(
        before={"messages": [{"role": "user", "content": _PARTS}]},
        after={"messages": [{"role": "user", "content": "List the files. Be brief."}]},
        template=MARKS_PARTS,
    )

    def find(self, change: Change) -> Found | None:
        """A field at the divergence whose text is equal in both bodies and whose shape is not."""
        for path in _fields(change):
            values = value_at(change.before.body, path), value_at(change.after.body, path)
            if not _same_text(*map(_texts, values)):
                continue
            return Found(
                evidence=f"the same text is {_told(values[0])} in the parent and {_told(values[1])} here",
                advice=f"send {path} in one shape at every turn, or set the server's"
                " --chat-template-content-format",
                path=path,
                restore=(restored(path, change.before.body),),
            )
        return None


def _fields(change: Change) -> list[str]:
    """The content that each side shows at the divergence, or next behind it."""
    found = []
    for view in (change.before, change.after):
        span = shown_next(view)
        for path in (view.path, span.path if span else None):
            if path is not None and (field := _content(path)) is not None and field not in found:
                found.append(field)
    return found


def _content(path: str) -> str | None:
    """The innermost field of content that a path lies in."""
    steps = parse_path(path)
    ends = [at for at, step in enumerate(steps) if step in _KEYS]
    if not ends:
        return None
    kept = steps[: ends[-1] + 1]
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in kept).lstrip(".")


def _texts(value: Any) -> list[str] | None:
    """The texts of a content's parts; None where it holds anything else."""
    if isinstance(value, str):
        return [value]
    parts = value if isinstance(value, list) else [None]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return (
        [text for text in texts if isinstance(text, str)] if all(isinstance(t, str) for t in texts) else None
    )


def _same_text(one: list[str] | None, other: list[str] | None) -> bool:
    """Whether two lists of texts differ in how they are cut, and in nothing else."""
    if one is None or other is None or len(one) == len(other):
        return False
    return bool({join.join(one) for join in _JOINS} & {join.join(other) for join in _JOINS})


def _told(value: Any) -> str:
    return "a string" if isinstance(value, str) else f"a list of {len(value)}"


CAUSE = TemplateContentShape()
