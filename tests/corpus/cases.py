"""Reads the corpus: request bodies as text files, so that the spelling of the JSON is part of a case.

    == CASE-ID [-> SET-UP ...]
    the body, verbatim, up to the next such line; a backslash at the end of a line continues it

A file's name is its endpoint. Whole-line joining is the only thing done to a body: `\\` + newline vanishes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tests.corpus.setups import ALSO, PLAIN

ENDPOINTS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
MARK = "== "


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One body, and the set-ups it is for."""

    name: str
    dialect: str
    setups: tuple[str, ...]
    body: bytes

    @property
    def path(self) -> str:
        """The endpoint it is sent to."""
        return ENDPOINTS[self.dialect]

    @property
    def digest(self) -> str:
        """Tells a golden that was frozen for other bytes."""
        return hashlib.sha256(self.body).hexdigest()[:12]


def cases() -> list[Case]:
    """All cases, in the files' order. Raises ValueError for two of one name."""
    found = [case for file in sorted(Path(__file__).parent.glob("*.txt")) for case in _read(file)]
    names = [case.name for case in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ValueError(f"cases of one name: {sorted(twice)}")
    return found


def _read(file: Path) -> list[Case]:
    dialect = file.stem.partition("-")[0]
    found = []
    for block in ("\n" + file.read_text(encoding="utf-8")).split("\n" + MARK)[1:]:
        head, _, body = block.partition("\n")
        name, _, setups = head.partition(" -> ")
        text = body.replace("\\\n", "").rstrip("\n")
        named = setups.split() or PLAIN
        found.append(
            Case(
                name=f"{dialect}/{name.strip()}",
                dialect=dialect,
                setups=tuple(dict.fromkeys((*named, *(ALSO[setup] for setup in named if setup in ALSO)))),
                body=text.encode("utf-8"),
            )
        )
    return found
