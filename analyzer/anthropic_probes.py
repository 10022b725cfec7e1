"""Settles what vLLM's Anthropic endpoint finds out by trying its chat template.

Two things: whether system messages within a conversation must go to its head, and which effort stands
for disabled thinking. It renders nothing itself but the probe of a template; a renderer that is no
template gives its own answer (vLLM 0.32 entrypoints/anthropic/serving.py:196-299).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any

from analyzer.chat_requests import EFFORTS, template_kwargs
from analyzer.core import Conversation
from analyzer.renderers import Job, RenderFailed
from analyzer.settings import load_template
from analyzer.sourced import concat

MAX_SECONDS = 10.0
MAX_CHARS = 1024 * 1024
_CHAT = tuple({"role": role, "content": "t"} for role in ("system", "user", "system", "user"))


def settle(job: Job, templates: Callable[[], Iterable[str]], effort: Callable[[], str]) -> Conversation:
    """The conversation as this server's templates want it; see `refuse_inline_system` for `templates`.

    Each is asked only where the request needs it, and the effort only where the start line names none.
    """
    conversation = job.conversation
    inline = any(item["role"] == "system" for item in conversation.messages[1:])
    if conversation.merges_system and inline and refuse_inline_system(templates()):
        conversation = with_merged_system(conversation)
    if conversation.disabled_thinking is not None:
        told = job.settings.anthropic_disabled_thinking_effort
        chosen = effort() if told == "auto" else told
        conversation = replace(
            conversation,
            template_kwargs=conversation.disabled_thinking[chosen],
            reasoning_effort=chosen,
        )
    return conversation


def settle_encoder(job: Job, render: Callable[[Job], object]) -> Conversation:
    """The conversation as a renderer that is no template gets it: there only `--chat-template` is tried.

    `render` renders a prompt as that renderer does, and raises RenderFailed where it refuses it.
    """

    def templates() -> list[str]:
        given = job.settings.chat_template
        return [] if given is None else [load_template(given)]

    return settle(job, templates, lambda: disabled_effort(probe_of(job, render)))


def probe_of(job: Job, render: Callable[[Job], object]) -> Callable[[str], object]:
    """Renders what the server tries an effort with; the result is None where it is refused."""

    def probe(effort: str) -> object:
        try:
            return render(replace(job, conversation=hello(effort), sourced=False))
        except RenderFailed:
            return None

    return probe


def hello(effort: str | None = None) -> Conversation:
    """The prompt that an effort is tried with (serving.py:221-238)."""
    return Conversation(
        dialect="chat",
        prompt_index=0,
        messages=({"role": "user", "content": "Hi"},),
        template_kwargs=template_kwargs({}, effort),
        reasoning_effort=effort,
    )


def with_merged_system(conversation: Conversation) -> Conversation:
    """All system messages in one at the head, without a separator (serving.py:352-388)."""
    system = [item["content"] for item in conversation.messages if item["role"] == "system"]
    others = tuple(item for item in conversation.messages if item["role"] != "system")
    head: tuple[Mapping[str, Any], ...] = ({"role": "system", "content": concat(system)},) if system else ()
    return replace(conversation, messages=head + others)


def refuse_inline_system(templates: Iterable[str]) -> bool:
    """Whether one of a server's templates takes system messages only at the head.

    `templates` are those used with and without tools, or the one of `--chat-template`; none at all
    refuses too.
    """
    given = list(templates)
    return not given or any(_refuses(template) for template in given)


def disabled_effort(probe: Callable[[str], object]) -> str:
    """The effort for disabled thinking: low where the renderer rejects or ignores none.

    `probe` gives the prompt of `hello` under an effort, or None where it fails.
    """
    none = probe("none")
    if none is None:
        return "low"
    return "low" if any(probe(effort) == none for effort in EFFORTS if effort != "none") else "none"


@lru_cache(maxsize=64)
def _refuses(template: str) -> bool:
    """Whether a template fails on a second system message, in an environment barer than the server's.

    What only transformers provides (`raise_exception`, `strftime_now`, the generation block) fails here,
    and so counts as a refusal, as it does in the server.
    """
    from jinja2 import Environment
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from analyzer.chat_template_limits import Run, limited_filters
    from analyzer.chat_template_sandbox import LimitedEnvironment, chunks_of, compile_limited

    environment: Environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.__class__ = LimitedEnvironment
    assert isinstance(environment, LimitedEnvironment)
    environment.filters = limited_filters(lambda: environment.run, environment.filters)
    environment.run = Run(time.monotonic() + MAX_SECONDS, MAX_CHARS, datetime.min)
    try:
        compiled = compile_limited(environment, template)
        environment.gather(
            chunks_of(compiled, {"messages": list(map(dict, _CHAT)), "add_generation_prompt": False})
        )
    except Exception:
        # The server knows only template errors; with any other it does not start.
        return True
    return False
