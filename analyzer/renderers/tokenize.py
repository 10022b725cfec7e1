"""Asks the server's `/tokenize`, which most servers have, for bodies that it treats as their endpoint does.

It is not the chat path: vLLM 0.32 serve/tokenize/protocol.py and serving.py know no `reasoning_content`, no
effort, no documents, no truncation, no rule for `tool_choice`, and no harmony.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from analyzer.core import Rendering
from analyzer.renderers import Job, RenderFailed, prints_another_day
from analyzer.server_api import ServerFailed, whole_ids

_CHAT_ONLY = (
    "reasoning_effort",
    "documents",
    "truncate_prompt_tokens",
    "kv_transfer_params",
    "chat_template",
    "prompt",
)
_COMPLETIONS_ONLY = ("truncate_prompt_tokens", "prompt_embeds", "suffix", "kv_transfer_params")
"""Top-level fields that change a prompt at the endpoint, and not at /tokenize."""


class TokenizeRenderer:
    """The ids of the server's /tokenize, for bodies it treats alike; needs --server."""

    name = "tokenize"
    rank = 15

    def fits(self, job: Job) -> bool:
        """Whether a server was named, and /tokenize is known to equal the endpoint for this body."""
        return _refusal(job) is None

    def render(self, job: Job) -> Rendering:
        """The chat body as it is, or one text prompt of a completions body."""
        if (reason := _refusal(job)) is not None:
            raise RenderFailed(reason)
        assert job.server is not None
        try:
            answer = job.server.post("/tokenize", _question(job))
            ids = whole_ids(answer.get("tokens") if isinstance(answer, dict) else None)
        except ServerFailed as error:
            raise RenderFailed(str(error)) from error
        return Rendering(token_ids=np.array(ids, dtype=np.int32), source=self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The server answers with ids."""
        raise RenderFailed("/tokenize answers with token ids without their text")


def _question(job: Job) -> bytes:
    if job.conversation.messages:
        return job.body
    question = {
        "model": json.loads(job.body).get("model"),
        "prompt": str(job.conversation.text),
        "add_special_tokens": job.conversation.add_special_tokens,
    }
    return json.dumps(question).encode()


def _refusal(job: Job) -> str | None:
    """Why /tokenize is not known to equal the endpoint for this body, or None where it is."""
    if job.server is None:
        return "no server to ask: give --server URL"
    body = json.loads(job.body or b"{}")
    conversation = job.conversation
    if conversation.dialect == "completions" and conversation.text is not None:
        return _not_alike(body, _COMPLETIONS_ONLY)
    if conversation.dialect != "chat":
        return "/tokenize takes chat messages and raw text prompts; for others give the server's /render"
    if prints_another_day(job):
        return "the chat template prints the date, and the server would print today's"
    if "gpt-oss" in str(body.get("model")).lower():
        return "/tokenize renders gpt-oss by its chat template, chat by harmony"
    if body.get("tool_choice") not in (None, "auto"):
        return "/tokenize has no rule for tool_choice"
    return _not_alike(body, _CHAT_ONLY) or _strange_message(body.get("messages"))


def _not_alike(body: Mapping[str, Any], fields: tuple[str, ...]) -> str | None:
    given = [name for name in fields if body.get(name) is not None]
    return f"/tokenize takes no {given[0]} as the endpoint does" if given else None


def _strange_message(messages: Any) -> str | None:
    for message in messages:
        if message.get("reasoning_content") is not None:
            return "/tokenize drops reasoning_content"  # chat renames it (chat_completion/protocol.py:554)
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        if any(isinstance(part, dict) and not isinstance(part.get("text"), str) for part in parts):
            return "/tokenize is not known to treat parts without text alike"
    return None


RENDERER = TokenizeRenderer()
