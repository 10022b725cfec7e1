"""The ledger over captures, hand-computed: blocks of 4 tokens, prompts given as ids, answers with theirs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from analyzer.engines.vllm import VllmEngine
from analyzer.pipeline import Options, analyze
from analyzer.report import Report, Turn
from analyzer.reports.json_report import as_object
from analyzer.reports.text_report import REPORT as TEXT
from store.db import Capture
from store.records import RequestSeen, ResponseSeen, ServerFact

SECOND = 1_000_000_000
BEGAN = 1_700_000_000


class Session:
    """A capture in the making; moments are seconds after its beginning."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "c.sqlite"
        self.capture = Capture.create_or_open(str(self.path), redaction="secrets")
        self.count = 0

    def look(self, at: float, queries: int, hits: int, began: float = 0) -> None:
        """What the server's counters said at a moment; `began` is when it had begun."""
        page = (
            f"process_start_time_seconds {BEGAN + began}\n"
            f'vllm:prefix_cache_queries_total{{engine="0"}} {float(queries)}\n'
            f'vllm:prefix_cache_hits_total{{engine="0"}} {float(hits)}'
        )
        fact = ServerFact(at_ns=_at(at), path="/metrics", status=200, body=page.encode())
        self.capture.save_facts([fact])

    def ask(
        self,
        prompt: Sequence[int],
        *answers: Sequence[int],
        cached: int | None = None,
        at: float | None = None,
        took: float | None = 0.5,
        status: int = 200,
        stop_reason: str | None = None,
        wire: bool = True,
        **body: Any,
    ) -> None:
        """One exchange of /v1/completions; without a `stop_reason`, every answer ended by its length."""
        self.count += 1
        key, at = f"k{self.count}", float(self.count) if at is None else at
        sent = {"model": "m", "prompt": list(prompt), "n": len(answers) or 1, **body}
        usage: dict[str, Any] = {"prompt_tokens": len(prompt), "completion_tokens": sum(map(len, answers))}
        if cached is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": cached}
        finish = {"finish_reason": "stop" if stop_reason else "length", "stop_reason": stop_reason}
        choices = [
            {"index": index, "text": "?", "token_ids": list(ids) if wire else None, **finish}
            for index, ids in enumerate(answers)
        ]
        answer = json.dumps({"choices": choices, "usage": usage}).encode()
        kind = (("content-type", "application/json"),)
        self.capture.save_request(
            RequestSeen(
                key=key,
                started_at_ns=_at(at),
                method="POST",
                path="/v1/completions",
                query="",
                headers=kind,
                body=json.dumps(sent).encode(),
            )
        )
        self.capture.save_response(
            ResponseSeen(
                key=key,
                status=status,
                headers=kind,
                body=answer,
                chunks=(),
                ttft_ns=None,
                duration_ns=None if took is None else int(took * SECOND),
                ended="complete",
                error=None,
            )
        )

    def report(self, **options: Any) -> Report:
        return analyze(self.capture, Options(**{"block_size": 4, **options})).report

    def turns(self, **options: Any) -> tuple[Turn, ...]:
        return self.report(**options).turns

    def predicted(self, **options: Any) -> list[int | None]:
        return [turn.predicted_cached_tokens for turn in self.turns(**options)]


def _at(seconds: float) -> int:
    return BEGAN * SECOND + int(seconds * SECOND)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def ids(count: int, first: int = 1000) -> list[int]:
    return list(range(first, first + count))


def test_sampled_tokens_are_hit_but_for_the_last(session: Session) -> None:
    # 6 + 3 - 1 = 8 tokens computed (v1/core/sched/async_scheduler.py:75): two blocks.
    session.ask(ids(6), [1, 2, 3])
    session.ask([*ids(6), 1, 2, 3, 50, 51])
    # 6 + 2 - 1 = 7: one block, though the prompt that follows shares eight tokens.
    session.ask(ids(6, 7000), [1, 2])
    session.ask([*ids(6, 7000), 1, 2, 50, 51])
    assert session.predicted() == [0, 8, 0, 4]


def test_a_text_to_stop_at_is_found_one_token_late(session: Session) -> None:
    # Seen on vLLM 0.32: after a stop string the last token's block was hit, after a length it was not.
    session.ask(ids(7), [1], stop_reason="x")
    session.ask([*ids(7), 1, 50, 51])
    session.ask(ids(7, 7000), [1])
    session.ask([*ids(7, 7000), 1, 50, 51])
    assert session.predicted() == [0, 8, 0, 4]


