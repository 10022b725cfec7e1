"""Captures made otherwise: one file format a file, its IMPORT is found by the registry.

A format gives what crossed the wire as its file tells it; what is recorded of that, and how, is for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from store.records import RequestSeen, ResponseSeen

FACT_PATH = "import"
"""Where a capture keeps how it was imported, beside what servers say of themselves."""

UNTIMED = 0
"""The `started_at_ns` of a request of which the file does not say when it began."""

type Found = tuple[RequestSeen, ResponseSeen | None] | str
"""An exchange, None for an answer of which the file says nothing; or why there is none to be read."""

type Read = Iterator[tuple[str, Found]]
"""Everything in a file in its order, each with its place there, such as `line 7`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A file to be read; `dialect_path` is the endpoint of bodies that do not say theirs.

    `read_flows` reads mitmproxy's flow files, which only the proxy's room can.
    """

    path: Path
    dialect_path: str | None
    read_flows: Callable[[Path], Read]


class ImportForm(Protocol):
    """One file format. `read` raises ValueError where the file is none of it."""

    name: str

    def read(self, source: Source) -> Read:
        """What is in the file; a part that cannot be read is a reason in its place."""
