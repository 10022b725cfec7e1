"""Renders the prompts of an exchange: from its bytes to token ids with a source and a verdict.

It knows one exchange at a time; how prompts stand to each other is for others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from analyzer.answer_text import written_answer
from analyzer.core import Answer, Conversation, Generated, GeneratedSource, Rendering, Reply, Verdict
from analyzer.first_token import first_token_ns
from analyzer.generated import generated_by
from analyzer.mismatch import Traits, traits_of
from analyzer.reading import Request, dialect_of, reached_the_model, read_request
from analyzer.renderers import Job, RenderFailed, unexpected
from analyzer.rendering import AUTO, render, verdicts
from analyzer.replies import read_reply
from analyzer.secret_counts import in_prompt
from analyzer.server_api import ServerApi
from analyzer.settings import UNTOLD, ServerSettings
from analyzer.shared_json import SharedBodies
from analyzer.shared_wraps import SharedWraps
from analyzer.tokens import Tokenizer
from store.records import Body, Exchange


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadExchange:
    """An exchange after reading. It has lost its bodies: who needs them reads them again.

    `redacted` says that secrets in its request body were replaced; equal bodies have equal `body_hash`. Times
    count from the request's first byte: to the first token, and to the last byte of the answer.
    """

    exchange: Exchange
    request: Request
    reply: Reply
    prompt_count: int
    redacted: bool = False
    first_token_ns: int | None = None
    answered_ns: int | None = None
    body_hash: int = 0

    @property
    def reported_prompt_tokens(self) -> int | None:
        """The server's count of prompt tokens; for a body of several prompts it is a sum, and not a row's."""
        return self.reply.usage.prompt_tokens if self.prompt_count <= 1 else None

    @property
    def reported_cached_tokens(self) -> int | None:
        """The server's count of cached tokens, where the body held one prompt."""
        return self.reply.usage.cached_tokens if self.prompt_count <= 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One prompt of an exchange, rendered where `rendering` is given; else `problem` says why not.

    `conversation` is None where the body could not be read or the server refused it; `traits` are what
    may explain a mismatch. `generated` has one entry for each choice.
    """

    source: ReadExchange
    index: int
    conversation: Conversation | None
    rendering: Rendering | None
    verdict: Verdict | None
    problem: str | None
    traits: Traits = field(default_factory=Traits)
    generated: tuple[Generated, ...] = ()

    @property
    def key(self) -> tuple[int, int]:
        """Exchange id and prompt index."""
        return self.source.exchange.id, self.index

    @property
    def name(self) -> str:
        """The key as one word."""
        return f"{self.source.exchange.id}.{self.index}"

    @property
    def generated_source(self) -> GeneratedSource | None:
        """Where the ids of the answers come from: the least sure of them counts."""
        sources = {answer.source for answer in self.generated} or {None}
        return None if None in sources else "retokenized" if "retokenized" in sources else "wire"


class PromptReader:
    """Reads and renders exchanges with one tokenizer and one choice of renderer.

    With a `choice` other than auto, `read` raises RenderFailed where that renderer fails. `missing` is
    what to tell of a prompt that needs the tokenizer where there is none; `server` is the one to ask;
    `settings` and `max_model_len` are as in a Job.
    """

    def __init__(
        self,
        tokenizer: Tokenizer | None,
        *,
        choice: str = AUTO,
        missing: str | None = None,
        settings: ServerSettings = UNTOLD,
        max_model_len: int | None = None,
        server: ServerApi | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.server = server
        self._settings = settings
        self._max_model_len = max_model_len
        self._choice = choice
        self._missing = missing
        self._bodies = SharedBodies()
        self._wraps = SharedWraps()

    def read(self, exchange: Exchange) -> list[Prompt]:
        """All prompts of an exchange; one without a rendering where there is none to read.

        Whatever is wrong with the exchange is a sentence on its row, so that all others have theirs.
        """
        try:
            return self._read(exchange)
        except RenderFailed:
            raise  # of a renderer that the user named
        except Exception as error:
            return [_failed(exchange, unexpected(error))]

    def _read(self, exchange: Exchange) -> list[Prompt]:
        request, reply = read_request(exchange, loads=self._bodies.loads), read_reply(exchange)
        asked = request.conversations if reached_the_model(exchange) else ()
        source = ReadExchange(
            exchange=replace(exchange, request=Body(), response=Body(), chunks=()),
            request=replace(request, conversations=()),
            reply=replace(reply, prompt_token_ids=(), answers=()),
            prompt_count=len(asked),
            redacted=in_prompt(exchange.request),
            first_token_ns=first_token_ns(exchange),
            answered_ns=_answered_ns(exchange),
            body_hash=hash(exchange.request.content),
        )
        if not asked:
            return [_unread(source, request.problem or reply.error)]
        outcomes = [self._render(exchange, conversation, reply) for conversation in asked]
        agreed = verdicts(
            [rendering for rendering, _ in outcomes], reply.usage.prompt_tokens, redacted=source.redacted
        )
        generated = self._generated(exchange, request, reply)
        return [
            Prompt(
                source=source,
                index=conversation.prompt_index,
                conversation=conversation,
                rendering=rendering,
                verdict=verdict,
                problem=problem or reply.error,
                traits=self._traits(conversation, rendering, source),
                generated=answers,
            )
            for conversation, (rendering, problem), verdict, answers in zip(
                asked, outcomes, agreed, generated, strict=True
            )
        ]

    def _generated(self, exchange: Exchange, request: Request, reply: Reply) -> list[tuple[Generated, ...]]:
        """What was sampled to each prompt; the choices of a body of several stand prompt after prompt."""
        asked, each = request.conversations, request.choices
        missing = len(asked) * each - len(reply.answers)
        answers = (*reply.answers, *[Answer()] * missing)[: len(asked) * each]
        own = [_own(answer, request, asked[at // each]) for at, answer in enumerate(answers)]
        job = self.job(exchange, asked[0], reply)
        # A text in which secrets were replaced is not the one that was sampled.
        tokenizer = None if exchange.response.secrets else self.tokenizer
        sampled = generated_by(
            own,
            reply.usage.completion_tokens,
            None if tokenizer is None else tokenizer.encode_apart,
            limit=request.max_tokens,
            written=lambda answer: written_answer(job, answer),
        )
        return [sampled[start : start + each] for start in range(0, len(sampled), each)]

    def _traits(
        self, conversation: Conversation, rendering: Rendering | None, source: ReadExchange
    ) -> Traits:
        return traits_of(
            conversation,
            rendering,
            redacted=source.redacted,
            truncates=source.request.truncates,
            bos=self.tokenizer is not None and bool(self.tokenizer.special_tokens(["bos_token"])),
        )

    def sourced_job(self, exchange: Exchange, index: int, body: Any | None = None) -> tuple[Job, Any]:
        """The same prompt once more, with strings that know their fields, and the body it was read from.

        That is the captured one, or the parsed one that is given.
        """
        read = self._bodies.loads(exchange.request.content) if body is None else body
        request = read_request(exchange, loads=lambda _: self._wraps.wrap(read))
        return self.job(exchange, request.conversations[index], read_reply(exchange), sourced=True), read

    def _render(
        self, exchange: Exchange, conversation: Conversation, reply: Reply
    ) -> tuple[Rendering | None, str | None]:
        try:
            rendering = render(self.job(exchange, conversation, reply), self._choice)
        except RenderFailed as error:
            if self._choice != AUTO:
                raise RenderFailed(f"exchange {exchange.id}: {error}") from error
            asked = self.server is not None and self.server.failures
            return None, str(error) if asked or self._missing is None else self._missing
        # The text is rendered again where prompts part; kept for all, it would be most of the memory.
        return replace(rendering, text=None), None

    def job(
        self, exchange: Exchange, conversation: Conversation, reply: Reply, *, sourced: bool = False
    ) -> Job:
        """What a renderer is given for one prompt."""
        return Job(
            conversation=conversation,
            reply=reply,
            clock=datetime.fromtimestamp(exchange.started_at_ns / 1e9).astimezone(),
            tokenizer=self.tokenizer,
            sourced=sourced,
            settings=self._settings,
            max_model_len=self._max_model_len,
            server=self.server,
            path=exchange.path,
            body=exchange.request.content,
        )


def _own(answer: Answer, request: Request, conversation: Conversation) -> Answer:
    """The answer without its echoed prompt, and in one piece where its pieces say nothing."""
    echoed = (conversation.text or "") if request.echoes else ""
    if not request.holds_back and not echoed:
        return answer
    return replace(answer, pieces=("".join(answer.pieces).removeprefix(echoed),), token_texts=())


def _answered_ns(exchange: Exchange) -> int | None:
    """When the answer was whole, before its client could act on it: the connection may end later."""
    if exchange.ended == "complete" and exchange.chunks:
        return exchange.chunks[-1].at_ns
    return exchange.duration_ns


def _failed(exchange: Exchange, problem: str) -> Prompt:
    """The row of an exchange that could not be read at all."""
    dialect = dialect_of(exchange.path)
    source = ReadExchange(
        exchange=replace(exchange, request=Body(), response=Body(), chunks=()),
        request=Request(dialect=dialect.name if dialect else exchange.path.rpartition("/")[2]),
        reply=Reply(outcome="done" if exchange.ended == "complete" else exchange.ended),
        prompt_count=0,
    )
    return _unread(source, f"not read: {problem}")


def _unread(source: ReadExchange, problem: str | None) -> Prompt:
    return Prompt(source=source, index=0, conversation=None, rendering=None, verdict=None, problem=problem)
