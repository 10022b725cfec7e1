"""What the proxy adds to a streamed response, beside no proxy and beside mitmproxy alone, over loopback."""

from __future__ import annotations

import http.client
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from tests.bench.rounds import Line
from tests.conftest import environment, eventually, proxy
from tests.upstream.faults import EVENTS
from tests.upstream.misbehaving import MisbehavingUpstream

ROUNDS = 12
PAUSE_MS = "15"
BARE_ADDON = "def responseheaders(flow):\n    flow.response.stream = True\n"


@contextmanager
def bare_mitmproxy(upstream: str, folder: Path) -> Iterator[str]:
    """mitmproxy in reverse mode with an addon that streams, and nothing else."""
    script = folder / "stream.py"
    script.write_text(BARE_ADDON, encoding="utf-8")
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    options = ("-q", "-s", str(script), "--mode", f"reverse:{upstream}", "--set", f"confdir={folder}")
    command = [sys.executable, "-c", "from mitmproxy.tools.main import mitmdump; mitmdump()", *options]
    command += ["--listen-host", "127.0.0.1", "--listen-port", str(port)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL) as process:
        try:
            assert eventually(lambda: _listens(port), 20), "mitmproxy did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def _listens(port: int) -> bool:
    with socket.socket() as sock:
        return sock.connect_ex(("127.0.0.1", port)) == 0


def streaming(folder: Path) -> list[Line]:
    """Delays from the upstream's write to the client's read: of the first event, and of each later one."""
    with (
        MisbehavingUpstream() as upstream,
        proxy(upstream.url, folder / "streams.sqlite") as ours,
        bare_mitmproxy(upstream.url, folder) as bare,
    ):
        ways = {"direct": upstream.url, "proxy": ours.url, "mitmproxy": bare}
        delays: dict[str, list[list[float]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, url in ways.items():
                delays[name].append(delays_of(upstream, url))
    return [
        _line("first event, delay", "< 20 ms", {name: [one[0] for one in delays[name]] for name in ways}),
        _line(
            "later event, delay", "", {name: [at for one in delays[name] for at in one[1:]] for name in ways}
        ),
    ]


def _line(name: str, target: str, delays: dict[str, list[float]]) -> Line:
    median = {way: f"{1000 * statistics.median(found):.2f} ms" for way, found in delays.items()}
    beside = f"median; direct {median['direct']}, mitmproxy alone {median['mitmproxy']}"
    return Line(name, median["proxy"], target, beside)


def delays_of(upstream: MisbehavingUpstream, url: str) -> list[float]:
    """Seconds that each event of one response was on its way."""
    upstream.sent_at.clear()
    parts = urlsplit(url)
    arrived: list[float] = []
    body = b""
    ends = [len(b"".join(EVENTS[: count + 1])) for count in range(len(EVENTS))]
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)) as connection:
        headers = {"x-fault": "events_paused", "x-fault-ms": PAUSE_MS}
        connection.request("POST", "/v1/chat/completions", b'{"model":"m","messages":[]}', headers)
        with connection.getresponse() as answer:
            while piece := answer.read1():
                body += piece
                now = time.monotonic()
                arrived += [now] * (sum(end <= len(body) for end in ends) - len(arrived))
    sent = [next(at for at, data in upstream.sent_at if event in data) for event in EVENTS]
    return [got - at for got, at in zip(arrived, sent, strict=True)]
