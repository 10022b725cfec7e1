"""How a conversation becomes token ids, one way a file; a file's RENDERER is found by the registry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from analyzer.chat_requests import MADE_UP_ID
from analyzer.core import Conversation, Rendering, Reply
from analyzer.prompt_ids import encoded
from analyzer.server_api import ServerApi
from analyzer.settings import UNTOLD, ServerSettings
from analyzer.tokenizer_mode import tokenizer_mode_of
from analyzer.tokens import Tokenizer


class RenderFailed(Exception):
    """A conversation that this renderer cannot render; the message says why and what to try."""


def unexpected(error: Exception) -> str:
    """What to tell of an error that nobody foresaw: a request may hold anything."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One prompt to render, and all a renderer may use for it.

    `clock` is the moment of the request, in the local time zone: a template that prints today must
    print the request's day. `tokenizer` is None where none was found. Where `sourced` is set, the
    conversation's strings know their fields, and the rendered text is to know them too. `settings` is
    what the server's start line says, and `max_model_len` the longest prompt it takes, in tokens.

    `server` is the one the user named, or None: nobody else is asked. `path` and `body` are the request
    as captured: a body in which secrets were replaced is not what was sent.
    """

    conversation: Conversation
    reply: Reply
    clock: datetime
    tokenizer: Tokenizer | None
    sourced: bool = False
    settings: ServerSettings = UNTOLD
    max_model_len: int | None = None
    server: ServerApi | None = None
    path: str = ""
    body: bytes = b""


def prints_another_day(job: Job) -> bool:
    """Whether a server asked now would print another date than it did then.

    Its `strftime_now` is its own clock (transformers utils/chat_template_utils.py).
    """
    if job.tokenizer is None or job.clock.date() == datetime.now(job.clock.tzinfo).date():
        return False
    templates = job.tokenizer.chat_templates.values() if job.conversation.messages else ()
    return any("strftime_now" in template for template in templates)


def is_chat_in(job: Job, mode: str) -> bool:
    """Whether there are messages, and a tokenizer whose model is rendered in this tokenizer mode."""
    if job.tokenizer is None or not job.conversation.is_chat:
        return False
    return tokenizer_mode_of(job.tokenizer, job.settings.tokenizer_mode) == mode


def tokenized(job: Job, text: str, source: str) -> Rendering:
    """The rendering of a rendered text, tokenized as the server does. Raises RenderFailed."""
    if job.tokenizer is None:
        raise RenderFailed("no tokenizer: give --tokenizer DIR")
    if MADE_UP_ID in text:
        raise RenderFailed("the prompt shows a call's id, which the body lacks and the server made up")
    ids = encoded(job.tokenizer, text, job.conversation, max_model_len=job.max_model_len)
    return Rendering(token_ids=ids, source=source, text=text)


class Renderer(Protocol):
    """One way from a conversation to token ids.

    `rank` orders the automatic choice, lowest first; renderers for which `fits` is false are passed over.
    """

    name: str
    rank: int

    def fits(self, job: Job) -> bool:
        """Whether this renderer is for this kind of prompt, and has what it needs."""

    def render(self, job: Job) -> Rendering:
        """Render to token ids. Raises RenderFailed."""

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The prompt's text alone; `Sourced` where the conversation's strings are. Raises RenderFailed."""
