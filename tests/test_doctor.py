"""`doctor` as a user runs it: what it asks, what it says, and how it ends."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from analyzer.clients import CLIENTS
from analyzer.doctor_answers import STREAM
from store.db import Capture
from tests.conftest import locality, proxy, running

GOLDEN = Path(__file__).parent / "golden" / "doctor"


class Recorded:
    """Gives a real vLLM's answers once more, and keeps what it was asked."""

    def __init__(self, name: str, root: Path) -> None:
        text = (GOLDEN / f"vllm_{name}.json").read_text(encoding="utf-8")
        self.answers = json.loads(text.replace("/models/tiny", str(root)))["answers"]
        self.asked: list[tuple[str, str, Any]] = []
        recorded = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                recorded.asked.append(("GET", self.path, None))
                self._answer(self.path)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                recorded.asked.append(("POST", self.path, body))
                self._answer(STREAM if body.get("stream") else self.path)

            def _answer(self, key: str) -> None:
                row = recorded.answers.get(key, {"status": 404, "body": "{}"})
                self.send_response(row["status"])
                self.end_headers()
                self.wfile.write(row["body"].encode())

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(params=["default", "revealing"])
def server(request: pytest.FixtureRequest, sample_tokenizer: Path) -> Iterator[Recorded]:
    made = Recorded(request.param, sample_tokenizer)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def upstream(sample_tokenizer: Path) -> Iterator[str]:
    with running("samples.upstream", "--tokenizer", str(sample_tokenizer), "--port", "0") as started:
        yield started.url


def as_json(*arguments: str, status: int = 0, **extra: str) -> dict[str, Any]:
    made = locality("doctor", *arguments, "--format", "json", **extra)
    assert made.returncode == status, made.stdout + made.stderr
    told: dict[str, Any] = json.loads(made.stdout)
    return told


def state(told: dict[str, Any], name: str) -> str:
    found: str = next(row["state"] for row in told["checks"] if row["name"] == name)
    return found


@pytest.mark.parametrize("server", ["default"], indirect=True)
def test_a_server_that_hides_cached_tokens_ends_it_with_3_and_names_the_flag(server: Recorded) -> None:
    made = locality("doctor", server.url, "--probe")
    assert made.returncode == 3
    assert "the report lacks: cached_tokens" in made.stdout
    assert "--enable-prompt-tokens-details" in made.stdout


@pytest.mark.parametrize("server", ["revealing"], indirect=True)
def test_a_server_that_hides_nothing_ends_it_with_0_but_for_another_template(server: Recorded) -> None:
    told = as_json(f"{server.url}/v1/", "--probe")
    assert (told["engine"], told["version"]) == ("vllm", "0.32.0")
    assert {row["name"] for row in told["checks"] if row["state"] != "found"} == {
        "chat_template",  # the tokenizer's folder is not the one that it was recorded with
        "start_line",
    }


def test_without_probe_nothing_is_generated(server: Recorded) -> None:
    locality("doctor", "--upstream", server.url)
    posts = {path for method, path, _ in server.asked if method == "POST"}
    assert posts == {"/tokenize", "/v1/chat/completions/render"}


def test_a_probe_is_two_requests_of_one_token(server: Recorded) -> None:
    locality("doctor", server.url, "--probe")
    bodies = [body for _, path, body in server.asked if path == "/v1/chat/completions"]
    assert len(bodies) == 2
    assert all(body["max_tokens"] == 1 for body in bodies)


def test_what_is_not_asked_is_not_called_hidden(server: Recorded) -> None:
    told = as_json(server.url)
    assert state(told, "cached_tokens") == "unknown"
    made = locality("doctor", server.url)
    assert "nothing that the report needs is known to be hidden; not known: cached_tokens" in made.stdout


def test_where_nobody_answers_it_fails_and_says_so() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        made = locality("doctor", url)
    assert made.returncode == 1
    assert f"{url} does not answer" in made.stderr


@pytest.mark.parametrize("arguments", [("ftp://x",), ("--probe",), ("http://a", "--upstream", "http://b")])
def test_wrong_usage_ends_it_with_2(arguments: tuple[str, ...]) -> None:
    assert locality("doctor", *arguments).returncode == 2


def test_a_proxy_is_recognised_and_passes_the_questions_on(upstream: str, tmp_path: Path) -> None:
    capture = tmp_path / "c.sqlite"
    with proxy(upstream, capture) as listening:
        asked = as_json(listening.url, "--probe", OPENAI_BASE_URL=f"{listening.url}/v1")
        named = as_json("--proxy", listening.url)
        assert listening.stop() == 0
    assert asked["proxy"] == listening.url
    assert {item["where"] for item in asked["variables"] if item["name"] == "OPENAI_BASE_URL"} == {"proxy"}
    assert state(named, "proxy") == "found"
    assert state(named, "block_size") == state(asked, "block_size") == "found"
    with Capture.open(str(capture)) as opened:
        assert opened.counts().exchanges == 0  # --probe would have been recorded as the agent's


def test_a_server_that_is_taken_for_the_proxy_ends_it_with_3(upstream: str) -> None:
    told = as_json("--proxy", upstream, status=3)
    assert state(told, "proxy") == "wrong"


def test_with_a_proxy_a_variable_that_leads_past_it_is_named(upstream: str, tmp_path: Path) -> None:
    with proxy(upstream, tmp_path / "c.sqlite") as listening:
        variables = {"OPENAI_BASE_URL": f"{upstream}/v1"}
        made = locality("doctor", upstream, "--proxy", listening.url, **variables)
    assert "past the proxy, straight to the server" in made.stdout


def test_without_an_address_it_looks_at_this_shell_and_tells_where_clients_look() -> None:
    made = locality("doctor", OPENAI_BASE_URL="http://127.0.0.1:8900/v1")
    assert made.returncode == 0
    assert "OPENAI_BASE_URL     http://127.0.0.1:8900/v1" in made.stdout
    assert all(client.name in made.stdout for client in CLIENTS)
