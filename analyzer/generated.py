"""What was sampled for each choice: the ids on the wire, else the answer's text tokenized again.

A model may write a text in other tokens than the tokenizer would, so that a text is trusted only where the
number of its tokens is the one that the server counted. It knows no cache. The last sampled token is never
computed (vLLM 0.32 v1/core/sched/async_scheduler.py:75), so that its id is not needed: a stop token, which is
counted but not in the text, may stay unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from analyzer.core import UNKNOWN_ID, Answer, Generated, TokenIds

type EncodeTexts = Callable[[Sequence[str]], list[TokenIds]]
"""Token ids of each text by itself."""

type Written = Callable[[Answer], Sequence[TokenIds]]
"""The ids of a parsed answer in the ways in which the chat template writes it, stop token included."""

MOST_GENERATED = 1 << 20
"""Tokens that no model generates in one answer: a count beyond would fill the simulated cache."""

_LOST = "\ufffd"
"""What a server sends for bytes that make no character, such as the first half of one at the end."""

_NOTHING = np.empty(0, dtype=np.int32)
_RUN = re.compile(r"(.{1,24}?)\1{2,}", re.DOTALL)


def generated_by(
    answers: Sequence[Answer],
    counted: int | None,
    encode: EncodeTexts | None,
    *,
    limit: int | None = None,
    written: Written = lambda answer: (),
) -> tuple[Generated, ...]:
    """One for each answer; `counted` is the server's count over all of them, `encode` its tokenizer.

    `limit` is the number of tokens at which each was to be cut off.
    """
    counted = counted if counted is not None and counted < MOST_GENERATED else None
    limit = limit if limit is not None and limit < MOST_GENERATED else None
    likely = [_likely(answer, encode, written) for answer in answers]
    lengths = [len(ways[0]) if ways else 0 for ways in likely]
    counts = (
        _counts(answers, lengths, counted, limit)
        or _counts(answers, lengths, counted, None)
        or [None] * len(answers)
    )
    return tuple(
        _from_wire(answer) or _settled(answer, ways, count, encode)
        for answer, ways, count in zip(answers, likely, counts, strict=True)
    )


def _counts(
    answers: Sequence[Answer], lengths: Sequence[int], counted: int | None, limit: int | None
) -> list[int | None] | None:
    """How many tokens each has, as far as that is certain; None where `limit` cannot have been it.

    `lengths` are what they have at their likeliest.
    """
    counts = [_own_count(answer, limit) for answer in answers]
    if counted is None:
        return counts
    open_at = [at for at, count in enumerate(counts) if count is None]
    rest = counted - sum(count or 0 for count in counts)
    if rest < 0 or (rest and not open_at):
        return None
    if len(open_at) == 1:
        counts[open_at[0]] = rest
    elif sum(lengths[at] for at in open_at) == rest:
        for at in open_at:
            counts[at] = lengths[at]
    return counts


def _own_count(answer: Answer, limit: int | None) -> int | None:
    if answer.token_ids:
        return len(answer.token_ids)
    return limit if answer.finish == "length" else None


def _from_wire(answer: Answer) -> Generated | None:
    if not answer.token_ids:
        return None
    return Generated(token_ids=answer.token_ids, source="wire", finish=answer.finish)


def _likely(answer: Answer, encode: EncodeTexts | None, written: Written) -> list[tuple[int, ...]]:
    """The likeliest ids, the best first, not yet held against any count; empty where there is no saying."""
    if encode is None or answer.token_ids:
        return []
    if answer.thoughts or answer.tool_calls:
        return [tuple(ids.tolist()) for ids in written(answer)]
    text = "".join(answer.pieces) + (answer.stop_string or "")
    return [] if _LOST in text else [_ended(answer, encode([text]))]


def _settled(
    answer: Answer, likely: Sequence[tuple[int, ...]], counted: int | None, encode: EncodeTexts | None
) -> Generated:
    """Ids that the count of this one answer bears out; else as many unknown tokens as it has."""
    pieces = [] if encode is None else _pieces(answer, encode)
    if counted is None:
        tokens = max(map(len, (_ended(answer, pieces), *likely)))
        return _filled(answer, _in_place(pieces), tokens)
    if encode is not None:
        for ids in _candidates(answer, likely, counted, encode):
            if len(ids) == counted:
                return _retokenized(answer, ids)
    stopped = counted - (answer.finish == "stop")
    # As many pieces as tokens: each is one, known or not. Fewer, with none of several tokens: some token
    # has no text, and there is no knowing where.
    if len(pieces) < stopped and all(len(piece) == 1 for piece in pieces):
        return _filled(answer, (), counted)
    return _filled(answer, _in_place(pieces), counted)


def _candidates(
    answer: Answer, likely: Sequence[tuple[int, ...]], counted: int, encode: EncodeTexts
) -> Iterator[tuple[int, ...]]:
    """Ways in which the answer may have been sampled, the surest first; the count decides."""
    yield _by_token_texts(answer, encode)
    yield _ended(answer, _pieces(answer, encode))
    yield from likely
    text = "".join((*answer.thoughts, *answer.pieces))
    if _LOST in text or answer.stop_string:
        return
    if answer.thoughts or answer.tool_calls:  # nothing may have been cut out, as where the end never came
        arguments = "".join(call.arguments for call in answer.tool_calls)
        yield _ended(answer, encode([text + arguments]))
    else:
        yield _repeated(answer, text, counted, encode)


def _by_token_texts(answer: Answer, encode: EncodeTexts) -> tuple[int, ...]:
    """The tokens that logprobs name, where they make up the text; the stop token's text is not part of it."""
    texts = answer.token_texts
    text = "".join(answer.pieces)
    if not texts or not any("".join(texts[: len(texts) - left]) == text for left in (0, 1)):
        return ()
    return _in_place(encode(texts))


def _pieces(answer: Answer, encode: EncodeTexts) -> list[TokenIds]:
    """The ids of each piece of a stream for itself, as a piece ends where a token ends."""
    pieces = (*answer.thoughts, *answer.pieces)
    if len(pieces) < 2 or answer.tool_calls or answer.stop_string:
        return []
    return [_NOTHING if _LOST in piece else ids for piece, ids in zip(pieces, encode(pieces), strict=True)]


def _in_place(parts: Sequence[TokenIds]) -> tuple[int, ...]:
    """One token for each part; unknown where the tokenizer makes it several, or none."""
    return tuple(int(part[0]) if len(part) == 1 else UNKNOWN_ID for part in parts)


def _filled(answer: Answer, known: tuple[int, ...], tokens: int) -> Generated:
    """What is known from the beginning, then unknown tokens up to the number there were."""
    if UNKNOWN_ID in known:
        known = known[: known.index(UNKNOWN_ID)]
    known = () if answer.thoughts else known[:tokens]  # the first tokens may have been cut out
    ids = (*known, *[UNKNOWN_ID] * (tokens - len(known)))
    return Generated(token_ids=ids, source="retokenized" if known else None, finish=answer.finish)


def _repeated(answer: Answer, text: str, counted: int, encode: EncodeTexts) -> tuple[int, ...]:
    """The text of a model that says one token over and over, where the tokenizer would merge these."""
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
    return (*ids, UNKNOWN_ID) if ids and answer.finish == "stop" else ids


def _retokenized(answer: Answer, ids: tuple[int, ...]) -> Generated:
    return Generated(token_ids=ids, source="retokenized" if ids else None, finish=answer.finish)
