"""What token ids stand for, and where in a text they lie: for the few places that a person is shown.

It is the slow way (`tokenizers`, which keeps offsets); prompts are tokenized by `analyzer.tokens`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path


class TokenText:
    """Ids to text and back to characters, with one folder's `tokenizer.json`."""

    def __init__(self, directory: Path) -> None:
        from tokenizers import Tokenizer

        self._tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self._tokenizer.no_truncation()
        self._tokenizer.no_padding()

    def decode(self, ids: Sequence[int]) -> str:
        """The text of some ids, special tokens written out."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def char_of(self, text: str, token: int, *, add_special_tokens: bool) -> int | None:
        """The character of `text` at which its token begins; its length for the token after the last.

        None for a token that stands for none of the text, such as a BOS the tokenizer adds.
        """
        encoded = self._tokenizer.encode(str(text), add_special_tokens=add_special_tokens)
        if token >= len(encoded.ids):
            return len(text)
        start, end = encoded.offsets[token]
        return start if end > start else None


@lru_cache(maxsize=2)
def text_of(directory: Path) -> TokenText:
    """The one of a folder, loaded once."""
    return TokenText(directory)
