"""opencode 1.18.33: its settings, and its script. Its title request comes first and brings no tools."""

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

PROVIDER = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "{env:LOCALITY_PROXY_URL}/v1", "apiKey": KEY},
    "models": {MODEL: {}},
}


def prepare(home: Path) -> None:
    """One provider, its address from the environment that `locality run` sets."""
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True)
    settings = {"provider": {"local": PROVIDER}, "permission": "allow"}
    (folder / "opencode.json").write_text(json.dumps(settings), encoding="utf-8")


def answers(work: Path) -> tuple[Answer, ...]:
    """The task in its own tools."""
    program = str(work / "prices.py")
    both = call(1, "read", filePath=program), call(2, "read", filePath=str(work / "test_prices.py"))
    run = {"command": RUN_TEST, "description": "Run the test"}
    edit = call(4, "edit", filePath=program, oldString=WRONG, newString=RIGHT)
    return with_tools(both, lambda number: call(number, "bash", **run), edit)


CLIENT = Client(
    name="opencode",
    packages=("opencode-ai@1.18.33",),
    commands=(
        f"opencode run -m local/{MODEL} {shlex.quote(TASK)}",
        f"opencode run --continue -m local/{MODEL} {shlex.quote(FOLLOW_UP)}",
    ),
    environment={
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_DISABLE_SHARE": "1",
    },
    prepare=prepare,
    answers=answers,
    is_side=lambda body: not body.get("tools"),
    breaks=(Break(turn=6, path="messages[2].reasoning_content", causes=("template.think_strip",)),),
)
