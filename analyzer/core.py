"""The nouns of the analyzer: the frozen shapes that its rooms hand to each other.

No behaviour beyond small properties, and no I/O. Ranges are half-open; the unit is in the name.
`None` is always "not known", never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

type TokenIds = NDArray[np.int32]
"""Shape (tokens,), vocabulary ids as the server's tokenizer gives them."""

TOKEN_ID_LIMIT = 1 << 31
"""Token ids lie below it, from 0 on: what `TokenIds` can hold."""

type Outcome = Literal["done", "eof", "error_event", "reset", "client_gone", "stopped", "open"]
"""How an exchange ended, as the report says it; `eof` is a stream that stopped without its end mark."""

type Verdict = Literal["exact", "mismatch", "unchecked"]
type CacheVerdict = Literal["exact", "server_less", "server_more", "not_reported"]

type CountersVerdict = Literal["agree", "other_traffic", "differ"]
"""How the server's counters stand to a capture; `other_traffic`: it looked up more than was captured."""

type GeneratedSource = Literal["wire", "retokenized"]
"""Where the ids of an answer come from: the server sent them, or its text was tokenized again."""

type Finish = Literal["stop", "stop_string", "length"]
"""Why an answer ended: a stop token, which is sampled and counted; a text to stop at; its length."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of text that came from one field: [char_start, char_end) of the text it lies in.

    `path` is the JSON path in the request body (`messages[3].content`), `path_char` the offset in
    that field's string of the run's first character. Where `exact` is False the run came from the
    field, but its characters cannot be counted off one by one.
    """

    char_start: int
    char_end: int
    path: str
    path_char: int
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The server's own counts, in tokens, whatever spelling it used; None where it said nothing."""

    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    completion_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """A call that an answer asks for; `arguments` as the server wrote them."""

    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One choice of a response. `pieces` are its text as it came: one for each event of a stream.

    `token_ids` are the sampled ids where the server sent them (`return_token_ids`), `token_texts` their texts
    (`logprobs`); both may be empty. A server that parses `thoughts` (reasoning, in pieces too) and
    `tool_calls` out of what the model wrote does not say what that was.
    """

    pieces: tuple[str, ...] = ()
    token_ids: tuple[int, ...] = ()
    token_texts: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    finish: Finish | None = None
    stop_string: str | None = None


UNKNOWN_ID = -1
"""Stands for a sampled token whose id is not known: no prompt holds it, so that nothing can hit its block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """What was sampled for one choice, the stop token included; `UNKNOWN_ID` where nobody said.

    `source` is None where no id is known; `finish` is as in an Answer.
    """

    token_ids: tuple[int, ...] = ()
    source: GeneratedSource | None = None
    finish: Finish | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a response said, read from its body whether it streamed or not.

    `prompt_token_ids` holds one entry per prompt where the server sent ids (`return_token_ids`), and is
    empty where it did not; `answers` one per choice, in the order of their index.
    """

    outcome: Outcome
    usage: Usage = Usage()
    prompt_token_ids: tuple[tuple[int, ...], ...] = ()
    answers: tuple[Answer, ...] = ()
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A prompt's length limit in tokens, and which end of it is cut off.

    `tokens` is -1 for the longest prompt that the model takes, less one token where `reserves_output`.
    `side` is None where the request names none: the server's tokenizer then cuts on the left, and keeps
    the special tokens it adds (vLLM 0.32 renderers/params.py:318-376, 481-520).
    """

    tokens: int
    side: Literal["left", "right"] | None = None
    reserves_output: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One prompt of a request body, normalised as the server normalises it before rendering.

    Exactly one of three is given: `messages` (for a chat template), `text` (a raw prompt) or
    `token_ids`. The strings inside `messages`, `tools` and `text` may be `Sourced` (they then know
    their JSON path); they compare and render like plain ones.

    `suffix` is the text that is to follow the answer to a raw prompt, `choices` the number of answers asked
    for. `truncation` cuts the ids. `merges_system` says that system messages within the conversation are
    put into the first where the template refuses them in place; `disabled_thinking`, where given, holds the
    `template_kwargs` for each effort that may stand for it (`analyzer.anthropic_probes` settles both).
    `tool_choice` is spelt as chat spells it. `chat_template` is the request's own template, or the name of
    one of the tokenizer's. `reasoning_effort` is the request's own field, which gpt-oss takes where others
    read `template_kwargs`.

    `items` is the input of a Responses body as sent, and `instructions` its own: gpt-oss's prompt is made of
    them, and of no message. `messages_problem` says why they make no messages for any other model.
    """

    dialect: str
    prompt_index: int
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[Mapping[str, Any], ...] | None = None
    text: str | None = None
    token_ids: tuple[int, ...] | None = None
    suffix: str | None = None
    template_kwargs: Mapping[str, Any] = field(default_factory=dict)
    reasoning_effort: str | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    add_special_tokens: bool = False
    tool_choice: Any = None
    chat_template: str | None = None
    choices: int = 1
    truncation: Truncation | None = None
    merges_system: bool = False
    disabled_thinking: Mapping[str, Mapping[str, Any]] | None = None
    items: str | tuple[Mapping[str, Any], ...] | None = None
    instructions: str | None = None
    messages_problem: str | None = None

    @property
    def is_chat(self) -> bool:
        """Whether the prompt is made of messages; a few servers take an empty list of them."""
        return self.text is None and self.token_ids is None and self.messages_problem is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendering:
    """The token ids of one prompt and where they came from.

    `source` names who made the ids (`wire`, `server`, `tokenize`, or a local renderer's name).
    `text` is the rendered prompt where a local renderer made it, else None.
    """

    token_ids: TokenIds
    source: str
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Divergence:
    """The first place where a prompt leaves its parent's.

    `token` and `block` are indices in both prompts; `path` is the field of this request's body, or
    of the parent's where this one lacks it, or `template`; `char` the offset in that field's string.
    Both are None where only ids are known and not the text they stand for. `before` and `after` are
    the parent's and this prompt's text from that place on, cut short.
    """

    token: int
    block: int
    path: str | None
    char: int | None
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One cause of one turn's loss, and what it alone costs.

    `cause` is None for a difference that no cause claims. `token` is where the prompt leaves its parent's
    once the findings before this one are restored; `tokens` and `blocks` of the parent's prompt come back
    when this one is restored too, None where that could not be tried. `expected` is the price of something
    wanted; everything else is waste. `before` and `after` are both sides of the difference, cut short.
    `evidence` may quote the prompt; `advice` never does. `seconds` is the time that the tokens took at the
    capture's own rate. The texts are None in a report that shows none.
    """

    cause: str | None
    kind: str | None
    path: str | None
    char: int | None
    token: int
    tokens: int | None
    blocks: int | None
    expected: bool
    before: str | None
    after: str | None
    evidence: str | None
    advice: str | None
    seconds: float | None = None
