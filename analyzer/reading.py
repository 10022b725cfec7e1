"""From a captured exchange to the prompts it carried: endpoint, body, conversations, and the reply.

It renders nothing. A body that cannot be read is a sentence on the row, never an exception.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from analyzer import sourced_json
from analyzer.blocks import Namespace
from analyzer.core import Conversation
from analyzer.dialects import Dialect
from analyzer.registry import plugins
from store.records import Exchange

_DEFAULT_COMPLETION = 16
_MOST_CHOICES = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request body, read: its prompts, and what else in it matters for the cache.

    `truncates` says that the body asks for its head to be dropped where it is too long. `max_tokens` is
    where each answer is cut off, `choices` how many are asked for to each prompt. `holds_back` says that
    a stream comes some characters late, so that its pieces do not end where tokens do; `echoes` that an
    answer begins with its prompt.
    `conversations` is empty where the body could not be read; `problem` then says why.
    """

    dialect: str
    model: str | None = None
    cache_salt: str | None = None
    skip_reading: bool = False
    truncates: bool = False
    streams: bool = False
    max_tokens: int | None = None
    choices: int = 1
    holds_back: bool = False
    echoes: bool = False
    conversations: tuple[Conversation, ...] = ()
    problem: str | None = None

    def namespace(self, adapters: frozenset[str]) -> Namespace:
        """What keeps this request's blocks apart from others'; `adapters` are the server's LoRA names."""
        return Namespace(adapter=self.model if self.model in adapters else None, cache_salt=self.cache_salt)


def dialect_of(path: str) -> Dialect | None:
    """The dialect that reads an endpoint, or None."""
    return next((item for item in plugins("dialects").values() if item.path == path), None)


def read_request(
    exchange: Exchange, *, sourced: bool = False, loads: Callable[[bytes], Any] = json.loads
) -> Request:
    """Read a request body; with `sourced`, every string in it knows its JSON path.

    `loads` parses it, as `json.loads` does.
    """
    dialect = dialect_of(exchange.path)
    if dialect is None:
        name = exchange.path.rpartition("/")[2]
        return Request(dialect=name, problem=f"{exchange.path} is recorded but not read by this version")
    if exchange.request.problem:
        return Request(dialect=dialect.name, problem=f"the body is incomplete: {exchange.request.problem}")
    try:
        body = loads(exchange.request.content)
    except RecursionError:
        return Request(dialect=dialect.name, problem="the body is nested too deeply to be read")
    except ValueError as error:
        return Request(dialect=dialect.name, problem=f"the body is not JSON: {error}")
    if not isinstance(body, dict):
        return Request(dialect=dialect.name, problem="the body is JSON but not an object")
    return _read(dialect, sourced_json.wrap(body) if sourced else body)


def reached_the_model(exchange: Exchange) -> bool:
    """Whether the server can have computed this prompt: it was neither refused nor never delivered."""
    if exchange.status is None:
        return exchange.ended in ("client_gone", "stopped", "open")
    return exchange.status < 400


def _read(dialect: Dialect, body: Mapping[str, Any]) -> Request:
    model, salt = body.get("model"), body.get("cache_salt")
    conversations: tuple[Conversation, ...] = ()
    problem = None
    try:
        conversations = dialect.conversations(body)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        problem = f"the body is not understood: {error}"
    return Request(
        dialect=dialect.name,
        model=model if isinstance(model, str) else None,
        cache_salt=salt if isinstance(salt, str) else None,
        skip_reading=_skips_reading(body),
        truncates=body.get("truncate_prompt_tokens") is not None or body.get("truncation") == "auto",
        streams=body.get("stream") is True,
        max_tokens=_max_tokens(dialect, body),
        choices=_choices(body),
        holds_back=_holds_back(body),
        echoes=bool(body.get("echo")),
        conversations=conversations,
        problem=problem,
    )


def _max_tokens(dialect: Dialect, body: Mapping[str, Any]) -> int | None:
    given = [body.get(key) for key in ("max_completion_tokens", "max_output_tokens", "max_tokens")]
    # vLLM 0.32 completion/protocol.py: 16 where nothing is said
    default = [_DEFAULT_COMPLETION] if dialect.name == "completions" else []
    return next((value for value in (*given, *default) if type(value) is int and value > 0), None)


def _choices(body: Mapping[str, Any]) -> int:
    """`n` (protocol.py of chat and completions); what is no number of answers is one."""
    n = body.get("n")
    return n if type(n) is int and 1 <= n <= _MOST_CHOICES else 1


def _holds_back(body: Mapping[str, Any]) -> bool:
    """Whether a text to stop at may begin in one piece and end in the next (v1/engine/detokenizer.py)."""
    stops = body.get("stop") or body.get("stop_sequences") or ()
    return any(
        isinstance(stop, str) and len(stop) > 1 for stop in (stops if isinstance(stops, list) else [stops])
    )


def _skips_reading(body: Mapping[str, Any]) -> bool:
    """Prompt logprobs need every position computed (vLLM 0.32 sampling_params.py:622-629)."""
    echoed = bool(body.get("echo")) and body.get("logprobs") is not None
    return body.get("prompt_logprobs") is not None or echoed
