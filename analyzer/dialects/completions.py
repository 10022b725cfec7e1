"""OpenAI completions: raw prompts, as text or as token ids (vLLM 0.32 completion/protocol.py).

A list of prompts is a list of engine requests; nothing is templated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from analyzer.core import TOKEN_ID_LIMIT, Conversation, Truncation
from analyzer.lax_json import flag, whole


class CompletionsDialect:
    """Completions: prompts given as text or token ids, one or many a body."""

    name = "completions"
    path = "/v1/completions"

    def conversations(self, body: Mapping[str, Any]) -> tuple[Conversation, ...]:
        """One conversation a prompt: `prompt` is str, list[str], list[int] or list[list[int]].

        `n`, `echo` and what is sampled change no prompt.
        """
        if body.get("prompt_embeds") is not None:
            raise ValueError("the prompt is given as embeddings, which have no token ids")
        prompts, suffix = _prompts(body.get("prompt")), body.get("suffix")
        if suffix is not None and not all(isinstance(item, str) for item in prompts):
            raise ValueError("suffix needs a prompt given as text")  # renderers/online_renderer.py:640
        # A default of True, unlike chat (completion/protocol.py:133).
        special = flag(body, "add_special_tokens", default=True)
        return tuple(
            Conversation(
                dialect=self.name,
                prompt_index=index,
                text=item if isinstance(item, str) else None,
                token_ids=None if isinstance(item, str) else tuple(map(int, item)),
                add_special_tokens=special and isinstance(item, str),
                choices=whole(body, "n") or 1,
                suffix=suffix,
                truncation=_truncation(body),
            )
            for index, item in enumerate(prompts)
        )


def _truncation(body: Mapping[str, Any]) -> Truncation | None:
    """The length a prompt is cut to; room for output is always left, as null `max_tokens` is 16 (:433)."""
    tokens = whole(body, "truncate_prompt_tokens")
    if tokens is None:
        return None
    if tokens == 0:
        raise ValueError("the server refuses to cut a prompt to nothing")
    return Truncation(tokens=tokens, side=body.get("truncation_side"), reserves_output=True)


def _prompts(prompt: Any) -> list[Any]:
    """The engine's prompts: text and ids do not mix in a list (completion/protocol.py:48-54)."""
    if (isinstance(prompt, str) and prompt) or _is_ids(prompt):
        return [prompt]
    items = prompt if isinstance(prompt, list) else []
    if items and all(isinstance(item, str) for item in items):
        return items
    # Within a list of lists even digits in quotes pass for ids.
    listed = [_unquoted(item) for item in items]
    if listed and all(_is_ids(item) for item in listed):
        return listed
    raise ValueError("prompt is neither text, token ids, nor a list of the one or the other")


def _unquoted(ids: Any) -> Any:
    if not isinstance(ids, list):
        return ids
    return [int(item) if isinstance(item, str) and item.isdecimal() else item for item in ids]


def _is_ids(value: Any) -> bool:
    # Whole floats and booleans pass for ids (pydantic's lax mode, seen on the server).
    if not isinstance(value, list) or not value:
        return False
    return all(
        isinstance(item, int | float) and 0 <= item < TOKEN_ID_LIMIT and item == int(item) for item in value
    )


DIALECT = CompletionsDialect()
