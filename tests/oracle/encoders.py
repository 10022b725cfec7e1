"""This program's ids of a body, for the tests that hold them against a server's."""

from __future__ import annotations

import json
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from analyzer.core import Reply
from analyzer.registry import plugins
from analyzer.renderers import Job, RenderFailed
from analyzer.rendering import AUTO, render
from analyzer.settings import ServerSettings
from analyzer.sourced_json import wrap
from analyzer.tokens import Tokenizer

GOLDEN = Path(__file__).parent.parent / "golden" / "encoders"

RENDER = ServerSettings(anthropic_disabled_thinking_effort="none")
"""What /render takes disabled thinking for, whatever the endpoint does (scale_out/render/serving.py:166)."""

tokenizer = cache(Tokenizer)


@cache
def golden(model: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((GOLDEN / f"{model}.json").read_text(encoding="utf-8"))
    return read


def jobs_of(directory: Path, path: str, body: Any, clock: datetime, *, sourced: bool = False) -> list[Job]:
    """The body's prompts. Raises ValueError for a refused body, LookupError without a dialect."""
    dialects = [dialect for dialect in plugins("dialects").values() if dialect.path == path]
    if not dialects:
        raise LookupError(f"no dialect reads {path}")
    return [
        Job(
            conversation=conversation,
            reply=Reply(outcome="done"),
            clock=clock,
            tokenizer=tokenizer(directory),
            sourced=sourced,
            settings=RENDER,
        )
        for conversation in dialects[0].conversations(wrap(body) if sourced else body)
    ]


def ids_of(
    model: str, directory: Path, path: str, body: Any, clock: datetime, choice: str = AUTO
) -> list[list[int]] | None:
    """Our ids, one list a prompt; None where the body is refused."""
    try:
        return [render(job, choice).token_ids.tolist() for job in jobs_of(directory, path, body, clock)]
    except (RenderFailed, ValueError):
        return None
