"""What others replay: a capture as a trace of numbers, one format a file; the registry finds its EXPORT.

A format gets token ids and gives block numbers: it sees no text of a prompt, and shows no name that a client
chose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from analyzer.core import Finish, TokenIds
from analyzer.report import Turn

type Key = tuple[int, int]
"""Exchange id and prompt index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One prompt of a capture, as formats may see it.

    `turn` is its row of the report. `token_ids` is None where it was not rendered; ids are to be compared
    with each other only, since those of a sealed capture stand for tokens without being theirs. Prompts of
    different `namespace` share no block. `parent` is the prompt that this one is compared with. `model` is
    the server's own name of its model, else a placeholder. `output_tokens` are those of its one answer,
    None where nobody counted them; `output_retokenized` says that only the tokenizer did. `media` says that
    it holds images or sounds, whose blocks differ where the tokens do not. `session` and `parent_session`
    tell sessions apart, and are no names to be shown.
    """

    turn: Turn
    key: Key
    parent: Key | None
    token_ids: TokenIds | None
    namespace: tuple[str | None, str | None]
    model: str | None
    streams: bool
    media: bool
    output_tokens: int | None
    output_retokenized: bool
    finish: Finish | None
    session: str | None = None
    parent_session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """All prompts of a capture in the order of their start; `engine` names the kind of server it was."""

    rows: tuple[Row, ...]
    engine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A trace in one format.

    `parts` are its lines or whole documents, without a line end; where `part_names` is given, each is a file
    of its own for the format's readers. `rows` counts the prompts in it; `notes` say what is not in it, and
    what was concluded.
    """

    parts: tuple[str, ...]
    rows: int
    notes: tuple[str, ...] = ()
    part_names: tuple[str, ...] | None = None


class ExportForm(Protocol):
    """One format. `export` gives the whole trace; nothing is written here."""

    name: str

    def export(self, trace: Trace) -> Exported:
        """The trace in this format."""
