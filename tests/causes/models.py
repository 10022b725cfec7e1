"""Tokenizers and templates of real models for tests of causes; a test whose model is missing is skipped."""

from __future__ import annotations

from functools import cache

import pytest

from analyzer.tokens import Tokenizer
from tests.tokenizers import folder_of, reason_missing


def tokenizer_of(model: str) -> tuple[Tokenizer, str | None]:
    """A model's tokenizer and chat template; None for one that has its encoder in Python."""
    if (reason := reason_missing(model)) is not None:
        pytest.skip(reason)
    tokenizer = _loaded(model)
    return tokenizer, tokenizer.chat_templates.get("default")


@cache
def _loaded(model: str) -> Tokenizer:
    return Tokenizer(folder_of(model))
