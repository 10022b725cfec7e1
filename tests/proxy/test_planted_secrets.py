"""A thousand planted secrets, through the real proxy: none in anything that is written or said."""

from __future__ import annotations

import base64
import http.client
import json
import random
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from store.db import Capture
from tests.conftest import locality, proxy
from tests.store.planted import PLACES, VALUE_PLACES, Planted, escaped, planted, spellings

CHAT = "/v1/chat/completions"
COUNT = 1000
KILLS = 10
A_REQUEST = 25


class _Upstream(BaseHTTPRequestHandler):
    """Answers with what the request's `answer` field holds, in the way its `kind` field says."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send(404, b"{}", "application/json")

    def do_POST(self) -> None:
        wanted = json.loads(self.rfile.read(int(self.headers["content-length"])))["metadata"]
        body = wanted["answer"].encode()
        cookie = (self.headers["cookie"] or "").rpartition("=")[2]
        self._send(wanted["status"], body, wanted["type"], cookie)

    def _send(self, status: int, body: bytes, kind: str, cookie: str | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if cookie:
            self.send_header("set-cookie", f"sid={cookie}; Path=/; HttpOnly")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def upstream() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def message(number: int, secret: Planted) -> dict[str, Any]:
    """A message with the secret in one of the places, in turn."""
    places = [lambda put=put: put(secret.text) for put in PLACES.values()]
    if secret.one_line:
        places += [lambda put=put: put(secret.value) for put in VALUE_PLACES.values()]
    content = places[number // 7 % len(places)]()
    if number % 5 == 0:
        call = {"name": "write", "arguments": json.dumps({"path": "x", "content": content})}
        return {"role": "assistant", "tool_calls": [{"id": "c1", "type": "function", "function": call}]}
    return {"role": ("user", "tool")[number % 2], "content": content}


def answer(number: int, secrets: Sequence[Planted]) -> tuple[str, str]:
    """An answer's content type and body: whole, in events that cut the secrets, or an error that quotes."""
    text = "\n".join(secret.text for secret in secrets)
    if number % 3 == 0:
        return "application/json", json.dumps({"choices": [{"message": {"content": text}}]})
    if number % 3 == 1:
        cuts = [text[at : at + 7] for at in range(0, len(text), 7)]
        events = ({"choices": [{"delta": {"content": cut}}]} for cut in cuts)
        return "text/event-stream", "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    return "text/plain", f"internal error while reading:\n{text}\n"


def exchange(number: int, secrets: Sequence[Planted]) -> tuple[str, bytes, dict[str, str]]:
    """Path, body and headers of a request that holds these secrets, and asks for them back."""
    heads = [secret for secret in secrets if secret.one_line]
    kind, body = answer(number, secrets)
    metadata = {"answer": body, "type": kind, "status": (200, 500)[number % 3 == 2]}
    request = {
        "model": "tiny",
        "messages": [message(number * A_REQUEST + at, item) for at, item in enumerate(secrets)],
        "metadata": metadata,
    }
    written = json.dumps(request)
    if number % 4 == 0:
        # Escapes that nobody needs, in a field of its own: a body is any JSON.
        written = written[:-1] + f', "note": "{escaped(heads[0].text)}"}}'
    basic = base64.b64encode(f"me:{heads[1].value}".encode()).decode()
    headers = {
        "content-type": "application/json",
        "authorization": (f"Bearer {heads[2].value}", f"Basic {basic}")[number % 2],
        "x-api-key": heads[3].value,
        "cookie": f"a=1; session={heads[4].value}",
        "x-request-id": f"r-{heads[5].text}" if heads[5].value == heads[5].text else "r-1",
        "user-agent": f"agent ({heads[6].text})",
    }
    query = f"api_key={quote(heads[7].value, safe='')}&text={quote(heads[8].text, safe='')}"
    return f"{CHAT}?{query}", written.encode(), headers


def send(url: str, asked: tuple[str, bytes, dict[str, str]]) -> int:
    host = urlsplit(url).netloc
    with closing(http.client.HTTPConnection(host, timeout=30)) as connection:
        path, body, headers = asked
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        response.read()
        return response.status


def found_in(written: bytes, secrets: Sequence[Planted]) -> list[tuple[str, bytes]]:
    """The secrets that can still be read, each with the spelling that was found."""
    parts = {(secret.kind, line) for secret in secrets for line in secret.lines}
    return [(kind, spelled) for kind, line in parts for spelled in spellings(line) if spelled in written]


def files(folder: Path) -> bytes:
    """All that was written, but for the certificate that mitmproxy makes itself while it runs."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return b"\n".join(path.read_bytes() for path in found if not path.name.startswith("mitmproxy-"))


def contents(capture: Path) -> bytes:
    """Everything a capture holds, decompressed."""
    with Capture.open(str(capture)) as opened:
        parts = [
            part
            for read in opened.exchanges()
            for part in (
                *(read.request.content, read.response.content),
                repr((read.path, read.query, read.request_headers, read.response_headers)).encode(),
                repr((read.error, read.request.secret_paths, read.response.secret_paths)).encode(),
            )
        ]
    return b"\n".join(parts)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the proxy's temporary files go, so that they are searched as well."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return tmp_path


def test_a_thousand_planted_secrets_are_in_no_file_and_no_output(
    temporary: Path, sample_tokenizer: Path
) -> None:
    secrets = list(planted(6, COUNT))
    capture = temporary / "c.sqlite"
    with upstream() as server, proxy(server, capture) as running:
        for number, start in enumerate(range(0, COUNT, A_REQUEST)):
            assert send(running.url, exchange(number, secrets[start : start + A_REQUEST])) in (200, 500)
        while_it_runs = files(temporary)
        assert running.stop(signal.SIGTERM, timeout=300) == 0
    outputs = [running.said]
    for command in (("report",), ("report", "--format", "json"), ("show",), ("verify",)):
        rest = ("1",) if command == ("show",) else ()
        done = locality(*command, str(capture), *rest, "--tokenizer", str(sample_tokenizer))
        outputs += (done.stdout, done.stderr)
    written = b"\n".join((while_it_runs, files(temporary), contents(capture), "\n".join(outputs).encode()))
    assert f"{COUNT // A_REQUEST} exchanges recorded, 0 lost" in running.said
    assert found_in(written, secrets) == []
    counted = json.loads(outputs[3])["capture"]["secrets"]
    assert sum(item["count"] for item in counted) >= COUNT
    assert {"messages[1].content", "metadata.answer"} <= {item["path"] for item in counted}
    assert "secrets replaced before anything was written: " in outputs[1]


def test_a_proxy_killed_at_any_moment_leaves_none_behind(temporary: Path) -> None:
    moments = random.Random(9)
    secrets = list(planted(7, A_REQUEST * 8))
    asked = [
        exchange(number, secrets[start : start + A_REQUEST])
        for number, start in enumerate(range(0, len(secrets), A_REQUEST))
    ]
    capture = temporary / "c.sqlite"

    def keep_asking(url: str) -> None:
        with suppress(OSError, http.client.HTTPException):
            for one in asked:
                send(url, one)

    with upstream() as server:
        for _ in range(KILLS):
            with proxy(server, capture) as running:
                threads = [threading.Thread(target=keep_asking, args=(running.url,)) for _ in range(2)]
                for thread in threads:
                    thread.start()
                time.sleep(moments.uniform(0, 0.6))
                running.stop(signal.SIGKILL)
                for thread in threads:
                    thread.join()
            assert found_in(files(temporary) + running.said.encode(), secrets) == []
    assert found_in(contents(capture), secrets) == []
