"""What was sampled for each choice: the ids on the wire, else the answer's text tokenized again.

A model may write a text in other tokens than the tokenizer would, so that a text is trusted only where the
number of its tokens is the one that the server counted. It knows no cache. The last sampled token is never
computed (vLLM 0.32 v1/core/sched/async_scheduler.py:75), so that its id is not needed: a stop token, which is
counted but not in the text, may stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from analyzer.core import UNKNOWN_ID, Answer, Generated, TokenIds

type EncodeTexts = Callable[[Sequence[str]], list[TokenIds]]
"""Token ids of each text by itself."""

type Written = Callable[[Answer], TokenIds | None]
"""The ids of a parsed answer as the chat template writes it, its stop token included; None: unknown."""

MOST_GENERATED = 1 << 20
"""Tokens that no model generates in one answer: a count beyond would fill the simulated cache."""

_LOST = "\ufffd"
"""What a server sends for bytes that make no character, such as the first half of one at the end."""

_RUN = re.compile(r"(.{1,24}?)\1{2,}", re.DOTALL)


def generated_by(
    answers: Sequence[Answer],
    counted: int | None,
    encode: EncodeTexts | None,
    *,
    limit: int | None = None,
    written: Written = lambda answer: None,
) -> tuple[Generated, ...]:
    """One for each answer; `counted` is the server's count over all of them, `encode` its tokenizer.

    `limit` is the number of tokens at which each was to be cut off.
    """
    counted = counted if counted is not None and counted < MOST_GENERATED else None
    limit = limit if limit is not None and limit < MOST_GENERATED else None
    found = [_from_wire(answer) or _from_text(answer, encode, written) for answer in answers]
    counts = _counts(found, counted, limit) or _counts(found, counted, None) or [None] * len(found)
    return tuple(
        item if item.source == "wire" else _settled(answer, item, count, encode)
        for answer, item, count in zip(answers, found, counts, strict=True)
    )


def _counts(found: Sequence[Generated], counted: int | None, limit: int | None) -> list[int | None] | None:
    """How many tokens each has, as far as that is certain; None where `limit` cannot have been it."""
    counts = [_own_count(item, limit) for item in found]
    if counted is None:
        return counts
    open_at = [at for at, count in enumerate(counts) if count is None]
    rest = counted - sum(count or 0 for count in counts)
    if rest < 0 or (rest and not open_at):
        return None
    if len(open_at) == 1:
        counts[open_at[0]] = rest
    elif sum(len(found[at].token_ids) for at in open_at) == rest:
        for at in open_at:
            counts[at] = len(found[at].token_ids)
    return counts


def _own_count(item: Generated, limit: int | None) -> int | None:
    if item.source == "wire":
        return len(item.token_ids)
    return limit if item.finish == "length" else None


def _from_wire(answer: Answer) -> Generated | None:
    if not answer.token_ids:
        return None
    return Generated(token_ids=answer.token_ids, source="wire", finish=answer.finish)


def _from_text(answer: Answer, encode: EncodeTexts | None, written: Written) -> Generated:
    """The likeliest ids, not yet held against any count."""
    if encode is None:
        return Generated(finish=answer.finish)
    if answer.reasoning or answer.tool_calls:
        ids = written(answer)
        return _retokenized(answer, () if ids is None else tuple(ids.tolist()))
    text = "".join(answer.pieces) + (answer.stop_string or "")
    return _retokenized(answer, () if _LOST in text else _ended(answer, encode([text])))


def _settled(answer: Answer, found: Generated, counted: int | None, encode: EncodeTexts | None) -> Generated:
    """Ids that the count of this one answer bears out; else as many unknown tokens as it has."""
    pieces = _pieces(answer, encode)
    by_pieces = _retokenized(answer, _ended(answer, pieces))
    if counted is not None:
        for candidate in (by_pieces, found):
            if candidate.source and len(candidate.token_ids) == counted:
                return candidate
        repeated = _repeated(answer, counted, encode) if len(found.token_ids) < counted else ()
        if len(repeated) == counted:
            return _retokenized(answer, repeated)
    # A stream sends each token as it comes, as far as it makes whole characters.
    known: list[int] = []
    for piece in pieces:
        if len(piece) != 1:
            break
        known += piece.tolist()
    tokens = counted if counted is not None else max(len(by_pieces.token_ids), len(found.token_ids))
    ids = (*known, *[UNKNOWN_ID] * (tokens - len(known)))[:tokens]
    return Generated(token_ids=ids, source="retokenized" if known else None, finish=answer.finish)


def _pieces(answer: Answer, encode: EncodeTexts | None) -> list[TokenIds]:
    """The pieces of a stream, each for itself, as a piece ends where a token ends; before the first
    that holds no text."""
    if encode is None or len(answer.pieces) < 2:
        return []
    if answer.reasoning or answer.tool_calls or answer.stop_string:
        return []
    lost = next((at for at, piece in enumerate(answer.pieces) if _LOST in piece), len(answer.pieces))
    return encode(answer.pieces[:lost])


def _repeated(answer: Answer, counted: int, encode: EncodeTexts | None) -> tuple[int, ...]:
    """The text of a model that says one token over and over, where the tokenizer would merge these."""
    text = "".join(answer.pieces)
    if encode is None or _LOST in text or answer.reasoning or answer.tool_calls or answer.stop_string:
        return ()
    times = counted - (answer.finish == "stop")
    unit = text[: len(text) // times] if times else ""
    if unit and unit * times == text and len(encode([unit])[0]) == 1:
        return _ended(answer, encode([unit]) * times)
    parts: list[TokenIds] = []
    at = 0
    for run in _RUN.finditer(text):
        (unit_ids,) = encode([run[1]])
        if len(unit_ids) == 1:
            parts += [*encode([text[at : run.start()]]), *[unit_ids] * (len(run[0]) // len(run[1]))]
            at = run.end()
    return _ended(answer, [*parts, *encode([text[at:]])])


def _ended(answer: Answer, parts: Sequence[TokenIds]) -> tuple[int, ...]:
    ids = tuple(number for part in parts for number in part.tolist())
    return (*ids, UNKNOWN_ID) if answer.finish == "stop" else ids


def _retokenized(answer: Answer, ids: tuple[int, ...]) -> Generated:
    return Generated(token_ids=ids, source="retokenized" if ids else None, finish=answer.finish)
