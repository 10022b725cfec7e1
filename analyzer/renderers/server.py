"""Asks the server's own `/render` for the token ids, with the captured bytes as they are.

It is the code path that serves the request (vLLM 0.32 entrypoints/scale_out/render/serving.py), save for
what `refusal` names. It needs `--enable-scale-out`, or `vllm launch render`.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from analyzer.core import Rendering
from analyzer.renderers import Job, RenderFailed, prints_another_day
from analyzer.server_api import ServerFailed, whole_ids


class ServerRenderer:
    """The ids of the server's /render for the same bytes; needs --server."""

    name = "server"
    rank = 10

    def fits(self, job: Job) -> bool:
        """Whether a server was named, and its /render is known to do what its endpoint did."""
        return refusal(job) is None

    def render(self, job: Job) -> Rendering:
        """The ids of this prompt: /v1/completions/render answers with one result a prompt."""
        if (reason := refusal(job)) is not None:
            raise RenderFailed(reason)
        assert job.server is not None
        try:
            answer = job.server.post(f"{job.path}/render", job.body)
            ids = whole_ids(_result(answer, job.conversation.prompt_index).get("token_ids"))
        except ServerFailed as error:
            raise RenderFailed(str(error)) from error
        return Rendering(token_ids=np.array(ids, dtype=np.int32), source=self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The server renders to ids, not text."""
        raise RenderFailed("the server renders to token ids without their text")


def refusal(job: Job) -> str | None:
    """Why /render cannot stand for what the server did with this request, or None where it can."""
    if job.server is None:
        return "no server to ask: give --server URL"
    if prints_another_day(job):
        return "the chat template prints the date, and the server would print today's"
    thinking = _field(job, "thinking") if job.path == "/v1/messages" else None
    disabled = isinstance(thinking, dict) and thinking.get("type") == "disabled"
    if disabled and job.settings.anthropic_disabled_thinking_effort != "none":
        # The endpoint picks `none` or `low` by a probe, /render always `none` (render/serving.py:166-181).
        return "/render takes disabled thinking for effort none, and the endpoint may have taken low"
    return None


def _field(job: Job, name: str) -> Any:
    # Most bodies are large and hold neither field.
    if name.encode() not in job.body:
        return None
    body = json.loads(job.body)
    return body.get(name) if isinstance(body, dict) else None


def _result(answer: Any, index: int) -> dict[str, Any]:
    results = answer if isinstance(answer, list) else [answer]
    if index < len(results) and isinstance(results[index], dict):
        found: dict[str, Any] = results[index]
        return found
    raise ServerFailed(f"the server's answer holds no rendering of prompt {index}")


RENDERER = ServerRenderer()
