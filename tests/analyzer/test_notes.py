"""Notes on rows: retries, firsts, templates that failed, and system messages within the conversation."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from analyzer.pipeline import Options, analyze
from store.db import Capture
from store.records import RequestSeen, ResponseSeen

SECOND = 10**9
TEMPLATE = (
    "{% for m in messages %}{% if m.content == 'break' %}{{ raise_exception('no') }}{% endif %}"
    "<{{ m.role }}>{{ m.content }}\n{% endfor %}"
)
USER = {"role": "user", "content": "Which files are there?"}
SAID = {"role": "assistant", "content": "Two."}
NOTE = {"role": "system", "content": "left: 900"}


@pytest.fixture(scope="module")
def folder(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("noted")
    shutil.copy(sample_tokenizer / "tokenizer.json", made)
    (made / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return made


def labels(folder: Path, path: Path, *requests: tuple[float, list[dict[str, Any]]]) -> list[list[str]]:
    """The labels of each row, for messages sent at these seconds."""
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        for at, (seconds, messages) in enumerate(requests):
            _save(capture, str(at), int(seconds * SECOND), json.dumps({"model": "m", "messages": messages}))
    with Capture.open(str(path)) as capture:
        report = analyze(capture, Options(tokenizer=str(folder))).report
    return [[note.label for note in turn.notes] for turn in report.turns]


def _save(capture: Capture, key: str, at_ns: int, body: str) -> None:
    path = "/v1/chat/completions"
    capture.save_request(
        RequestSeen(
            key=key, started_at_ns=at_ns, method="POST", path=path, query="", headers=(), body=body.encode()
        )
    )
    capture.save_response(
        ResponseSeen(
            key=key,
            status=200,
            headers=(("content-type", "application/json"),),
            body=b"{}",
            chunks=(),
            ttft_ns=None,
            duration_ns=SECOND,
            ended="complete",
            error=None,
        )
    )


def test_an_equal_request_within_seconds_is_a_retry_and_a_later_one_is_not(
    folder: Path, tmp_path: Path
) -> None:
    found = labels(
        folder, tmp_path / "c.sqlite", (0, [USER]), (2, [USER]), (5, [USER]), (60, [USER]), (61, [USER, SAID])
    )
    assert found == [["pair.first"], ["pair.retry"], ["pair.retry"], [], []]


def test_other_bodies_are_no_retries_however_soon(folder: Path, tmp_path: Path) -> None:
    found = labels(folder, tmp_path / "c.sqlite", (0, [USER]), (1, [USER, SAID, USER]))
    assert found == [["pair.first"], []]


def test_a_system_message_within_the_conversation_is_noted(folder: Path, tmp_path: Path) -> None:
    found = labels(folder, tmp_path / "c.sqlite", (0, [NOTE, USER]), (30, [NOTE, USER, SAID, NOTE]))
    assert found == [["pair.first"], ["template.system_inline"]]


def test_a_template_that_failed_says_what_was_tried(folder: Path, tmp_path: Path) -> None:
    broken = {"role": "user", "content": "break"}
    assert labels(folder, tmp_path / "c.sqlite", (0, [broken])) == [["template.error"]]
