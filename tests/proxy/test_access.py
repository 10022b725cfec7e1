"""Who may use the proxy, whom it reaches, and what becomes of the token, over sockets."""

from __future__ import annotations

import http.client
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from mitmproxy.http import Headers, HTTPFlow, Request
from mitmproxy.test import tflow

from proxy.access import Access, Gate, access_for, is_loopback
from store.db import Capture
from tests.conftest import locality, process, running
from tests.proxy.setup import CHAT, KEY, Setup, started
from tests.proxy.test_planted_secrets import files
from tests.upstream.faults import ANSWER
from tests.upstream.misbehaving import MisbehavingUpstream

TOKEN = "a-token_for-Tests-0123456789"
GENERATED = re.compile(r"/t/([A-Za-z0-9_-]{43})/v1")
GIVEN = {
    "the base URL": (f"/t/{TOKEN}{CHAT}", {}),
    "its own header": (CHAT, {"X-Locality-Token": TOKEN}),
    "the API key": (CHAT, {"Authorization": f"Bearer {TOKEN}"}),
    "Anthropic's API key": (CHAT, {"X-Api-Key": TOKEN}),
}
NOT_GIVEN = {
    "nothing": (CHAT, {}),
    "a key": (CHAT, {"Authorization": f"Bearer {KEY}"}),
    "a wrong token": (f"/t/{TOKEN[:-1]}{CHAT}", {}),
    "a longer token": (CHAT, {"X-Locality-Token": TOKEN + "0"}),
    "a token elsewhere": (f"{CHAT}?token={TOKEN}", {"Cookie": f"token={TOKEN}"}),
    "no ASCII": (CHAT, {"X-Api-Key": "ä" * 40}),
}


@contextmanager
def guarded(folder: Path, listen: str, *options: str) -> Iterator[Setup]:
    """A proxy that asks for a token."""
    capture = folder / "c.sqlite"
    with MisbehavingUpstream() as upstream, ExitStack() as connections:
        arguments = ("--upstream", upstream.url, "--capture", str(capture), "--listen", listen)
        with running("analyzer", "proxy", *arguments, *options) as proxy:
            port = urlsplit(proxy.url).port
            proxy.url = f"http://127.0.0.1:{port}"
            yield Setup(upstream, proxy, capture, connections)


def post(setup: Setup, path: str, headers: dict[str, str], body: bytes = b"{}") -> tuple[int, bytes]:
    connection = setup.connect()
    encoded = {name: value.encode() for name, value in headers.items()}
    connection.request("POST", path, body, encoded)
    with connection.getresponse() as answer:
        return answer.status, answer.read()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    folder = tmp_path_factory.mktemp("guarded")
    (folder / "token").write_text(TOKEN + "\n")
    with guarded(folder, "0.0.0.0:0", "--allow-remote", "--token-file", str(folder / "token")) as made:
        yield made


@pytest.fixture
def setup(shared: Setup) -> Iterator[Setup]:
    yield shared.begin()
    shared.connections.close()


@pytest.fixture(scope="module")
def open_setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    with started(tmp_path_factory.mktemp("open")) as made:
        yield made


@pytest.mark.parametrize("where", GIVEN)
def test_who_has_the_token_comes_in_and_the_upstream_never_sees_it(setup: Setup, where: str) -> None:
    path, headers = GIVEN[where]
    assert post(setup, path, {**headers, "X-Odd-Case": "a  b"}) == (200, ANSWER)
    (received,) = setup.received
    assert TOKEN.encode() not in received.head
    assert (received.path, received.header("x-odd-case")) == (CHAT, "a  b")
    assert b"X-Odd-Case" in received.head
    (exchange,) = setup.recorded()
    assert (exchange.path, TOKEN in repr(exchange)) == (CHAT, False)


def test_a_key_for_the_upstream_passes_beside_the_token(setup: Setup) -> None:
    post(setup, f"/t/{TOKEN}{CHAT}", {"Authorization": f"Bearer {KEY}"})
    assert setup.received[0].header("authorization") == f"Bearer {KEY}"
    setup.recorded()


@pytest.mark.parametrize("where", NOT_GIVEN)
def test_who_has_no_token_is_told_how_to_give_it_and_reaches_nobody(setup: Setup, where: str) -> None:
    status, body = post(setup, *NOT_GIVEN[where])
    assert status == 401
    error = json.loads(body)["error"]
    assert error["type"] == "authentication_error"
    assert "as the API key, as the header x-locality-token, or in the base URL" in error["message"]
    assert TOKEN.encode() not in body
    assert setup.received == []
    with Capture.open(str(setup.capture)) as capture:
        assert capture.counts().exchanges == setup.seen


@pytest.mark.parametrize("path", ["/metrics", "/", "/v1/models", "/t/", "/t", f"/t/{TOKEN}x/v1/models"])
def test_no_path_needs_no_token(setup: Setup, path: str) -> None:
    connection = setup.connect()
    connection.request("GET", path)
    assert connection.getresponse().status == 401
    assert setup.received == []


def test_a_long_upload_without_a_token_is_not_waited_for(setup: Setup) -> None:
    with closing(setup.connect()) as connection:
        connection.putrequest("POST", CHAT)
        connection.putheader("content-length", str(1 << 40))
        connection.endheaders()
        with pytest.raises((http.client.HTTPException, OSError)):
            connection.getresponse()
    assert setup.received == []


