"""Codex 0.171.0: its settings, and its script. It speaks the Responses API alone."""

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
    SOLVED,
    TASK,
    TOLD,
    Break,
    Client,
    answer,
    call,
)

SETTINGS = f"""
model = "{MODEL}"
model_provider = "local"
check_for_update_on_startup = false
approval_policy = "never"
sandbox_mode = "danger-full-access"

[model_providers.local]
name = "local"
base_url = "http://127.0.0.1:9/v1"
env_key = "KEY"
wire_api = "responses"

[analytics]
enabled = false

[feedback]
enabled = false

[otel]
exporter = "none"
"""
PROVIDER = '-c model_providers.local.base_url="$LOCALITY_PROXY_URL/v1"'
COMMAND = f"codex exec {PROVIDER} --skip-git-repo-check --disable plugins --disable apps"


def prepare(home: Path) -> None:
    """One provider; its address comes on the command line, as its settings know no variables."""
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(SETTINGS, encoding="utf-8")


def answers(work: Path) -> tuple[Answer, ...]:
    """Read both files, run the test, edit, run it again, answer."""
    both = (
        call(1, "exec_command", cmd="cat prices.py"),
        call(2, "exec_command", cmd="cat test_prices.py"),
    )
    run = {"cmd": RUN_TEST}
    edit = call(4, "exec_command", cmd=f"sed -i {shlex.quote(f's|return .*|{RIGHT}|')} prices.py")
    return (
        answer("I will read both files.", *both, reasoning="The test and the program come first."),
        answer("Now the test itself.", call(3, "exec_command", **run), reasoning="Let me see it fail."),
        answer("", edit, reasoning="It divides by 107 instead of multiplying by 1.07."),
        answer("", call(5, "exec_command", **run), reasoning="Check it."),
        answer(SOLVED, reasoning="It passes."),
        answer(TOLD, reasoning="It was the return statement."),
    )


CLIENT = Client(
    name="codex",
    packages=("@openai/codex@0.171.0",),
    commands=(f"{COMMAND} {shlex.quote(TASK)}", f"{COMMAND} resume --last {shlex.quote(FOLLOW_UP)}"),
    environment={"KEY": KEY},
    prepare=prepare,
    answers=answers,
    dialect="responses",
    breaks=(Break(turn=6, path="input[4].content[0].text", causes=("template.think_strip",)),),
)
