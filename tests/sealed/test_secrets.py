"""A sealed capture tells how many secrets were replaced, by kind and place, and nothing else of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analyzer.pipeline import Options
from analyzer.report import SecretCount
from analyzer.sealed_equality import differences
from analyzer.sealing import SealedSink
from store.db import Capture
from store.records import RequestSeen
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality
from tests.sealed.made import KEY, report_of, sealed_copy
from tests.sealed.records import records_of
from tests.sealed.test_share import shared

TOKEN = "gh" + "p_" + "Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2Ji1Hg0Fe9Dc8"
CLEAN = {"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}
BODY = {
    "model": "tiny",
    "messages": [{"role": "user", "content": f"use {TOKEN}"}],
    "metadata": {"canary key": TOKEN},
}
HEAD = RequestSeen(
    key="heads",
    started_at_ns=2 * 10**18,
    method="POST",
    path="/v1/chat/completions",
    query="api_key=abcdefgh1&limit=2",
    headers=(
        ("Authorization", "Bearer abcdefgh1234"),
        ("X-Canary-Token", "abcdefgh12345"),
        ("User-Agent", "<secret:canary-kind:7>"),
    ),
    body=json.dumps(CLEAN).encode(),
)


def told(report_secrets: tuple[SecretCount, ...] | None) -> list[tuple[Any, ...]]:
    assert report_secrets is not None
    return [(item.kind, item.side, item.part, item.path, item.count) for item in report_secrets]


def test_they_are_counted_as_in_the_open_capture_and_names_of_the_clients_are_not_told(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    source = write_capture(tmp_path / "c.sqlite", [Sent(body=BODY), Sent(body=BODY), Sent(body=CLEAN)])
    with Capture.create_or_open(str(source), redaction="secrets") as capture:
        capture.save_request(HEAD)
    copied = sealed_copy(source, tmp_path / "s.sqlite", Options(tokenizer=str(sample_tokenizer)))
    report = report_of(copied, Options())
    known = told(report.secrets)
    assert ("github-token", "request", "body", "messages[0].content", 2) in known
    assert ("bearer", "request", "headers", "authorization", 1) in known
    assert sorted(item[:3] + item[4:] for item in known) == [
        ("api-key", "request", "headers", 1),
        ("bearer", "request", "headers", 1),
        ("github-token", "request", "body", 2),
        ("github-token", "request", "body", 2),
        ("query-key", "request", "query", 1),
    ]
    assert "canary" not in repr(report.secrets)
    text = locality("report", str(copied)).stdout
    assert "secrets replaced before anything was written: 4 in bodies, 3 in headers and URLs" in text


@pytest.mark.parametrize("suffix", [".sqlite", ".json", ".html"])
def test_a_capture_with_secrets_can_be_shared(suffix: str, sample_tokenizer: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "c.sqlite", [Sent(body=BODY, usage=usage(9)), Sent(body=BODY)])
    with Capture.create_or_open(str(source), redaction="secrets") as capture:
        capture.save_request(replace(HEAD, headers=HEAD.headers[:2]))
    output = tmp_path / f"x{suffix}"
    status, said, complaints = shared(source, sample_tokenizer, output)
    assert (status, complaints) == (0, ""), said
    if suffix != ".html":
        found = json.loads(locality("report", str(output), "--format", "json").stdout)
        assert found["capture"]["secrets"][0]["kind"] == "github-token"


def test_a_count_that_differs_is_a_difference(sample_tokenizer: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "c.sqlite", [Sent(body=BODY), Sent(body=CLEAN)])
    options = Options(tokenizer=str(sample_tokenizer))
    report = report_of(sealed_copy(source, tmp_path / "s.sqlite", options), Options())
    original = report_of(source, options)
    assert differences(original, report) == []
    assert report.secrets
    more = replace(report.secrets[0], count=report.secrets[0].count + 1)
    assert differences(original, replace(report, secrets=(more, *report.secrets[1:])))
    assert differences(original, replace(report, secrets=None))


def test_what_was_not_sealed_leaves_the_count_unknown(sample_tokenizer: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Capture.create_or_open(str(path), redaction="sealed") as capture:
        sink = SealedSink(capture, Options(tokenizer=str(sample_tokenizer)), KEY)
        _facts, *records = records_of([Sent(body=BODY), Sent(body=CLEAN)])
        for record in records[:-1]:  # the proxy is killed before the last response
            if isinstance(record, RequestSeen):
                sink.save_request(record)
            elif not isinstance(record, tuple):
                sink.save_response(record)
    report = report_of(path, Options())
    assert report.secrets is None
    text = locality("report", str(path)).stdout
    assert "secrets replaced before anything was written: ?, the capture does not tell of all" in text
