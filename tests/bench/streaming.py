"""How long events are on their way from the upstream's write to the client's read, through one proxy.

What that is beside bare mitmproxy is measured in `overhead`.
"""

from __future__ import annotations

import http.client
import time
from contextlib import closing
from urllib.parse import urlsplit

from tests.upstream.faults import EVENTS
from tests.upstream.misbehaving import MisbehavingUpstream

PAUSE_MS = "15"


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
