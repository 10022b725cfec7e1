"""Verifies a capture: whether the store is whole, and whether local renderings are the server's.

It compares and counts; nothing is printed, and nothing is repaired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from analyzer.blocks import common_prefix
from analyzer.compare import TEMPLATE, FieldPlace, place_of
from analyzer.core import Conversation, Rendering, Reply, TokenIds
from analyzer.prompts import PromptReader
from analyzer.reading import reached_the_model, read_request
from analyzer.registry import plugins
from analyzer.renderers import Job, RenderFailed, unexpected
from analyzer.rendering import AUTO, FROM_SERVER, render, verdicts
from analyzer.replies import read_reply
from analyzer.sourced import spans_of
from analyzer.token_text import TokenText
from store.audit import Damage
from store.db import Capture
from store.records import Exchange

EXCERPT_TOKENS = 8

REDACTED = "secrets in the body were replaced: it is not what the server was sent"
NOTHING = "the response tells neither ids nor a count; give --server URL"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first token in which a local rendering leaves the server's.

    `other` says where the server's ids came from; `token` is an index in both. An id is None where its
    side has ended; texts are a few tokens from there on (`before`: up to there), None without a tokenizer.
    `place` is the field that holds it, None where it cannot be told.
    """

    exchange_id: int
    prompt_index: int
    source: str
    other: str
    token: int
    our_id: int | None
    their_id: int | None
    before: str | None
    ours: str | None
    theirs: str | None
    place: FieldPlace | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Miscount:
    """An exchange whose rendered prompts do not add up to the server's count, in tokens."""

    exchange_id: int
    rendered: int
    reported: int


@dataclass(slots=True, kw_only=True)
class Verification:
    """What was found. `equal` counts prompts by where the server's ids came from.

    `left_out` counts by reason what cannot be compared; `undone` what should have been, and failed.
    """

    damages: tuple[Damage, ...] = ()
    prompts: int = 0
    equal: Counter[str] = field(default_factory=Counter)
    counted: int = 0
    differences: list[Difference] = field(default_factory=list)
    miscounts: list[Miscount] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    undone: Counter[str] = field(default_factory=Counter)

    @property
    def holds(self) -> bool:
        """Whether nothing that was compared disagrees."""
        return not (self.damages or self.differences or self.miscounts)


def verify(
    capture: Capture, reader: PromptReader, choice: str, progress: Callable[[int, int], None]
) -> Verification:
    """Verify the renderings of a whole capture, those of the renderer `choice` or the best local one.

    Raises RenderFailed where a renderer was named and fails.
    """
    found = Verification()
    verifier = _Verifier(reader, choice, found)
    total = capture.counts().exchanges
    for done, exchange in enumerate(capture.exchanges(), start=1):
        verifier.exchange(exchange)
        progress(done, total)
    return found


class _Verifier:
    def __init__(self, reader: PromptReader, choice: str, found: Verification) -> None:
        self._reader = reader
        self._choice = choice
        self._found = found
        self._token_text: TokenText | None = None

    def exchange(self, exchange: Exchange) -> None:
        """Compare all prompts of an exchange with the server's ids, and their count with its count."""
        if not reached_the_model(exchange):
            return
        try:
            self._read(exchange)
        except RenderFailed:
            raise  # of a renderer that the user named
        except Exception as error:
            self._found.undone[f"not read: {unexpected(error)}"] += 1

    def _read(self, exchange: Exchange) -> None:
        request, reply = read_request(exchange), read_reply(exchange)
        self._found.prompts += max(1, len(request.conversations))
        if request.problem:
            self._found.undone[request.problem] += 1
        locally = [self._prompt(exchange, item, reply) for item in request.conversations]
        if all(item is not None for item in locally) and locally:
            self._count(exchange, [item for item in locally if item is not None], reply)

    def _prompt(self, exchange: Exchange, conversation: Conversation, reply: Reply) -> Rendering | None:
        job = self._reader.job(exchange, conversation, reply)
        try:
            ours = render(job, self._choice, without=FROM_SERVER)
        except RenderFailed as error:
            if self._choice != AUTO:
                raise RenderFailed(f"exchange {exchange.id}: {error}") from error
            self._found.undone[str(error)] += 1
            return None
        for theirs in self._servers(job, redacted=bool(exchange.request.secrets)):
            self._compare(exchange, job, ours, theirs)
        return ours

    def _servers(self, job: Job, *, redacted: bool) -> Iterator[Rendering]:
        """The same prompt as the server rendered it: when it served, and asked now."""
        known = plugins("renderers")
        if known["wire"].fits(job) and not redacted:
            yield known["wire"].render(job)
        if job.server is None:
            return
        reasons = self._found.undone if known["server"].fits(job) else self._found.left_out
        try:
            yield known["server"].render(job)
        except RenderFailed as error:
            reasons[str(error)] += 1

    def _compare(self, exchange: Exchange, job: Job, ours: Rendering, theirs: Rendering) -> None:
        token = common_prefix(ours.token_ids, theirs.token_ids)
        if token == len(ours.token_ids) == len(theirs.token_ids):
            self._found.equal[theirs.source] += 1
            return
        index = job.conversation.prompt_index
        place = self._place(self._reader.sourced_job(exchange, index)[0], ours, token)
        self._found.differences.append(
            Difference(
                exchange_id=exchange.id,
                prompt_index=index,
                source=ours.source,
                other=theirs.source,
                token=token,
                our_id=_id(ours.token_ids, token),
                their_id=_id(theirs.token_ids, token),
                before=self._text(ours.token_ids[max(0, token - EXCERPT_TOKENS) : token]),
                ours=self._text(ours.token_ids[token : token + EXCERPT_TOKENS]),
                theirs=self._text(theirs.token_ids[token : token + EXCERPT_TOKENS]),
                place=place,
            )
        )

    def _count(self, exchange: Exchange, locally: list[Rendering], reply: Reply) -> None:
        reported = reply.usage.prompt_tokens
        agreed = verdicts(locally, reported)[0]
        if exchange.request.secrets:
            self._found.left_out[REDACTED] += len(locally)
        elif agreed == "exact":
            self._found.counted += len(locally)
        elif reported is not None:
            rendered = sum(len(item.token_ids) for item in locally)
            self._found.miscounts.append(
                Miscount(exchange_id=exchange.id, rendered=rendered, reported=reported)
            )
        elif not reply.prompt_token_ids and self._reader.server is None:
            self._found.left_out[NOTHING] += len(locally)

    def _place(self, sourced: Job, ours: Rendering, token: int) -> FieldPlace | None:
        """The field that holds a token of the local rendering."""
        speaker = self._speaker()
        if speaker is None or ours.source in FROM_SERVER:
            return None
        try:
            text = plugins("renderers")[ours.source].render_text(sourced)
        except RenderFailed:
            return None
        special = sourced.conversation.add_special_tokens
        char = speaker.char_of(text, token, add_special_tokens=special)
        return TEMPLATE if char is None else place_of(spans_of(text), char) or TEMPLATE

    def _text(self, ids: TokenIds) -> str | None:
        speaker = self._speaker()
        return None if speaker is None else speaker.decode(ids.tolist())

    def _speaker(self) -> TokenText | None:
        tokenizer = self._reader.tokenizer
        if self._token_text is None and tokenizer is not None:
            self._token_text = TokenText(tokenizer.directory)
        return self._token_text


def _id(ids: TokenIds, token: int) -> int | None:
    return int(ids[token]) if token < len(ids) else None
