"""A loopback server that answers as it is told, and golden answers of a real vLLM for it to give."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

type Answerer = Callable[[str, bytes], tuple[int, bytes]]
"""From path and body to status and answer."""

GOLDEN = json.loads(
    (Path(__file__).parent.parent / "golden" / "verify" / "sample.json").read_text(encoding="utf-8")
)["answers"]


def golden(path: str, name: str) -> dict[str, Any]:
    """One recorded answer."""
    (row,) = [row for row in GOLDEN if (row["path"], row["name"]) == (path, name)]
    found: dict[str, Any] = row
    return found


def as_recorded(path: str, body: bytes) -> tuple[int, bytes]:
    """The real server's answer to these very bytes; another byte is another question."""
    for row in GOLDEN:
        if row["path"] == path and row["body"].encode() == body:
            return row["status"], json.dumps(row["answer"]).encode()
    return 500, json.dumps({"error": {"message": f"never recorded: {path} {body!r}"}}).encode()


def always(status: int, answer: Any) -> Answerer:
    """The same answer to everything; bytes are sent as they are."""
    content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    return lambda path, body: (status, content)


@dataclass
class Stub:
    """A running server and the questions it was asked."""

    url: str
    asked: list[tuple[str, bytes]] = field(default_factory=list)


@contextmanager
def answering(answerer: Answerer, *, pause_s: float = 0, location: str | None = None) -> Iterator[Stub]:
    """A server for as long as the block lasts; with `pause_s`, it sends a byte at a time."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.headers["Content-Type"] == "application/json"
            stub.asked.append((self.path, body))
            status, answer = answerer(self.path, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()
            if not pause_s:
                self.wfile.write(answer)
                return
            for byte in answer:
                try:
                    self.wfile.write(bytes([byte]))
                except OSError:
                    return
                time.sleep(pause_s)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    stub = Stub(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
