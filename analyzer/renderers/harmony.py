"""Renders gpt-oss's prompts in the harmony format, with the `openai-harmony` library (extra `harmony`).

Rules: vLLM 0.32 entrypoints/openai/parser/harmony_utils.py, renderers/online_renderer.py:383-478 and 536-586.
The server works on messages, and on a Responses body's items, as they were sent: no chat template, no
content format, no billing line removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.anthropic_probes import settle_encoder
from analyzer.core import Rendering
from analyzer.harmony_messages import developer, flat, from_items, from_messages, message, told
from analyzer.harmony_text import with_fields
from analyzer.harmony_vocabulary import vocabulary_folder
from analyzer.prompt_ids import truncated
from analyzer.renderers import Job, RenderFailed
from analyzer.template_arguments import withholds_tools
from analyzer.tokenizer_mode import tokenizer_mode_of

_EFFORTS = ("low", "medium", "high")
_NEW_HEADER = re.compile(r"assistant<\|channel\|>(.+?) to=(.+) <\|constrain\|>(.+)", re.DOTALL)
_START_DATE = "VLLM_SYSTEM_START_DATE"
_IN_SYSTEM = "VLLM_GPT_OSS_HARMONY_SYSTEM_INSTRUCTIONS"
_MISSING = "gpt-oss is rendered with openai-harmony: pip install 'prompt-locality[harmony]'"


class HarmonyRenderer:
    """The harmony format of gpt-oss, through openai-harmony."""

    name = "harmony"
    rank = 32

    def fits(self, job: Job) -> bool:
        """Whether there are messages or items for gpt-oss."""
        if job.tokenizer is None or not _is_for_harmony(job):
            return False
        return tokenizer_mode_of(job.tokenizer, job.settings.tokenizer_mode) == self.name

    def render(self, job: Job) -> Rendering:
        """The ids that the library gives. Raises RenderFailed."""
        ids = np.array(_encoded(job)[0], dtype=np.int32)
        # Chat and Anthropic bodies are never cut (online_renderer.py:536-586).
        asked = job.conversation.truncation if job.conversation.items is not None else None
        return Rendering(token_ids=truncated(ids, asked, max_model_len=job.max_model_len), source=self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The text of those ids; the opening of the answer is their end."""
        ids, messages, encoding = _encoded(job)
        text: str = encoding.decode(ids)
        if job.sourced:
            text = with_fields(text, messages, job.conversation.tools or ())
        return text if generation_prompt else text[: text.rindex("<|start|>")]


def _is_for_harmony(job: Job) -> bool:
    return job.conversation.is_chat or job.conversation.items is not None


def _encoded(job: Job) -> tuple[list[int], list[Any], Any]:
    """The ids, the messages that they are of, and the encoding."""
    if job.tokenizer is None:
        raise RenderFailed("no tokenizer: give --tokenizer DIR")
    if not _is_for_harmony(job):
        raise RenderFailed("harmony renders messages; a raw prompt has none")
    encoding = _encoding(job.tokenizer.directory / "tokenizer.json")
    import openai_harmony as harmony

    try:
        settled = settle_encoder(job, lambda asked: _encoded(asked)[0])
        said = _without_old_analysis(_conversation(replace(job, conversation=settled)))
        ids = encoding.render_conversation_for_completion(
            harmony.Conversation.from_messages(said),
            harmony.Role.ASSISTANT,
            config=harmony.RenderConversationConfig(auto_drop_analysis=False),
        )
    except (ValueError, KeyError, TypeError, AttributeError, harmony.HarmonyError) as error:
        raise RenderFailed(f"the harmony format does not hold these messages: {error!r}") from error
    return _with_old_headers(ids, encoding), said, encoding


