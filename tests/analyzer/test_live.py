"""Rows that are told while a capture is written are those of the report on the whole of it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from analyzer.live import WHOLE_CAPTURE
from analyzer.live_capture import LiveCapture, Update
from analyzer.pipeline import Options, analyze
from analyzer.report import Turn
from analyzer.watch_text import row_object
from store.db import Capture
from store.records import Chunk, RequestSeen, ResponseSeen, ServerFact
from tests.analyzer.random_sessions import Session
from tests.captures import METRICS, MODELS

CHAT = "/v1/chat/completions"
SECOND = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An exchange of a made-up session: when it begins, is seen whole, and is over (None: never)."""

    key: str
    body: dict[str, Any]
    answer: dict[str, Any]
    status: int
    started: int
    uploaded: int
    ended: int | None

    def request(self) -> RequestSeen:
        return RequestSeen(
            key=self.key,
            started_at_ns=self.started * SECOND,
            method="POST",
            path=CHAT,
            query="",
            headers=(("content-type", "application/json"),),
            body=json.dumps(self.body).encode(),
        )

    def response(self) -> ResponseSeen:
        assert self.ended is not None
        content, lasted = json.dumps(self.answer).encode(), (self.ended - self.started) * SECOND
        return ResponseSeen(
            key=self.key,
            status=self.status,
            headers=(("content-type", "application/json"),),
            body=content,
            chunks=(Chunk(byte_end=len(content), at_ns=lasted),),
            ttft_ns=lasted,
            duration_ns=lasted,
            ended="complete",
            error=None,
        )


def made_up(dice: random.Random, *, overlap: bool, slow_uploads: bool = False) -> list[Made]:
    """Several agents at once, or one; some requests refused, some answers with ids of their own."""
    found: list[Made] = []
    clock = 1000
    sessions = [Session(dice, calls=False).turns(7) for _ in range(3 if overlap else 1)]
    while sessions:
        chosen = dice.choice(sessions)
        turn = next(chosen, None)
        if turn is None:
            sessions.remove(chosen)
            continue
        started = clock
        uploaded = started + (dice.choice((1, 1, 1, 30)) if slow_uploads else 1)
        ended = uploaded + dice.choice((1, 5, 40, 90) if overlap else (3,))
        clock = started + dice.randint(1, 12) if overlap else ended + 1
        found.append(_exchange(dice, f"{started}", turn[0], (started, uploaded, ended)))
    return found


def _exchange(
    dice: random.Random, key: str, messages: list[dict[str, Any]], times: tuple[int, int, int]
) -> Made:
    refused = dice.random() < 0.1
    answer: dict[str, Any] = {"error": {"message": "no"}} if refused else _answer(dice)
    started, uploaded, ended = times
    body: dict[str, Any] = {"model": dice.choice(("tiny", "tiny", "small")), "messages": messages}
    if dice.random() < 0.1:
        body["n"] = 2
    return Made(
        key=key,
        body=body,
        answer=answer,
        status=400 if refused else 200,
        started=started,
        uploaded=uploaded,
        ended=ended,
    )


def _answer(dice: random.Random) -> dict[str, Any]:
    said = {"role": "assistant", "content": "x" * dice.randint(0, 60)}
    usage: dict[str, Any] = {"prompt_tokens": 40, "completion_tokens": dice.randint(0, 40)}
    if dice.random() < 0.5:
        usage["prompt_tokens_details"] = {"cached_tokens": 16 * dice.randint(0, 4)}
    answer: dict[str, Any] = {
        "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
        "usage": usage,
    }
    if dice.random() < 0.2:  # the server's own ids, which here are others than the renderer's
        answer["prompt_token_ids"] = [dice.randrange(50) for _ in range(40)]
        answer["choices"][0]["token_ids"] = [dice.randrange(50) for _ in range(6)]
    return answer


def facts(pool_blocks: int) -> list[ServerFact]:
    metrics = METRICS.replace('"4096"', f'"{pool_blocks}"').encode()
    told = {"/v1/models": json.dumps(MODELS).encode(), "/metrics": metrics, "/version": b'{"version": "0"}'}
    return [ServerFact(at_ns=1, path=path, status=200, body=body) for path, body in told.items()]