def test_each_of_several_answers_looks_up_for_itself_and_one_is_reported(session: Session) -> None:
    # Nine tokens: the second finds both full blocks of the first. The last to finish is reported
    # (v1/engine/output_processor.py:977): the second where they are as long, the first where it is longer.
    session.ask(ids(9), [1, 2], [3, 4])
    session.ask(ids(9, 7000), [1, 2, 3, 4], [5, 6])
    # A stream reports its first result (entrypoints/openai/chat_completion/serving.py:538).
    session.ask(ids(9, 9000), [1, 2], [3, 4], stream=True)
    assert session.predicted() == [8, 0, 0]


def test_a_first_answer_of_one_token_is_over_before_the_others_begin(session: Session) -> None:
    # Five blocks: four for the first prompt, of which the last is not full. Each answer of the second needs
    # one that holds nothing; seen on vLLM 0.32, they take the same one, and nothing is evicted.
    session.ask(ids(13), [1])
    session.ask(ids(6, 7000), [1], [2])
    session.ask(ids(13), [1])
    assert session.predicted(pool_blocks=6) == [0, 4, 12]


def test_every_answer_can_be_gone_on_from(session: Session) -> None:
    session.ask(ids(6), [1, 2, 3], [4, 5, 6])
    session.ask([*ids(6), 1, 2, 3, 50])
    session.ask([*ids(6), 4, 5, 6, 50])
    assert session.predicted() == [4, 8, 8]


def test_prompts_of_one_body_find_each_others_blocks(session: Session) -> None:
    session.ask([ids(6), [*ids(5), 77]], [1], [2], n=1)  # type: ignore[list-item]
    assert session.predicted() == [0, 4]


def test_a_request_whose_end_nobody_saw_holds_no_blocks(session: Session) -> None:
    # Five blocks in the pool: it would leave no room for any other of its size.
    for number in range(2):
        session.ask(ids(16, 3000 + 100 * number), [1], at=number + 1, took=None)
    session.ask(ids(16, 3100), [1])
    assert session.predicted(pool_blocks=6) == [0, 0, 12]


def test_a_refused_request_leaves_nothing(session: Session) -> None:
    session.ask(ids(9), status=400)
    session.ask(ids(9), [1])
    assert session.predicted() == [None, 0]


def test_a_request_that_skips_reading_hits_nothing_and_writes(session: Session) -> None:
    # sampling_params.py:622-629
    session.ask(ids(9), [1])
    session.ask(ids(9), [1], prompt_logprobs=0)
    session.ask(ids(13), [1], prompt_logprobs=0)
    session.ask(ids(14), [1])
    assert session.predicted() == [0, 0, 0, 12]


def test_a_restarted_server_has_nothing_cached(session: Session) -> None:
    session.look(0, 0, 0, began=-100)
    session.ask(ids(9), [1], cached=0)
    session.ask(ids(9), [1], cached=8)
    session.ask(ids(9), [1], cached=0, at=30)
    session.look(40, 9, 0, began=20)
    report = session.report()
    assert [turn.predicted_cached_tokens for turn in report.turns] == [0, 8, 0]
    assert report.server.metrics is not None
    assert (report.server.metrics.restarts, report.server.metrics.verdict) == (1, None)
    assert "started anew 1 time" in TEXT.format(report, width=None, color=False)


def test_counters_that_agree_are_said_to(session: Session) -> None:
    session.look(0, 100, 40)
    session.ask(ids(9), [1, 2], [3, 4], cached=8)
    session.ask(ids(9), [1], cached=8)
    session.look(9, 127, 56)  # three look-ups of nine tokens, two of them hit eight
    metrics = session.report().server.metrics
    assert metrics is not None
    assert (metrics.queries, metrics.captured_queries, metrics.hits, metrics.predicted_hits) == (
        27,
        27,
        16,
        16,
    )
    assert (metrics.verdict, metrics.cached_before) == ("agree", True)


def test_counters_of_more_than_was_captured_tell_of_other_traffic(session: Session) -> None:
    session.look(0, 0, 0)
    session.ask(ids(9), [1], cached=8)
    session.look(9, 500, 8)
    report = session.report()
    assert report.server.metrics is not None
    assert report.server.metrics.verdict == "other_traffic"
    assert [turn.residual for turn in report.turns] == ["engine.other_traffic"]
    said = TEXT.format(report, width=None, color=False)
    assert "other traffic was there" in said
    assert "hit: engine.other_traffic" in said


