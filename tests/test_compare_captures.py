"""`compare` sets two captures side by side, says which is better and by how much, and what to mind."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from analyzer.comparing import comparison_text, verdict
from analyzer.comparison import compare
from analyzer.core import Finding
from analyzer.report import Report
from tests.analyzer.rows import finding, later, report
from tests.captures import Sent, tokenizer_with, write_capture
from tests.conftest import locality
from tests.test_show import FIRST, SECOND, TEMPLATE, chat


def of(*findings: Finding) -> Report:
    return report(*(later(number) for number in range(1, 8)), later(8, *findings))


def text(a: Report, b: Report, width: int | None = None) -> str:
    return comparison_text(compare(a, b), ("a.sqlite", "b.sqlite"), width=width, color=False)


def test_the_better_one_is_named_with_both_measures() -> None:
    found = compare(of(finding(tokens=700, blocks=44)), of())
    assert found.better == "b"
    points = round(of().summary.reusable_prefix_pct - found.a.summary.reusable_prefix_pct, 1)  # type: ignore[operator]
    assert verdict(found).startswith(f"B is better: {points} points more")
    assert "704 tokens fewer are computed again" in verdict(found)  # 44 blocks of 16
    assert compare(found.b, found.a).better == "a"


def test_equals_and_contradictions_have_no_better_one() -> None:
    assert verdict(compare(of(), of())).startswith("neither is better: they reuse the same share")
    long = report(*(later(number) for number in range(1, 60)))
    found = compare(long, report(later(1), later(2)))
    assert found.better == "neither"
    assert verdict(found).startswith("neither is better: A reuses")


def test_without_a_share_nobody_is_better() -> None:
    found = compare(of(), report(later(1)))
    assert found.better is None
    assert "not known" in verdict(found)


def test_causes_stand_side_by_side_with_what_they_cost() -> None:
    told = text(of(finding(tokens=700, blocks=44)), of(finding(cause="tools.order", tokens=80, blocks=5)))
    rows = {line.split("  ")[0].strip(): line.split()[-3:] for line in told.split("\n") if line}
    assert "volatile.clock (waste)" in told and "tools.order (waste)" in told
    assert told.index("volatile.clock") < told.index("tools.order")  # by what they cost
    assert rows["turns with a parent"] == ["7", "7", "0"]
    assert next(line for line in told.split("\n") if " 80 " in f"{line} ").split()[-2:] == ["80", "+80"]
    assert "175 ms" in told  # 700 tokens at the 4000 tokens/s that the rows show


def test_what_makes_them_hard_to_compare_is_said() -> None:
    other = of()
    other = replace(other, server=replace(other.server, block_size=32, model="large"))
    told = text(of(), other)
    assert "mind: block sizes differ: 16 in A, 32 in B" in told
    assert "mind: models differ: tiny in A, large in B" in told
    assert "mind: numbers of turns differ: 7 in A, 1 in B" in text(of(), report(later(1), later(2)))
    wrong = report(later(1), later(2, rendering="mismatch"))
    assert "mind: 1 of 2 renderings of B are not the server's" in text(of(), wrong)
    assert "mind" not in text(of(), of())


@pytest.mark.parametrize("width", [40, 60, 120])
def test_it_fits_the_terminal(width: int) -> None:
    told = text(of(finding()), of(finding(cause="tools.schema_drift")), width)
    assert max(cell_len(line) for line in told.split("\n")[2:]) <= width


@pytest.fixture(scope="module")
def folder(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_with(tmp_path_factory.mktemp("own") / "tokenizer", sample_tokenizer, TEMPLATE)


def test_two_captures_are_compared_as_text_and_as_json(tmp_path: Path, folder: Path) -> None:
    steady = chat(FIRST["messages"][0]["content"], "List the files.", "There are two.", "Read both.")
    a = write_capture(tmp_path / "a.sqlite", [Sent(body=FIRST), Sent(body=SECOND)])
    b = write_capture(tmp_path / "b.sqlite", [Sent(body=FIRST), Sent(body=steady)], block_size=32)
    made = locality("compare", str(a), str(b), "--tokenizer", str(folder))
    assert made.returncode == 0, made.stderr
    assert "B is better: " in made.stdout
    assert "mind: block sizes differ: 16 in A, 32 in B" in made.stdout
    told = json.loads(
        locality("compare", str(a), str(b), "--tokenizer", str(folder), "--format", "json").stdout
    )
    assert told["schema"] == "locality-compare/1"
    assert told["better"] == "b"
    assert told["a"]["summary"]["turns"] == told["b"]["summary"]["turns"] == 1
    assert told["causes"][0]["b"] is None
    assert told["causes"][0]["a"]["tokens"] > 0
    one = locality("compare", str(a), str(b), "--tokenizer", str(folder), "--block-size", "16")
    assert "mind" not in one.stdout  # the options hold for both


def test_a_capture_of_which_nothing_is_rendered_fails(tmp_path: Path, folder: Path) -> None:
    a = write_capture(tmp_path / "a.sqlite", [Sent(body=FIRST)])
    empty = write_capture(tmp_path / "b.sqlite", [])
    made = locality("compare", str(a), str(empty), "--tokenizer", str(folder))
    assert made.returncode == 1
    assert f"nothing of {empty} was rendered" in made.stderr


def test_a_missing_capture_fails_with_its_name(tmp_path: Path) -> None:
    a = write_capture(tmp_path / "a.sqlite", [Sent(body=FIRST)])
    made = locality("compare", str(a), str(tmp_path / "none.sqlite"))
    assert made.returncode == 1
    assert "none.sqlite" in made.stderr
