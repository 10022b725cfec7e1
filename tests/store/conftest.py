"""Requests, responses and captures for the tests of the store."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store.db import Capture
from store.records import Chunk, Headers, RequestSeen, ResponseSeen

type AskFor = Callable[..., RequestSeen]
type Answer = Callable[..., ResponseSeen]


@pytest.fixture
def ask() -> AskFor:
    numbers = itertools.count(1)

    def make(body: bytes = b"{}", headers: Headers = (), query: str = "", path: str = "/v1/x") -> RequestSeen:
        number = next(numbers)
        return RequestSeen(
            key=str(number),
            started_at_ns=10**18 + number,
            method="POST",
            path=path,
            query=query,
            headers=headers,
            body=body,
        )

    return make


@pytest.fixture
def answer() -> Answer:
    def make(request: RequestSeen, body: bytes = b"{}", headers: Headers = ()) -> ResponseSeen:
        return ResponseSeen(
            key=request.key,
            status=200,
            headers=headers,
            body=body,
            chunks=(Chunk(byte_end=len(body), at_ns=5_000_000),),
            ttft_ns=4_000_000,
            duration_ns=6_000_000,
            ended="complete",
            error=None,
        )

    return make


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.db"


@pytest.fixture
def capture(path: Path) -> Iterator[Capture]:
    with Capture.create_or_open(str(path), redaction="secrets") as made:
        yield made