def test_skipped_readings_are_not_among_the_counted(session: Session) -> None:
    session.look(0, 0, 0)
    session.ask(ids(9), [1], cached=0, prompt_logprobs=0)
    session.look(9, 0, 0)
    metrics = session.report().server.metrics
    assert metrics is not None
    assert metrics.verdict == "agree"


def test_requests_outside_of_the_looks_leave_the_counters_uncompared(session: Session) -> None:
    session.ask(ids(9), [1], cached=0)
    session.look(5, 9, 0)
    session.look(9, 9, 0)
    metrics = session.report().server.metrics
    assert metrics is not None
    assert (metrics.verdict, metrics.cached_before) == (None, None)


def test_what_was_cached_before_the_capture_is_called_that(session: Session) -> None:
    session.look(0, 900, 100)
    session.ask(ids(9), [1], cached=8)
    session.ask(ids(9), [1], cached=0)
    assert [turn.residual for turn in session.turns(pool_blocks=100)] == [
        "engine.cached_before",
        "engine.unexplained",
    ]


def test_a_request_in_flight_beside_it_explains_a_hit(session: Session) -> None:
    session.ask(ids(9), [1], cached=8, at=1, took=2)
    session.ask(ids(9), [1], cached=0, at=1.001, took=2)
    assert [turn.residual for turn in session.turns(pool_blocks=100)] == ["engine.in_flight"] * 2


def test_a_pool_that_overflowed_explains_a_loss(session: Session) -> None:
    session.ask(ids(9), [1], cached=0)
    for number in range(6):
        session.ask(ids(9, 2000 + 100 * number), [1], cached=0)
    session.ask(ids(9), [1], cached=0)
    (*_, last) = session.turns(pool_blocks=32)
    assert (last.predicted_cached_tokens, last.residual) == (8, "engine.unexplained")
    (*_, last) = session.turns(pool_blocks=24)  # 23 blocks, of which 22 are written by then
    assert (last.predicted_cached_tokens, last.residual) == (8, "engine.unexplained")
    (*_, last) = session.turns(pool_blocks=23)
    assert (last.predicted_cached_tokens, last.residual) == (8, "engine.evicted")


def test_an_answer_of_unknown_ids_explains_what_lies_within_it(session: Session) -> None:
    # Its text alone is there, and no tokenizer to make ids of it.
    session.ask(ids(6), [1, 2, 3], cached=0, wire=False)
    session.ask([*ids(6), 1, 2, 3, 50, 51], [1], cached=8)
    session.ask([*ids(6), 1, 2, 3, 50, 51, 52, 53, 54], [1], cached=0)
    first, second, third = session.turns(pool_blocks=100)
    assert first.generated_source is None
    assert (second.predicted_cached_tokens, second.residual) == (4, "engine.answer_ids")
    # That the prompt of the second is gone is not for its sake: it lies before the answer.
    assert (third.predicted_cached_tokens, third.residual) == (8, "engine.unexplained")


def test_where_no_count_is_reported_that_is_the_label(session: Session) -> None:
    session.ask(ids(9), [1])
    (turn,) = as_object(session.report())["turns"]
    assert (turn["cache"], turn["residual"], turn["generated_source"]) == (
        "not_reported",
        "usage.unknown",
        "wire",
    )


def test_an_error_in_the_prediction_loses_no_report(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RuntimeError("boom")

    session.ask(ids(9), [1], cached=0)
    monkeypatch.setattr(VllmEngine, "predict", fails)
    report = session.report()
    assert [turn.predicted_cached_tokens for turn in report.turns] == [None]
    assert report.turns[0].reported_cached_tokens == 0
    assert report.problems == ("cache hits are not predicted: RuntimeError: boom",)


@pytest.mark.parametrize("step", ["calibrate", "reconcile", "with_residuals", "make_turn"])
def test_an_error_in_any_later_step_loses_no_report(
    session: Session, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from analyzer import accounting

    real = getattr(accounting, step)

    def fails(first: Any, *rest: Any) -> Any:
        if step == "make_turn" and first.prompt.rendering is None:
            return real(first, *rest)
        raise RuntimeError("boom")

    session.look(0, 0, 0)
    session.ask(ids(9), [1], cached=0)
    monkeypatch.setattr(accounting, step, fails)
    report = session.report()
    said = (*report.problems, *(turn.problem or "" for turn in report.turns))
    assert len(report.turns) == 1
    assert any("RuntimeError: boom" in sentence for sentence in said)
