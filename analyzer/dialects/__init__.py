"""The request bodies this program reads, one file each; a file's DIALECT is found by the registry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from analyzer.core import Conversation


class Dialect(Protocol):
    """One endpoint's request body.

    `path` is the endpoint. `conversations` normalises a parsed body as the server does before it
    renders, one conversation a prompt, and raises ValueError saying what in the body is not understood.
    """

    name: str
    path: str

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """The prompts of a body, in the server's order."""
