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
from typing import Any, Literal

from analyzer.core import Conversation
from analyzer.sourced import concat

type DisabledEffort = Literal["none", "low"]

MAX_SECONDS = 10.0
MAX_CHARS = 1024 * 1024
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_CHAT = tuple({"role": role, "content": "t"} for role in ("system", "user", "system", "user"))
HELLO = ({"role": "user", "content": "Hi"},)
"""The messages that the effort is tried with."""


def settle(
    conversation: Conversation,
    templates: Callable[[], Iterable[str]],
    effort: Callable[[], DisabledEffort],
) -> Conversation:
    """The conversation as this server's templates want it; see `refuse_inline_system` for `templates`.

    Each is asked only where the request needs it.
    """
    inline = any(item["role"] == "system" for item in conversation.messages[1:])
    if conversation.merges_system and inline and refuse_inline_system(templates()):
        conversation = with_merged_system(conversation)
    if conversation.low_effort_kwargs is not None and effort() == "low":
        low = conversation.low_effort_kwargs
        conversation = replace(conversation, template_kwargs=low, reasoning_effort="low")
    return conversation


def settle_encoder(conversation: Conversation, chat_template: str | None) -> Conversation:
    """The conversation as a renderer that is no template gets it: there only `--chat-template` is tried.

    Disabled thinking is taken for the effort none, which is what the server's `/render` does.
    """
    return settle(conversation, lambda: [chat_template] if chat_template else [], lambda: "none")


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


def disabled_effort(render: Callable[[Mapping[str, Any]], object]) -> DisabledEffort:
    """The effort for disabled thinking: low where the renderer rejects or ignores none.

    `render` gives the prompt of `HELLO` under template arguments, or None where it fails.
    """
    none = render({"reasoning_effort": "none", "enable_thinking": False})
    if none is None:
        return "low"
    tried = (render({"reasoning_effort": effort, "enable_thinking": True}) for effort in _EFFORTS)
    return "low" if any(prompt == none for prompt in tried) else "none"


@lru_cache(maxsize=64)
def _refuses(template: str) -> bool:
    """Whether a template fails on a second system message, in an environment barer than the server's.

    What only transformers provides (`raise_exception`, `strftime_now`, the generation block) fails here,
    and so counts as a refusal, as it does in the server.
    """
    from jinja2 import Environment
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from analyzer.chat_template_sandbox import LimitedEnvironment, Run, chunks_of, compile_limited

    environment: Environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.__class__ = LimitedEnvironment
    assert isinstance(environment, LimitedEnvironment)
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
