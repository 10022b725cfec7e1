"""Codex 0.171.0: its settings, and its script. It speaks the Responses API alone.

With its own provider, as here, it asks for a WebSocket first, which the proxy refuses.
"""

from __future__ import annotations

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
    Break,
    Client,
    call,
    with_tools,
)

SETTINGS = f"""
model = "{MODEL}"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"
"""
ADDRESS = '-c openai_base_url="$OPENAI_BASE_URL"'
COMMAND = f"codex exec {ADDRESS} --skip-git-repo-check --disable plugins --disable apps"


def prepare(home: Path) -> None:
    """No updates, no telemetry. Its address comes on the command line: its settings know no variables."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(SETTINGS, encoding="utf-8")


def answers(work: Path) -> tuple[Answer, ...]:
    """The task in its own tools."""
    both = (
        call(1, "exec_command", cmd="cat prices.py"),
        call(2, "exec_command", cmd="cat test_prices.py"),
    )
    run = {"cmd": RUN_TEST}
    edit = call(4, "exec_command", cmd=f"sed -i {shlex.quote(f's|return .*|{RIGHT}|')} prices.py")
    return with_tools(both, lambda number: call(number, "exec_command", **run), edit)


CLIENT = Client(
    name="codex",
    packages=("@openai/codex@0.171.0",),
    commands=(f"{COMMAND} {shlex.quote(TASK)}", f"{COMMAND} resume --last {shlex.quote(FOLLOW_UP)}"),
    environment={"CODEX_API_KEY": KEY},
    prepare=prepare,
    answers=answers,
    dialect="responses",
    breaks=(Break(turn=6, path="input[4].content[0].text", causes=("template.think_strip",)),),
)
