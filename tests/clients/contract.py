"""What a client's file says of it: packages, settings, command line, and the script it is answered with.

The task is the same for all: look at a small program, see its test fail, correct it, see it pass, answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samples.session import Answer, ToolCall

type Json = dict[str, Any]
MODEL = "served"
KEY = "sk-dummy-4f1c9b7ae2d84c06"
"""A key of no server; that it is in no capture file is tested."""

TASK = "test_prices.py fails. Find out why, correct prices.py, run the test again, and tell me the fault."
WRONG, RIGHT = "return sum(prices) * 100 / 107", "return round(sum(prices) * 1.07, 2)"
PROGRAM = f'''"""Prices with value-added tax, in €."""


def gross(prices):
    """The sum of net prices, tax included."""
    {WRONG}
'''
TEST = """from prices import gross

assert gross([10.0, 20.0]) == 32.1, f"30 € net are 32.10 €, not {gross([10.0, 20.0]):.2f} €"
print("1 passed")
"""
FOLLOW_UP = "Which line did you change? Answer in one sentence."
RUN_TEST = f"{sys.executable} -B test_prices.py"
SOLVED = "The tax was taken off instead of put on: × 100 / 107 → × 1.07, in whole cents. The test passes."
TOLD = "Line 6 of prices.py, the return statement of gross()."


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """Where a request of the task does not begin with all of the one before, as seen in the bodies by eye.

    `turn` counts the task's requests from 1; `path` is the field, `causes` what the report has to name there.
    """

    turn: int
    path: str
    causes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """One coding agent. `packages` are of npm, or of pip where `pip` is set.

    `prepare` writes settings into the home folder. `commands` are the shell's, each run after the one before.
    `answers` get the work folder. Requests that `is_side` picks are beside the task, and answered with
    `aside`; all others are one conversation, that breaks at `breaks` alone. `asks_usage`: also of a stream.
    """

    name: str
    packages: tuple[str, ...]
    pip: bool = False
    commands: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    prepare: Callable[[Path], None] = lambda home: None
    answers: Callable[[Path], tuple[Answer, ...]]
    is_side: Callable[[Json], bool] = lambda body: False
    aside: str = "Correct the gross price"
    dialect: str = "chat"
    asks_usage: bool = True
    breaks: tuple[Break, ...] = ()


def write_task(work: Path) -> None:
    """The program and its test, in a repository."""
    work.mkdir(parents=True)
    (work / "prices.py").write_text(PROGRAM, encoding="utf-8")
    (work / "test_prices.py").write_text(TEST, encoding="utf-8")
    me = ("-c", "user.name=Test", "-c", "user.email=test@example.org")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), (*me, "commit", "-q", "-m", "Prices")):
        subprocess.run(["git", *arguments], cwd=work, check=True)


def call(number: int, name: str, **arguments: object) -> ToolCall:
    """A tool call as a model writes it: with spaces in its JSON, and characters as they are."""
    return ToolCall(id=f"call_{number:04d}", name=name, arguments=json.dumps(arguments, ensure_ascii=False))


def with_tools(
    both: tuple[ToolCall, ...], run: Callable[[int], ToolCall], edit: ToolCall
) -> tuple[Answer, ...]:
    """Read `both` files, run the test, edit, run it again, answer: in one client's own tools."""
    return (
        answer("I will read both files.", *both, reasoning="The test and the program come first."),
        answer("Now the test itself.", run(3), reasoning="Let me see it fail."),
        answer("", edit, reasoning="It divides by 107 instead of multiplying by 1.07."),
        answer("", run(5), reasoning="Check it."),
        answer(SOLVED, reasoning="It passes."),
        answer(TOLD, reasoning="It was the return statement."),
    )


def answer(content: str, *calls: ToolCall, reasoning: str) -> Answer:
    """One answer of the script."""
    return Answer(content=content, reasoning=reasoning, calls=list(calls))
