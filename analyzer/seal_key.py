"""The key of a sealed capture's fingerprints: made anew, or kept in a file of the user's.

It never enters a capture: without it nobody can try words on what was sealed.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from analyzer.structure import KEY_BYTES

_MODE = 0o600


def seal_key(file: Path | None) -> bytes:
    """A new key; with `file`, the one in there, or a new one that is put there (mode 0600).

    Raises OSError where the file cannot be used, or is none of a key.
    """
    if file is None:
        return secrets.token_bytes(KEY_BYTES)
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except FileExistsError:
        return _read(file)
    key = secrets.token_bytes(KEY_BYTES)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(key.hex() + "\n")
    return key


def _read(file: Path) -> bytes:
    text = file.read_text(encoding="ascii", errors="replace").strip()
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        wanted = f"{2 * KEY_BYTES} hexadecimal digits"
        raise OSError(f"{file} holds no key of {wanted}; give a file that is not there yet")
    return key
