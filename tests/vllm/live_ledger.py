"""Predicted cache hits against a real vLLM: talks over all endpoints, alone and eight at a time, in a pool
with room for all and in one that evicts, and across a restart.

Run by `make test-vllm` as `tests/vllm/live.py` is, and collected by nothing else. What is expected is what
the server reported, and what it counted itself.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from analyzer.registry import plugins
from tests.conftest import locality, proxy
from tests.corpus.setups import ROOT, SETUPS
from tests.tokenizers import folder_of, reason_missing
from tests.vllm.server import SERVE, free_port, serving
from tests.vllm.talk import PATHS, Client

VLLM = Path(os.environ["LOCALITY_TEST_VLLM"]).absolute()
SETUP = SETUPS["qwen3"]
SMALL_POOL = ("--num-gpu-blocks-override", "160", "--max-model-len", "4096")
REQUESTS = 220
AT_ONCE = 8
SECONDS = 900
"""For all clients of one capture together; the machine that runs this may be slow."""

Turns = list[dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def models() -> None:
    if reason := reason_missing(SETUP.tokenizer):
        pytest.skip(reason)
    subprocess.run([VLLM / "bin" / "python", "-m", "tests.vllm.models"], cwd=ROOT, check=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ledger")


@pytest.fixture(scope="module")
def roomy(folder: Path, models: None) -> Iterator[str]:
    with serving(SETUP, VLLM, free_port(), folder / "roomy.log") as url:
        yield url


@pytest.fixture(scope="module")
def small(folder: Path, models: None) -> Iterator[str]:
    with serving(SETUP, VLLM, free_port(), folder / "small.log", sizes=(*SERVE, *SMALL_POOL)) as url:
        yield url


def play(server: str, capture: Path, requests: int, *, clients: int = 1, sure: bool = False) -> None:
    """Talks through the real proxy, every client sending its share one after another."""
    with proxy(server, capture) as listening, ThreadPoolExecutor(clients) as threads:
        talking = [
            threads.submit(
                Client(listening.url, f"{capture.stem} {number}", shared=capture.stem, sure=sure).play,
                requests // clients,
            )
            for number in range(clients)
        ]
        for client in talking:
            client.result(timeout=SECONDS)
        assert listening.stop() == 0
        assert f"{requests} exchanges recorded, 0 lost" in listening.said


def report(capture: Path) -> dict[str, Any]:
    made = locality(
        "report", str(capture), "--tokenizer", str(folder_of(SETUP.tokenizer)), "--format", "json"
    )
    assert made.returncode == 0, made.stderr
    told: dict[str, Any] = json.loads(made.stdout)
    assert told["problems"] == []
    return told


def reported(turns: Turns) -> Turns:
    return [turn for turn in turns if turn["prompt_tokens"] and turn["reported_cached_tokens"] is not None]


def differing(turns: Turns) -> dict[tuple[int, int], tuple[int | None, int, str]]:
    return {
        (turn["id"], turn["prompt_index"]): (
            turn["predicted_cached_tokens"],
            turn["reported_cached_tokens"],
            turn["residual"],
        )
        for turn in reported(turns)
        if turn["predicted_cached_tokens"] != turn["reported_cached_tokens"]
    }


@pytest.mark.parametrize("pool", ["roomy", "small"])
def test_every_hit_is_predicted_where_the_sampled_tokens_are_known(
    pool: str, folder: Path, request: pytest.FixtureRequest
) -> None:
    capture = folder / f"sure-{pool}.sqlite"
    play(request.getfixturevalue(pool), capture, REQUESTS, sure=True)
    told = report(capture)
    turns = reported(told["turns"])
    assert {turn["dialect"] for turn in turns} == set(PATHS)
    assert len(turns) >= 0.7 * REQUESTS
    assert sum(turn["reported_cached_tokens"] > 0 for turn in turns) >= len(turns) // 2
    # Of several choices to one prompt, which ends last is decided within the server.
    assert {key: each for key, each in differing(turns).items() if each[2] != "engine.in_flight"} == {}
    assert len(differing(turns)) <= 0.01 * len(turns)
    metrics = told["server"]["metrics"]
    assert (metrics["verdict"], metrics["cached_before"]) == ("agree", False)
    assert metrics["hits"] == metrics["predicted_hits"] > 0
    if pool == "small":  # evicted in part: twice as much was written as there is room for
        assert metrics["queries"] - metrics["hits"] > 2 * 160 * 32


def test_what_answers_do_not_tell_is_all_that_is_missed(folder: Path, small: str) -> None:
    """Sampled at random, and often without ids: a text may stand for other tokens than the tokenizer's."""
    capture = folder / "any.sqlite"
    play(small, capture, REQUESTS)
    told = report(capture)
    missed = differing(told["turns"])
    # A client that left does not say how far its answer came, and so how much was evicted for it: the server
    # samples on until it notices (up to 60 tokens here), or never begins. Nor do answers of unknown ids.
    known = {"engine.answer_ids", "engine.client_gone", "engine.evicted"}
    assert {label for _, _, label in missed.values()} <= known
    assert len(missed) <= 0.03 * len(reported(told["turns"]))
    assert told["server"]["metrics"]["queries"] == told["server"]["metrics"]["captured_queries"]


def test_eight_clients_at_once_are_predicted_to_a_third_of_a_percent(folder: Path, roomy: str) -> None:
    capture = folder / "eight.sqlite"
    play(roomy, capture, 40 * AT_ONCE, clients=AT_ONCE, sure=True)
    told = report(capture)
    turns = reported(told["turns"])
    missed = differing(turns)
    error = sum(abs((predicted or 0) - found) for predicted, found, _ in missed.values())
    assert 100 * error / sum(turn["prompt_tokens"] for turn in turns) <= 0.3, missed
    assert {label for _, _, label in missed.values()} <= set(plugins("residuals")) - {"engine.unexplained"}, (
        missed
    )
    assert told["server"]["metrics"]["queries"] == told["server"]["metrics"]["captured_queries"]


def test_a_server_that_is_restarted_in_the_middle_begins_with_nothing_cached(folder: Path) -> None:
    capture, port = folder / "restarted.sqlite", free_port()
    with proxy(f"http://127.0.0.1:{port}", capture) as listening:
        client = Client(listening.url, "restarted", sure=True)
        for run in range(2):
            with serving(SETUP, VLLM, port, folder / f"run{run}.log"):
                client.play(30)
        assert listening.stop() == 0
    told = report(capture)
    turns = told["turns"]
    assert told["server"]["metrics"]["restarts"] == 1
    assert differing(turns) == {}
    again = next(turn for turn in reported(turns) if turn["id"] > 30 and turn["parent"] is not None)
    assert again["reported_cached_tokens"] < again["reusable_tokens"]
