"""Bodies for a server that really generates: the corpus cut short, and conversations that grow."""

from __future__ import annotations

import json
import random
from typing import Any

from tests.corpus.cases import ENDPOINTS, Case
from tests.corpus.setups import SERVED

SHORT = {
    "chat": b'"max_tokens":1,"return_token_ids":true,',
    "completions": b'"max_tokens":1,"return_token_ids":true,',
    "messages": b"",
    "responses": b'"max_output_tokens":1,',
}
"""What is written at the head of a body; a body's own value stands later and wins."""

WORDS = ["amber", "basalt", "cedar", "delta", "ember", "fjord", "grove", "heath", "islet", "jetty"]
TURNS = 5


def short(case: Case) -> bytes:
    """The case's body with a small number of tokens to generate; its own bytes stay as they are."""
    if not case.body.startswith(b"{"):
        return case.body
    return b"{" + SHORT[case.dialect] + case.body[1:]


def traffic() -> list[tuple[str, bytes]]:
    """(path, body) of conversations that grow, branch and are sent again, endpoints taking turns."""
    dice = random.Random(7)
    sent = []
    for turn in range(1, TURNS + 1):
        for dialect in ENDPOINTS:
            sent.append((ENDPOINTS[dialect], _body(dialect, turn)))
            if dice.random() < 0.3:  # the same once more: all but the last block is there
                sent.append(sent[-1])
            if dice.random() < 0.3:  # a branch off an earlier turn
                sent.append((ENDPOINTS[dialect], _body(dialect, turn, branch=dice.randrange(10**6))))
    return sent


def _text(seed: object, words: int) -> str:
    return " ".join(random.Random(str(seed)).choices(WORDS, k=words))


def _body(dialect: str, turns: int, branch: int | None = None) -> bytes:
    """A conversation of so many user turns; with `branch`, the last one says something else."""
    messages: list[dict[str, Any]] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": _text((dialect, turn), 60 + 7 * turn)})
        messages.append({"role": "assistant", "content": _text((dialect, turn, "answer"), 20)})
    messages.pop()
    if branch is not None:
        messages[-1] = {"role": "user", "content": _text((dialect, branch), 50)}
    system = f"Conversation at {dialect}. {_text(dialect, 80)}"
    body: dict[str, Any] = {"model": SERVED, "temperature": 0}
    if dialect == "chat":
        body |= {"max_tokens": 1, "messages": [{"role": "system", "content": system}, *messages]}
    elif dialect == "messages":
        body |= {"max_tokens": 1, "system": system, "messages": messages}
    elif dialect == "responses":
        body |= {"max_output_tokens": 1, "instructions": system, "input": messages}
    else:
        body |= {"max_tokens": 1, "prompt": "\n".join([system, *(item["content"] for item in messages)])}
    return json.dumps(body).encode()
