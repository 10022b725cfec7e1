"""From a prompt's text or ids to the ids the model gets: special tokens and truncation.

The rules are vLLM 0.32's (renderers/params.py). Where the model's own length is not known, a truncation
to it is left out: it matters only for prompts that are too long.
"""

from __future__ import annotations

import numpy as np

from analyzer.core import Conversation, TokenIds, Truncation
from analyzer.tokens import Tokenizer


def encoded(
    tokenizer: Tokenizer, text: str, conversation: Conversation, *, max_model_len: int | None = None
) -> TokenIds:
    """The ids of a rendered text, shape (tokens,)."""
    special = conversation.add_special_tokens
    ids = tokenizer.encode(text, add_special_tokens=special)
    truncation = conversation.truncation
    limit = _limit(truncation, max_model_len)
    if limit is None or limit >= len(ids) or truncation is None:
        return ids
    if truncation.side is not None or not special:
        return truncated(ids, truncation, max_model_len=max_model_len)
    # Without a side the tokenizer itself truncates: what it adds is kept (params.py:318-350).
    bare = tokenizer.encode(text)
    head = next(at for at in range(len(ids)) if np.array_equal(ids[at : at + len(bare)], bare))
    kept = limit - (len(ids) - len(bare))
    if kept < 0:
        raise ValueError("the prompt is cut to less than the special tokens around it")
    middle = bare[len(bare) - kept :]
    return np.concatenate((ids[:head], middle, ids[head + len(bare) :]))


def truncated(ids: TokenIds, truncation: Truncation | None, *, max_model_len: int | None = None) -> TokenIds:
    """Ids cut to a truncation's length, on the left where it names no side (params.py:481-520)."""
    limit = _limit(truncation, max_model_len)
    if limit is None or limit >= len(ids) or truncation is None:
        return ids
    return ids[:limit] if truncation.side == "right" else ids[len(ids) - limit :]


def _limit(truncation: Truncation | None, max_model_len: int | None) -> int | None:
    if truncation is None or truncation.tokens >= 0:
        return None if truncation is None else truncation.tokens
    return None if max_model_len is None else max_model_len - truncation.reserves_output
