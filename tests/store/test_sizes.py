from __future__ import annotations

import json
import random
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine

from store import deltas, tables
from store.blobs import MAX_DEPTH, BlobReader, BlobWriter, damaged
from store.db import Capture
from store.records import Chunk, RequestSeen, ResponseSeen

type Exchanged = tuple[RequestSeen, ResponseSeen]
type AskFor = Callable[..., RequestSeen]

RANDOM = random.Random(7)
WORDS = ["".join(RANDOM.choices("abcdefghijklmnopqrstuvwxyz", k=RANDOM.randint(2, 9))) for _ in range(4000)]
WEIGHTS = [1 / (rank + 1) for rank in range(len(WORDS))]


def words(length: int) -> str:
    return " ".join(RANDOM.choices(WORDS, WEIGHTS, k=length // 6))


def turns(count: int, *, clock: bool, session: int = 0) -> Iterator[Exchanged]:
    system, tools = words(8000), [{"name": f"tool_{number}", "about": words(600)} for number in range(20)]
    history: list[dict[str, str]] = []
    for turn in range(count):
        history += [{"role": "assistant", "content": words(500)}, {"role": "tool", "content": words(10_000)}]
        head = f"It is 12:{turn // 60:02d}:{turn % 60:02d}.\n" if clock else ""
        messages = [{"role": "system", "content": head + system}, *history]
        body = json.dumps({"messages": messages, "tools": tools}).encode()
        events = [
            b'data: {"id":"chatcmpl-%032x","object":"chat.completion.chunk","model":"m","choices":['
            b'{"index":0,"delta":{"content":" %b"},"logprobs":null,"finish_reason":null}]}\n\n'
            % (turn * 7919, RANDOM.choice(WORDS).encode())
            for _ in range(100)
        ]
        key = f"{session}-{turn}"
        yield (
            RequestSeen(
                key=key,
                started_at_ns=turn * 10**9 + session,
                method="POST",
                path="/v1/chat/completions",
                query="",
                headers=(("content-length", str(len(body))), ("authorization", "Bearer sk-abc-123456789")),
                body=body,
            ),
            ResponseSeen(
                key=key,
                status=200,
                headers=(("content-type", "text/event-stream"),),
                body=b"".join(events),
                chunks=tuple(_chunks(events)),
                ttft_ns=1,
                duration_ns=2,
                ended="complete",
                error=None,
            ),
        )


def _chunks(events: list[bytes]) -> Iterator[Chunk]:
    byte_end, at_ns = 0, 0
    for event in events:
        byte_end, at_ns = byte_end + len(event), at_ns + RANDOM.randint(8_000_000, 14_000_000)
        yield Chunk(byte_end=byte_end, at_ns=at_ns)


def write(path: Path, exchanged: list[Exchanged]) -> float:
    """Write everything and return the share of the requests' bytes that is on the disk."""
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        for request, response in exchanged:
            capture.save_request(request)
            capture.save_response(response)
    on_disk = sum(file.stat().st_size for file in path.parent.iterdir())
    return on_disk / sum(len(request.body) for request, _ in exchanged)


def test_a_hundred_turns_take_at_most_a_fiftieth_of_what_was_sent(path: Path) -> None:
    exchanged = list(turns(100, clock=True))
    started = time.process_time()
    assert write(path, exchanged) < 0.02
    assert time.process_time() - started < 12
    with Capture.open(str(path)) as capture:
        started = time.process_time()
        read = list(capture.exchanges())
        assert time.process_time() - started < 2
    for exchange, (request, response) in zip(read, exchanged, strict=True):
        assert exchange.request.content == request.body
        assert exchange.response.content == response.body
        assert exchange.chunks == response.chunks


def test_sessions_side_by_side_find_their_own_history(path: Path) -> None:
    sessions = [turns(8, clock=True, session=number) for number in range(4)]
    exchanged = [pair for together in zip(*sessions, strict=True) for pair in together]
    share = write(path, exchanged)
    # A short session repeats itself less: here a byte is sent about 4 times, not 50.
    assert share < 0.15


def test_a_long_chain_starts_again_with_a_whole_body() -> None:
    engine = create_engine("sqlite://")
    tables.metadata.create_all(engine)
    writer = BlobWriter()
    bodies = [b"a body that grows " + b"x" * number for number in range(MAX_DEPTH + 20)]
    with engine.begin() as connection:
        ids = [writer.put(connection, "s", body) for body in bodies]
        depths = list(connection.scalars(tables.blob.select().with_only_columns(tables.blob.c.depth)))
        assert max(depths) == MAX_DEPTH
        assert depths.count(0) == 2
        assert [BlobReader().get(connection, blob_id) for blob_id in ids] == bodies
    engine.dispose()


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.data())
def test_every_body_comes_back_byte_for_byte_after_random_edits(data: st.DataObject) -> None:
    engine = create_engine("sqlite://")
    tables.metadata.create_all(engine)
    writer, bodies = BlobWriter(), [data.draw(st.binary(max_size=200))]
    for _ in range(data.draw(st.integers(1, 12))):
        body = data.draw(st.sampled_from(bodies))
        start = data.draw(st.integers(0, len(body)))
        end = data.draw(st.integers(start, len(body)))
        bodies.append(
            body[:start] + data.draw(st.binary(max_size=60)) * data.draw(st.integers(0, 9)) + body[end:]
        )
    with engine.begin() as connection:
        ids = [writer.put(connection, "s", body) for body in bodies]
        for order in (list(zip(ids, bodies, strict=True)), list(zip(ids, bodies, strict=True))[::-1]):
            reader = BlobReader()
            assert [reader.get(connection, blob_id) for blob_id, _ in order] == [body for _, body in order]
        assert list(damaged(connection)) == []
        assert len(set(ids)) == len(set(bodies))
    engine.dispose()


def test_the_longest_common_prefix_chooses_and_ties_go_to_the_latest() -> None:
    assert deltas.choose(b"abcdef", []) is None
    assert deltas.choose(b"abcdef", [b"abcdxx", b"abxxxx"]) == 0
    assert deltas.choose(b"abcdef", [b"abcdxx", b"abcdyy"]) == 1


def test_shared_pieces_choose_where_a_clock_cuts_every_prefix_short() -> None:
    mine, other = b'"' + b"my own history " * 9 + b'"', b'"' + b"another history " * 9 + b'"'
    assert deltas.choose(b"12:03" + mine + b'"more"', [b"12:01" + mine, b"12:02" + other]) == 0


@given(st.binary(max_size=50), st.binary(max_size=50), st.integers(0, 70_000))
def test_the_common_prefix_is_counted_in_bytes(left: bytes, right: bytes, shared: int) -> None:
    prefix: Callable[[bytes, bytes], int] = deltas.common_prefix
    expected = next(
        (index for index, pair in enumerate(zip(left, right, strict=False)) if pair[0] != pair[1]),
        min(len(left), len(right)),
    )
    assert prefix(b"s" * shared + left, b"s" * shared + right) == shared + expected


@pytest.mark.parametrize("unit", [b"a", b'""', b"\\n", b'"x1"y'])
def test_a_decompression_bomb_costs_the_writer_little(capture: Capture, ask: AskFor, unit: bytes) -> None:
    packer = zlib.compressobj(1, wbits=31)
    piece = unit * ((1 << 20) // len(unit))
    wire = packer.compress(b'["') + b"".join(packer.compress(piece) for _ in range(300)) + packer.flush()
    request = ask()
    capture.save_request(request)
    response = ResponseSeen(
        key=request.key,
        status=200,
        headers=(("content-encoding", "gzip"),),
        body=wire,
        chunks=(),
        ttft_ns=1,
        duration_ns=2,
        ended="complete",
        error=None,
    )
    started = time.process_time()
    exchange_id = capture.save_response(response)
    assert time.process_time() - started < 5
    read = capture.exchange(exchange_id).response
    assert read.problem == "gzip: decodes to more than 67108864 bytes: only the first 4194304 are stored"
    assert len(read.content) == 4 << 20
