"""What a capture that is still written tells of requests that are not over, and of what is said later."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from analyzer.live_capture import LiveCapture, Update
from analyzer.pipeline import Options, analyze
from store.db import Capture
from store.records import ServerFact
from tests.captures import METRICS, START_NS, Sent, chat, request_seen, response_seen, usage, write_capture

LATER_NS = START_NS + 10**17
SECOND = 10**9


FIRST = [
    Sent(body=chat("09:12", "List."), usage=usage(120, 0)),
    Sent(body=chat("09:12", "List.", "Two.", "Read."), usage=usage(130, 112)),
]


def test_a_request_that_is_not_over_has_no_line_until_the_end_and_marks_those_after_it(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.sqlite"
    write_capture(path, FIRST[:1])
    with Capture.create_or_open(str(path), redaction="secrets") as writer:
        writer.save_request(request_seen("slow", chat("09:12", "Slow."), LATER_NS))
        writer.save_request(request_seen("fast", chat("09:12", "Fast."), LATER_NS + 1))
        writer.save_response(response_seen("fast"))
        with Capture.open(str(path)) as reader:
            live = LiveCapture(reader, Options(tokenizer=str(sample_tokenizer)))
            first = list(live.updates())
            writer.save_response(response_seen("slow"))
            second = list(live.updates())
    assert [(update.exchange_id, update.rows[0].settled) for update in first] == [(1, True), (3, False)]
    assert [(update.exchange_id, update.rows[0].settled) for update in second] == [(2, True)]
    assert live.in_flight == 0


def test_what_a_killed_proxy_left_open_is_told_and_marks_nothing(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    path = tmp_path / "c.sqlite"
    write_capture(path, FIRST[:1])
    with Capture.create_or_open(str(path), redaction="secrets") as writer:
        writer.save_request(request_seen("killed", chat("09:12", "Slow."), LATER_NS))
    with Capture.create_or_open(str(path), redaction="secrets") as writer:  # the next proxy asks at its start
        started = LATER_NS + 10**9
        writer.save_facts([ServerFact(at_ns=started, path="/version", status=200, body=b'{"version": "1"}')])
        writer.save_request(request_seen("next", chat("09:12", "Fast."), started + 1))
        writer.save_response(response_seen("next"))
        with Capture.open(str(path)) as reader:
            found = list(LiveCapture(reader, Options(tokenizer=str(sample_tokenizer))).updates())
    assert [(update.exchange_id, update.rows[0].settled) for update in found] == [
        (1, True),
        (2, True),
        (3, True),
    ]
    assert found[1].rows[0].turn.outcome == "open"


def test_what_the_server_says_later_corrects_the_lines_before(sample_tokenizer: Path, tmp_path: Path) -> None:
    path = write_capture(tmp_path / "c.sqlite", FIRST, block_size=None)
    with Capture.create_or_open(str(path), redaction="secrets") as writer, Capture.open(str(path)) as reader:
        live = LiveCapture(reader, Options(tokenizer=str(sample_tokenizer)))
        before = list(live.updates())
        metrics = METRICS.replace('"16"', '"64"').encode()
        writer.save_facts([ServerFact(at_ns=1, path="/metrics", status=200, body=metrics)])
        after = list(live.updates())

    def sizes(updates: list[Update]) -> list[tuple[int | None, bool]]:
        return [(update.rows[0].turn.block_size, update.corrects) for update in updates]

    assert sizes(before) == [(16, False), (16, False)]
    assert sizes(after) == [(64, True), (64, True)]


def test_a_restart_by_a_clock_that_is_off_is_put_where_the_report_puts_it(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    path = write_capture(tmp_path / "c.sqlite", FIRST[:1])
    options = Options(tokenizer=str(sample_tokenizer))
    began = LATER_NS + 14 * SECOND  # by the server's clock: in the middle of the third answer
    with Capture.create_or_open(str(path), redaction="secrets") as writer, Capture.open(str(path)) as reader:
        live = LiveCapture(reader, options)
        told = list(live.updates())
        writer.save_facts([counted(LATER_NS, 500, began_ns=START_NS)])
        for key, at, said in (("b", 1, ("List.",)), ("c", 12, ("List.", "Two.", "Read."))):
            writer.save_request(request_seen(key, chat("09:12", *said), LATER_NS + at * SECOND))
            writer.save_response(replace(response_seen(key), ttft_ns=SECOND, duration_ns=8 * SECOND))
            told += live.updates()
        writer.save_facts([counted(LATER_NS + 60 * SECOND, 100, began_ns=began)])
        told += live.updates(last=True)
        reported = analyze(reader, options).report.turns
    last = {update.exchange_id: update.rows[0].turn.predicted_cached_tokens for update in told}
    assert last == {turn.id: turn.predicted_cached_tokens for turn in reported}
    assert last[2] and not last[3]  # it began anew between the two


def counted(at_ns: int, queries: int, *, began_ns: int) -> ServerFact:
    """A look at the counters of a server that began then."""
    lines = [f"process_start_time_seconds {began_ns / SECOND!r}", METRICS]
    lines += [f"vllm:prefix_cache_{what}_total {queries}.0" for what in ("queries", "hits")]
    return ServerFact(at_ns=at_ns, path="/metrics", status=200, body="\n".join(lines).encode())
