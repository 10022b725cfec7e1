"""The ids computed here are the ids that vLLM computed for the same bytes.

Everything expected was frozen from a real vLLM's `/render` by tests/oracle/freeze.py; the bodies are in
tests/corpus. Without a tokenizer (tests/tokenizers.py) its cases are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.corpus.cases import cases
from tests.corpus.known import KNOWN
from tests.corpus.reading import difference, exchange, reader
from tests.corpus.setups import SETUPS
from tests.corpus.traps import TRAPS
from tests.golden_renderings import Golden, load, path_of, unpack
from tests.tokenizers import reason_missing

CASES = {case.name: case for case in cases()}
FROZEN = {name: load(name) for name in SETUPS if path_of(name).exists()}


def marks(setup: str, case: str) -> list[pytest.MarkDecorator]:
    reason = KNOWN.get(setup, {}).get(case)
    return [pytest.mark.xfail(reason=reason, strict=True)] if reason else []


GOLDENS = [
    pytest.param(name, golden, id=f"{name}:{golden.case}", marks=marks(name, golden.case))
    for name, (_, goldens) in FROZEN.items()
    for golden in goldens
]


@pytest.fixture(autouse=True)
def server_time_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The goldens' server ran in UTC, and some prompts hold its date."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokenizers")


@pytest.mark.parametrize(("name", "golden"), GOLDENS)
def test_ids_are_those_of_vllm(name: str, golden: Golden, folder: Path) -> None:
    if reason := reason_missing(SETUPS[name].tokenizer):
        pytest.skip(reason)
    at_ns = int(datetime.fromisoformat(FROZEN[name][0]["at"]).timestamp()) * 10**9
    prompts = reader(name, folder).read(exchange(CASES[golden.case], golden.status, at_ns))
    assert difference(prompts, [unpack(ids) for ids in golden.prompts]) is None


@pytest.mark.parametrize("name", SETUPS)
def test_every_case_is_frozen_as_it_now_stands(name: str) -> None:
    head, goldens = FROZEN[name]
    assert head["serve_command"] == ["vllm", "serve", *SETUPS[name].arguments]
    assert {golden.case: golden.digest for golden in goldens} == {
        case.name: case.digest for case in CASES.values() if name in case.setups
    }


def test_disabled_thinking_is_a_low_effort_to_gpt_oss(folder: Path) -> None:
    # /render refuses it, as it always takes effort none; the endpoint asks its renderer, which refuses none
    # (vLLM 0.32 entrypoints/anthropic/serving.py:206-219), and then takes low.
    if reason := reason_missing(SETUPS["gpt-oss"].tokenizer):
        pytest.skip(reason)
    low, off = (
        next(row for row in FROZEN["gpt-oss"][1] if row.case == f"messages/{name}")
        for name in (
            "trap12-output-config-effort",
            "trap18-disabled-thinking-to-a-model-without-effort-none",
        )
    )
    assert (low.status, off.status) == (200, 400)
    at_ns = int(datetime.fromisoformat(FROZEN["gpt-oss"][0]["at"]).timestamp()) * 10**9
    prompts = reader("gpt-oss", folder).read(exchange(CASES[off.case], 200, at_ns))
    assert difference(prompts, [unpack(ids) for ids in low.prompts]) is None


def answers(case: str) -> dict[str, Golden]:
    """What each set-up's server answered for a case."""
    rows = {
        setup: golden for setup, (_, goldens) in FROZEN.items() for golden in goldens if golden.case == case
    }
    assert rows, f"{case} is frozen nowhere"
    return rows


def test_all_traps_are_listed() -> None:
    assert list(TRAPS) == list(range(1, 33))


@pytest.mark.parametrize("number", TRAPS)
def test_a_trap_has_bodies_whose_ids_came_from_the_server(number: int) -> None:
    named = [name for name in CASES if name.partition("/")[2].startswith(f"trap{number:02d}-")]
    rendered = [row for name in named for row in answers(name).values() if row.status == 200 and row.prompts]
    assert named
    assert rendered or not TRAPS[number].has_ids


@pytest.mark.parametrize(
    ("number", "name"), [(n, name) for n, trap in TRAPS.items() for name in trap.refused]
)
def test_a_trap_that_ends_in_a_refusal_was_refused_by_the_server(number: int, name: str) -> None:
    assert name.partition("/")[2].startswith(f"trap{number:02d}-")
    assert 400 in {row.status for row in answers(name).values()}


@pytest.mark.parametrize("pair", [pair for trap in TRAPS.values() for pair in trap.alike], ids=" = ".join)
def test_bodies_that_differ_in_their_salt_alone_have_equal_ids(pair: tuple[str, str]) -> None:
    one, other = map(answers, pair)
    assert one.keys() & other.keys()
    for setup in one.keys() & other.keys():
        assert one[setup].status == other[setup].status == 200
        assert one[setup].prompts == other[setup].prompts
