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


def test_every_trap_of_the_reference_has_a_case() -> None:
    named = {name.partition("/")[2][:6] for name in CASES}
    assert {f"trap{number:02d}" for number in range(1, 33)} <= named
