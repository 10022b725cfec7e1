"""The prefill rate is the slope that most turns agree on; where they do not, there is none."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from analyzer.prefill_rate import FEWEST_TURNS, MOST_TURNS, prefill_rate, with_seconds
from analyzer.report import Turn
from tests.analyzer.rows import finding, row
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality

RATE, LATENCY = 2000.0, 0.35


def turns(counts: Iterable[int], *, cached: int = 512) -> list[Turn]:
    """Rows whose first token came after a fixed latency and their uncached tokens at `RATE`."""
    return [timed(count, LATENCY + count / RATE, cached=cached) for count in counts]


def timed(uncached: int, seconds: float, *, cached: int = 512) -> Turn:
    return row(
        reported_prompt_tokens=uncached + cached,
        reported_cached_tokens=cached,
        first_token_ns=round(seconds * 1e9),
    )


def test_a_fixed_latency_is_not_taken_for_work() -> None:
    found = prefill_rate(turns(range(100, 1100, 100)))
    assert found.tokens_per_second == pytest.approx(RATE, rel=1e-6)
    assert found.spread == pytest.approx((RATE, RATE), rel=1e-6)
    assert (found.turns, found.source, found.problem) == (10, "reported", None)


def test_a_quarter_of_the_turns_may_have_waited_in_a_queue() -> None:
    chance = random.Random(5)
    rows = []
    for at in range(60):
        uncached = chance.randrange(200, 8000)
        waited = chance.uniform(2, 30) if at % 4 == 0 else chance.uniform(0, 0.01)
        rows.append(timed(uncached, LATENCY + uncached / RATE + waited))
    found = prefill_rate(rows)
    assert found.tokens_per_second == pytest.approx(RATE, rel=0.1)
    assert found.spread is not None
    assert found.spread[0] < RATE < found.spread[1]


def test_times_that_have_nothing_to_do_with_the_tokens_give_no_rate() -> None:
    chance = random.Random(7)
    found = prefill_rate([timed(chance.randrange(100, 9000), chance.uniform(0.1, 3)) for _ in range(80)])
    assert found.tokens_per_second is None
    assert found.spread is None
    assert found.problem


def test_turns_that_all_computed_the_same_give_no_rate() -> None:
    found = prefill_rate(turns([300] * 20))
    assert (found.tokens_per_second, found.turns) == (None, 20)
    assert "equally many" in str(found.problem)


def test_too_few_turns_give_no_rate_and_say_how_few() -> None:
    found = prefill_rate(turns(range(100, 100 * FEWEST_TURNS, 100)))
    assert found.tokens_per_second is None
    assert f"only {FEWEST_TURNS - 1} of the {FEWEST_TURNS}" in str(found.problem)


def test_answers_that_did_not_stream_are_no_sign_of_a_rate() -> None:
    rows = [row(reported_prompt_tokens=900, reported_cached_tokens=0, ttft_ns=10**9)] * 20
    found = prefill_rate(rows)
    assert (found.tokens_per_second, found.turns, found.source) == (None, 0, None)


def test_predicted_hits_stand_in_where_the_server_reports_none_and_that_is_said() -> None:
    predicted = [
        row(
            reported_prompt_tokens=count + 64,
            predicted_cached_tokens=64,
            rendering="exact",
            first_token_ns=round(1e9 * (LATENCY + count / RATE)),
        )
        for count in range(100, 1100, 100)
    ]
    assert prefill_rate(predicted).source == "predicted"
    assert prefill_rate(predicted).tokens_per_second == pytest.approx(RATE, rel=1e-6)
    assert prefill_rate([*predicted, *turns([500])]).source == "mixed"


def test_a_prediction_on_a_rendering_that_is_not_the_servers_is_not_used() -> None:
    wrong = row(
        reported_prompt_tokens=500, predicted_cached_tokens=64, rendering="mismatch", first_token_ns=10**9
    )
    assert prefill_rate([wrong] * 20).turns == 0


def test_thousands_of_turns_are_fitted_on_an_even_choice_of_them() -> None:
    found = prefill_rate(turns(range(100, 100 + 3 * MOST_TURNS)))
    assert found.turns == 3 * MOST_TURNS
    assert found.tokens_per_second == pytest.approx(RATE, rel=1e-6)


def test_a_finding_costs_its_tokens_at_the_rate_and_nothing_where_either_is_unknown() -> None:
    rate = prefill_rate(turns(range(100, 1100, 100)))
    rows = [row(findings=(finding(tokens=500), finding(tokens=None)))]
    priced = with_seconds(rows, rate)[0].findings
    assert [item.seconds for item in priced] == [pytest.approx(0.25), None]
    unpriced = with_seconds(rows, prefill_rate([]))[0].findings
    assert [item.seconds for item in unpriced] == [None, None]


def test_a_report_prices_what_was_lost_at_the_rate_of_its_own_capture(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    said = [{"role": "system", "content": "You are a coding agent. " * 40}]
    sent = []
    for number in range(8):
        said = [*said, {"role": "user", "content": f"Question {number}, if you please."}]
        uncached = 100 * (number + 1)
        reported = usage(uncached + 64, cached=64)
        sent.append(Sent(body={"messages": said}, usage=reported, ttft_ms=50 + uncached / 4))
    other = [{"role": "system", "content": "You are no agent. " * 40}, *said[1:]]
    sent.append(Sent(body={"messages": other}))
    capture = write_capture(tmp_path / "c.sqlite", sent)
    made = locality("report", str(capture), "--tokenizer", str(sample_tokenizer), "--format", "json")
    told = json.loads(made.stdout)
    rate = told["summary"]["prefill_rate"]
    assert rate == {
        "tokens_per_second": 4000.0,
        "spread": [4000.0, 4000.0],
        "turns": 8,
        "source": "reported",
        "problem": None,
    }
    findings = [finding for turn in told["turns"] for finding in turn["findings"]]
    assert [turn["first_token_ms"] for turn in told["turns"]] == [75.0 + 25 * at for at in range(8)] + [None]
    assert findings[0]["tokens"] > 100
    assert findings[0]["seconds"] == pytest.approx(findings[0]["tokens"] / 4000, abs=0.001)
    assert told["summary"]["causes"][0]["seconds"] == pytest.approx(findings[0]["seconds"], abs=0.001)