def test_a_token_in_a_prompt_is_in_no_file_and_no_output(tmp_path: Path) -> None:
    prompt = json.dumps({"messages": [{"role": "user", "content": f"URL=http://h:1/t/{TOKEN}/v1 {TOKEN}"}]})
    os.environ["LOCALITY_TOKEN"] = TOKEN
    try:
        (tmp_path / "token").write_text(TOKEN)
        token_file = ("--token-file", str(tmp_path / "token"))
        with guarded(tmp_path, "127.0.0.1:0", *token_file) as setup:
            assert post(setup, f"/t/{TOKEN}{CHAT}", {"x-fault": "echo"}, prompt.encode())[0] == 200
            setup.recorded()
            (tmp_path / "token").unlink()
            assert setup.proxy.stop() == 0
    finally:
        del os.environ["LOCALITY_TOKEN"]
    outputs = [setup.proxy.said, locality("report", str(setup.capture), "--format", "json").stdout]
    assert TOKEN.encode() not in files(tmp_path) + "".join(outputs).encode()
    (exchange,) = setup.recorded()
    assert TOKEN not in repr(exchange)
    assert b"URL=http" in exchange.request.content


def test_a_new_token_is_told_once_and_works(tmp_path: Path) -> None:
    capture = tmp_path / "c.sqlite"
    with MisbehavingUpstream() as upstream:
        arguments = ("--upstream", upstream.url, "--capture", str(capture), "--listen", "0.0.0.0:0")
        with running("analyzer", "proxy", *arguments, "--allow-remote") as proxy, ExitStack() as connections:
            (token,) = GENERATED.findall(proxy.said_before)
            proxy.url = proxy.url.replace("0.0.0.0", "127.0.0.1")
            setup = Setup(upstream, proxy, capture, connections)
            assert post(setup, CHAT, {})[0] == 401
            assert post(setup, f"/t/{token}{CHAT}", {}) == (200, ANSWER)
            assert proxy.stop() == 0
    assert proxy.said_before.count(token) == 2  # in its one line: by itself, and in the URL
    assert len([line for line in proxy.said_before.splitlines() if token in line]) == 1
    assert token not in proxy.said
    assert token.encode() not in files(tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "192.0.2.7"])
def test_an_address_that_others_reach_needs_leave(tmp_path: Path, host: str) -> None:
    capture = tmp_path / "c.sqlite"
    done = process(
        "proxy", "--upstream", "http://127.0.0.1:1", "--capture", str(capture), "--listen", f"{host}:0"
    )
    assert done.returncode == 2
    assert "add --allow-remote to let those in that have a token, or listen on 127.0.0.1" in done.stderr
    assert not capture.exists()


def test_which_addresses_are_of_this_machine_alone() -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.8.8.8", "::1", "localhost"]))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "fe80::1", "0"]))
    with pytest.raises(ValueError, match="no address of this machine"):
        is_loopback("no such host")


@pytest.mark.parametrize("bound", ["0.0.0.0", "[::]"])
def test_the_url_with_a_new_token_names_no_address_that_leads_nowhere(bound: str) -> None:
    told = Access(token="t" * 16, made=True).told(f"http://{bound}:8900")
    assert told is not None
    assert f"http://HOST:8900/t/{'t' * 16}/v1" in told
    one = Access(token="t" * 16, made=True).told("http://192.0.2.7:8900")
    assert one is not None
    assert f"http://192.0.2.7:8900/t/{'t' * 16}/v1" in one


def test_a_token_file_is_made_private_and_taken_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    given = {"allow_remote": True, "token_file": file, "environment": {}}
    made = access_for("0.0.0.0", **given)  # type: ignore[arg-type]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert made == access_for("0.0.0.0", **given)  # type: ignore[arg-type]
    assert made.told("http://h") is None
    file.write_text("too short")
    with pytest.raises(ValueError, match="16 to 200 letters"):
        access_for("127.0.0.1", allow_remote=False, token_file=file, environment={})
    with pytest.raises(ValueError, match="the variable LOCALITY_TOKEN holds no token"):
        access_for("127.0.0.1", allow_remote=False, token_file=None, environment={"LOCALITY_TOKEN": "x y"})


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://evil.example", 403),
        ("http://rebound.example:8900", 403),
        ("http://localhost.evil.example", 403),
        ("null", 403),
        ("http://192.168.1.7", 403),
        ("http://localhost:3000", 200),
        ("http://127.0.0.1:5173", 200),
        ("vscode-webview://1a2b", 200),
    ],
)
def test_a_web_page_of_elsewhere_may_not_use_it(open_setup: Setup, origin: str, status: int) -> None:
    setup = open_setup.begin()
    for method, headers in (("POST", {"content-type": "text/plain"}), ("OPTIONS", {})):
        connection = setup.connect()
        connection.request(method, CHAT, b"{}", {"Origin": origin, **headers})
        answer = connection.getresponse()
        assert answer.status == status
        told = answer.read()
        if status == 403:
            assert "a web page may not use this proxy" in json.loads(told)["error"]["message"]
    assert len(setup.received) == (0 if status == 403 else 2)


def test_a_gate_that_fails_lets_nobody_in(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Access, request: Request) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Access, "refusal", broken)
    flow: HTTPFlow = tflow.tflow()
    flow.request.headers = Headers()
    Gate(Access()).requestheaders(flow)
    assert flow.response is not None
    assert flow.response.status_code == 403
