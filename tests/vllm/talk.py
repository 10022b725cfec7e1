"""Clients that talk with a server as agents do: they send its answers back, branch, repeat, and leave.

One client is one thread's; a seed makes its choices. What the server says is random too, so that two runs
with one seed are alike only as far as the answers are.
"""

from __future__ import annotations

import http.client
import json
import random
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from tests.corpus.setups import SERVED

WORDS = "amber basalt cedar delta ember fjord grove heath islet jetty knoll lagoon meadow".split()  # noqa: SIM905
PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look at a place",
        "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
    },
}


@dataclass
class Talk:
    """One conversation: what was said so far, as chat messages, and what every request of it repeats."""

    dialect: str
    system: str
    salt: str | None = None
    tools: bool = False
    messages: list[dict[str, Any]] = field(default_factory=list)


class Client:
    """Sends one request after another.

    Clients with the same `shared` begin their prompts alike. With `sure`, what was sampled can be told from
    every answer: its ids are asked for, and where an endpoint has none, the likeliest token is taken.
    """

    def __init__(self, url: str, seed: object, *, shared: object = 0, sure: bool = False) -> None:
        self.url, self.shared, self.sure = url, shared, sure
        self.dice = random.Random(str(seed))
        self.talks: list[Talk] = []
        self.last: tuple[str, dict[str, Any]] | None = None

    def play(self, requests: int) -> None:
        """So many requests, each after the answer to the one before."""
        for _ in range(requests):
            self.step()

    def step(self) -> None:
        """One request: most go on with a talk; some repeat, branch, are refused, or are cut off."""
        luck = self.dice.random()
        if self.last is not None and luck < 0.08:
            self.post(*self.last)
        elif luck < 0.11:
            self.post(PATHS["chat"], {"model": SERVED, "messages": [{"role": "user", "content": None}]})
        elif luck < 0.16:
            self.list_of_prompts()
        elif luck < 0.20 and self.last is not None and not self.sure:
            self.leave(*self.last)
        else:
            self.go_on()

    def go_on(self) -> None:
        """The next turn of a talk, or of what it was a few turns ago."""
        talk = self.choose()
        if len(talk.messages) > 2 and self.dice.random() < 0.15:
            kept = self.dice.randrange(1, len(talk.messages) // 2 + 1)
            talk.messages = talk.messages[: 2 * kept - 1][:-1]
        talk.messages.append({"role": "user", "content": self.text(self.dice.randrange(5, 70))})
        body = self.body(talk)
        self.last = PATHS[talk.dialect], body
        answer = self.post(*self.last)
        if self.dice.random() < 0.1:
            answer = self.text(12)  # another answer than the server gave
        talk.messages.append({"role": "assistant", "content": answer})
        if talk.tools and self.dice.random() < 0.5:
            self.use_tool(talk)

    def choose(self) -> Talk:
        if len(self.talks) < 3 or self.dice.random() < 0.12:
            dialect = self.dice.choice(list(PATHS))
            system = f"Talk {self.dice.randrange(4)}. " + self.text(
                40, random.Random(f"system {self.shared}")
            )
            salt = self.dice.choice([None, None, None, "salt-a", "salt-b"])
            self.talks.append(
                Talk(dialect, system, salt, tools=dialect == "chat" and self.dice.random() < 0.5)
            )
        return self.dice.choice(self.talks[-6:])

    def use_tool(self, talk: Talk) -> None:
        """A call and its result, as if the answer before had asked for it."""
        arguments = json.dumps({"place": self.dice.choice(WORDS)})
        function = {"name": "look", "arguments": arguments}
        call = {"id": f"c{len(talk.messages)}", "type": "function", "function": function}
        talk.messages[-1] = {
            "role": "assistant",
            "content": talk.messages[-1]["content"],
            "tool_calls": [call],
        }
        talk.messages.append({"role": "tool", "tool_call_id": call["id"], "content": self.text(15)})

    def text(self, words: int, dice: random.Random | None = None) -> str:
        return " ".join((dice or self.dice).choices(WORDS, k=words))

    def body(self, talk: Talk) -> dict[str, Any]:
        dice = self.dice
        body: dict[str, Any] = {"model": SERVED, "temperature": dice.choice([0, 1.0])}
        body["stream"] = dice.random() < 0.5
        if talk.salt:
            body["cache_salt"] = talk.salt
        limit = dice.choice([1, 2, dice.randrange(3, 61), dice.randrange(3, 61)])
        system = {"role": "system", "content": talk.system}
        if talk.dialect == "chat":
            body |= {**self.sampling(limit, body), "messages": [system, *talk.messages]}
            body |= {"tools": [TOOL]} if talk.tools else {}
            body |= {"logprobs": True} if dice.random() < 0.1 else {}
        elif talk.dialect == "completions":
            prompt = "\n".join(item["content"] for item in [system, *talk.messages])
            body |= {**self.sampling(limit, body), "prompt": prompt}
            body |= {"logprobs": 1, "echo": dice.random() < 0.5} if dice.random() < 0.2 else {}
        elif talk.dialect == "messages":
            body |= {"max_tokens": limit, "system": talk.system, "messages": talk.messages}
        else:
            body |= {"max_output_tokens": limit, "instructions": talk.system, "input": talk.messages}
        if self.sure and talk.dialect in ("messages", "responses"):
            body["temperature"] = 0
        return body

    def sampling(self, limit: int, body: dict[str, Any]) -> dict[str, Any]:
        """What chat and completions have in common."""
        dice = self.dice
        said: dict[str, Any] = {"max_tokens": limit, "n": dice.choice([1, 1, 1, 1, 2, 3])}
        if body["stream"] and dice.random() < 0.9:
            said["stream_options"] = {"include_usage": True}
        if self.sure or dice.random() < 0.5:
            said["return_token_ids"] = True
        if dice.random() < 0.1:
            said["stop"] = ["e", "a"]
        if dice.random() < 0.05:
            said["prompt_logprobs"] = 0
        return said

    def list_of_prompts(self) -> None:
        shared = self.text(60, random.Random(f"list {self.shared}"))
        prompts = [
            f"{shared} {self.text(self.dice.randrange(1, 40))}" for _ in range(self.dice.randrange(2, 5))
        ]
        body: dict[str, Any] = {"model": SERVED, "prompt": prompts, "n": self.dice.choice([1, 1, 2])}
        body |= {"max_tokens": self.dice.randrange(1, 40), "stream": self.dice.random() < 0.3}
        body["return_token_ids"] = self.sure or self.dice.random() < 0.5
        self.post(PATHS["completions"], body)

    def leave(self, path: str, body: dict[str, Any]) -> None:
        """Ask once more, as a stream, and hang up within the answer."""
        target = urlsplit(self.url)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=300)
        content = json.dumps(body | {"stream": True})
        connection.request("POST", path, content, {"content-type": "application/json"})
        connection.getresponse().read1(300)
        connection.close()

    def post(self, path: str, body: dict[str, Any]) -> str:
        """The first answer's text."""
        target = urlsplit(self.url)
        connection = http.client.HTTPConnection(target.hostname or "", target.port, timeout=300)
        try:
            connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
            raw = connection.getresponse().read()
        finally:
            connection.close()
        return _text(raw.decode())


def _text(raw: str) -> str:
    if not raw.startswith(("data:", "event:")):
        return _said([json.loads(raw)])
    lines = [line[5:].strip() for line in raw.split("\n") if line.startswith("data:")]
    return _said([json.loads(line) for line in lines if line != "[DONE]"])


def _said(events: list[dict[str, Any]]) -> str:
    text = ""
    for event in events:
        for choice in event.get("choices") or ():
            if choice.get("index") == 0:
                holder = choice.get("message") or choice.get("delta") or {}
                text += holder.get("content") or choice.get("text") or ""
        if event.get("type") == "message":
            text += "".join(block.get("text", "") for block in event["content"])
        delta = event.get("delta")
        if isinstance(delta, dict):
            text += delta.get("text") or ""
        if event.get("type") == "response.output_text.delta":
            text += event["delta"]
        if event.get("object") == "response":
            for item in event.get("output") or ():
                text += "".join(part.get("text", "") for part in item.get("content") or ())
    return text
