"""What servers that are no vLLM may reveal: SGLang and llama.cpp, and any that does not say what it is.

Their words are taken from their sources (SGLang srt/server_args.py, srt/observability/metrics_collector.py,
commit 006b0e3d; llama.cpp tools/server, commit 001d906a), and held against no running server.
"""

from __future__ import annotations

from dataclasses import replace

from analyzer.doctor_answers import CHAT, Answers, Seen, answers_with, cache_setting, found, refused, unknown
from analyzer.doctor_checks import (
    CACHED_TOKENS,
    COUNTERS,
    MODEL,
    START_LINE,
    STREAM_USAGE,
    TOKENIZER,
    VLLM,
    Check,
)


def _label(name: str, noun: str, remedy: str) -> Check:
    return Check(
        name=name,
        title=noun,
        good_for="what a prediction counts in, and when something is evicted",
        remedy=remedy,
        read=cache_setting(name, noun),
    )


def _slots(answers: Answers) -> Seen:
    slots = answers.profile.slots
    return refused(answers, "/props") if slots is None else found(f"{slots} slots")


def _no_ids(answers: Answers) -> Seen:
    return unknown("not known of this kind")


_STREAMS = replace(STREAM_USAGE, remedy="let the client send stream_options.include_usage")
_IDS = Check(
    name="token_ids",
    title="token ids",
    good_for="the server's own ids: without them prompts are rendered here, and held against its counts",
    remedy="none is known",
    read=_no_ids,
)

SGLANG = (
    MODEL,
    TOKENIZER,
    _label("block_size", "tokens a page", "--enable-metrics, or `locality report --block-size N`"),
    _label("num_gpu_blocks", "pages", "--enable-metrics, or `locality report --pool-blocks N`"),
    replace(CACHED_TOKENS, remedy="--enable-cache-report"),
    _IDS,
    _STREAMS,
    START_LINE,
)

LLAMA_CPP = (
    MODEL,
    TOKENIZER,
    Check(
        name="slots",
        title="slots",
        good_for="each keeps the prompt it saw last; without it 4 are assumed",
        remedy="its /props tells them; leave it reachable",
        read=_slots,
    ),
    Check(
        name="chat_template",
        title="chat template",
        good_for="seeing which template the model file brought along; the report does not read it",
        remedy="its /props tells it; leave it reachable",
        read=answers_with("/props", "chat_template"),
    ),
    replace(CACHED_TOKENS, remedy="a newer llama.cpp reports it in usage"),
    _IDS,
    _STREAMS,
    START_LINE,
)

CHECKS = {"vllm": VLLM, "sglang": SGLANG, "llama_cpp": LLAMA_CPP}
"""By the name of an engine (`analyzer.engines`)."""

UNNAMED = (
    MODEL,
    TOKENIZER,
    COUNTERS,
    replace(CACHED_TOKENS, remedy=f"an option of the server; `locality` reads {CHAT}'s usage"),
    _STREAMS,
    START_LINE,
)
"""For a server, or what stands before it, that says not what it is."""
