"""A setting of the request that the chat template prints was changed: effort, thinking, response format.

A setting that the template does not read, or reads only for what comes next, costs nothing and is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from analyzer.body_paths import restored, value_at
from analyzer.causes import Example, Found
from analyzer.causes._chats import NEXT, assistant, chat, user
from analyzer.change import Change
from analyzer.gaps import gap_of

_SETTINGS = (
    "chat_template_kwargs",
    "reasoning_effort",
    "reasoning",
    "thinking",
    "output_config",
    "response_format",
    "text",
    "documents",
    "chat_template",
)
_ASKED = (user("How many files?"), assistant("Two."))
_PRINTS_EFFORT = """\
<|system|>Reasoning: {{ effort or 'low' }}<|end|>
{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""


class ParamsTemplateKwargs:
    """A setting of the request that the chat template prints was changed"""

    name = "params.template_kwargs"
    rank = 290
    example = Example(
        before={**chat(*_ASKED), "chat_template_kwargs": {"effort": "low"}},
        after={**chat(*_ASKED, NEXT), "chat_template_kwargs": {"effort": "high"}},
        template=_PRINTS_EFFORT,
    )

    def find(self, change: Change) -> Found | None:
        """Settings that differ, where what was sent at the divergence does not."""
        if change.in_generation_prompt or gap_of(change) is not None or _sent_otherwise(change):
            return None
        changed = list(_changed(change))
        if not changed:
            return None
        before, after = change.before.body, change.after.body
        path = changed[0]
        return Found(
            evidence=f"the template prints {', '.join(changed)}, which changed",
            advice=f"keep {path} for the whole session, or change it only where a new one begins",
            path=path,
            restore=tuple(restored(key, before) for key in _SETTINGS if before.get(key) != after.get(key)),
        )


def _changed(change: Change) -> Iterator[str]:
    for key in _SETTINGS:
        before, after = change.before.body.get(key), change.after.body.get(key)
        if before == after:
            continue
        if isinstance(before, Mapping | None) and isinstance(after, Mapping | None):
            ours: Mapping[str, Any] = before or {}
            theirs: Mapping[str, Any] = after or {}
            yield from (
                f"{key}.{name}"
                for name in dict.fromkeys((*ours, *theirs))
                if ours.get(name) != theirs.get(name)
            )
        else:
            yield key


def _sent_otherwise(change: Change) -> bool:
    """Whether the field at the divergence holds another value than before, and is none of the settings."""
    path = change.after.path or change.before.path
    if path is None or path.startswith(_SETTINGS):
        return False
    if path.startswith("tools["):
        path = "tools"
    return bool(value_at(change.before.body, path) != value_at(change.after.body, path))


CAUSE = ParamsTemplateKwargs()
