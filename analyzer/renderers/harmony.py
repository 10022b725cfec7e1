"""Renders messages for gpt-oss in the harmony format, with the `openai-harmony` library (extra `harmony`).

Rules: vLLM 0.32 entrypoints/openai/parser/harmony_utils.py, renderers/online_renderer.py:536-586. The
server works on the messages as sent: no chat template, no content format, no billing line removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.anthropic_probes import settle_encoder
from analyzer.core import Rendering
from analyzer.harmony_text import with_fields
from analyzer.harmony_vocabulary import vocabulary_folder
from analyzer.renderers import Job, RenderFailed, is_chat_in
from analyzer.sourced import concat, join

_EFFORTS = ("low", "medium", "high")
_NEW_HEADER = re.compile(r"assistant<\|channel\|>(.+?) to=(.+) <\|constrain\|>(.+)", re.DOTALL)
_MISSING = "gpt-oss is rendered with openai-harmony: pip install 'prompt-locality[harmony]'"


class HarmonyRenderer:
    """The harmony format of gpt-oss, through openai-harmony."""

    name = "harmony"
    rank = 32

    def fits(self, job: Job) -> bool:
        """Whether there are messages for gpt-oss."""
        return is_chat_in(job, self.name)

    def render(self, job: Job) -> Rendering:
        """The ids that the library gives. Raises RenderFailed."""
        return Rendering(token_ids=np.array(_encoded(job)[0], dtype=np.int32), source=self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The text of those ids; the opening of the answer is their end."""
        ids, messages, encoding = _encoded(job)
        text: str = encoding.decode(ids)
        if job.sourced:
            text = with_fields(text, messages, job.conversation.tools or ())
        return text if generation_prompt else text[: text.rindex("<|start|>")]


def _encoded(job: Job) -> tuple[list[int], list[Any], Any]:
    """The ids, the messages that they are of, and the encoding."""
    if job.tokenizer is None:
        raise RenderFailed("no tokenizer: give --tokenizer DIR")
    if not job.conversation.is_chat:
        raise RenderFailed("harmony renders messages; a raw prompt has none")
    encoding = _encoding(job.tokenizer.directory / "tokenizer.json")
    import openai_harmony as harmony

    try:
        instructions, messages = _peeled(
            settle_encoder(job.conversation, job.settings.chat_template).messages
        )
        said = _without_old_analysis([*_preamble(job, instructions), *_said(messages)])
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


def _peeled(messages: Sequence[Mapping[str, Any]]) -> tuple[str | None, Sequence[Mapping[str, Any]]]:
    """A leading system or developer message holds the instructions (harmony_utils.py:282-310)."""
    if not messages or messages[0].get("role") not in ("system", "developer"):
        return None, messages
    return _flat(messages[0].get("content")), messages[1:]


def _preamble(job: Job, instructions: str | None) -> list[Any]:
    """The system message, and a developer message where there is something to tell (:313-350)."""
    import openai_harmony as harmony

    system = harmony.SystemContent.new().with_conversation_start_date(job.clock.strftime("%Y-%m-%d"))
    effort = job.conversation.reasoning_effort
    if effort is not None:
        if effort not in _EFFORTS:
            raise RenderFailed(f"gpt-oss knows no reasoning effort {effort!r}")
        system = system.with_reasoning_effort(harmony.ReasoningEffort[effort.upper()])
    preamble = [harmony.Message.from_role_and_content(harmony.Role.SYSTEM, system)]
    if instructions or job.conversation.tools:
        preamble.append(_developer(instructions, job.conversation.tools or ()))
    return preamble


def _developer(instructions: str | None, tools: Sequence[Mapping[str, Any]] = ()) -> Any:
    """Instructions and function tools; `strict` is not told to the model (:151-207)."""
    import openai_harmony as harmony

    content = harmony.DeveloperContent.new()
    if instructions is not None:
        content = content.with_instructions(instructions)
    functions = [tool["function"] for tool in tools]
    if functions:
        content = content.with_function_tools(
            [
                harmony.ToolDescription.new(
                    name=function["name"],
                    description=function.get("description") or "",
                    parameters=function.get("parameters"),
                )
                for function in functions
            ]
        )
    return harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, content)


def _said(messages: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """The harmony messages of all others; a tool is named by the call that its result answers (:210-227)."""
    names = {
        call.get("id"): call["function"].get("name")
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    for message in messages:
        match message.get("role"):
            case "assistant" if message.get("tool_calls"):
                yield from _called(message)
            case "assistant":
                yield from _answered(message)
            case "tool":
                name = f"functions.{names.get(message.get('tool_call_id', ''), '')}"
                text = _flat(message.get("content")) or ""
                # The recipient follows the channel, where openai-harmony by itself would put it first.
                yield _message("tool", [text], name=name, channel="commentary to=assistant")
            case "system" | "developer":
                if (instructions := _flat(message.get("content"))) is not None:
                    yield _developer(instructions)
            case role:
                yield _message(str(role), _texts(message.get("content")))


def _called(message: Mapping[str, Any]) -> Iterator[Any]:
    """What was said, then thought, then called, with the arguments as they were sent (:364-394)."""
    if text := _flat(message.get("content")):
        yield _message("assistant", [text], channel="commentary")
    if reasoning := message.get("reasoning"):
        yield _message("assistant", [reasoning], channel="analysis")
    for call in message["tool_calls"]:
        function = call.get("function", {})
        yield _message(
            "assistant",
            [function.get("arguments") or ""],
            channel="commentary",
            recipient=concat(("functions.", function.get("name", ""))),
            content_type="json",
        )


def _answered(message: Mapping[str, Any]) -> Iterator[Any]:
    """An answer is final; one without text is left out (:412-440)."""
    if reasoning := message.get("reasoning"):
        yield _message("assistant", [reasoning], channel="analysis")
    texts = _texts(message.get("content"))
    if texts and texts[0]:
        yield _message("assistant", texts, channel="final")


def _message(role: str, texts: Sequence[str], *, name: str | None = None, **header: str) -> Any:
    import openai_harmony as harmony

    made = harmony.Message(
        author=harmony.Author(role=harmony.Role(role), name=name),
        content=[harmony.TextContent(text=text) for text in texts],
        **header,
    )
    for part, text in zip(made.content, texts, strict=True):
        part.text = text  # the library keeps plain strings, which do not know their field
    if "recipient" in header:
        made.recipient = header["recipient"]
    return made


def _texts(content: Any) -> list[str]:
    """Each part by itself: harmony puts nothing between them."""
    if content is None or isinstance(content, str):
        return [content or ""]
    return [part.get("text", "") for part in content]


def _flat(content: Any) -> str | None:
    """All text in a row, None where there is none (harmony_utils.py:261-279)."""
    if content is None or isinstance(content, str):
        return content
    texts = [part if isinstance(part, str) else part.get("text") for part in content]
    known = [text for text in texts if text is not None]
    return join("", known) if known else None


def _without_old_analysis(messages: Sequence[Any]) -> list[Any]:
    """Reasoning before the last final answer is dropped (harmony_utils.py:230-258)."""
    finals = [at for at, message in enumerate(messages) if message.channel == "final"]
    last = finals[-1] if finals else -1
    return [message for at, message in enumerate(messages) if at >= last or message.channel != "analysis"]


RENDERER = HarmonyRenderer()
