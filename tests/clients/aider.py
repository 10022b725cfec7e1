"""aider 0.86.2: its script. It edits by blocks of text instead of tools, and streams without usage.

Its messages about commits go to the weak model, beside the task.
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
    SOLVED,
    TASK,
    TOLD,
    WRONG,
    Break,
    Client,
    answer,
)

WEAK = "weak"
HALF_RIGHT = "return sum(prices) * 1.7"
COMMAND = " ".join(
    (
        f"aider --model openai/{MODEL} --weak-model openai/{WEAK} --edit-format diff --yes-always",
        "--no-pretty --no-show-model-warnings --no-show-release-notes --no-gitignore",
        "--analytics-disable --no-check-update",
        f"--file prices.py --read test_prices.py --auto-test --test-cmd {shlex.quote(RUN_TEST)}",
    )
)


def edit(old: str, new: str) -> str:
    """A change of one line as aider reads it from an answer."""
    return f"prices.py\n```python\n<<<<<<< SEARCH\n    {old}\n=======\n    {new}\n>>>>>>> REPLACE\n```"


def answers(work: Path) -> tuple[Answer, ...]:
    """A correction that fails its test, one that passes, and the answer to the second question."""
    return (
        answer(f"The tax is taken off.\n\n{edit(WRONG, HALF_RIGHT)}", reasoning="Multiply instead."),
        answer(f"A digit was missing. {SOLVED}\n\n{edit(HALF_RIGHT, RIGHT)}", reasoning="It is 1.07."),
        answer(TOLD, reasoning="It was the return statement."),
    )


CLIENT = Client(
    name="aider",
    packages=("aider-chat==0.86.2",),
    pip=True,
    commands=(
        f"{COMMAND} --message {shlex.quote(TASK)}",
        f"{COMMAND} --restore-chat-history --message {shlex.quote(FOLLOW_UP)}",
    ),
    environment={
        "AIDER_ANALYTICS": "false",
        "AIDER_CHECK_UPDATE": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "OPENAI_API_KEY": KEY,
        "GIT_AUTHOR_NAME": "Test",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.org",
        "GIT_COMMITTER_EMAIL": "test@example.org",
    },
    answers=answers,
    asks_usage=False,
    is_side=lambda body: body["model"] == WEAK,
    breaks=(
        # The files of the chat are kept behind the history; a restored history has other line ends.
        Break(turn=2, path="messages[11].content", causes=("history.moving_block",)),
        Break(turn=3, path="messages[11].content", causes=("history.reserialised", "history.edited")),
    ),
    aside="fix: put value-added tax on",
)
