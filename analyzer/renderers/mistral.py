"""Renders messages for Mistral's models through `mistral-common` (extra `mistral`), as vLLM does.

Rules: vLLM 0.32 renderers/mistral.py, tokenizers/mistral.py. The library reads the messages as sent, but
for the arguments of calls, which the server has parsed by then; it gives ids and no text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.anthropic_probes import settle_encoder
from analyzer.chat_messages import parse_chat_messages
from analyzer.chat_requests import MADE_UP_ID
from analyzer.core import Conversation, Rendering
from analyzer.prompt_ids import truncated
from analyzer.renderers import Job, RenderFailed, is_chat_in
from analyzer.template_arguments import arguments_of
from analyzer.unread_parts import is_unread

_ID_LENGTH = 9
_PASSED_ON = ("truncation", "padding", "max_length")
_DERIVED = {"reasoning_effort", "enable_thinking", "documents"}
_MISSING = "Mistral's models are rendered with mistral-common: pip install 'prompt-locality[mistral]'"


class MistralRenderer:
    """Mistral's own format, through mistral-common (tokenizer mode mistral)."""

    name = "mistral"
    rank = 33

    def fits(self, job: Job) -> bool:
        """Whether there are messages for a tokenizer in Mistral's format."""
        return is_chat_in(job, self.name)

    def render(self, job: Job) -> Rendering:
        """The ids that the library gives. Raises RenderFailed."""
        if job.tokenizer is None:
            raise RenderFailed("no tokenizer: give --tokenizer DIR")
        if not job.conversation.messages:
            raise RenderFailed("mistral renders messages; a raw prompt has none")
        backend = _backend(job.tokenizer.directory)
        try:
            ids = _ids(backend, replace(job, conversation=settle_encoder(job, self._probe)))
        except Exception as error:  # the server takes anything the library raises for a refusal
            raise RenderFailed(f"mistral-common refuses these messages: {error}") from error
        limit = job.conversation.truncation
        cut = truncated(np.array(ids, dtype=np.int32), limit, max_model_len=job.max_model_len)
        return Rendering(token_ids=cut, source=self.name)

    def _probe(self, job: Job) -> tuple[int, ...]:
        return tuple(self.render(job).token_ids.tolist())

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The library makes ids and no text."""
        raise RenderFailed("mistral-common renders token ids without their text")


@cache
def _backend(directory: Path) -> Any:
    """The class of transformers that the server wraps; it is made to look at nothing but the folder."""
    try:
        from mistral_common.protocol.instruct.validator import ValidationMode
        from transformers.tokenization_mistral_common import MistralCommonBackend
    except ImportError as error:
        raise RenderFailed(_MISSING) from error
    if not (directory / "tekken.json").is_file():
        raise RenderFailed(f"{directory} holds no tekken.json, Mistral's tokenizer file")
    return MistralCommonBackend.from_pretrained(
        str(directory), mode=ValidationMode.test, local_files_only=True
    )


def _ids(backend: Any, job: Job) -> Sequence[int]:
    conversation, kwargs = job.conversation, arguments_of(job)
    own = conversation.template_kwargs
    derived = _DERIVED if "reasoning_effort" in own else {"documents"}
    if conversation.items is None and set(own) - derived:
        # Given as chat_template_kwargs, which only Responses take (tokenizers/mistral.py:146).
        raise ValueError("chat_template_kwargs are not supported")
    if taken := [key for key in _PASSED_ON if kwargs.get(key)]:
        raise ValueError(
            f"{taken[0]} among the template's arguments changes the ids, and is not followed here"
        )
    final = conversation.messages[-1].get("role") == "assistant"
    if conversation.add_generation_prompt and final:  # tokenizers/mistral.py:117-143
        raise ValueError("an answer stands last, and another is asked for")
    if conversation.continue_final_message and not final:
        raise ValueError("no answer stands last to be continued")
    version = str(backend.tokenizer.instruct_tokenizer.tokenizer.version.value)
    effort = kwargs.get("reasoning_effort")
    ids: Sequence[int] = backend.apply_chat_template(
        conversation=_messages(conversation),
        tools=kwargs.get("tools"),
        continue_final_message=conversation.continue_final_message,
        tokenize=True,
        return_dict=False,
        **({"reasoning_effort": effort} if int(version.rpartition("v")[2]) >= 15 else {}),
    )
    return ids


def _messages(conversation: Conversation) -> list[dict[str, Any]]:
    """As sent, with parsed arguments and the last nine characters of ids (tokenizers/mistral.py:74-114)."""
    messages = conversation.messages
    if any(call.get("id") == MADE_UP_ID for message in messages for call in message.get("tool_calls") or ()):
        raise ValueError("a call has no id, and the server made one up")
    prepared = []
    for message, parsed in zip(messages, parse_chat_messages(messages, "string"), strict=True):
        changed = dict(message)
        if conversation.items is None and is_unread(message):
            changed["content"] = []  # what was read before the library reads it
        if message["role"] == "assistant":
            changed["tool_calls"] = [
                {**call, "id": call["id"][-_ID_LENGTH:]} for call in parsed.get("tool_calls", ())
            ]
        elif "tool_call_id" in message:
            changed["tool_call_id"] = message["tool_call_id"][-_ID_LENGTH:]
        prepared.append(changed)
    return prepared


RENDERER = MistralRenderer()
