"""Where no request comes, the proxy says once where each client reads its base URL."""

from __future__ import annotations

import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from analyzer.clients import CLIENTS
from tests.conftest import Running, process, running


@pytest.fixture(scope="module")
def upstream(sample_tokenizer: Path) -> Iterator[str]:
    with running("samples.upstream", "--tokenizer", str(sample_tokenizer), "--port", "0") as started:
        yield started.url


@contextmanager
def impatient_proxy(upstream: str, folder: Path, seconds: float) -> Iterator[Running]:
    """A proxy that waits so long for its first request."""
    arguments = ("--upstream", upstream, "--capture", str(folder / "c.sqlite"), "--listen", "127.0.0.1:0")
    with running("tests.proxy.impatient", str(seconds), "proxy", *arguments) as started:
        yield started


def test_a_proxy_that_nobody_asks_says_once_where_clients_read_their_base_url(
    upstream: str, tmp_path: Path
) -> None:
    with impatient_proxy(upstream, tmp_path, 1) as proxy:
        assert proxy.speaks()
        time.sleep(0.5)  # for a second time, if there were one
        assert proxy.stop() == 0
    assert proxy.said.count("no request has come") == 1
    assert f"locality doctor --proxy {proxy.url}" in proxy.said
    for client in CLIENTS:
        assert f"  {client.name}: {client.reads}\n" in proxy.said


def test_a_request_to_any_path_is_traffic(upstream: str, tmp_path: Path) -> None:
    with impatient_proxy(upstream, tmp_path, 3) as proxy:
        urllib.request.urlopen(f"{proxy.url}/v1/models", timeout=10).close()
        assert not proxy.speaks(4)
        assert proxy.stop() == 0
    assert "no request has come" not in proxy.said


def test_a_command_that_asked_for_nothing_is_told_where_clients_read_their_base_url(
    upstream: str, tmp_path: Path
) -> None:
    ran = process("run", "--upstream", upstream, "--capture", str(tmp_path / "c"), "--", "true")
    assert ran.returncode == 0
    assert ran.stderr.count("no request reached the proxy. See `locality doctor`.") == 1
    assert f"{CLIENTS[0].name}: {CLIENTS[0].reads}" in ran.stderr


def test_a_command_whose_requests_are_not_recorded_is_told_which_ones_are(
    upstream: str, tmp_path: Path
) -> None:
    script = "import os, urllib.request as u; u.urlopen(os.environ['OPENAI_BASE_URL'] + '/models').close()"
    command = (
        "run",
        "--upstream",
        upstream,
        "--capture",
        str(tmp_path / "c"),
        "--",
        sys.executable,
        "-c",
        script,
    )
    ran = process(*command)
    assert ran.returncode == 0
    assert "1 request reached the proxy, none of them a POST to an endpoint that is recorded" in ran.stderr
    assert "no request reached the proxy" not in ran.stderr


def test_a_command_that_cannot_be_started_is_not_told_where_to_look(upstream: str, tmp_path: Path) -> None:
    ran = process("run", "--upstream", upstream, "--capture", str(tmp_path / "c"), "--", "/no/such/command")
    assert ran.returncode == 127
    assert "cannot start" in ran.stderr
    assert "no request reached" not in ran.stderr
