"""Made-up traffic for one server's cache: conversations that grow, branch, share a beginning, come again.

Each body depends on the answers before it, so that bodies are made one after another.
"""

from __future__ import annotations

import json
import random
from typing import Any

from tests.corpus.setups import SERVED
from tests.vllm.traffic import WORDS

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


class CacheTraffic:
    """Bodies whose prompts are some multiples of `unit` tokens, the distance at which hits may end."""

    def __init__(self, seed: int, unit: int, longest: int) -> None:
        self.dice = random.Random(seed)
        self.unit, self.longest = unit, longest
        self.chats: list[list[dict[str, str]]] = []
        self.prompts: list[list[int]] = []
        self.systems = [self._words(unit * 2 + self.dice.randrange(unit)) for _ in range(3)]

    def body(self) -> tuple[str, bytes]:
        """The next request: a path and its body."""
        chat = self.dice.random() < 0.5
        prompt = self._chat() if chat else self._ids()
        body: dict[str, Any] = {"model": SERVED, "temperature": 0}
        body["max_tokens"] = self.dice.choice([1, 1, 2, 7, 40, 90])
        body |= {"return_token_ids": True, "messages" if chat else "prompt": prompt}
        if self.dice.random() < 0.04:
            body["prompt_logprobs"] = 0
        return (CHAT if chat else COMPLETIONS), json.dumps(body).encode()

    def remember(self, path: str, body: bytes, answer: dict[str, Any]) -> None:
        """Later bodies may continue this one, with or without its answer."""
        sent, choice = json.loads(body), answer["choices"][0]
        if path == CHAT:
            said = {"role": "assistant", "content": choice["message"].get("content") or ""}
            self.chats.append([*sent["messages"], said])
        else:
            kept = choice["token_ids"] if self.dice.random() < 0.8 else []
            self.prompts.append([*sent["prompt"], *kept])

    def _chat(self) -> list[dict[str, str]]:
        pick = self.dice.random()
        messages = list(self.dice.choice(self.chats[-8:])) if self.chats and pick < 0.75 else []
        if messages and pick < 0.15:  # the same once more
            return messages[:-1]
        if messages and pick < 0.35:  # leave it at an earlier turn
            messages = messages[: 1 + 2 * self.dice.randrange((len(messages) + 1) // 2)]
        if not messages or len(json.dumps(messages)) > 3 * self.longest:
            messages = [{"role": "system", "content": self.dice.choice(self.systems)}]
        return [*messages, {"role": "user", "content": self._words(self.dice.randrange(5, self.unit))}]

    def _ids(self) -> list[int]:
        pick = self.dice.random()
        prompt = list(self.dice.choice(self.prompts[-8:])) if self.prompts and pick < 0.85 else []
        if prompt and pick < 0.3:
            prompt = prompt[: self.dice.randrange(1, len(prompt) + 1)]
        if not prompt or pick < 0.7:
            more = self.dice.randrange(1, 2 * self.unit)
            prompt += [self.dice.randrange(1000, 9000) for _ in range(more)]
        if self.dice.random() < 0.3:  # end where blocks do, or one token past it
            prompt = prompt[: max(1, len(prompt) // self.unit * self.unit + self.dice.randrange(2))]
        return prompt[: self.longest]

    def _words(self, count: int) -> str:
        return " ".join(self.dice.choices(WORDS, k=count))
