"""Text to token ids with a server's own tokenizer files.

Nothing is downloaded and no code from the folder is run. `fastokens` gives the same ids as `tokenizers`
at some twenty times the speed; where it cannot load a file, `tokenizers` does the work.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.core import TokenIds
from analyzer.prefix_encoding import PrefixEncoder, cut_tokens

_NO_NORMALIZER = re.compile(
    rb'"normalizer"\s*:\s*(?:null|\{\s*"type"\s*:\s*"Sequence"\s*,\s*"normalizers"\s*:\s*\[\s*\]\s*\})'
)
_FLAGS = ("lstrip", "rstrip", "single_word", "normalized")


class TokenizerError(Exception):
    """A tokenizer folder that cannot be used, and why."""


class Tokenizer:
    """One tokenizer folder: `tokenizer.json`, `tokenizer_config.json`, maybe `chat_template.jinja`."""

    def __init__(self, directory: Path) -> None:
        """Load the files of `directory`; raises TokenizerError naming the one that is missing or broken."""
        self.directory = directory
        self.config = _read_json(directory / "tokenizer_config.json", required=False)
        path = directory / "tokenizer.json"
        if not path.is_file():
            raise TokenizerError(f"{directory} holds no tokenizer.json; give the folder of the served model")
        loaded = _load(path)
        self.backend, self._encode = loaded.name, loaded.encode
        cuts = cut_tokens(loaded.added, normalizes=_normalizes(path))
        self._shared = PrefixEncoder(lambda texts: loaded.encode(texts, False), cuts)

    def encode(self, text: str, *, add_special_tokens: bool = False) -> TokenIds:
        """Token ids of `text`, shape (tokens,). Special tokens written in the text are recognised.

        What a text shares with the last ones is not tokenized again; the array must not be changed.
        """
        if add_special_tokens:
            return self._encode([text], True)[0]
        return self._shared.encode(text)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Backend:
    """A loaded tokenizer: `encode` gives each text's ids; `added` are its `added_tokens` entries."""

    name: str
    encode: Callable[[Sequence[str], bool], list[TokenIds]]
    added: Sequence[Mapping[str, Any]]


def _load(path: Path) -> _Backend:
    try:
        return _load_fast(path)
    except Exception:  # whatever it dislikes, the reference implementation decides
        pass
    from tokenizers import Tokenizer as Reference

    try:
        reference = Reference.from_file(str(path))
    except Exception as error:
        raise TokenizerError(f"{path} is not a tokenizer file: {error}") from error
    reference.no_truncation()
    reference.no_padding()

    def encode(texts: Sequence[str], special: bool) -> list[TokenIds]:
        encodings = reference.encode_batch_fast(list(texts), add_special_tokens=special)
        return [np.array(encoding.ids, dtype=np.int32) for encoding in encodings]

    added = [
        {"id": number, "content": token.content} | {flag: getattr(token, flag) for flag in _FLAGS}
        for number, token in reference.get_added_tokens_decoder().items()
    ]
    return _Backend(name="tokenizers", encode=encode, added=added)


def _load_fast(path: Path) -> _Backend:
    from fastokens import Tokenizer as Fast

    fast = Fast.from_file(str(path))
    # A file may carry the truncation of its training run; servers switch it off, and so do we.
    fast.no_truncation()
    fast.no_padding()

    def encode(texts: Sequence[str], special: bool) -> list[TokenIds]:
        ids, offsets = fast.encode_batch_flat(list(texts), add_special_tokens=special)
        flat = np.frombuffer(ids, dtype=np.uint32).view(np.int32)
        ends = np.frombuffer(offsets, dtype=np.uint64).tolist()
        return [flat[begin:end] for begin, end in pairwise(ends)]

    return _Backend(name="fastokens", encode=encode, added=fast.added_tokens())


def _normalizes(path: Path) -> bool:
    """Whether the file names a normalizer that does anything; read off its text, as parsing it takes long."""
    return _NO_NORMALIZER.search(path.read_bytes()) is None


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
