"""Renders the prompts of an exchange: from its bytes to token ids with a source and a verdict.

It knows one exchange at a time; how prompts stand to each other is for others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from analyzer.core import Conversation, Rendering, Reply, Verdict
from analyzer.mismatch import Traits, traits_of
from analyzer.reading import Request, dialect_of, reached_the_model, read_request
from analyzer.renderers import Job, RenderFailed, unexpected
from analyzer.rendering import AUTO, render, verdicts
from analyzer.replies import read_reply
from analyzer.server_api import ServerApi
from analyzer.settings import UNTOLD, ServerSettings
from analyzer.shared_json import SharedBodies
from analyzer.shared_wraps import SharedWraps
from analyzer.tokens import Tokenizer
from store.records import Body, Exchange

MOST_GENERATED = 1 << 24
"""Tokens that no model generates in one answer: a count beyond would fill the simulated cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadExchange:
    """An exchange after reading. It has lost its bodies: who needs them reads them again.

    `redacted` says that secrets in its request body were replaced; equal bodies have equal `body_hash`.
    """

    exchange: Exchange
    request: Request
    reply: Reply
    prompt_count: int
    redacted: bool = False
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
    may explain a mismatch.
    """

    source: ReadExchange
    index: int
    conversation: Conversation | None
    rendering: Rendering | None
    verdict: Verdict | None
    problem: str | None
    traits: Traits = field(default_factory=Traits)

    @property
    def key(self) -> tuple[int, int]:
        """Exchange id and prompt index."""
        return self.source.exchange.id, self.index

    @property
    def name(self) -> str:
        """The key as one word."""
        return f"{self.source.exchange.id}.{self.index}"

    @property
    def generated(self) -> tuple[int, ...] | int:
        """The sampled ids of this prompt's answer, or how many there were (0 where nobody said)."""
        reply = self.source.reply
        counted = reply.usage.completion_tokens or 0
        if self.source.prompt_count == len(reply.generated_ids):
            return reply.generated_ids[self.index]
        return counted if counted < MOST_GENERATED else 0


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
            reply=replace(reply, prompt_token_ids=()),
            prompt_count=len(asked),
            redacted=bool(exchange.request.secrets),
            body_hash=hash(exchange.request.content),
        )
        if not asked:
            return [_unread(source, request.problem or reply.error)]
        outcomes = [self._render(exchange, conversation, reply) for conversation in asked]
        agreed = verdicts(
            [rendering for rendering, _ in outcomes], reply.usage.prompt_tokens, redacted=source.redacted
        )
        return [
            Prompt(
                source=source,
                index=conversation.prompt_index,
                conversation=conversation,
                rendering=rendering,
                verdict=verdict,
                problem=problem or reply.error,
                traits=self._traits(conversation, rendering, source),
            )
            for conversation, (rendering, problem), verdict in zip(asked, outcomes, agreed, strict=True)
        ]

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
