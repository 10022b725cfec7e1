"""Renders messages in DeepSeek V4's format, which vLLM writes in Python and not through a chat template.

Rules: vLLM 0.32 tokenizers/deepseek_v4.py, tokenizers/deepseek_v4_encoding.py, renderers/deepseek_v4.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from analyzer.anthropic_probes import settle_encoder
from analyzer.chat_messages import parse_chat_messages
from analyzer.core import Rendering
from analyzer.dsml import (
    ASSISTANT,
    BOS,
    END_THINK,
    EOS,
    THINK,
    USER,
    NotEncodable,
    last_user_index,
    tool_calls_text,
    tool_schemas,
)
from analyzer.dsml_texts import V4_EFFORT_TEXTS, V4_TOOLS_HEAD, V4_TOOLS_TAIL
from analyzer.renderers import Job, RenderFailed, tokenized
from analyzer.sourced import concat, join
from analyzer.template_arguments import arguments_of
from analyzer.tokenizer_mode import tokenizer_mode_of

_REMINDER = "<｜latest_reminder｜>"
_FIM_BEGIN, _FIM_HOLE, _FIM_END = "<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"
_TASKS = ("action", "query", "authority", "domain", "title", "read_url")
_KEPT_ROLES = ("user", "system", "tool", "latest_reminder", "direct_search_results")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Thinking:
    """How the request wants the model to think; `drop` leaves out the reasoning of earlier turns."""

    on: bool
    effort: str
    drop: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    """A piece of a user turn; `call_id` is set on tool results only."""

    text: str
    is_result: bool = False
    call_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """A message as the format knows it: tool results are blocks of user turns."""

    role: str
    text: str = ""
    blocks: tuple[_Block, ...] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    calls: Sequence[Mapping[str, Any]] = ()
    reasoning: str = ""
    task: str | None = None


class DeepseekV4Renderer:
    """DeepSeek V4's own encoder, as vLLM runs it (tokenizer mode deepseek_v4)."""

    name = "deepseek_v4"
    rank = 30

    def fits(self, job: Job) -> bool:
        """Whether the model is DeepSeek V4, and there are messages, or a gap between two texts to fill."""
        if job.tokenizer is None or not (job.conversation.is_chat or job.conversation.suffix is not None):
            return False
        return tokenizer_mode_of(job.tokenizer, job.settings.tokenizer_mode) == self.name

    def render(self, job: Job) -> Rendering:
        """Encode to text, then tokenize the text, as the server does."""
        return tokenized(job, self.render_text(job), self.name)

    def render_text(self, job: Job, *, generation_prompt: bool = True) -> str:
        """The encoded prompt. The server opens the answer whatever `add_generation_prompt` says."""
        conversation = settle_encoder(job, self.render_text)
        if conversation.text is not None and conversation.suffix is not None:
            return concat((_FIM_BEGIN, conversation.text, _FIM_HOLE, conversation.suffix, _FIM_END))
        if not conversation.is_chat:
            raise RenderFailed("deepseek_v4 renders messages; a raw prompt has none")
        kwargs = arguments_of(replace(job, conversation=conversation))
        try:
            messages = parse_chat_messages(conversation.messages, "openai")
            messages = _with_tools(messages, kwargs.get("tools"))
            return _encode(messages, _thinking(kwargs), answer=generation_prompt)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RenderFailed(f"DeepSeek V4's encoder refuses these messages: {error!r}") from error


def _thinking(kwargs: Mapping[str, Any]) -> _Thinking:
    """On unless switched off; any effort but the named ones is `high` (tokenizers/deepseek_v4.py:28-68)."""
    asked = [kwargs[key] for key in ("thinking", "enable_thinking") if key in kwargs]
    on = any(asked) if asked else True
    effort = kwargs.get("reasoning_effort")
    if effort == "none":
        on = False
    elif effort in ("low", "minimal", "medium"):
        effort = "low"
    elif effort != "max":
        effort = "high"
    return _Thinking(on=on, effort=effort if on else "low", drop=bool(kwargs.get("drop_thinking", True)))


def _with_tools(
    messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]] | None
) -> list[dict[str, Any]]:
    """The request's tools belong to the first system message, made if missing (deepseek_v4.py:38-51)."""
    if not tools:
        return messages
    at = next((at for at, message in enumerate(messages) if message["role"] == "system"), None)
    if at is None:
        return [{"role": "system", "tools": tools}, *messages]
    return [*messages[:at], messages[at] | {"tools": tools}, *messages[at + 1 :]]


def _encode(messages: Iterable[Mapping[str, Any]], thinking: _Thinking, *, answer: bool) -> str:
    turns = _in_call_order(_merged(messages))
    # Tools anywhere keep the reasoning of all turns (deepseek_v4_encoding.py:591).
    thinking = replace(thinking, drop=thinking.drop and not any(turn.tools for turn in turns))
    if thinking.on and thinking.drop:
        turns = _without_developers(turns)
    last_user = last_user_index([turn.role for turn in turns])
    parts = [BOS, V4_EFFORT_TEXTS[thinking.effort] if thinking.on and turns else ""]
    for at, turn in enumerate(turns):
        before = turns[at - 1] if at else None
        after = turns[at + 1] if at + 1 < len(turns) else None
        # Reasoning stays where the last question is still being answered.
        thinks = thinking.on and (not thinking.drop or at >= last_user)
        parts.append(_turn_text(turn, thinks=thinks and not (before and before.task is not None)))
        if answer or after is not None:
            parts.append(_transition(turn, after, thinks=thinks, on=thinking.on))
    return concat(parts)


