"""Chooses a renderer for a prompt, and holds its count against the server's.

Auto takes the best renderer that works and the row says which; an explicit choice fails hard.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence

from analyzer.core import Rendering, Verdict
from analyzer.registry import plugins
from analyzer.renderers import Job, Renderer, RenderFailed, unexpected

AUTO = "auto"

FROM_SERVER = frozenset({"wire", "server", "tokenize"})
"""The renderers whose ids a server made."""


def renderers(choice: str = AUTO) -> list[Renderer]:
    """The renderers to try, best first. Raises ValueError for a name that is none."""
    known = plugins("renderers")
    if choice == AUTO:
        return sorted(known.values(), key=lambda item: item.rank)
    if choice not in known:
        raise ValueError(f"unknown renderer {choice!r}; there are: {AUTO}, {', '.join(known)}")
    return [known[choice]]


def prepare(choice: str = AUTO) -> None:
    """Import what takes long. Raises ValueError for an unknown renderer, before any work is done."""
    renderers(choice)
    # It would tell every user that PyTorch is missing; nothing here needs it.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    import transformers.utils.chat_template_utils  # noqa: F401


def render(job: Job, choice: str = AUTO, *, without: Collection[str] = ()) -> Rendering:
    """Render with the first renderer that fits and works; `without` names what auto is to leave out.

    Raises RenderFailed with the last reason, whatever a renderer raises: a request may hold anything.
    """
    failure = RenderFailed(_nothing_fits(job))
    for renderer in renderers(choice):
        try:
            if choice == AUTO and (renderer.name in without or not renderer.fits(job)):
                continue
            rendering = renderer.render(job)
        except RenderFailed as error:
            failure = error
        except Exception as error:
            failure = RenderFailed(f"not rendered: {unexpected(error)}")
        else:
            if len(rendering.token_ids):
                return rendering
            # vLLM 0.32 v1/engine/input_processor.py:566
            failure = RenderFailed("the prompt has no tokens, which the server refuses")
    raise failure


def render_text(job: Job, *, generation_prompt: bool = True) -> str:
    """The prompt's text, from the first renderer that has one. Raises RenderFailed."""
    failure = RenderFailed(_nothing_fits(job))
    for renderer in renderers():
        if renderer.fits(job):
            try:
                return renderer.render_text(job, generation_prompt=generation_prompt)
            except RenderFailed as error:
                failure = error
    raise failure


def verdicts(
    renderings: Sequence[Rendering | None], reported_tokens: int | None, *, redacted: bool = False
) -> list[Verdict | None]:
    """A verdict for each prompt of one body, whose total the server reported.

    Ids from the wire are exact by themselves; those of /render too, where they are of the bytes that were
    sent (not `redacted`) and no count speaks against them: the server asked may not be the one that served.
    Others are exact when the counts of all prompts add up to the total.
    """
    if reported_tokens is None or None in renderings:
        agreed: Verdict = "unchecked"
    else:
        total = sum(len(item.token_ids) for item in renderings if item is not None)
        agreed = "exact" if total == reported_tokens else "mismatch"
    return [_verdict(item, agreed, redacted=redacted) for item in renderings]


def _verdict(rendering: Rendering | None, agreed: Verdict, *, redacted: bool) -> Verdict | None:
    if rendering is None:
        return None
    if rendering.source == "wire":
        return "exact"
    if rendering.source == "server" and agreed == "unchecked" and not redacted:
        return "exact"
    return agreed


def _nothing_fits(job: Job) -> str:
    conversation = job.conversation
    if conversation.messages_problem is not None:
        return conversation.messages_problem
    if not conversation.messages and conversation.text is None and conversation.token_ids is None:
        return "the body has no messages"
    if job.tokenizer is None:
        return "not rendered: no tokenizer"
    return "not rendered: the tokenizer has no chat template; give the folder that holds it"
