"""`report --baseline` ends with 3 and says what got worse since an earlier report, and only that."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analyzer.baseline import read_baseline, worsened
from analyzer.core import Finding
from analyzer.report import Report
from analyzer.reports.json_report import REPORT as JSON
from tests.analyzer.rows import finding, later, report
from tests.captures import Sent, tokenizer_with, write_capture
from tests.conftest import locality
from tests.test_show import FIRST, SECOND, TEMPLATE, chat


def of(*findings: Finding) -> Report:
    return report(later(1), later(2), later(3, *findings))


def since(then: Report, now: Report, folder: Path, tolerance: float = 0) -> list[str]:
    earlier = folder / "then.json"
    earlier.write_text(JSON.format(then, width=None, color=False), encoding="utf-8")
    return list(worsened(now, read_baseline(earlier), tolerance))


def test_the_same_again_is_not_worse(tmp_path: Path) -> None:
    assert since(of(finding()), of(finding()), tmp_path) == []


def test_better_is_not_worse(tmp_path: Path) -> None:
    assert since(of(finding()), of(), tmp_path) == []
    assert since(of(finding()), of(finding(tokens=20, blocks=1)), tmp_path) == []


def test_a_new_cause_and_a_lower_share_are_named_with_their_numbers(tmp_path: Path) -> None:
    share, cause = since(of(), of(finding(tokens=700, blocks=43)), tmp_path)
    assert share == "reusable prefix: 91.5 % then, 63.4 % now"
    assert cause == "volatile.clock: new, 700 tokens, 43 blocks lost in 1 turn"


def test_a_cause_that_costs_more_is_named_with_both_numbers(tmp_path: Path) -> None:
    told = since(of(finding(tokens=100, blocks=6)), of(finding(tokens=110, blocks=6)), tmp_path, tolerance=5)
    assert told == ["volatile.clock: 100 tokens lost then, 110 now"]


def test_blocks_of_another_size_are_not_held_against_each_other(tmp_path: Path) -> None:
    then, now = of(finding(blocks=6)), of(finding(blocks=12))
    assert since(then, now, tmp_path) == ["volatile.clock: 6 blocks lost then, 12 now"]
    smaller = replace(now, server=replace(now.server, block_size=8))
    assert since(then, smaller, tmp_path) == []


def test_fewer_exact_renderings_are_worse(tmp_path: Path) -> None:
    wrong = report(later(1), later(2), later(3, rendering="mismatch"))
    assert since(of(), wrong, tmp_path) == ["renderings that are the server's: 100.0 % then, 66.7 % now"]


def test_what_was_known_and_is_not_any_more_is_worse(tmp_path: Path) -> None:
    assert since(of(), report(later(1)), tmp_path) == ["reusable prefix: 91.5 % then, not known now"]


def test_the_tolerance_holds_for_shares_and_for_costs(tmp_path: Path) -> None:
    then, now = of(finding(tokens=100, blocks=10)), of(finding(tokens=109, blocks=10))
    assert since(then, now, tmp_path, tolerance=9) == []
    assert since(then, now, tmp_path, tolerance=5) != []


WHOLE = json.loads(JSON.format(of(finding()), width=None, color=False))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not json", "not JSON"),
        ("[1]", "not a locality-report/1 object"),
        ('{"schema": "locality-report/9"}', "not a locality-report/1 object"),
        ('{"schema": "locality-report/1"}', "not whole"),
        (json.dumps({**WHOLE, "summary": {}}), "not whole"),
        (json.dumps({**WHOLE, "summary": {**WHOLE["summary"], "causes": [{"cause": "x"}]}}), "not whole"),
        (
            json.dumps({**WHOLE, "summary": {**WHOLE["summary"], "reusable_prefix_pct": "80"}}),
            "no percentage",
        ),
        (json.dumps({**WHOLE, "summary": {**WHOLE["summary"], "rendered": None}}), "no count"),
        (json.dumps({**WHOLE, "server": None}), "not whole"),
        ("[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not JSON"),
    ],
    ids=str,
)
def test_a_file_that_is_no_report_is_refused_with_the_reason(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    path = tmp_path / "b.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ValueError, match=said):
        read_baseline(path)


@pytest.fixture(scope="module")
def folder(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_with(tmp_path_factory.mktemp("own") / "tokenizer", sample_tokenizer, TEMPLATE)


@pytest.fixture
def captures(tmp_path: Path) -> dict[str, Path]:
    """A session that appends, and the same with another system text in its second turn."""
    steady = chat(FIRST["messages"][0]["content"], "List the files.", "There are two.", "Read both.")
    bodies: dict[str, list[Any]] = {"good": [FIRST, steady], "bad": [FIRST, SECOND]}
    return {
        name: write_capture(tmp_path / f"{name}.sqlite", [Sent(body=body) for body in pair])
        for name, pair in bodies.items()
    }


def test_a_check_against_a_baseline_ends_with_three_and_says_why(
    captures: dict[str, Path], folder: Path, tmp_path: Path
) -> None:
    baseline = tmp_path / "baseline.json"
    made = locality(
        "report", str(captures["good"]), "--tokenizer", str(folder), "--format", "json", "-o", str(baseline)
    )
    assert made.returncode == 0, made.stderr
    options = ("--tokenizer", str(folder), "--baseline", str(baseline))
    assert locality("report", str(captures["good"]), *options).returncode == 0
    worse = locality("report", str(captures["bad"]), *options)
    assert worse.returncode == 3
    assert f"worse than {baseline}: reusable prefix: " in worse.stderr
    assert "new, " in worse.stderr
    assert "findings, the dearest first" in worse.stdout  # the report is there all the same
    both = locality("report", str(captures["bad"]), *options, "--fail-under", "90")
    assert both.returncode == 3
    assert "less than the 90.0 % asked for" in both.stderr and "worse than" in both.stderr
    low = locality("report", str(captures["good"]), *options, "--fail-under", "100")
    assert low.returncode == 3
    assert "worse than" not in low.stderr


def test_a_baseline_that_is_none_is_wrong_usage_before_anything_is_read(
    captures: dict[str, Path], tmp_path: Path
) -> None:
    made = locality("report", str(captures["good"]), "--baseline", str(tmp_path / "none.json"))
    assert (made.returncode, made.stdout) == (2, "")
    assert "report --format json" in made.stderr
