"""Compiles a chat template and renders conversations with it, as transformers would, in a sandbox.

It downloads nothing and knows no tokens. The rules are those of `render_jinja_template` of transformers
5.19 (utils/chat_template_utils.py:506) for JSON values: vLLM 0.32 requires transformers below 5.20, where
reasoning is not copied to other names. The environment is transformers' own.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from analyzer.sourced import as_sourced, plain
from analyzer.sourced_json import with_members

if TYPE_CHECKING:
    from analyzer.chat_template_marks import MarkingEnvironment
    from analyzer.chat_template_sandbox import LimitedEnvironment

MAX_SECONDS = 10.0
MAX_CHARS = 64 * 1024 * 1024
_TAG = "CONTINUE_FINAL_MESSAGE_TAG "


class TemplateFailed(ValueError):
    """The template did not compile, raised an error, or went over a limit; the message says where."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedText:
    """A rendering that knows its sources: `text` is a `Sourced`, or plain where nothing is known.

    `unmarked` says that some printed value was computed (a count, say) and carries no source, so that
    an uncovered character need not be template text.
    """

    text: str
    unmarked: bool


class ChatTemplate:
    """A compiled chat template. Renderings of one template run one at a time, from any thread.

    One that has run over its time is not run again: its later renderings fail at once, with that message.
    """

    def __init__(self, source: str, *, max_seconds: float = MAX_SECONDS, max_chars: int = MAX_CHARS) -> None:
        from jinja2 import meta

        from analyzer.chat_template_marks import compile_marked, escapes_all, marking_environment
        from analyzer.chat_template_sandbox import (
            LimitedEnvironment,
            compile_limited,
            limited_environment,
        )

        self.source = source
        self._limits = max_seconds, max_chars
        self._lock = threading.Lock()
        self._ran_over: str | None = None
        self._last: dict[int, Any] = {}
        self._environment = limited_environment(LimitedEnvironment)
        self._marking = marking_environment()
        self._start(self._environment, datetime.min)  # constant expressions are computed at once
        self._start(self._marking, datetime.min)
        try:
            tree = self._environment.parse(source)
            self._template = compile_limited(self._environment, source)
            self._marked = compile_marked(self._marking, source)
        except Exception as error:
            raise TemplateFailed(_message(error, getattr(error, "lineno", None))) from error
        self._escapes = escapes_all(tree)
        self._variables = frozenset(meta.find_undeclared_variables(tree))

    def template_variables(self) -> frozenset[str]:
        """The names that the template reads and does not set itself."""
        return self._variables

    def render(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        clock: datetime,
        kwargs: Mapping[str, Any] | None = None,
    ) -> str:
        """The prompt, a plain string. Values are JSON values, and nothing given is changed.

        Raises `TemplateFailed`.
        """
        chat = self._plain_messages(messages)
        given = _plain(None, tools, documents, kwargs)
        made = self._run(
            self._environment, (chat, *given[1:]), add_generation_prompt, continue_final_message, clock
        )
        return plain(made.text)

    def _plain_messages(self, messages: Iterable[Any]) -> list[Any]:
        """The messages in plain JSON types; those of the rendering before need no second look."""
        made = [item if id(item) in self._last else _as_json(item) for item in messages]
        self._last = {id(item): item for item in made}
        return made

    def render_sourced(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool | str = False,
        clock: datetime,
        kwargs: Mapping[str, Any] | None = None,
    ) -> SourcedText:
        """The same prompt from values that `sourced_json.wrap` made, with the field of each character.

        Raises `TemplateFailed`, with the message that `render` gives.
        """
        given = _lists(messages), _lists(tools), _lists(documents), dict(kwargs or {})
        try:
            return self._run(self._marking, given, add_generation_prompt, continue_final_message, clock)
        except TemplateFailed:
            # An error may name the type of a value; the plain rendering names the types users know.
            given = _plain(messages, tools, documents, kwargs)
            self._run(self._environment, given, add_generation_prompt, continue_final_message, clock)
            raise

    def _start(self, environment: LimitedEnvironment, clock: datetime) -> None:
        from analyzer.chat_template_limits import Run

        seconds, chars = self._limits
        environment.run = Run(time.monotonic() + seconds, chars, clock)

    def _run(
        self,
        environment: LimitedEnvironment | MarkingEnvironment,
        given: tuple[Any, Any, Any, dict[str, Any]],
        add_generation_prompt: bool,
        continue_final_message: bool | str,
        clock: datetime,
    ) -> SourcedText:
        from analyzer.chat_template_limits import TimeUpError
        from analyzer.chat_template_sandbox import chunks_of, template_line

        template = self._template if environment is self._environment else self._marked
        messages, tools, documents, kwargs = given
        with self._lock:
            if self._ran_over is not None:
                raise TemplateFailed(self._ran_over)
            self._start(environment, clock)
            try:
                chat, final = _prepared(messages, tools, documents), None
                if continue_final_message:
                    field = continue_final_message if isinstance(continue_final_message, str) else "content"
                    final = _tag_final(chat, field, self.source)
                variables = dict(
                    messages=chat,
                    tools=tools,
                    documents=documents,
                    add_generation_prompt=add_generation_prompt,
                    **kwargs,
                )
                text = environment.concat(chunks_of(template, variables))
                text = text if final is None else _cut_at_tag(text, final)
                return SourcedText(text=text, unmarked=environment.run.unmarked or self._escapes)
            except Exception as error:
                message = _message(error, template_line(template, error))
                if isinstance(error, TimeUpError):
                    self._ran_over = message
                raise TemplateFailed(message) from error


