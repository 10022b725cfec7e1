"""What a server answered when it was asked what it reveals, and what that shows of one thing after another.

It asks nobody, and knows no remedy. What answers look like is vLLM 0.32's (entrypoints/serve,
entrypoints/openai, v1/metrics/loggers.py); for others, only what has the same shape is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from analyzer.counters import Look, looks
from analyzer.servers import ServerProfile
from analyzer.told import json_object
from store.records import ServerFact

CHAT = "/v1/chat/completions"
RENDER = "/v1/chat/completions/render"
STREAM = "streamed"
"""The key of the answer to a stream that did not ask for its usage."""

NEEDS_A_KEY = "asks for an API key; none is sent"
NOT_ASKED = "not asked: --probe sends a request of one token"

UPGRADE_REFUSED = 426
"""What the proxy answers to a WebSocket, and a server of models does not."""

type State = Literal["found", "hidden", "wrong", "unknown"]
"""`wrong`: it is seen, and stands in the report's way. `unknown`: not asked, or no answer tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What one server answered, by path, with what was made of it.

    `tokenizer` is the folder found for it on this machine, else `missing` says why there is none;
    `templates` are the chat templates in there, by name.
    """

    facts: Mapping[str, ServerFact]
    profile: ServerProfile
    tokenizer: str | None = None
    missing: str | None = None
    templates: Mapping[str, str] = field(default_factory=dict)

    def status(self, path: str) -> int | None:
        """The status of an answer; None where none came, or nobody asked."""
        return self.facts[path].status if path in self.facts else None

    def object(self, path: str) -> dict[str, Any] | None:
        """The JSON object of a good answer."""
        return json_object(self.facts[path].body) if self.status(path) == 200 else None

    @property
    def look(self) -> Look | None:
        """Its counters, where it shows them."""
        return next(iter(looks(self.facts.values())), None)

    def label(self, name: str) -> str | None:
        """One setting of its cache."""
        return self.profile.cache_labels.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the answers say of one thing, in a few words."""

    state: State
    told: str


def found(told: object) -> Seen:
    """It is there."""
    return Seen(state="found", told=str(told))


def hidden(told: str) -> Seen:
    """It was asked for, and is not there."""
    return Seen(state="hidden", told=told)


def wrong(told: str) -> Seen:
    """It is there, and not as the report needs it."""
    return Seen(state="wrong", told=told)


def unknown(told: str) -> Seen:
    """Whether it is there cannot be said."""
    return Seen(state="unknown", told=told)


def refused(answers: Answers, path: str) -> Seen:
    """Why a path gave nothing."""
    status = answers.status(path)
    if path not in answers.facts:
        return unknown("not asked")
    if status is None:
        return unknown(f"{path}: {answers.facts[path].body.decode(errors='replace')[:80]}")
    if status == 401:
        return unknown(f"{path} {NEEDS_A_KEY}")
    if status in (400, 422, 429) or status >= 500:
        return unknown(f"{path} answers {status}")
    return hidden(f"{path} answers {status}")


def version(answers: Answers) -> Seen:
    """Its version, where it has a page for it."""
    known = answers.profile.version
    return found(known) if known else refused(answers, "/version")


def model(answers: Answers) -> Seen:
    """The model it lists, and the longest prompt."""
    profile = answers.profile
    if profile.model is None:
        return refused(answers, "/v1/models")
    length = f", up to {profile.max_model_len} tokens" if profile.max_model_len else ""
    return found(f"{profile.model}{length}")


def tokenizer(answers: Answers) -> Seen:
    """The folder on this machine that holds its tokenizer."""
    if answers.tokenizer:
        return found(answers.tokenizer)
    if answers.status("/v1/models") == 401:
        return refused(answers, "/v1/models")
    return hidden((answers.missing or "").partition(";")[0].removeprefix("no tokenizer: "))


