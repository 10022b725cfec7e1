"""The vocabulary file that `openai-harmony` would fetch, written from the model's own tokenizer.json.

Nothing is downloaded: gpt-oss's vocabulary is o200k_base's, so its tokenizer.json holds all there is.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
from pathlib import Path

FILE = "o200k_base.tiktoken"


def vocabulary_folder(tokenizer_json: Path) -> Path:
    """The folder that holds the file, written there unless it is. Raises OSError, ValueError or KeyError.

    It lies in the user's cache folder; the library checks the file's hash when it loads it.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "prompt-locality"
    if not (folder / FILE).is_file():
        vocabulary = json.loads(tokenizer_json.read_text(encoding="utf-8"))["model"]["vocab"]
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / FILE, _tiktoken_lines(vocabulary))
    return folder


def _write(path: Path, data: bytes) -> None:
    """At once, so that a reader beside us never sees half of it."""
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(data)
    Path(file.name).replace(path)


def _tiktoken_lines(vocabulary: dict[str, int]) -> bytes:
    """`<base64 of the token's bytes> <id>` a line, in order of ids."""
    byte_of = _bytes_by_character()
    rows = sorted(vocabulary.items(), key=lambda item: item[1])
    return b"".join(base64.b64encode(bytes(byte_of[c] for c in text)) + b" %d\n" % at for text, at in rows)


def _bytes_by_character() -> dict[str, int]:
    """GPT-2's byte-level alphabet: printable bytes stand for themselves, others count from 256 on."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + at): byte for at, byte in enumerate(others)}