@lru_cache(maxsize=64)
def compile_template(source: str) -> ChatTemplate:
    """The compiled template of this source text, kept for the next call. Raises `TemplateFailed`."""
    return ChatTemplate(source)


def _message(error: BaseException, line: int | None) -> str:
    text = str(error) or type(error).__name__
    return text if line is None else f"{text} (template line {line})"


def _lists(values: Iterable[Any] | None) -> list[Any] | None:
    return values if values is None or isinstance(values, list) else list(values)


def _plain(*given: Any) -> tuple[Any, Any, Any, dict[str, Any]]:
    messages, tools, documents, kwargs = given
    made = [None if part is None else _as_json(_lists(part)) for part in (messages, tools, documents)]
    return made[0], made[1], made[2], _as_json(dict(kwargs or {}))


def _as_json(value: Any) -> Any:
    """`value` itself where it is made of plain JSON types throughout, else a copy that is."""
    kind = type(value)
    if kind is str or value is None or kind is bool or kind is int or kind is float:
        return value
    if kind is dict:
        for key, item in value.items():
            if type(key) is not str or (type(item) is not str and _as_json(item) is not item):
                break
        else:
            return value
    elif kind is list:
        for item in value:
            if type(item) is not str and _as_json(item) is not item:
                break
        else:
            return value
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, Mapping):
        return {_as_json(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    from transformers.utils.chat_template_utils import _plain_template_data

    return _plain_template_data(value)


def _prepared(messages: list[Any], tools: list[Any] | None, documents: list[Any] | None) -> list[Any]:
    if any(not isinstance(tool, dict) for tool in tools or ()):
        raise TypeError(
            "Tools should either be a JSON schema, or a callable function with type hints "
            "and a docstring suitable for auto-conversion to a schema."
        )
    if any(not isinstance(document, dict) for document in documents or ()):
        raise TypeError("Documents should be a list of dicts with 'title' and 'text' keys!")
    for message in messages:
        if not isinstance(message, dict):
            raise TypeError(
                f"Chat messages should be dicts, dataclasses or pydantic models, but got {message!r}."
            )
    return list(messages)


def _tag_final(chat: list[Any], field: str, source: str) -> str:
    """Append the tag to the last message, in a copy; returns the text that is to be continued."""
    if not chat:
        raise ValueError("continue_final_message is set but the conversation is empty!")
    final = chat[-1].get(field)
    if final is None:
        raise ValueError(f'continue_final_message is set but the final message has no "{field}" to continue!')
    if field not in source:
        raise ValueError(
            f'continue_final_message is set to "{field}" but this is not an accepted field in '
            "the chat_template"
        )
    if not isinstance(final, list | tuple):
        chat[-1] = with_members(chat[-1], {}, {field: final + _TAG})
        return final  # type: ignore[no-any-return]
    for at in range(len(final) - 1, -1, -1):
        if "text" in final[at]:
            text: str = final[at]["text"]
            blocks = [*final[:at], with_members(final[at], {}, {"text": text + _TAG}), *final[at + 1 :]]
            chat[-1] = with_members(chat[-1], {}, {field: blocks})
            return text
    raise ValueError(
        "continue_final_message is set but we could not find any text to continue in the final message!"
    )


def _cut_at_tag(text: str, final: str) -> str:
    if final.strip() not in text or _TAG.strip() not in text:
        raise ValueError(
            "continue_final_message is set but the final message does not appear in the chat after "
            "applying the chat template! This can happen if the chat template deletes portions of "
            "the final message. Please verify the chat template and final message in your chat to "
            "ensure they are compatible."
            f"Final message to continue: {final.strip()}\nRendered chat:\n{text}"
        )
    at = text.rindex(_TAG.strip())
    kept = as_sourced(text)[:at]
    return kept if text[at : at + len(_TAG)] == _TAG else kept.rstrip()
