"""Writes a file whole or not at all: whoever looks at its name finds the old text or the new one.

What is written is the caller's business.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_MODE = 0o666
"""Of a new file; the user's umask takes from it, as from any other."""


def write_whole(path: Path, text: str) -> None:
    """Write a text as UTF-8, beside its place first; what is no file (a pipe, a terminal) is written at once.

    A file that is replaced keeps its mode, and a link goes on pointing where it did. Raises OSError.
    """
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
        return
    place = Path(os.path.realpath(path))
    beside = place.with_name(f".{place.name[:200]}.{secrets.token_hex(4)}")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except OSError as error:  # told of the name that was given
        raise OSError(error.errno, error.strerror, str(path)) from error
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o7777)
        beside.replace(place)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
