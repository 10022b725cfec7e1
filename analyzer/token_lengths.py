"""How many bytes of text each token stands for, so that tokens can be told apart in a text by adding up.

Read off tokenizer.json: a byte-level vocabulary spells a byte as a character, others spell a space as U+2581
and a lone byte as <0xNN>. Who adds up must check the sum: a tokenizer that changes the text has another.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzer.core import TokenIds

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")

type Offsets = NDArray[np.int64]
"""Shape (tokens + 1,) or (characters + 1,): where each begins, in bytes of UTF-8, and where all end."""


class TokenLengths:
    """The lengths of one tokenizer's tokens."""

    def __init__(self, directory: Path) -> None:
        """Read a folder's tokenizer.json. Raises OSError or ValueError where there is none to read."""
        read = json.loads((directory / "tokenizer.json").read_bytes())
        added = {item["id"]: item["content"] for item in read.get("added_tokens") or ()}
        vocabulary = dict(_vocabulary(read["model"]["vocab"]))
        bytewise = '"ByteLevel"' in json.dumps([read.get("pre_tokenizer"), read.get("decoder")])
        self._bytes = np.zeros(max([*added, *vocabulary.values()], default=0) + 1, dtype=np.int64)
        for token, number in vocabulary.items():
            self._bytes[number] = len(token) if bytewise else _spelt_bytes(token)
        for number, content in added.items():
            self._bytes[number] = len(content.encode())

    def offsets(self, token_ids: TokenIds, text_bytes: int) -> Offsets | None:
        """Where each token begins in a text of so many bytes; None where the tokens do not add up to it."""
        if len(token_ids) and int(token_ids.max()) >= len(self._bytes):
            return None
        ends = np.concatenate([[0], np.cumsum(self._bytes[token_ids])])
        return ends if ends[-1] == text_bytes else None


def _vocabulary(vocab: Any) -> list[tuple[str, int]]:
    if isinstance(vocab, dict):
        return list(vocab.items())
    return [(token, at) for at, (token, _) in enumerate(vocab)]  # a Unigram model's list


def _spelt_bytes(token: str) -> int:
    return 1 if _BYTE.fullmatch(token) else len(token.replace("\u2581", " ").encode())


def char_offsets(text: str) -> Offsets:
    """Where each character begins. Raises UnicodeEncodeError for half a surrogate pair."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
    return np.concatenate([[0], np.cumsum(widths)])
