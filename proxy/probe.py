"""Asks an upstream what it is, and what its counters say.

When to ask is for `proxy.watch`. It draws no conclusions: what came back is kept as it came, and the analyzer
reads it.
"""

from __future__ import annotations

import http.client
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from store.records import ServerFact

METRICS = "/metrics"
PROBE_PATHS = ("/version", "/v1/models", METRICS, "/props")
TIMEOUT_SECONDS = 2.0
WHOLE_ANSWER_SECONDS = 5.0
MAX_ANSWER_BYTES = 4 * 2**20
STARTED = b"process_start_time_seconds"
"""When the server's process began (prometheus_client process_collector.py)."""

KEPT_METRICS = (
    b"vllm:cache_config_info",
    b"vllm:prefix_cache_",
    b"vllm:external_prefix_cache_",
    b"vllm:prompt_tokens",
    b"vllm:num_preemptions",
    b"sglang:cache_config_info",
    b"sglang:page_size",
    b"sglang:num_pages",
    STARTED,
)
"""Of `/metrics`, only what tells about the cache and its age: the page is long, and comes again and again."""


class _Unled(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow nobody: only the upstream is asked."""


def probe(
    upstream: str, paths: Sequence[str] = PROBE_PATHS, *, trust: ssl.SSLContext | None = None
) -> tuple[ServerFact, ...]:
    """Ask all paths at once; never raises, and waits at most `TIMEOUT_SECONDS` for the next byte of each,
    and `WHOLE_ANSWER_SECONDS` for all.

    `trust` says whom to believe that an https upstream is the one.
    """
    with ThreadPoolExecutor(len(paths)) as pool:
        return tuple(pool.map(lambda path: _ask(upstream, path, trust), paths))


def age(facts: tuple[ServerFact, ...]) -> bytes | None:
    """What the server says of its start, in a form that only serves to be compared; None: nothing."""
    lines = (line for fact in facts if fact.path == METRICS for line in fact.body.split(b"\n"))
    return next((line for line in lines if line.startswith(STARTED)), None)


def _ask(upstream: str, path: str, trust: ssl.SSLContext | None) -> ServerFact:
    status: int | None = None
    try:
        status, body = _answer(upstream + path, trust)
    except (OSError, ValueError, http.client.HTTPException) as error:
        body = str(getattr(error, "reason", error)).encode()
    if path == METRICS and status == 200:
        body = b"\n".join(line for line in body.splitlines() if line.startswith(KEPT_METRICS))
    return ServerFact(at_ns=time.time_ns(), path=path, status=status, body=body)


def _answer(url: str, trust: ssl.SSLContext | None) -> tuple[int, bytes]:
    try:
        # Past the proxies of the environment: the traffic itself goes past them as well.
        directly = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust), _Unled
        with urllib.request.build_opener(*directly).open(url, timeout=TIMEOUT_SECONDS) as answer:
            return answer.status, _read(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read(2000)


def _read(answer: http.client.HTTPResponse) -> bytes:
    """Read what a server says; one that drips must hold up neither the proxy's start nor its end."""
    until, body = time.monotonic() + WHOLE_ANSWER_SECONDS, b""
    while len(body) < MAX_ANSWER_BYTES and (piece := answer.read1(MAX_ANSWER_BYTES - len(body))):
        body += piece
        if time.monotonic() > until:
            raise TimeoutError(f"its answer took longer than {WHOLE_ANSWER_SECONDS:g} s")
    return body


def unreachable(facts: tuple[ServerFact, ...]) -> str | None:
    """Why no path could be asked at all, or None where at least one gave an HTTP answer."""
    if any(fact.status is not None for fact in facts):
        return None
    return facts[0].body.decode(errors="replace")
