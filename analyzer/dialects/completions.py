"""OpenAI completions: raw prompts, as text or as token ids (vLLM 0.32 completion/protocol.py).

A list of prompts is a list of engine requests; nothing is templated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.core import Conversation


class CompletionsDialect:
    """Completions: prompts given as text or token ids, one or many a body."""

    name = "completions"
    path = "/v1/completions"

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """One conversation a prompt: `prompt` is str, list[str], list[int] or list[list[int]]."""
        prompts, suffix = _prompts(body.get("prompt")), body.get("suffix")
        if suffix is not None and not all(isinstance(item, str) for item in prompts):
            raise ValueError("suffix needs a prompt given as text")  # renderers/online_renderer.py:640
        # A default of True, unlike chat (completion/protocol.py).
        special = bool(body.get("add_special_tokens", True))
        return tuple(
            Conversation(
                dialect=self.name,
                prompt_index=index,
                text=item if isinstance(item, str) else None,
                token_ids=None if isinstance(item, str) else tuple(item),
                suffix=suffix,
                add_special_tokens=special and isinstance(item, str),
            )
            for index, item in enumerate(prompts)
        )


def _prompts(prompt: Any) -> list[Any]:
    if isinstance(prompt, str) or _is_ids(prompt):
        return [prompt]
    if isinstance(prompt, list) and prompt and all(isinstance(p, str) or _is_ids(p) for p in prompt):
        return prompt
    raise ValueError("prompt is neither text, token ids, nor a list of these")


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(item) is int for item in value)


DIALECT = CompletionsDialect()
