"""The reader of event streams, held against the framing rules of the HTML standard."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzer.sse import SSEDecoder, read_events

STREAM = (
    b"\xef\xbb\xbf: a comment\r\n"
    b'event: first\ndata: {"text":"\xe2\x80\xa8 \xe6\xbc\xa2 \xf0\x9f\x90\x8d"}\n\n'
    b"data:no space\rdata: second line\r\r"
    b"id: 7\nretry: 10\n\n"
    b"data: [DONE]"
)
EXPECTED = [
    ("first", '{"text":"\u2028 漢 🐍"}'),
    ("", "no space\nsecond line"),
    ("", "[DONE]"),
]


def told(events: list) -> list[tuple[str, str]]:  # type: ignore[type-arg]
    return [(event.name, event.data) for event in events]


def test_a_whole_stream_gives_its_events_in_order() -> None:
    assert told(read_events(STREAM)) == EXPECTED


def test_one_byte_at_a_time_gives_the_same_events() -> None:
    decoder = SSEDecoder()
    events = [event for byte in STREAM for event in decoder.decode(bytes([byte]))]
    assert told(events + decoder.flush()) == EXPECTED


@given(st.lists(st.integers(0, len(STREAM)), max_size=6))
def test_any_cut_of_the_stream_gives_the_same_events(cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(STREAM)]
    decoder = SSEDecoder()
    events = []
    for start, end in itertools.pairwise(bounds):
        events += decoder.decode(STREAM[start:end])
    assert told(events + decoder.flush()) == EXPECTED


def test_a_line_separator_inside_data_does_not_end_the_line() -> None:
    assert told(read_events("data: a\u2028b\u0085c\n\n".encode())) == [("", "a\u2028b\u0085c")]


@pytest.mark.parametrize("stream", [b"", b"\n\n\n", b": only a comment\n\n"])
def test_a_stream_without_data_has_no_events(stream: bytes) -> None:
    assert read_events(stream) == []