def events(exchanges: list[Made]) -> Iterator[tuple[Made, bool]]:
    """What the proxy writes, in order of time: a request that is whole (True), or an end."""
    moments = [(item.uploaded, True, item.key, item) for item in exchanges]
    moments += [(item.ended, False, item.key, item) for item in exchanges if item.ended is not None]
    for _, whole, _, item in sorted(moments, key=lambda moment: moment[:3]):
        yield item, whole


def shown(turn: Turn) -> dict[str, Any]:
    """A row as the report's JSON has it, without what only the whole capture tells."""
    from analyzer.live import Row

    return row_object(Row(turn=turn, settled=True), corrects=False)


def followed(
    path: Path, exchanges: list[Made], options: Options, dice: random.Random, *, pool_blocks: int = 4096
) -> tuple[list[Update], list[Turn]]:
    """All that was told while the exchanges were written, and the rows of the report at the end."""
    told: list[Update] = []
    with Capture.create_or_open(str(path), redaction="secrets") as writer:
        writer.save_facts(facts(pool_blocks))
        with Capture.open(str(path)) as reader:
            live = LiveCapture(reader, options)
            for item, whole in events(exchanges):
                if whole:
                    writer.save_request(item.request())
                else:
                    writer.save_response(item.response())
                if dice.random() < 0.8:
                    told += live.updates()
            told += live.updates(last=True)
    with Capture.open(str(path)) as capture:
        return told, list(analyze(capture, options).report.turns)


def last_told(updates: list[Update]) -> dict[str, dict[str, Any]]:
    return {row.turn.name: shown(row.turn) for update in updates for row in update.rows}


def assert_as_reported(updates: list[Update], turns: list[Turn]) -> None:
    told, reported = last_told(updates), {turn.name: shown(turn) for turn in turns}
    assert told.keys() == reported.keys()
    for name, row in reported.items():
        # The report adds what counts of the whole conversation say of a mismatch.
        ours, theirs = told[name].pop("problem"), row.pop("problem")
        assert told[name] == row
        assert (theirs or "").startswith(ours or "")


@pytest.mark.parametrize("seed", range(4))
def test_the_lines_of_one_agent_are_the_rows_of_the_report_and_come_once(
    sample_tokenizer: Path, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    options = Options(tokenizer=str(sample_tokenizer))
    told, turns = followed(tmp_path / "c.sqlite", made_up(dice, overlap=False), options, dice)
    assert_as_reported(told, turns)
    assert not any(update.corrects for update in told)
    assert all(row.settled for update in told for row in update.rows)
    assert len(turns) == sum(len(update.rows) for update in told)


@pytest.mark.parametrize("pool_blocks", [4096, 24])
@pytest.mark.parametrize("seed", range(6))
def test_what_is_told_last_of_agents_at_once_is_what_the_report_says(
    sample_tokenizer: Path, tmp_path: Path, seed: int, pool_blocks: int
) -> None:
    dice = random.Random(100 + seed)
    options = Options(tokenizer=str(sample_tokenizer))
    exchanges = made_up(dice, overlap=True, slow_uploads=True)
    told, turns = followed(tmp_path / "c.sqlite", exchanges, options, dice, pool_blocks=pool_blocks)
    assert_as_reported(told, turns)


@pytest.mark.parametrize("pool_blocks", [4096, 24])
@pytest.mark.parametrize("seed", range(6))
def test_a_row_that_is_settled_is_never_told_otherwise(
    sample_tokenizer: Path, tmp_path: Path, seed: int, pool_blocks: int
) -> None:
    dice = random.Random(200 + seed)
    options = Options(tokenizer=str(sample_tokenizer))
    exchanges = made_up(dice, overlap=True)
    told, turns = followed(tmp_path / "c.sqlite", exchanges, options, dice, pool_blocks=pool_blocks)
    assert_as_reported(told, turns)
    settled: dict[str, dict[str, Any]] = {}
    for row in (row for update in told for row in update.rows):
        if row.turn.name in settled:
            assert settled[row.turn.name] == shown(row.turn)
        elif row.settled:
            settled[row.turn.name] = shown(row.turn)
    assert settled


def test_a_row_lacks_only_what_the_whole_capture_tells() -> None:
    assert WHOLE_CAPTURE == ("conversation_rendering", "residual", "notes")
