"""Asks the one server a user named: JSON in, JSON out, within a time and a size.

It follows no redirect and uses no proxy, so that a prompt reaches nobody else; it sends no credentials.
"""

from __future__ import annotations

import http.client
import json
import time
from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

TIMEOUT_S = 30.0
"""Longest wait for a connection or the next piece, and for the whole of an answer."""

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""A prompt of a million tokens is some 7 MB of JSON; what is far beyond that is not a rendering."""

NO_HEADERS: Mapping[str, str] = MappingProxyType({})

_PIECE_BYTES = 1 << 16


class ServerFailed(Exception):
    """A server that did not answer a question; the message says why and what to try."""


class ServerApi:
    """One server, by its base URL, such as `http://127.0.0.1:8000`.

    What will fail again (nobody there, an endpoint that is switched off) is asked once and remembered.
    `failures` counts every answer that was not had, by its message.
    """

    def __init__(self, url: str, *, timeout_s: float = TIMEOUT_S, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        """Raises ValueError for what is not an http(s) base URL."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.username:
            raise ValueError(f"--server {url}: give a base URL, such as http://127.0.0.1:8000")
        self.url = url.rstrip("/")
        self.failures: Counter[str] = Counter()
        self._parts = parts
        self._port = parts.port
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._closed: dict[str, str] = {}
        self._latest: tuple[str, bytes, Any] | None = None

    def post(self, path: str, body: bytes) -> Any:
        """The JSON value of a 200 answer to `body`, sent as it is. Raises ServerFailed.

        The latest answer is kept: a body of many prompts is asked for once for each of them.
        """
        if self._latest is not None and self._latest[:2] == (path, body):
            return self._latest[2]
        try:
            value = self._ask(path, body)
        except ServerFailed as error:
            self.failures[str(error)] += 1
            raise
        self._latest = (path, body, value)
        return value

    def _ask(self, path: str, body: bytes) -> Any:
        for closed in ("", path):
            if closed in self._closed:
                raise ServerFailed(self._closed[closed])
        try:
            status, answer = self.exchange("POST", path, body)
        except (OSError, http.client.HTTPException) as error:
            self._closed[""] = f"{self.url} cannot be asked: {error or type(error).__name__}"
            raise ServerFailed(self._closed[""]) from error
        value = _json(answer)
        if status != 200:
            message, again = _refusal(status, value, path)
            if not again:
                self._closed[path] = message
            raise ServerFailed(message)
        if value is None:
            raise ServerFailed(f"{self.url}{path} did not answer with JSON; is it a vLLM server?")
        return value

    def exchange(
        self, method: str, path: str, body: bytes | None, more: Mapping[str, str] = NO_HEADERS
    ) -> tuple[int, bytes]:
        """Status and body of one answer, whatever it says. Raises OSError and http.client.HTTPException."""
        secure = self._parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        deadline = time.monotonic() + self._timeout_s
        connection = kind(self._parts.hostname or "", self._port, timeout=self._timeout_s)
        try:
            headers = {"Content-Type": "application/json", "Accept": "application/json", **more}
            connection.request(method, self._parts.path.rstrip("/") + path, body=body, headers=headers)
            response = connection.getresponse()
            answer = bytearray()
            while piece := response.read1(_PIECE_BYTES):
                answer += piece
                if len(answer) > self._max_bytes:
                    raise OSError(f"its answer is longer than {self._max_bytes} bytes")
                if time.monotonic() > deadline:
                    raise TimeoutError(f"its answer took longer than {self._timeout_s:g} s")
            return response.status, bytes(answer)
        finally:
            connection.close()


def _refusal(status: int, value: Any, path: str) -> tuple[str, bool]:
    """Why a question was refused and what to try, and whether another body may fare better."""
    said = _said(value)
    if status == 403:
        # vLLM 0.32 entrypoints/scale_out/factories.py:81-111
        return (
            f"{path} is switched off: start the server with --enable-scale-out, or the same model and flags"
            " with `vllm launch render`, which needs no GPU",
            False,
        )
    if status in (404, 405) and "model" not in said:
        return f"{path} is not there: the server is no vLLM, or one older than its /render", False
    if status == 404:
        return f"{path} answers 404: {said}", True
    if status == 401:
        return f"{path} asks for an API key, and none is sent: name a server without one", False
    if status < 500:
        return f"{path} refused the body with {status}: {said}", True
    return f"{path} failed with {status}: {said}", True


def _said(value: Any) -> str:
    """The message of an error object, its first line, cut short."""
    error = value.get("error", value) if isinstance(value, dict) else None
    message = error.get("message") or error.get("detail") if isinstance(error, dict) else error
    return str(message or "without a reason").partition("\n")[0][:200]


def _json(answer: bytes) -> Any:
    try:
        return json.loads(answer)
    except (ValueError, RecursionError):
        return None


def whole_ids(value: Any) -> tuple[int, ...]:
    """A list of token ids out of an answer. Raises ServerFailed for anything else."""
    if isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 31 for item in value):
        return tuple(value)
    raise ServerFailed("the server's answer holds no token ids; is it a vLLM server?")
