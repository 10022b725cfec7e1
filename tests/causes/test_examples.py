"""Every cause finds itself in its own example, and keeps the rules that all of them share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from analyzer.causes import Example
from analyzer.registry import plugins
from analyzer.tokens import Tokenizer
from tests.causes.pairs import parted

CAUSES = plugins("causes")


@pytest.fixture(scope="module")
def tokenizer(sample_tokenizer: Path) -> Tokenizer:
    return Tokenizer(sample_tokenizer)


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_finds_itself_in_its_example(name: str, tokenizer: Tokenizer) -> None:
    parting = parted(CAUSES[name].example, tokenizer)
    assert parting.problem is None
    assert parting.findings[0].cause == name


@pytest.mark.parametrize("name", CAUSES)
def test_an_example_sent_twice_has_no_finding(name: str, tokenizer: Tokenizer) -> None:
    example = CAUSES[name].example
    same = Example(
        before=example.after, after=example.after, template=example.template, dialect=example.dialect
    )
    assert parted(same, tokenizer).findings == ()


@pytest.mark.parametrize("name", CAUSES)
def test_advice_is_one_line_and_quotes_no_prompt(name: str, tokenizer: Tokenizer) -> None:
    finding = parted(CAUSES[name].example, tokenizer).findings[0]
    assert finding.advice
    assert "\n" not in finding.advice
    for text in _strings([CAUSES[name].example.before, CAUSES[name].example.after]):
        assert len(text) < 12 or text not in finding.advice


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [text for item in items for text in _strings(item)]


def test_no_two_causes_have_one_rank() -> None:
    ranks = [cause.rank for cause in CAUSES.values()]
    assert len(set(ranks)) == len(ranks)
