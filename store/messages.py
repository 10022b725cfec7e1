"""What the program says on stderr, without credentials: an error may quote a URL, an option or a body.

It keeps nothing, so its placeholders have no numbers. Other programs' output never passes here.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any, TextIO


def without_secrets(text: str) -> str:
    """Return a message with each credential replaced by `<secret:KIND>`."""
    from store.redact import find_in_message  # brings detect-secrets along, which takes its time to load

    parts: list[str] = []
    last = 0
    for start, end, kind in find_in_message(text):
        if start >= last:
            parts += (text[last:start], f"<secret:{kind}>")
        last = max(last, end)
    return "".join((*parts, text[last:]))


class _CleanStream:
    """A text stream that redacts what is written to it; in all else the stream below."""

    def __init__(self, below: TextIO) -> None:
        self._below = below

    def write(self, text: str) -> int:
        """Write the text without its credentials."""
        self._below.write(without_secrets(text) if text.strip() else text)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        """Write lines without their credentials."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":  # the way around `write`
            raise AttributeError(name)
        return getattr(self._below, name)


@contextlib.contextmanager
def stderr_redacted() -> Iterator[None]:
    """Redact all that this process writes to `sys.stderr`, tracebacks among it."""
    before = sys.stderr
    sys.stderr = _CleanStream(before)
    try:
        yield
    finally:
        sys.stderr = before
