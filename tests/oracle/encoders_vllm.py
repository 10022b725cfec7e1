"""Freezes what a real vLLM makes of the encoders' bodies, and tries random ones against it.

Start a render-only server of vLLM 0.32 (no weights are needed, the model's configuration and tokenizer do):

    vllm launch render DIR --served-model-name NAME --port PORT --tokenizer-mode MODE \\
        --enable-auto-tool-choice --tool-call-parser PARSER

with MODE and PARSER deepseek_v4 or deepseek_v32, or for gpt-oss no mode and the parser `openai`. Then:

    python -m tests.oracle.encoders_vllm freeze NAME URL    # writes tests/golden/encoders/NAME.json
    python -m tests.oracle.encoders_vllm fuzz NAME URL DIR [COUNT [SEED]]    # compares; writes nothing
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx

from tests.oracle.encoder_bodies import CHAT, random_chat, written
from tests.oracle.encoders import GOLDEN, ids_of


def asked(url: str, model: str, path: str, body: dict[str, Any]) -> list[list[int]] | None:
    """The server's ids, one list a prompt; None where it refuses the body."""
    response = httpx.post(f"{url}{path}/render", json={"model": model, **body}, timeout=60)
    if response.status_code != 200:
        return None
    answer = response.json()
    return [item["token_ids"] for item in (answer if isinstance(answer, list) else [answer])]


def freeze(model: str, url: str) -> None:
    dice = random.Random(model)
    cases = [*written(), *((f"random {at}", CHAT, random_chat(dice)) for at in range(40))]
    rows = [
        {"name": name, "path": path, "body": body, "token_ids": asked(url, model, path, body)}
        for name, path, body in cases
    ]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    head = json.dumps(
        {"server": "vllm 0.32.0", "model": model, "rendered_on": datetime.now().date().isoformat()}
    )
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / f"{model}.json").write_text(f'{head[:-1]}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")
    print(f"{len(rows)} bodies, {sum(row['token_ids'] is None for row in rows)} refused")


def fuzz(model: str, url: str, directory: str, count: int = 500, seed: int = 1) -> None:
    dice, results = random.Random(seed), Counter[str]()
    for _ in range(count):
        body = random_chat(dice)
        theirs = asked(url, model, CHAT, body)
        ours = ids_of(model, Path(directory), CHAT, body, datetime.now().astimezone())
        kind = "same" if ours == theirs else "differ"
        results[f"{kind}, {'refused' if theirs is None else 'rendered'}"] += 1
        if ours != theirs and results.total() - results["same, rendered"] < 60:
            print(
                "DIFFER",
                "ours refuses" if ours is None else "theirs refuses" if theirs is None else "",
                json.dumps(body, ensure_ascii=False),
            )
    print(dict(results))


if __name__ == "__main__":
    command, *given = sys.argv[1:]
    if command == "freeze":
        freeze(*given)
    else:
        model, url, directory, *numbers = given
        fuzz(model, url, directory, *map(int, numbers))
