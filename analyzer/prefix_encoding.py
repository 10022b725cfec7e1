"""Tokenizes a text by what it shares with earlier ones: the ids are those of tokenizing all of it.

A tokenizer first cuts a text at its added tokens; normalizer, pre-tokenizer and model then see one piece
at a time (tokenizers 0.23 `AddedVocabulary::extract_and_normalize`, `TokenizerImpl::do_tokenize`). So a
text can be tokenized in parts that begin with an added token, where nothing reaches over that cut:
`cut_tokens` says for which tokens this holds.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from analyzer.compare import common_chars
from analyzer.core import TokenIds

type EncodeParts = Callable[[Sequence[str]], list[TokenIds]]
"""Token ids of each text for itself, without the special tokens that a tokenizer puts around one."""

_KEPT_TEXTS = 16
_KEPT_CHARS = 32 << 20
_GLANCE = 64
_NOTHING = np.empty(0, dtype=np.int32)


def cut_tokens(added: Iterable[Mapping[str, Any]], *, normalizes: bool) -> dict[int, str]:
    """The added tokens, id to text, at whose every occurrence a text may be cut; often none.

    `added` are entries of `added_tokens` in `tokenizer.json`; `normalizes` says whether it has a normalizer.
    A token that takes in the blanks around it, or wants to stand alone, looks beyond a cut: with one of
    these there is none. Of the others, a token is a cut where its text in the raw text is always matched:

    - No other token begins before it and reaches into it, or goes on from it, as the longest of those that
      begin first is matched: its first character stands at the head of others only.
    - Where its `normalized` is set it is looked for after the others, in normalized text: nothing may
      change the text, and no token that comes first may begin in it.
    """
    tokens = [token for token in added if token["content"]]
    if any(token[flag] for token in tokens for flag in ("lstrip", "rstrip", "single_word")):
        return {}
    contents = sorted(token["content"] for token in tokens)
    inner = {char for content in contents for char in content[1:]}
    continued = {content for content, after in pairwise(contents) if after.startswith(content)}
    first: dict[str, list[str]] = {}
    for token in tokens:
        if not token["normalized"]:
            first.setdefault(token["content"][0], []).append(token["content"])
    return {
        token["id"]: token["content"]
        for token in tokens
        if token["content"][0] not in inner
        and token["content"] not in continued
        and not (token["normalized"] and (normalizes or _begins_in(token["content"], first)))
    }


def _begins_in(content: str, others: Mapping[str, Sequence[str]]) -> bool:
    """Whether a match of one of the others, given by their first characters, may begin inside `content`."""
    for at, char in enumerate(content):
        tail = content[at:]
        if any(tail.startswith(other) or other.startswith(tail) for other in others.get(char, ())):
            return True
    return False


class _Growing:
    """An array that grows at its end, so that the ids of texts that go on from each other exist once."""

    __slots__ = ("_count", "_room")

    def __init__(self, ids: TokenIds) -> None:
        self._room, self._count = ids, len(ids)

    def after(self, shared: int, ids: TokenIds) -> tuple[_Growing, TokenIds]:
        """Its first `shared` ids with `ids` behind them: a view, of a new array where others stand there."""
        known = self._room[shared : self._count]
        same = min(len(known), len(ids))
        if not np.array_equal(known[:same], ids[:same]):
            return _Growing(np.concatenate((self._room[:shared], ids))).after(shared, ids)
        count = shared + len(ids)
        if count > len(self._room):
            grown = np.empty(2 * count, dtype=np.int32)
            grown[: self._count] = self._room[: self._count]
            self._room = grown  # the views of the old one keep it
        if count > self._count:
            self._room[self._count : count] = ids[same:]
            self._count = count
        view = self._room[:count]
        view.flags.writeable = False
        return self, view


@dataclass(frozen=True, slots=True)
class _Encoded:
    """A text with its ids and its cuts, in ascending order: [character, end of the cut token, token]."""

    text: str
    ids: _Growing
    cuts: list[tuple[int, int, int]]


class PrefixEncoder:
    """Keeps the last texts (16, of 32 M characters in all), and tokenizes what a new one does not share."""

    def __init__(self, encode_parts: EncodeParts, cut_tokens: Mapping[int, str]) -> None:
        self._encode_parts = encode_parts
        self._cut_tokens = cut_tokens
        # By id; the last entry is for all ids beyond.
        self._is_cut = np.zeros(max(cut_tokens, default=0) + 2, dtype=np.bool_)
        self._is_cut[list(cut_tokens)] = True
        # Only tokens that have been seen are looked for: there may be a thousand.
        self._seen: set[int] = set()
        self._pattern: re.Pattern[str] | None = None
        self._kept: deque[_Encoded] = deque()
        self._kept_chars = 0

    def encode(self, text: str) -> TokenIds:
        """Token ids of `text`, shape (tokens,)."""
        if not self._cut_tokens:
            return self._encode_parts([text])[0]
        before, cuts, (start, _, count) = self._shared(text)
        bounds = self._bounds(text, start)
        parts = self._encode_parts([text[begin:stop] for (begin, _), (stop, _) in pairwise(bounds)])
        tail = np.concatenate(parts)
        growing, ids = before.after(count, tail)
        for (begin, end), part in zip(bounds, parts, strict=False):
            if end > begin:
                cuts.append((begin, end, count))
            count += len(part)
        self._keep(_Encoded(text, growing, cuts))
        self._learn(tail)
        return ids

    def _shared(self, text: str) -> tuple[_Growing, list[tuple[int, int, int]], tuple[int, int, int]]:
        """The ids to go on from, the cuts before the last that is shared with a kept text, and that one."""
        best, common = None, 0
        for kept in self._kept:
            # Most cannot share more than the newest: a glance behind what it shares says so.
            if kept.text[common : common + _GLANCE] == text[common : common + _GLANCE]:
                found = common_chars(kept.text, text)
                best, common = max((best, common), (kept, found), key=lambda pair: pair[1])
        shared = 0 if best is None else bisect_right(best.cuts, common, key=itemgetter(1))
        if best is None or not shared:
            return _Growing(_NOTHING), [], (0, 0, 0)
        return best.ids, best.cuts[: shared - 1], best.cuts[shared - 1]

    def _bounds(self, text: str, start: int) -> list[tuple[int, int]]:
        """Where the parts of `text` from `start` on begin, each with its cut token's end; then the end.

        A part that begins without a cut token has its own beginning for it.
        """
        found = [] if self._pattern is None else [m.span() for m in self._pattern.finditer(text, start)]
        head = [] if found and found[0][0] == start else [(start, start)]
        return [*head, *found, (len(text), len(text))]

    def _keep(self, encoded: _Encoded) -> None:
        self._kept.appendleft(encoded)
        self._kept_chars += len(encoded.text)
        while len(self._kept) > _KEPT_TEXTS or (self._kept_chars > _KEPT_CHARS and len(self._kept) > 1):
            self._kept_chars -= len(self._kept.pop().text)

    def _learn(self, ids: TokenIds) -> None:
        """Look for the cut tokens among these ids too, from now on."""
        new = set(ids[self._is_cut.take(ids, mode="clip")].tolist()) - self._seen
        if new:
            self._seen |= new
            self._pattern = re.compile("|".join(re.escape(self._cut_tokens[each]) for each in self._seen))
