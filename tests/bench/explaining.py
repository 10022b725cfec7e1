"""What it costs to say why: a report with causes beside one without, on sessions that lose their prefix."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from analyzer.pipeline import Options, analyze
from analyzer.rendering import prepare
from samples.big_session import big_session
from store.db import Capture
from tests.bench.rounds import Line, medians
from tests.bench.sessions import save

ROUNDS = 3
TEMPLATE = (
    "{% set last = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set last.user = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|{{ m.role }}|>"
    "{% if m.reasoning and loop.index0 > last.user %}<think>{{ m.reasoning }}</think>{% endif %}"
    "{{ m.content }}{% for call in m.tool_calls or [] %}{{ call.function|tojson }}{% endfor %}\n{% endfor %}"
)
"""Keeps reasoning behind the last message of a user only, as many models' templates do."""


def explaining(folder: Path, tokenizer: Path) -> list[Line]:
    """The ratio where a session appends, has a clock at its head, and has its reasoning dropped."""
    prepare()
    model = folder / "strips-reasoning"
    shutil.copytree(tokenizer, model)
    (model / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    changes: dict[str, Callable[[int, dict[str, Any]], None]] = {
        "appends": lambda turn, body: None,
        "clock at the head": _with_clock,
        "reasoning dropped": _with_reasoning,
    }
    return [_line(folder, model, name, change) for name, change in changes.items()]


def _line(folder: Path, tokenizer: Path, name: str, change: Callable[[int, dict[str, Any]], None]) -> Line:
    path = folder / f"{name}.sqlite"
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        for turn, (body, stream) in enumerate(_bodies(change)):
            save(capture, str(turn), turn * 10**9, body, stream)
    found = medians(
        {
            "plain": lambda: _seconds(path, tokenizer, explain=False),
            "explained": lambda: _seconds(path, tokenizer, explain=True),
        },
        ROUNDS,
    )
    return Line(
        f"report with causes / without, {name}",
        f"{found['explained'] / found['plain']:.2f}",
        "<= 2.0",
        f"{found['explained']:.2f} s and {found['plain']:.2f} s of processor time",
    )


def _seconds(path: Path, tokenizer: Path, *, explain: bool) -> float:
    start = time.process_time()
    with Capture.open(str(path)) as capture:
        analyze(capture, Options(tokenizer=str(tokenizer), explain=explain))
    return time.process_time() - start


def _bodies(change: Callable[[int, dict[str, Any]], None]) -> Iterator[tuple[bytes, bytes]]:
    for turn, (body, stream) in enumerate(big_session()):
        given = json.loads(body)
        change(turn, given)
        yield json.dumps(given, ensure_ascii=False, separators=(",", ":")).encode(), stream


def _with_clock(turn: int, body: dict[str, Any]) -> None:
    head = body["messages"][0]
    head["content"] = f"Now: 2026-03-04 12:{turn // 60:02}:{turn % 60:02}\n{head['content']}"


def _with_reasoning(turn: int, body: dict[str, Any]) -> None:
    """Each answer was thought about; at every fourth turn the user says something."""
    messages = []
    for at, message in enumerate(body["messages"]):
        if message["role"] == "assistant":
            message["reasoning"] = f"What does step {at} of this task need, and what may follow from it? " * 4
        messages.append(message)
        if message["role"] == "tool" and at % 12 < 2:
            messages.append({"role": "user", "content": f"Go on with step {at}."})
    body["messages"] = messages
