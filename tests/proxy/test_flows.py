"""Flow files that mitmproxy itself wrote become captures."""

from __future__ import annotations

import gzip
import json
import random
import warnings
from pathlib import Path
from typing import Any

import pytest
from mitmproxy.flow import Error
from mitmproxy.http import Headers, HTTPFlow, Request, Response
from mitmproxy.io import FlowWriter
from mitmproxy.test import tflow

from store.db import Capture
from store.records import Exchange
from tests.conftest import locality

BODY = {"model": "tiny", "messages": [{"role": "user", "content": "Größe?"}]}
ANSWER = {"usage": {"prompt_tokens": 12, "completion_tokens": 3}, "choices": []}


def flow(path: str = "/v1/chat/completions?beta=true", **known: Any) -> HTTPFlow:
    """A finished exchange, with the answer compressed as a server sends it."""
    made = tflow.tflow(
        req=Request.make(
            "POST",
            f"http://localhost:8000{path}",
            json.dumps(BODY),
            Headers(content_type="application/json"),
        )
    )
    made.request.timestamp_start = 1772438400.25
    answer = gzip.compress(json.dumps(ANSWER).encode())
    headers = Headers(
        [
            (b"content-type", b"application/json"),
            (b"content-encoding", b"gzip"),
            (b"x-a", b"1"),
            (b"x-a", b"2"),
        ]
    )
    made.response = Response.make(200, b"", headers)
    made.response.raw_content = answer
    made.response.timestamp_end = 1772438400.75
    for name, value in known.items():
        setattr(made, name, value)
    return made


def flow_file(path: Path, *flows: Any) -> Path:
    with path.open("wb") as file:
        writer = FlowWriter(file)
        for item in flows:
            writer.add(item)
    return path


def imported(file: Path, form: str = "mitmproxy", code: int = 0) -> tuple[list[Exchange], str]:
    capture = file.with_suffix(f".{form}.sqlite")
    made = locality("import", str(file), "--format", form, "-o", str(capture))
    assert made.returncode == code, made.stderr
    with Capture.open(str(capture)) as opened:
        return list(opened.exchanges()), made.stderr


def test_a_flow_comes_with_its_bytes_headers_and_times(tmp_path: Path) -> None:
    ((exchange,), said) = imported(flow_file(tmp_path / "flows", flow()))
    assert (exchange.path, exchange.query) == ("/v1/chat/completions", "beta=true")
    assert json.loads(exchange.request.content) == BODY
    assert json.loads(exchange.response.content) == ANSWER
    assert [name for name, _ in exchange.response_headers].count("x-a") == 2
    assert exchange.started_at_ns == 1772438400_250_000_000
    assert (exchange.duration_ns, exchange.ttft_ns, exchange.ended) == (500_000_000, None, "complete")
    assert "1 exchanges imported, 0 not read" in said


def test_flows_that_broke_off_and_other_flows_are_told_apart(tmp_path: Path) -> None:
    file = flow_file(
        tmp_path / "flows",
        tflow.ttcpflow(),
        flow("/v1/models"),
        flow(response=None, error=Error("connection lost")),
        flow(response=None, error=None),
    )
    (broken, silent), said = imported(file)
    assert (broken.ended, broken.status, broken.error) == ("reset", None, "connection lost")
    assert (silent.ended, silent.status) == ("open", None)
    assert "1 requests to other endpoints are left out" in said
    assert "1 exchanges are without an answer" in said


def test_a_streamed_body_that_mitmproxy_did_not_keep_is_said(tmp_path: Path) -> None:
    streamed, whole = flow(), flow()
    streamed.request.raw_content = None
    exchanges, said = imported(flow_file(tmp_path / "flows", streamed, whole), code=1)
    assert len(exchanges) == 1
    assert "flow 1: the request's body is not in the file" in said


def test_a_file_that_breaks_off_keeps_the_flows_before(tmp_path: Path) -> None:
    file = flow_file(tmp_path / "flows", flow(), flow(), flow())
    file.write_bytes(file.read_bytes()[:-100])
    exchanges, said = imported(file, code=1)
    assert len(exchanges) == 2
    assert "flow 3: the file breaks off" in said


@pytest.mark.parametrize("seed", range(30))
def test_no_damage_of_a_file_ends_in_a_traceback(tmp_path: Path, seed: int) -> None:
    file = flow_file(tmp_path / "flows", flow(), flow())
    rng, damaged = random.Random(seed), bytearray(file.read_bytes())
    for _ in range(3):
        damaged[rng.randrange(len(damaged))] = rng.randrange(256)
    file.write_bytes(damaged)
    made = locality("import", str(file), "--format", "mitmproxy", "-o", str(tmp_path / "c.sqlite"))
    assert made.returncode in (0, 1)
    assert "exchanges imported" in made.stderr


def test_mitmproxys_own_har_gives_the_same_exchanges_as_its_flows(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a library that mitmproxy's addons load
        from mitmproxy.addons.savehar import SaveHar
    flows = [flow(), flow("/v1/completions")]
    archive = tmp_path / "session.har"
    archive.write_text(json.dumps(SaveHar().make_har(flows)), encoding="utf-8")
    by_flow, _ = imported(flow_file(tmp_path / "flows", *flows))
    by_har, _ = imported(archive, "har")
    for one, other in zip(by_flow, by_har, strict=True):
        assert (one.path, one.query, one.status) == (other.path, other.query, other.status)
        assert one.request.content == other.request.content
        assert one.response.content == other.response.content
