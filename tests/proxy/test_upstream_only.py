"""The proxy reaches its upstream and nobody else, and what it writes is its user's alone."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from proxy.probe import probe
from store.db import Capture
from tests.conftest import process, running
from tests.proxy.setup import CHAT, Setup, started
from tests.upstream.faults import ANSWER
from tests.upstream.misbehaving import MisbehavingUpstream


@pytest.fixture(scope="module")
def open_setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    with started(tmp_path_factory.mktemp("open")) as made:
        yield made


def raw(setup: Setup, head: str) -> bytes:
    parts = urlsplit(setup.proxy.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=10) as sock:
        sock.sendall(head.encode())
        answer = b""
        while piece := sock.recv(65536):
            answer += piece
            if ANSWER in answer:
                break
    return answer


@pytest.mark.parametrize(
    "head",
    [
        "GET http://{evil}/x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "POST http://{evil}/v1/chat/completions HTTP/1.1\r\nHost: {evil}\r\nContent-Length: 2\r\n\r\n{{}}",
        "GET http://user:pw@{evil}/x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET //{evil}/x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: {evil}\r\nX-Forwarded-Host: {evil}\r\nForwarded: host={evil}\r\n\r\n",
        "GET /../../x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "CONNECT {evil} HTTP/1.1\r\nHost: {evil}\r\n\r\nGET /x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET @{evil}/x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET {evil}/x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET ftp://{evil}/x HTTP/1.1\r\nHost: {evil}\r\n\r\n",
        "GET /x HTTP/1.1\r\nHost: {evil}\r\nUpgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_whatever_a_request_names_only_the_upstream_is_reached(open_setup: Setup, head: str) -> None:
    setup = open_setup.begin()
    with MisbehavingUpstream() as evil:
        raw(setup, head.format(evil=f"127.0.0.1:{evil.port}"))
        assert evil.received == []
    for received in setup.received:
        assert received.path.startswith("/")
        assert received.header("host") == urlsplit(setup.upstream.url).netloc


def test_a_redirect_is_the_clients_to_follow(tmp_path: Path) -> None:
    with MisbehavingUpstream() as elsewhere, redirecting(elsewhere.url) as upstream, ExitStack() as stack:
        arguments = (
            "--upstream",
            upstream,
            "--capture",
            str(tmp_path / "c.sqlite"),
            "--listen",
            "127.0.0.1:0",
        )
        with running("analyzer", "proxy", *arguments) as proxy:
            setup = Setup(elsewhere, proxy, tmp_path / "c.sqlite", stack)
            connection = setup.connect()
            connection.request("POST", CHAT, b"{}")
            answer = connection.getresponse()
            assert (answer.status, answer.getheader("location")) == (307, f"{elsewhere.url}/x")
            answer.read()
            assert proxy.stop() == 0
        assert elsewhere.received == []  # its questions about the server follow nobody either
    with Capture.open(str(tmp_path / "c.sqlite")) as capture:
        assert {fact.status for fact in capture.facts()} == {307}


@contextmanager
def redirecting(target: str) -> Iterator[str]:
    """A server that sends everybody elsewhere."""
    listener = socket.create_server(("127.0.0.1", 0))

    def answer() -> None:
        while True:
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with sock:
                sock.recv(65536)
                head = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {target}/x\r\nContent-Length: 0\r\n"
                sock.sendall(f"{head}Connection: close\r\n\r\n".encode())

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


def test_the_proxies_of_the_environment_are_passed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MisbehavingUpstream() as upstream, MisbehavingUpstream() as between:
        monkeypatch.setenv("http_proxy", between.url)
        monkeypatch.setenv("no_proxy", "")
        assert {fact.status for fact in probe(upstream.url)} == {200}
        assert between.received == []


@pytest.mark.parametrize(
    "url", ["http://me:hunter22secret@127.0.0.1:1", "http://hunter22secret@127.0.0.1:1/v1"]
)
def test_an_upstream_with_a_password_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    done = process("proxy", "--upstream", url, "--capture", str(tmp_path / "c.sqlite"))
    assert done.returncode == 2
    assert "holds no user and password" in done.stderr
    assert "hunter22" not in done.stderr + done.stdout


def test_all_that_a_run_makes_is_its_users_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    before = os.umask(0)
    try:
        with started(tmp_path) as setup:
            setup.ask("fine")
            setup.recorded()
            made = [*tmp_path.glob("c.sqlite*"), *folder.rglob("*")]
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made}
            private = list(folder.iterdir())
    finally:
        os.umask(before)
    assert {name for name in modes if name.startswith("c.sqlite")} >= {
        "c.sqlite",
        "c.sqlite-wal",
        "c.sqlite-shm",
    }
    assert any(name.startswith("c.sqlite-run-") for name in modes)
    assert {mode for name, mode in modes.items() if name.startswith("c.sqlite")} == {0o600}
    assert [modes[path.name] for path in private] == [0o700]  # what is in there nobody else reaches
