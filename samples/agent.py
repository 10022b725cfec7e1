"""A scripted agent: plays samples/session.py against OPENAI_BASE_URL, one streamed request a turn.

What it sends back as history is what it received, not the script. Run it with `python -m samples.agent`.
"""

import argparse
import http.client
import json
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from samples.session import Session, Turn, load_session

type Json = dict[str, Any]
START, PACE = datetime(2026, 3, 2, 9, 0, 0, tzinfo=UTC), timedelta(seconds=47)
USER, ASSISTANT, END = "<｜User｜>", "<｜Assistant｜>", "<｜end▁of▁sentence｜>"
OUTPUT, OUTPUT_END = "<｜tool▁output▁begin｜>", "<｜tool▁output▁end｜>"


def clock_line(number: int) -> str:
    """The line that changes every turn; the clock is fake, so that two runs send the same bytes."""
    return f"Current time: {START + number * PACE:%Y-%m-%d %H:%M:%S}"


def post(path: str, body: Json) -> Iterator[Json]:
    """Send a request to OPENAI_BASE_URL and yield the events of its stream."""
    base = urlsplit(os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1"))
    secure = base.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    connection = kind(base.hostname or "127.0.0.1", base.port)
    headers = {
        "Content-Type": "application/json",
        "Authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', 'not-needed')}",
        "User-Agent": "locality-sample-agent/1",
    }
    payload = json.dumps(body, ensure_ascii=False).encode()
    connection.request("POST", base.path.rstrip("/") + path, payload, headers)
    response = connection.getresponse()
    if response.status != 200:
        raise SystemExit(f"{path} answered {response.status}: {response.read(500).decode(errors='replace')}")
    for line in response:
        data = line.removeprefix(b"data:").strip()
        if line.startswith(b"data:") and data != b"[DONE]":
            yield json.loads(data)
    connection.close()


class ChatAgent:
    """Keeps messages, and appends what comes back."""

    path = "/chat/completions"

    def __init__(self, session: Session, clock: str) -> None:
        self.session, self.clock = session, clock
        self.messages: list[Json] = [{"role": "system", "content": session.system}]

    def add(self, number: int, previous: Turn | None, turn: Turn) -> None:
        """What is new in this turn: tool results, the user's words, the clock."""
        if previous:
            for call in self.messages[-1].get("tool_calls", []):
                result = previous.results[call["id"]]
                self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        if turn.user:
            self.messages.append({"role": "user", "content": turn.user})
        if self.clock == "tail":
            self.messages[-1]["content"] += f"\n\n{clock_line(number)}"
        elif self.clock == "head":
            self.messages[0]["content"] = f"{clock_line(number)}\n\n{self.session.system}"

    def body(self) -> Json:
        """The request, all of the history in it."""
        return {"model": "sample", "messages": self.messages, "tools": self.session.tools}

    def hear(self, events: Iterator[Json]) -> Json:
        """Put the deltas of an answer together, keep it as history, return the usage."""
        said: Json = {"role": "assistant", "content": ""}
        usage: Json = {}
        for chunk in events:
            usage = chunk.get("usage") or usage
            for choice in chunk["choices"]:
                _merge(said, choice["delta"])
        self.messages.append(said)
        return usage


def _merge(said: Json, delta: Json) -> None:
    said["content"] += delta.get("content") or ""
    if delta.get("reasoning"):
        said["reasoning"] = said.get("reasoning", "") + delta["reasoning"]
    for part in delta.get("tool_calls") or []:
        calls = said.setdefault("tool_calls", [])
        if part["index"] == len(calls):
            function = {"name": part["function"]["name"], "arguments": ""}
            calls.append({"id": part["id"], "type": "function", "function": function})
        calls[part["index"]]["function"]["arguments"] += part["function"].get("arguments") or ""


class CompletionsAgent:
    """Keeps one growing prompt; tool calls are left out of it, their results are not."""

    path = "/completions"

    def __init__(self, session: Session, clock: str) -> None:
        self.session, self.clock = session, clock
        self.head, self.history = session.system, ""

    def add(self, number: int, previous: Turn | None, turn: Turn) -> None:
        """What is new in this turn, as text."""
        new = [f"{OUTPUT}{result}{OUTPUT_END}" for result in previous.results.values()] if previous else []
        if turn.user:
            new.append(USER + turn.user)
        if self.clock == "tail":
            new.append(f"\n\n{clock_line(number)}")
        elif self.clock == "head":
            self.head = f"{clock_line(number)}\n\n{self.session.system}"
        self.history += "".join(new) + ASSISTANT

    def body(self) -> Json:
        """The request, all of the history in it."""
        return {"model": "sample", "prompt": self.head + self.history, "max_tokens": 1024}

    def hear(self, events: Iterator[Json]) -> Json:
        """Keep the text of an answer, return the usage."""
        usage: Json = {}
        for chunk in events:
            usage = chunk.get("usage") or usage
            self.history += "".join(choice["text"] for choice in chunk["choices"])
        self.history += END
        return usage


def play(dialect: str, clock: str, turns: int | None) -> None:
    """Play the session, one short line a turn."""
    session = load_session()
    agent = ChatAgent(session, clock) if dialect == "chat" else CompletionsAgent(session, clock)
    previous = None
    for number, turn in enumerate(session.turns[:turns]):
        agent.add(number, previous, turn)
        body = {
            **agent.body(),
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_token_ids": True,
        }
        usage = agent.hear(post(agent.path, body))
        details = usage.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens", "?")
        print(
            f"turn {number + 1}: {usage.get('prompt_tokens', '?')} tokens, {cached} cached", file=sys.stderr
        )
        previous = turn


def main() -> None:
    """Play the session as the command line says."""
    parser = argparse.ArgumentParser(description="Play the sample session against OPENAI_BASE_URL.")
    parser.add_argument("--clock", choices=["tail", "head", "none"], default="tail")
    parser.add_argument("--turns", type=int, help="stop after so many turns")
    parser.add_argument("--dialect", choices=["chat", "completions"], default="chat")
    options = parser.parse_args()
    play(options.dialect, options.clock, options.turns)


if __name__ == "__main__":
    main()
