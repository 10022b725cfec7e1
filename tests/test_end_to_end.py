"""A scripted agent plays through the real proxy; what is reported is held against the sample server.

The server renders with transformers, tokenizes with tokenizers and keeps a prefix cache of its own: it
shares no code with the analyzer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import environment, locality, process, proxy, running


@pytest.fixture(scope="module")
def server(sample_tokenizer: Path) -> Iterator[str]:
    with running("samples.upstream", "--tokenizer", str(sample_tokenizer), "--port", "0") as upstream:
        yield upstream.url


def play(server: str, capture: Path, *options: str) -> dict[str, Any]:
    with proxy(server, capture) as listening:
        agent = [sys.executable, "-m", "samples.agent", *options]
        variables = environment() | {"OPENAI_BASE_URL": f"{listening.url}/v1"}
        subprocess.run(agent, env=variables, check=True, timeout=60, capture_output=True)
        assert listening.stop() == 0
        assert "0 lost" in listening.said
    made = locality("report", str(capture), "--format", "json")
    assert made.returncode == 0, made.stderr
    report: dict[str, Any] = json.loads(made.stdout)
    return report


@pytest.fixture(scope="module")
def tail(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return play(server, tmp_path_factory.mktemp("tail") / "c.sqlite", "--clock", "tail")


@pytest.fixture(scope="module")
def head(server: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return play(server, tmp_path_factory.mktemp("head") / "c.sqlite", "--clock", "head", "--turns", "6")


def test_every_rendering_has_the_servers_count(tail: dict[str, Any]) -> None:
    counted = [(turn["prompt_tokens"], turn["reported_prompt_tokens"]) for turn in tail["turns"]]
    assert len(counted) >= 10
    assert all(ours == theirs for ours, theirs in counted)
    assert tail["summary"]["rendering_exact"] == len(counted)


def test_every_cache_hit_is_predicted(tail: dict[str, Any], head: dict[str, Any]) -> None:
    for report in (tail, head):
        assert [turn["cache"] for turn in report["turns"]] == ["exact"] * len(report["turns"])


def test_an_append_only_session_reuses_all_but_the_tail(tail: dict[str, Any]) -> None:
    first, *rest = tail["turns"]
    assert first["parent"] is None and first["append"] is None
    previous = first
    for turn in rest:
        assert turn["append"] is True
        assert turn["divergence"] is None
        assert turn["invalidated_blocks"] == 0
        assert turn["parent"] == previous["id"]
        # All full blocks of the parent, and nothing of what came after it.
        assert turn["reusable_tokens"] == previous["prompt_tokens"] // 16 * 16
        previous = turn


def test_a_clock_in_the_head_is_named_with_its_line(head: dict[str, Any]) -> None:
    for turn in head["turns"][1:]:
        assert turn["append"] is False
        assert turn["divergence"]["path"] == "messages[0].content"
        assert turn["divergence"]["token"] == turn["common_prefix_tokens"] < 32
        assert turn["reusable_prefix_pct"] < 5


def test_what_the_server_said_of_itself_is_kept_and_used(tail: dict[str, Any]) -> None:
    assert tail["server"]["version"] == "0.32.0"
    assert tail["server"]["block_size"] == 16
    assert [said.partition(":")[0] for said in tail["server"]["assumed"]] == ["KV layout"]


def test_raw_completions_are_reported_too(server: str, tmp_path: Path) -> None:
    report = play(
        server, tmp_path / "c.sqlite", "--clock", "none", "--turns", "4", "--dialect", "completions"
    )
    assert [turn["dialect"] for turn in report["turns"]] == ["completions"] * 4
    assert [turn["rendering"] for turn in report["turns"]] == ["exact"] * 4
    assert [turn["append"] for turn in report["turns"]] == [None, True, True, True]


def test_run_points_the_agent_at_the_proxy_and_sums_up(server: str, tmp_path: Path) -> None:
    agent = (sys.executable, "-m", "samples.agent", "--turns", "2")
    made = process("run", "--upstream", server, "--capture", str(tmp_path / "c.sqlite"), "--", *agent)
    assert made.returncode == 0
    assert "2 exchanges recorded, 0 lost" in made.stderr
    assert "2 of 2 renderings exact" in made.stderr


def test_run_ends_with_the_commands_own_status(server: str, tmp_path: Path) -> None:
    command = (
        sys.executable,
        "-c",
        "import os; assert os.environ['OPENAI_BASE_URL'].endswith('/v1'); exit(7)",
    )
    made = process("run", "--upstream", server, "--capture", str(tmp_path / "c.sqlite"), "--", *command)
    assert made.returncode == 7


def test_a_check_that_does_not_hold_exits_with_three(server: str, tmp_path: Path) -> None:
    capture = tmp_path / "c.sqlite"
    play(server, capture, "--clock", "head", "--turns", "3")
    assert locality("report", str(capture), "--fail-under", "90").returncode == 3
    assert locality("report", str(capture), "--fail-under", "0").returncode == 0
