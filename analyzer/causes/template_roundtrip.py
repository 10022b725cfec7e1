"""What was generated is not what the template makes of it, though the client sent it back whole.

Only the generated part is lost. It is known where the server told the ids that it sampled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from analyzer.causes import Example, Found
from analyzer.causes._bodies import new_items, role
from analyzer.causes._templates import PLAIN
from analyzer.change import Change

_KEYS = (
    "content",
    "text",
    "reasoning",
    "reasoning_content",
    "thinking",
    "name",
    "arguments",
    "input",
    "output",
)
_MARKUP = re.compile(r"<[^<>]*(?:>|$)|\[/?[A-Z_]+\]")
_WORD = re.compile(r"\w+")
_OF_CALLS = frozenset(("name", "arguments", "parameters", "function", "functions", "type", "id"))
_FIRST = {"role": "user", "content": "List the files."}


class TemplateRoundtrip:
    """The template prints an answer otherwise than the model wrote it"""

    name = "template.roundtrip"
    rank = 15
    example = Example(
        before={"messages": [_FIRST]},
        after={"messages": [_FIRST, {"role": "assistant", "content": "There are two files."}]},
        template=PLAIN,
        answer="\nThere are two files.<|end|>",
    )

    def find(self, change: Change) -> Found | None:
        """A difference within the parent's answer, all of whose words are in the child's message."""
        before = change.before
        if change.answer is None or before.char < change.answer:
            return None
        said = list(takewhile(lambda item: role(item) == "assistant", new_items(change)))
        if not said or not _unchanged(before.text[change.answer :], said):
            return None
        again = before.char >= len(before.text)
        return Found(
            evidence="the answer reads the same and is other tokens than were sampled"
            if again
            else "the answer was sent back whole, and the template prints it otherwise than it was written",
            advice="only what was generated is computed again: expected, unless the template's separators can"
            " be made those of the model",
            kind="tokens" if again else None,
            expected=True,
        )


def _unchanged(answer: str, said: list[Any]) -> bool:
    """Whether a message holds the whole of an answer: nothing but markup is left of either."""
    rest = answer
    for text in sorted(_texts(said), key=len, reverse=True):
        spelt = next((each for each in _spellings(text) if each in rest), None)
        if spelt is None:
            return False
        rest = rest.replace(spelt, " ", 1)
    return all(word in _OF_CALLS for word in _WORD.findall(_MARKUP.sub(" ", rest)))


def _texts(value: Any, key: str = "") -> Iterator[str]:
    """What a message says: its texts, and names and values of its calls."""
    if isinstance(value, list):
        for item in value:
            yield from _texts(item, key)
    elif isinstance(value, dict):
        for name, item in value.items():
            if name in _KEYS or isinstance(item, dict | list):
                yield from _texts(item, name)
    elif key == "arguments" and isinstance(value, str):
        yield from _values(_parsed(value))
    elif isinstance(value, str) and value.strip():
        yield value.strip()


def _values(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _values(item)
    elif isinstance(value, list):
        for item in value:
            yield from _values(item)
    elif value != "":
        yield value if isinstance(value, str) else json.dumps(value)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _spellings(text: str) -> tuple[str, ...]:
    return text, json.dumps(text, ensure_ascii=False)[1:-1], json.dumps(text)[1:-1]


CAUSE = TemplateRoundtrip()
