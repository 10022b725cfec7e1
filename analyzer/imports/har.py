"""Reads HTTP archives, version 1.2, as browsers and mitmproxy export them.

A HAR holds bodies after their content encoding was undone, and does not say when a body's first byte came.
Fields as the specification names them (w3c.github.io/web-performance/specs/HAR: entries, request, response,
timings).
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from analyzer.imports import UNTIMED, Read, Source
from store.records import Headers, RequestSeen, ResponseSeen

_ENTRIES = re.compile(r'"entries"\s*:\s*\[')
_BETWEEN = re.compile(r"[\s,]*")
_BEFORE_SENDING, _EXCHANGE = ("blocked", "dns", "connect"), ("send", "wait", "receive")


class HarFile:
    """HTTP archives (HAR 1.2), as browsers and mitmproxy export them."""

    name = "har"

    def read(self, source: Source) -> Read:
        """Every entry of the file, also of one that breaks off."""
        text = source.path.read_bytes().decode("utf-8-sig", "replace")
        for number, (entry, problem) in enumerate(_entries(text), start=1):
            where = f"entry {number}"
            try:
                yield where, problem or _exchange(where, entry)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                # Not all of what it says: that may quote a body.
                missing = f" has no {error}" if isinstance(error, KeyError) else ""
                yield where, f"not as HAR 1.2 has it: {type(error).__name__}{missing}"


def _entries(text: str) -> Iterator[tuple[Any, str | None]]:
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield from _broken(text, error)
        return
    try:
        entries = whole["log"]["entries"]
    except (KeyError, TypeError):
        entries = None
    if not isinstance(entries, list):
        raise ValueError("no HAR: there is no list log.entries in it")
    yield from ((entry, None) for entry in entries)


def _broken(text: str, error: Exception) -> Iterator[tuple[Any, str | None]]:
    """The entries of a file that is no JSON as a whole, up to the one in which it breaks."""
    start = _ENTRIES.search(text)
    if start is None:
        raise ValueError(f"no HAR: {error}")
    decoder, at = json.JSONDecoder(), start.end()
    while True:
        between = _BETWEEN.match(text, at)
        at = at if between is None else between.end()
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as broken:
            yield None, f"the file breaks off or is damaged: {broken}"
            return
        yield entry, None


def _exchange(where: str, entry: Any) -> tuple[RequestSeen, ResponseSeen]:
    request = entry["request"]
    url = urlsplit(request["url"])
    timings = entry.get("timings") or {}
    seen = RequestSeen(
        key=where,
        started_at_ns=_started(entry, timings),
        method=request["method"],
        path=url.path,
        query=url.query,
        headers=_headers(request),
        body=_body(request.get("postData") or {}),
    )
    return seen, _response(where, entry, timings)


def _response(where: str, entry: Any, timings: Any) -> ResponseSeen:
    response = entry["response"]
    answered = response["status"] > 0  # 0 or -1: none came
    spent = [timings[name] for name in _EXCHANGE if timings.get(name, -1) >= 0]
    why = response.get("_error") or response.get("statusText") or "the file has no answer to it"
    return ResponseSeen(
        key=where,
        status=response["status"] if answered else None,
        headers=_headers(response),
        body=_body(response.get("content") or {}),
        chunks=(),
        ttft_ns=None,
        duration_ns=round(sum(spent) * 1e6) if spent else None,
        ended="complete" if answered else "reset",
        error=None if answered else str(why),
    )


def _headers(message: Any) -> Headers:
    """The header fields as sent, but for the encoding, which a HAR's bodies have lost."""
    pairs = ((str(item["name"]), str(item["value"])) for item in message.get("headers") or ())
    return tuple((name, value) for name, value in pairs if name.lower() != "content-encoding")


def _body(content: Any) -> bytes:
    text = content.get("text") or ""
    if content.get("encoding") == "base64":
        return base64.b64decode(text)
    return str(text).encode("utf-8", "replace")


def _started(entry: Any, timings: Any) -> int:
    """When the request's first byte was sent, which is after the connection was made."""
    said = entry.get("startedDateTime")
    if not said:
        return UNTIMED
    before = sum(timings[name] for name in _BEFORE_SENDING if timings.get(name, -1) >= 0)
    moment = datetime.fromisoformat(said)
    return int(round(moment.timestamp() * 1e6) * 1000 + round(before * 1e6))


IMPORT = HarFile()