def _with_old_headers(ids: list[int], encoding: Any) -> list[int]:
    """Calls with the recipient before the channel, as vLLM rewrites them (harmony_utils.py:461-525).

    oss-harmony puts it behind the channel; in what openai-harmony gives there is nothing to rewrite.
    """
    start, channel, message = (
        encoding.encode(f"<|{name}|>", allowed_special="all")[0] for name in ("start", "channel", "message")
    )
    last = len(ids) - 1 - ids[::-1].index(message)
    written: list[int] = []
    at = 0
    while at < len(ids):
        end = ids.index(message, at) if ids[at] == start and at < last else at
        found = _NEW_HEADER.fullmatch(encoding.decode(ids[at + 1 : end])) if end > at else None
        if found:
            name, recipient, kind = found.groups()
            ahead, behind = encoding.encode(f"assistant to={recipient}"), encoding.encode(f"{name} {kind}")
            written += [start, *ahead, channel, *behind]
        else:
            written += ids[at:end] or [ids[at]]
        at = max(end, at + 1)
    return written


@cache
def _encoding(tokenizer_json: Path) -> Any:
    try:
        import openai_harmony as harmony
    except ImportError as error:
        raise RenderFailed(_MISSING) from error
    try:
        os.environ.setdefault("TIKTOKEN_ENCODINGS_BASE", str(vocabulary_folder(tokenizer_json)))
        return harmony.load_harmony_encoding(harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    except (OSError, ValueError, KeyError, harmony.HarmonyError) as error:
        raise RenderFailed(f"openai-harmony cannot load gpt-oss's vocabulary: {error}") from error


def _conversation(job: Job) -> list[Any]:
    """All harmony messages of a prompt, the preamble first."""
    conversation = job.conversation
    if job.settings.environment.get(_IN_SYSTEM, "0") != "0":
        raise RenderFailed(f"the server has {_IN_SYSTEM} set, and such prompts are not rendered here")
    items = conversation.items
    if items is None:
        instructions, messages = _peeled(conversation.messages, told)
        return [*_preamble(job, instructions), *from_messages(messages)]
    if isinstance(items, str):
        return [*_preamble(job, conversation.instructions), message("user", [items])]
    if conversation.instructions is not None:
        return [*_preamble(job, conversation.instructions), *from_items(items)]
    instructions, rest = _peeled(items, lambda item: flat(item.get("content")))
    return [*_preamble(job, instructions), *from_items(rest)]


def _peeled(
    given: Sequence[Mapping[str, Any]], text_of: Callable[[Mapping[str, Any]], str | None]
) -> tuple[str | None, Sequence[Mapping[str, Any]]]:
    """A leading system or developer message holds the instructions (harmony_utils.py:282-310)."""
    if not given or given[0].get("role") not in ("system", "developer"):
        return None, given
    return text_of(given[0]), given[1:]


def _preamble(job: Job, instructions: str | None) -> list[Any]:
    """The system message, and a developer message where there is something to tell (:313-350)."""
    import openai_harmony as harmony

    day = job.settings.environment.get(_START_DATE) or job.clock.strftime("%Y-%m-%d")
    system = harmony.SystemContent.new().with_conversation_start_date(day)
    effort = job.conversation.reasoning_effort
    if effort is not None:
        if effort not in _EFFORTS:
            raise RenderFailed(f"gpt-oss knows no reasoning effort {effort!r}")
        system = system.with_reasoning_effort(harmony.ReasoningEffort[effort.upper()])
    preamble = [harmony.Message.from_role_and_content(harmony.Role.SYSTEM, system)]
    # Only chat knows of tools that are withheld (online_renderer.py:282-287).
    withheld = job.conversation.items is None and withholds_tools(job)
    tools = () if withheld else job.conversation.tools or ()
    if instructions or tools:
        preamble.append(developer(instructions, tools))
    return preamble


def _without_old_analysis(messages: Sequence[Any]) -> list[Any]:
    """Reasoning before the last final answer is dropped (harmony_utils.py:230-258)."""
    finals = [at for at, message in enumerate(messages) if message.channel == "final"]
    last = finals[-1] if finals else -1
    return [message for at, message in enumerate(messages) if at >= last or message.channel != "analysis"]


RENDERER = HarmonyRenderer()