def _merged(messages: Iterable[Mapping[str, Any]]) -> list[_Turn]:
    """Tool results and neighbouring user messages become one user turn (deepseek_v4_encoding.py:441-499)."""
    turns: list[_Turn] = []
    for message in messages:
        turn = _turn(message)
        before = turns[-1] if turns and turns[-1].role == "user" else None
        # A task ends a user turn for further questions, but not for results; the later one's is lost.
        joins = message["role"] == "tool" or (turn.role == "user" and before and before.task is None)
        if before and joins:
            turns[-1] = replace(before, blocks=before.blocks + turn.blocks)
        else:
            turns.append(turn)
    return turns


def _turn(message: Mapping[str, Any]) -> _Turn:
    role, text = message["role"], _flat(message.get("content"))
    if role == "tool":
        return _Turn(role="user", blocks=(_result(message, text),))
    if role == "user":
        return _Turn(role=role, blocks=(_Block(text=text),), task=message.get("task"))
    return _Turn(
        role=role,
        text=text,
        tools=message.get("tools") or (),
        calls=message.get("tool_calls") or (),
        reasoning=message.get("reasoning") or "",
        task=message.get("task"),
    )


def _result(message: Mapping[str, Any], text: str) -> _Block:
    text = concat(("<tool_result>", text, "</tool_result>"))
    return _Block(text=text, is_result=True, call_id=message.get("tool_call_id", ""))


def _flat(content: Any) -> str:
    """A message's text; its parts are paragraphs (deepseek_v4_encoding.py:169-191, 337)."""
    if content is None or isinstance(content, str):
        return content or ""
    return join("\n\n", [part.get("text", f"[Unsupported {part['type']}]") for part in content])


def _in_call_order(turns: Iterable[_Turn]) -> list[_Turn]:
    """Results in the order of the calls they answer, in the places results had (:502-545)."""
    order: dict[Any, int] = {}
    ordered = []
    for turn in turns:
        if turn.role == "assistant" and turn.calls:
            ids = [call.get("id") or call["function"].get("id") for call in turn.calls]
            order = {call_id: at for at, call_id in enumerate(ids) if call_id}
        elif order and turn.blocks:
            turn = replace(turn, blocks=_sorted_results(turn.blocks, order))
        ordered.append(turn)
    return ordered


def _sorted_results(blocks: tuple[_Block, ...], order: Mapping[Any, int]) -> tuple[_Block, ...]:
    results = sorted((b for b in blocks if b.is_result), key=lambda block: order.get(block.call_id, 0))
    placed = iter(results)
    return tuple(next(placed) if block.is_result else block for block in blocks)


def _without_developers(turns: Sequence[_Turn]) -> list[_Turn]:
    """Before the last question only these roles and assistants are kept (:626-652)."""
    last_user = last_user_index([turn.role for turn in turns])
    kept = (*_KEPT_ROLES, "assistant")
    return [turn for at, turn in enumerate(turns) if at >= last_user or turn.role in kept]


def _turn_text(turn: _Turn, *, thinks: bool) -> str:
    """One turn without what leads to the next (deepseek_v4_encoding.py:236-378)."""
    match turn.role:
        case "system":
            return concat((turn.text, _tools_text(turn.tools)))
        case "developer":
            if not turn.text:
                raise NotEncodable("a developer message is empty")
            return concat((USER, turn.text, _tools_text(turn.tools)))
        case "user":
            return concat((USER, join("\n\n", [block.text for block in turn.blocks])))
        case "latest_reminder":
            return concat((_REMINDER, turn.text))
        case "assistant":
            thought = (turn.reasoning, END_THINK) if thinks else ()
            calls = ("\n\n", tool_calls_text(turn.calls, "tool_calls")) if turn.calls else ()
            return concat((*thought, turn.text, *calls, EOS))
    raise NotEncodable(f"a message has the role {turn.role}")


def _tools_text(tools: Sequence[Mapping[str, Any]]) -> str:
    return concat(("\n\n", V4_TOOLS_HEAD, tool_schemas(tools), V4_TOOLS_TAIL)) if tools else ""


def _transition(turn: _Turn, after: _Turn | None, *, thinks: bool, on: bool) -> str:
    """What opens the answer to a turn, or marks its task (deepseek_v4_encoding.py:380-419)."""
    if after is not None and after.role not in ("assistant", "latest_reminder"):
        return ""
    if turn.task is not None:
        if turn.task not in _TASKS:
            raise NotEncodable(f"the task {turn.task} is unknown")
        opening = ASSISTANT + (THINK if on else END_THINK) if turn.task == "action" else ""
        return f"{opening}<｜{turn.task}｜>"
    opens = turn.role in ("user", "developer")
    opens = opens or (turn.role == "system" and (after is None or after.role == "assistant"))
    return ASSISTANT + (THINK if thinks else END_THINK) if opens else ""


RENDERER = DeepseekV4Renderer()
