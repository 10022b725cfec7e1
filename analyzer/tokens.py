"""Text to token ids with a server's own tokenizer files.

Nothing is downloaded and no code from the folder is run. `fastokens` gives the same ids as `tokenizers`
at some twenty times the speed; where it cannot load a file, `tokenizers` does the work.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.core import TokenIds


class TokenizerError(Exception):
    """A tokenizer folder that cannot be used, and why."""


class Tokenizer:
    """One tokenizer folder: `tokenizer.json`, `tokenizer_config.json`, maybe `chat_template.jinja`."""

    def __init__(self, directory: Path) -> None:
        """Load the files of `directory`; raises TokenizerError naming the one that is missing or broken."""
        self.directory = directory
        self.config = _read_json(directory / "tokenizer_config.json", required=False)
        self.model_config = _read_json(directory / "config.json", required=False)
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise TokenizerError(f"{directory} holds no tokenizer.json; give the folder of the served model")
        self.backend, self._encode = _load(path)

    def encode(self, text: str, *, add_special_tokens: bool = False) -> TokenIds:
        """Token ids of `text`, shape (tokens,). Special tokens written in the text are recognised."""
        return self._encode(text, add_special_tokens)

    @cached_property
    def chat_templates(self) -> dict[str, str]:
        """Chat templates by name; the only one of most models is called `default`."""
        file = self.directory / "chat_template.jinja"
        if file.is_file():
            return {"default": file.read_text(encoding="utf-8")}
        given = self.config.get("chat_template")
        if isinstance(given, list):
            return {item["name"]: item["template"] for item in given}
        return {"default": given} if isinstance(given, str) else {}

    @cached_property
    def special_tokens(self) -> dict[str, str]:
        """The named special tokens (`bos_token`, ...) that a template may print."""
        found = {}
        for name, value in self.config.items():
            content = value.get("content") if isinstance(value, dict) else value
            if name.endswith("_token") and isinstance(content, str):
                found[name] = content
        return found


def _load(path: Path) -> tuple[str, Callable[[str, bool], TokenIds]]:
    try:
        return "fastokens", _load_fast(path)
    except Exception:  # whatever it dislikes, the reference implementation decides
        pass
    from tokenizers import Tokenizer as Reference

    try:
        reference = Reference.from_file(str(path))
    except Exception as error:
        raise TokenizerError(f"{path} is not a tokenizer file: {error}") from error
    reference.no_truncation()
    reference.no_padding()

    def encode(text: str, special: bool) -> TokenIds:
        return np.array(reference.encode(text, add_special_tokens=special).ids, dtype=np.int32)

    return "tokenizers", encode


def _load_fast(path: Path) -> Callable[[str, bool], TokenIds]:
    from fastokens import Tokenizer as Fast

    fast = Fast.from_file(str(path))
    # A file may carry the truncation of its training run; servers switch it off, and so do we.
    fast.no_truncation()
    fast.no_padding()

    def encode(text: str, special: bool) -> TokenIds:
        ids, _ = fast.encode_batch_flat([text], add_special_tokens=special)
        return np.frombuffer(ids, dtype=np.uint32).astype(np.int32)

    return encode


def _read_json(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file() and not required:
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TokenizerError(f"{path} cannot be read: {error}") from error
    if not isinstance(value, dict):
        raise TokenizerError(f"{path} does not hold a JSON object")
    return value
