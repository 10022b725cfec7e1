"""What a server may reveal, as a list of checks: what each is good for, how it is told, and what reveals it.

It asks nobody: answers come in, and what they show goes out. The flags are vLLM 0.32's
(entrypoints/launchers/cli_args.py, engine/arg_utils.py); other kinds are `doctor_others`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analyzer import doctor_answers as read
from analyzer.doctor_answers import Answers, Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing a server may reveal: what it is good for, and what to set where it is hidden.

    `needed`: without it the report's numbers are missing or unchecked.
    """

    name: str
    title: str
    good_for: str
    remedy: str
    read: Callable[[Answers], Seen]
    needed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A check with what was seen."""

    check: Check
    seen: Seen


def examined(answers: Answers, checks: Sequence[Check]) -> tuple[Result, ...]:
    """What each check sees in these answers."""
    return tuple(Result(check=check, seen=check.read(answers)) for check in checks)


def lacking(results: Sequence[Result]) -> tuple[Result, ...]:
    """What the report needs and cannot have."""
    return tuple(item for item in results if item.check.needed and item.seen.state in ("hidden", "wrong"))


PROXY = Check(
    name="proxy",
    title="proxy",
    good_for="only what goes through it is recorded",
    remedy="start `locality proxy`, and give the address that it says it listens on",
    read=read.stands_between,
    needed=True,
)
MODEL = Check(
    name="model",
    title="model",
    good_for="which rows are of one model; the longest prompt",
    remedy="name a server that lists its models",
    read=read.model,
)
TOKENIZER = Check(
    name="tokenizer",
    title="tokenizer",
    good_for="prompts become tokens here; without it nothing is rendered or compared",
    remedy="give `locality report --tokenizer DIR`, the folder of the served model",
    read=read.tokenizer,
    needed=True,
)
COUNTERS = Check(
    name="counters",
    title="hit counters",
    good_for="whether others used the cache too, had filled it before, or it was restarted",
    remedy="leave out --disable-log-stats",
    read=read.counters,
)
START_LINE = Check(
    name="start_line",
    title="start line",
    good_for="flags that change prompts (--chat-template, --default-chat-template-kwargs,"
    " --tokenizer-mode): without it they are taken for their defaults",
    remedy='give `--serve-command "LINE"` to proxy, run or report',
    read=read.start_line,
)
CACHED_TOKENS = Check(
    name="cached_tokens",
    title="cached_tokens",
    good_for="the server's own count of reused tokens: without it a prediction is held against nothing",
    remedy="--enable-prompt-tokens-details",
    read=read.cached_tokens,
    needed=True,
)
STREAM_USAGE = Check(
    name="stream_usage",
    title="usage in streams",
    good_for="counts of clients that do not ask for them (aider sends no include_usage)",
    remedy="--enable-force-include-usage",
    read=read.stream_usage,
)

VLLM = (
    Check(
        name="version",
        title="version",
        good_for="whether the rules here are its rules: they are vLLM 0.32's",
        remedy="is it vLLM? Another kind: `locality report --engine NAME`",
        read=read.version,
    ),
    MODEL,
    TOKENIZER,
    Check(
        name="chat_template",
        title="chat template",
        good_for="whether it renders with the template that is beside the tokenizer",
        remedy="--enable-tokenizer-info-endpoint; where it is another, give --serve-command",
        read=read.chat_template,
    ),
    Check(
        name="prefix_caching",
        title="prefix caching",
        good_for="whether anything is reused at all",
        remedy="--enable-prefix-caching; to see it, leave out --disable-log-stats",
        read=read.prefix_caching,
        needed=True,
    ),
    Check(
        name="block_size",
        title="block size",
        good_for="what is reused is whole blocks: without it 16 tokens are assumed",
        remedy="leave out --disable-log-stats, or give `locality report --block-size N`",
        read=read.cache_setting("block_size", "tokens"),
        needed=True,
    ),
    Check(
        name="pool_blocks",
        title="pool size",
        good_for="when blocks are evicted: without it the pool is taken for endless",
        remedy="leave out --disable-log-stats, or give `locality report --pool-blocks N`",
        read=read.cache_setting("num_gpu_blocks", "blocks"),
        needed=True,
    ),
    Check(
        name="hash_algorithm",
        title="block hashes",
        good_for="comparing its KV events with another server's; no prediction needs it",
        remedy="leave out --disable-log-stats",
        read=read.cache_setting("prefix_caching_hash_algo", ""),
    ),
    COUNTERS,
    Check(
        name="render",
        title="/render",
        good_for="the server's own token ids for a captured body: `report --server`, `verify --server`",
        remedy="--enable-scale-out, or `vllm launch render` beside it, which needs no GPU",
        read=read.answers_with(read.RENDER, "token_ids"),
    ),
    Check(
        name="tokenize",
        title="/tokenize",
        good_for="the same for plain bodies, where there is no /render",
        remedy="name the server itself: what stands before it may not pass it on",
        read=read.answers_with("/tokenize", "tokens"),
    ),
    CACHED_TOKENS,
    Check(
        name="token_ids",
        title="token ids",
        good_for="the ids of prompts and answers, where a client asks with return_token_ids",
        remedy="a newer vLLM returns them",
        read=read.token_ids,
    ),
    STREAM_USAGE,
    START_LINE,
)
