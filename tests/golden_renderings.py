"""The golden renderings: what vLLM's `/render` answered for the corpus, one file for each set-up.

A file's first line says how it was made; each other line is a case. Ids are little-endian int32,
deflated, in base64, so that all files together stay small.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.core import TokenIds

FOLDER = Path(__file__).parent / "golden" / "renderings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Golden:
    """One case's answer; `prompts` are packed ids, empty where the server refused the body."""

    case: str
    digest: str
    status: int
    prompts: tuple[str, ...]

    def line(self) -> str:
        """The line of the file."""
        return json.dumps(asdict(self), separators=(",", ":"))


def path_of(setup: str) -> Path:
    """The golden file of a set-up."""
    return FOLDER / f"{setup}.jsonl"


def load(setup: str) -> tuple[dict[str, Any], list[Golden]]:
    """The head line and the cases of a set-up's file."""
    head, *lines = path_of(setup).read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    return json.loads(head), [Golden(**row | {"prompts": tuple(row["prompts"])}) for row in rows]


def pack(ids: Sequence[int]) -> str:
    """Ids as text."""
    return base64.b64encode(zlib.compress(np.array(ids, dtype="<i4").tobytes(), 9)).decode("ascii")


def unpack(text: str) -> TokenIds:
    """Ids from text, shape (tokens,)."""
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype="<i4").astype(np.int32)
