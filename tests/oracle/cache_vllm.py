"""Sends made-up traffic to a running vLLM and compares each `cached_tokens` with the prediction.

Not part of the test suite: it needs a server with an empty cache, started with
`--enable-prompt-tokens-details`, and `--num-gpu-blocks-override N` for a pool that evicts.
    python tests/oracle/cache_vllm.py URL MODEL --block-size 32 --num-gpu-blocks N [--chat] [--record FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from analyzer.blocks import Namespace
from analyzer.replay import TokenCache

WORDS = ["red", "green", "dark", "warm", "north", "river", "stone", "cloud", "paper", "iron", "wood"]


def post(url: str, body: dict[str, Any]) -> dict[str, Any]:
    data = json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=120) as response:
        answer: dict[str, Any] = json.load(response)
        return answer


def version(url: str) -> str:
    with urllib.request.urlopen(url + "/version", timeout=10) as response:
        return str(json.load(response)["version"])


class Traffic:
    """Conversations that grow, branch, repeat, and are kept apart by salts."""

    def __init__(self, seed: int, chat: bool, longest: int) -> None:
        self.random = random.Random(seed)
        self.chat = chat
        self.longest = longest
        self.past: list[tuple[list[Any], str | None]] = []

    def more(self, size: int) -> list[Any]:
        if self.chat:
            text = " ".join(self.random.choices(WORDS, k=size))
            return [{"role": "user", "content": text}]
        return [self.random.randrange(1000, 9000) for _ in range(size)]

    def body(self) -> dict[str, Any]:
        pick = self.random.random()
        # Never rely on the order of the past alone: old conversations come back, evicted or not.
        base, salt = self.random.choice(self.past[-40:]) if self.past and pick < 0.85 else ([], None)
        if pick < 0.15:
            base = base[: self.random.randrange(len(base))] if base else base
        if not base:
            salt = self.random.choice([None, None, None, "a", "b"])
        prompt = base if pick > 0.75 and base else base + self.more(self.random.randrange(3, 90))
        if not self.chat and self.random.random() < 0.25:  # the boundary cases: end on a block
            prompt = prompt[: max(32, len(prompt) // 32 * 32)]
        if len(json.dumps(prompt) if self.chat else prompt) > self.longest:
            prompt, salt = self.more(40), None
        body: dict[str, Any] = {"messages" if self.chat else "prompt": prompt}
        body |= {"max_tokens": self.random.choice([1, 2, 5, 17, 33, 60]), "return_token_ids": True}
        body |= {"temperature": 1.0, "seed": self.random.randrange(1 << 30)}
        if salt:
            body["cache_salt"] = salt
        if self.random.random() < 0.06:
            body["prompt_logprobs"] = 0
        if self.random.random() < 0.3:  # ends early, and often
            body["stop_token_ids"] = self.random.sample(range(10000), 900)
        return body

    def remember(self, body: dict[str, Any], choice: dict[str, Any]) -> None:
        said: list[Any] = list(choice.get("token_ids") or [])
        if self.chat:
            said = [{"role": "assistant", "content": choice["message"].get("content") or ""}]
        prompt = body["messages" if self.chat else "prompt"]
        self.past.append((prompt + said, body.get("cache_salt")))


def predict(cache: TokenCache, name: str, row: dict[str, Any]) -> tuple[int | None, int]:
    """The predicted cached tokens of a recorded request (see `row_of`), and the blocks it evicted."""
    ids = np.array(row["prompt"], dtype=np.int32)
    namespace = Namespace(cache_salt=row.get("salt"))
    hit = cache.admit(name, ids, namespace, skip_reading=row.get("skip_reading", False))
    if hit is None:
        return None, 0
    cache.finish(name, row["generated"], ahead_tokens=row.get("ahead_tokens", 0))
    cache.cache.check_integrity()
    return hit.tokens, hit.evicted_blocks


def row_of(body: dict[str, Any], answer: dict[str, Any], ahead: int) -> dict[str, Any]:
    choice = answer["choices"][0]
    prompt = answer.get("prompt_token_ids") or choice["prompt_token_ids"]
    row: dict[str, Any] = {"prompt": prompt, "generated": choice["token_ids"]}
    if "cache_salt" in body:
        row["salt"] = body["cache_salt"]
    if "prompt_logprobs" in body:
        row["skip_reading"] = True
    if choice["finish_reason"] == "stop" and ahead:
        row["ahead_tokens"] = ahead
    row["cached_tokens"] = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("model")
    parser.add_argument("--block-size", type=int, default=32)
    parser.add_argument("--num-gpu-blocks", type=int, required=True)
    parser.add_argument("--requests", type=int, default=160)
    parser.add_argument("--longest", type=int, default=600, help="tokens; characters with --chat")
    parser.add_argument("--ahead", type=int, default=0, help="1 if the server schedules asynchronously")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--chat", action="store_true")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--note", default="", help="the server's flags, kept in the recording")
    args = parser.parse_args()
    traffic = Traffic(args.seed, args.chat, args.longest)
    cache = TokenCache(args.block_size, args.num_gpu_blocks - 1)
    rows, right, evicted, stopped = [], 0, 0, 0
    for number in range(args.requests):
        body = traffic.body()
        path = "/v1/chat/completions" if args.chat else "/v1/completions"
        answer = post(args.url + path, {"model": args.model, **body})
        traffic.remember(body, answer["choices"][0])
        row = row_of(body, answer, args.ahead)
        predicted, blocks = predict(cache, str(number), row)
        rows.append(row)
        right, evicted = right + (predicted == row["cached_tokens"]), evicted + blocks
        stopped += answer["choices"][0]["finish_reason"] == "stop"
        if predicted != row["cached_tokens"]:
            print(number, "predicted", predicted, "reported", row["cached_tokens"])
    hits = sum(row["cached_tokens"] > 0 for row in rows)
    print(f"{right} of {len(rows)} right; {hits} hits, {evicted} blocks evicted, {stopped} stopped early")
    if args.record:
        record: dict[str, Any] = {
            "made": f"tests/oracle/cache_vllm.py, vLLM {version(args.url)}, {args.note}"
        }
        record |= {"block_size": args.block_size, "num_gpu_blocks": args.num_gpu_blocks, "requests": rows}
        args.record.write_text(json.dumps(record, separators=(",", ":")))


if __name__ == "__main__":
    main()
