"""A client of the standard library and an upstream that misbehaves, with the real proxy in between."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from store.db import Capture
from store.records import Exchange
from tests.captures import ended_since
from tests.conftest import Running, proxy
from tests.upstream.misbehaving import MisbehavingUpstream
from tests.upstream.wire import Received

CHAT = "/v1/chat/completions"
KEY = "sk-test-5f1c09ab77de42c3b1"


@dataclass
class Setup:
    """A proxy in front of an upstream. What was there before `begin` does not count."""

    upstream: MisbehavingUpstream
    proxy: Running
    capture: Path
    connections: ExitStack
    seen: int = 0

    def begin(self) -> Self:
        """Forget what other tests have left."""
        self.seen = self._count()
        self.upstream.received.clear()
        self.upstream.gone_at.clear()
        return self

    @property
    def received(self) -> list[Received]:
        """What the upstream got from clients, without the proxy's own questions."""
        return [
            item
            for item in self.upstream.received
            if not (item.header("user-agent") or "").startswith("Python-urllib")
        ]

    def _count(self) -> int:
        with Capture.open(str(self.capture)) as capture:
            return capture.counts().exchanges

    def connect(self) -> http.client.HTTPConnection:
        parts = urlsplit(self.proxy.url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
        return self.connections.enter_context(closing(connection))

    def ask(self, fault: str, path: str = CHAT, **headers: str) -> tuple[int, bytes]:
        connection = self.connect()
        headers = {"x-fault": fault, "authorization": f"Bearer {KEY}", **headers}
        connection.request("POST", path, json.dumps({"model": "m", "messages": []}).encode(), headers)
        with connection.getresponse() as answer:
            return answer.status, answer.read()

    def recorded(self) -> list[Exchange]:
        """Everything in the capture, once nothing is open any more."""
        return ended_since(self.capture, self.seen)


@contextmanager
def started(folder: Path, prefix: str = "") -> Iterator[Setup]:
    capture = folder / "c.sqlite"
    with (
        MisbehavingUpstream() as upstream,
        proxy(upstream.url + prefix, capture) as listening,
        ExitStack() as connections,
    ):
        yield Setup(upstream, listening, capture, connections)
