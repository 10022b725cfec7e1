"""What the report tells of the secrets that were replaced: how many, of which kind, where."""

from __future__ import annotations

import json
from pathlib import Path

from store.db import Capture
from store.records import RequestSeen
from tests.captures import Sent, write_capture
from tests.conftest import locality

KEY = "gh" + "p_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
CLEAN = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
BODY = {"model": "m", "messages": [{"role": "user", "content": f"use {KEY}"}], "metadata": {"my key": KEY}}


def test_they_are_counted_by_kind_and_path_in_both_forms(tmp_path: Path, sample_tokenizer: Path) -> None:
    path = write_capture(tmp_path / "c.sqlite", [Sent(body=BODY), Sent(body=BODY), Sent(body=CLEAN)])
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        capture.save_request(
            RequestSeen(
                key="heads",
                started_at_ns=2 * 10**18,
                method="POST",
                path="/v1/chat/completions",
                query="api_key=abcdefgh1&limit=2",
                headers=(("Authorization", "Bearer abcdefgh1234"), ("Accept", "*/*")),
                body=json.dumps(CLEAN).encode(),
            )
        )
    form = ("report", str(path), "--tokenizer", str(sample_tokenizer))
    told = json.loads(locality(*form, "--format", "json").stdout)
    assert [tuple(item.values()) for item in told["capture"]["secrets"]] == [
        ("github-token", "request", "body", "messages[0].content", 2),
        ("github-token", "request", "body", 'metadata["my key"]', 2),
        ("bearer", "request", "headers", "authorization", 1),
        ("query-key", "request", "query", "api_key", 1),
    ]
    noted = [{note["label"] for note in turn["notes"]} for turn in told["turns"]]
    assert ["capture.redacted" in labels for labels in noted] == [True, True, False, False]
    text = locality(*form).stdout
    assert "secrets replaced before anything was written: 4 in bodies, 2 in headers and URLs\n" in text
    assert '  github-token: request messages[0].content ×2, request metadata["my key"] ×2\n' in text
    hidden = locality(*form, "--no-text").stdout
    assert "messages[0].content ×2, request <key1>.<key2> ×2" in hidden


def test_nothing_is_said_where_nothing_was_replaced(tmp_path: Path, sample_tokenizer: Path) -> None:
    path = write_capture(tmp_path / "c.sqlite", [Sent(body=CLEAN)])
    text = locality("report", str(path), "--tokenizer", str(sample_tokenizer)).stdout
    assert "secrets" not in text


def test_a_secret_beside_the_prompt_leaves_the_prompt_as_it_was_sent(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    beside = CLEAN | {"client_metadata": {"turn": json.dumps({"api_key": KEY})}, "prompt_cache_key": KEY}
    sent = [Sent(body=beside), Sent(body=beside | {"messages": BODY["messages"]})]
    path = write_capture(tmp_path / "c.sqlite", sent)
    told = locality("report", str(path), "--tokenizer", str(sample_tokenizer), "--format", "json").stdout
    report = json.loads(told)
    assert sum(item["count"] for item in report["capture"]["secrets"]) == 5
    noted = ["capture.redacted" in {note["label"] for note in turn["notes"]} for turn in report["turns"]]
    assert noted == [False, True]
