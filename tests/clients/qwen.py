"""Qwen Code 0.24.4: its settings, and its script. It takes its address from the environment.

Once a task is done it may have its memory written, by an agent with a head and tools of its own.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from samples.session import Answer
from tests.clients.contract import (
    FOLLOW_UP,
    KEY,
    MODEL,
    RIGHT,
    RUN_TEST,
    TASK,
    WRONG,
    Break,
    Client,
    call,
    with_tools,
)

SETTINGS = {
    "general": {"enableAutoUpdate": False},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
}


def prepare(home: Path) -> None:
    """No update, no statistics, no telemetry."""
    (home / ".qwen").mkdir()
    (home / ".qwen" / "settings.json").write_text(json.dumps(SETTINGS), encoding="utf-8")


def answers(work: Path) -> tuple[Answer, ...]:
    """The task in its own tools."""
    program = str(work / "prices.py")
    both = (
        call(1, "read_file", file_path=program),
        call(2, "read_file", file_path=str(work / "test_prices.py")),
    )
    run = {"command": RUN_TEST, "description": "Run the test", "is_background": False}
    edit = call(4, "edit", file_path=program, old_string=WRONG, new_string=RIGHT)
    return with_tools(both, lambda number: call(number, "run_shell_command", **run), edit)


CLIENT = Client(
    name="qwen",
    packages=("@qwen-code/qwen-code@0.24.4",),
    commands=(
        f"qwen --auth-type openai --yolo -p {shlex.quote(TASK)}",
        f"qwen --auth-type openai --yolo --continue -p {shlex.quote(FOLLOW_UP)}",
    ),
    environment={"OPENAI_API_KEY": KEY, "OPENAI_MODEL": MODEL},
    prepare=prepare,
    answers=answers,
    is_side=lambda body: not body["messages"][0]["content"].startswith("You are Qwen Code"),
    breaks=(
        # Resumed, it looks at git again for its system text, and puts the date into the newest message.
        Break(
            turn=6,
            path="messages[0].content",
            causes=("volatile.env_snapshot", "history.moving_block", "template.think_strip"),
        ),
    ),
)