def chat_template(answers: Answers) -> Seen:
    """Whether it names another template than the one beside its tokenizer."""
    told = answers.object("/tokenizer_info")
    if told is None:
        return refused(answers, "/tokenizer_info")
    if not isinstance(said := told.get("chat_template"), str):
        return found("no other than the tokenizer's own")
    if not answers.templates:
        return found("it names one, and there is none here to compare it with")
    if said in answers.templates.values():
        return found("the one in the tokenizer's folder")
    return wrong("not the one that the tokenizer's folder holds")


def cache_setting(name: str, noun: str) -> Callable[[Answers], Seen]:
    """What the label `name` of its cache says."""

    def read(answers: Answers) -> Seen:
        value = answers.label(name)
        if value not in (None, "None"):
            return found(f"{value} {noun}".rstrip())
        return (
            hidden("not in /metrics") if answers.status("/metrics") == 200 else refused(answers, "/metrics")
        )

    return read


def prefix_caching(answers: Answers) -> Seen:
    """Whether it reuses anything."""
    value = answers.label("enable_prefix_caching")
    if value is None:
        return hidden("not told") if answers.status("/metrics") == 200 else refused(answers, "/metrics")
    return found("on") if value == "True" else wrong("off: no prompt reuses anything")


def counters(answers: Answers) -> Seen:
    """The counters of looked-up and hit tokens, with the age of what they count."""
    look = answers.look
    if look is None:
        return (
            hidden("not in /metrics") if answers.status("/metrics") == 200 else refused(answers, "/metrics")
        )
    since = "" if look.began_ns is None else f" since {_moment(look.began_ns)}"
    replicas = f", {look.engines} engines with a cache each" if look.engines > 1 else ""
    if not look.queries:
        return found(f"nothing looked up{since}{replicas}")
    return found(f"{look.hits} of {look.queries} tokens hit{since}{replicas}")


def _moment(nanoseconds: int) -> str:
    return datetime.fromtimestamp(nanoseconds / 1e9, UTC).strftime("%Y-%m-%d %H:%M UTC")


def answers_with(path: str, key: str) -> Callable[[Answers], Seen]:
    """Whether a path gives an object that holds `key`."""

    def read(answers: Answers) -> Seen:
        told = answers.object(path)
        return refused(answers, path) if told is None else found(path) if key in told else hidden(path)

    return read


def cached_tokens(answers: Answers) -> Seen:
    """Whether an answer's usage says how many of its tokens were cached."""
    told = answers.object(CHAT)
    if told is None:
        return refused(answers, CHAT) if CHAT in answers.facts else unknown(NOT_ASKED)
    usage = told.get("usage") or {}
    details = usage.get("prompt_tokens_details") or {}
    return hidden("not in usage") if details.get("cached_tokens") is None else found("in usage")


def token_ids(answers: Answers) -> Seen:
    """Whether an answer carries the ids of its prompt."""
    told = answers.object(CHAT)
    if told is None:
        return refused(answers, CHAT) if CHAT in answers.facts else unknown(NOT_ASKED)
    return found("on return_token_ids") if told.get("prompt_token_ids") else hidden("not in the answer")


def stream_usage(answers: Answers) -> Seen:
    """Whether a stream carries its usage where the client did not ask for it."""
    if STREAM not in answers.facts:
        return unknown(NOT_ASKED)
    if answers.status(STREAM) != 200:
        return refused(answers, STREAM)
    there = b'"usage":{' in answers.facts[STREAM].body.replace(b" ", b"")
    return found("in every stream") if there else hidden("only where the client asks")


def start_line(answers: Answers) -> Seen:
    """The line that started it, which no page has whole."""
    told = answers.object("/server_info")
    return unknown("no server tells it" if told is None else "/server_info tells its engine's part alone")


def stands_between(answers: Answers) -> Seen:
    """Whether it is a proxy of this program, by how it refuses a WebSocket."""
    if answers.status("proxy") == UPGRADE_REFUSED:
        return found("it answers as this program's proxy does")
    return wrong("something answers there that is not this program's proxy")
