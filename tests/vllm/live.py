"""A real vLLM behind the real proxy: ids, counts and cache hits are held against what is computed here.

Run by `make test-vllm`, which builds vLLM (tests/vllm/build.py) and names its folder in LOCALITY_TEST_VLLM;
not collected by `make test`. The corpus is tests/corpus; nothing expected comes from this project's code.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analyzer.core import TokenIds
from analyzer.prompts import Prompt
from analyzer.replies import read_reply
from store.db import Capture
from store.records import Exchange
from tests.conftest import locality, proxy
from tests.corpus.cases import Case, cases
from tests.corpus.known import KNOWN
from tests.corpus.reading import NO_ANSWER, difference, exchange, reader
from tests.corpus.setups import ROOT, SETUPS
from tests.oracle.freeze import rendered_ids
from tests.tokenizers import reason_missing
from tests.vllm.server import free_port, post, rendering, serving
from tests.vllm.traffic import short, traffic

VLLM = Path(os.environ["LOCALITY_TEST_VLLM"]).absolute()
SERVED = "qwen3"
RENDERED = [name for name in SETUPS if name != SERVED]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one exchange sent and got, with what `/render` says of the captured bytes."""

    case: Case
    exchange: Exchange
    expected: list[TokenIds]


@pytest.fixture(scope="module", autouse=True)
def in_utc() -> Iterator[None]:
    """The servers run in UTC, and some prompts hold the date."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="module", autouse=True)
def models(in_utc: None) -> None:
    subprocess.run([VLLM / "bin" / "python", "-m", "tests.vllm.models"], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("live")


@pytest.fixture(scope="module")
def server(folder: Path, models: None) -> Iterator[str]:
    if reason := reason_missing(SETUPS[SERVED].tokenizer):
        pytest.skip(reason)
    with serving(SETUPS[SERVED], VLLM, free_port(), folder / "served.log") as url:
        yield url


@pytest.fixture(scope="module")
def played(server: str, folder: Path) -> list[Played]:
    """The corpus, sent through the proxy one after another."""
    wanted = [case for case in cases() if SERVED in case.setups]
    capture = folder / "corpus.sqlite"
    play(server, capture, [(case.path, short(case)) for case in wanted])
    with Capture.open(str(capture)) as opened:
        exchanges = list(opened.exchanges())
    assert len(exchanges) == len(wanted)
    return [
        Played(case=case, exchange=seen, expected=_asked(server, case, seen))
        for case, seen in zip(wanted, exchanges, strict=True)
    ]


def play(server: str, capture: Path, bodies: list[tuple[str, bytes]]) -> None:
    """Send bodies through the real proxy, each after the answer to the one before."""
    with proxy(server, capture) as listening:
        for path, body in bodies:
            post(listening.url + path, body)
        assert listening.stop() == 0
        assert "0 lost" in listening.said


def _asked(server: str, case: Case, seen: Exchange) -> list[TokenIds]:
    """The ids that `/render` gives for the captured bytes; none where the server refused to generate.

    It refuses more than `/render` does, such as a token id that the vocabulary has not.
    """
    if seen.status != 200:
        return []
    status, prompts = rendered_ids(server, replace(case, body=seen.request.content))
    assert status == 200, f"{case.name} was answered, and /render refuses it: {status}"
    return [np.array(ids, dtype=np.int32) for ids in prompts]


def test_the_capture_holds_the_bytes_that_were_sent(played: list[Played]) -> None:
    assert [item.case.name for item in played if item.exchange.request.content != short(item.case)] == []


def test_served_bodies_are_rendered_as_the_server_renders_them(played: list[Played], folder: Path) -> None:
    asked = reader(SERVED, folder)
    wrong = {
        item.case.name: said
        for item in played
        if (said := difference(asked.read(replace(item.exchange, response=NO_ANSWER)), item.expected))
    }
    assert wrong == {}


def test_returned_ids_are_those_of_render(played: list[Played]) -> None:
    returned = [(item, read_reply(item.exchange).prompt_token_ids) for item in played]
    told = [(item, ids) for item, ids in returned if ids and item.expected]
    assert len(told) >= 100
    wrong = [
        item.case.name
        for item, ids in told
        if _once_a_prompt(ids, len(item.expected)) != [each.tolist() for each in item.expected]
    ]
    assert wrong == []


def _once_a_prompt(ids: Sequence[Sequence[int]], prompts: int) -> list[list[int]]:
    """Completions repeat a prompt's ids with each of its choices (vLLM 0.32 completion/serving.py)."""
    return [list(each) for each in ids[:: max(1, len(ids) // prompts)]][:prompts]


def test_reported_prompt_tokens_are_the_number_of_ids(played: list[Played], folder: Path) -> None:
    asked = reader(SERVED, folder)
    wrong, counted = {}, 0
    for item in played:
        reported = read_reply(item.exchange).usage.prompt_tokens
        if item.exchange.status == 200 and reported is not None:
            counted += 1
            ours = _tokens(asked.read(replace(item.exchange, response=NO_ANSWER)))
            if ours != reported:
                wrong[item.case.name] = (ours, reported)
    assert counted >= 150
    assert wrong == {}


def _tokens(prompts: list[Prompt]) -> int | None:
    counts = [len(prompt.rendering.token_ids) for prompt in prompts if prompt.rendering is not None]
    return sum(counts) if len(counts) == len(prompts) else None


@pytest.fixture(scope="module")
def sequential(played: list[Played], server: str, folder: Path) -> dict[str, Any]:
    """The report on conversations that grow, one request after another, on all endpoints."""
    capture = folder / "sequential.sqlite"
    play(server, capture, traffic())
    return report(capture)


def report(capture: Path) -> dict[str, Any]:
    """What a user is told, given the server's start line."""
    command = shlex.join(("vllm", "serve", *SETUPS[SERVED].arguments))
    folder = SETUPS[SERVED].make_tokenizer(capture.parent / SERVED)
    made = locality(
        *("report", str(capture), "--tokenizer", str(folder), "--serve-command", command, "--format", "json")
    )
    assert made.returncode == 0, made.stderr
    told: dict[str, Any] = json.loads(made.stdout)
    return told


def test_cache_hits_of_sequential_traffic_are_predicted(sequential: dict[str, Any]) -> None:
    turns = sequential["turns"]
    assert {turn["dialect"] for turn in turns} == {"chat", "completions", "messages", "responses"}
    assert sum((turn["reported_cached_tokens"] or 0) > 0 for turn in turns) >= len(turns) // 2
    pairs = {turn["id"]: (turn["predicted_cached_tokens"], turn["reported_cached_tokens"]) for turn in turns}
    assert {key: pair for key, pair in pairs.items() if pair[0] != pair[1]} == {}


def test_the_report_calls_every_served_rendering_exact(sequential: dict[str, Any]) -> None:
    assert [turn["id"] for turn in sequential["turns"] if turn["rendering"] != "exact"] == []


@pytest.mark.parametrize("name", RENDERED)
def test_a_rendering_server_gives_the_same_ids(name: str, folder: Path) -> None:
    if reason := reason_missing(SETUPS[name].tokenizer):
        pytest.skip(reason)
    asked, wrong = reader(name, folder), {}
    with rendering(SETUPS[name], VLLM, free_port(), folder / f"{name}.log") as url:
        for case in (case for case in cases() if name in case.setups):
            status, answered = rendered_ids(url, case)
            prompts = asked.read(exchange(case, status, time.time_ns()))
            if said := difference(prompts, [np.array(ids, dtype=np.int32) for ids in answered]):
                wrong[case.name] = said
    known = KNOWN.get(name, {})
    assert {case: said for case, said in wrong.items() if case not in known} == {}
    assert set(known) <= set(wrong)
