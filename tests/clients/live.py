"""Real coding agents behind the real proxy: the report on their prompts against the upstream's own count.

Run by `make test-clients`, which installs them (tests/clients/install.py) and names their folder in
LOCALITY_TEST_CLIENTS and which of them to play in LOCALITY_TEST_CLIENT_NAMES; not collected by `make test`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

from store.db import Capture
from store.records import Exchange
from tests.clients.contract import KEY, RIGHT, Client
from tests.clients.install import client, reason_missing
from tests.clients.play import LIMIT_SECONDS, TOKENIZER
from tests.clients.upstream import BLOCK_SIZE
from tests.conftest import ROOT, environment, locality
from tests.corpus.setups import SETUPS
from tests.tokenizers import folder_of
from tests.tokenizers import reason_missing as reason_no_tokenizer
from tests.vllm.server import free_port, post, rendering

type Json = dict[str, Any]
INSTALLED = Path(os.environ["LOCALITY_TEST_CLIENTS"]).absolute()
NAMES = os.environ["LOCALITY_TEST_CLIENT_NAMES"].split()
VLLM = os.environ.get("LOCALITY_TEST_VLLM")
SEALED = f"{NAMES[0]} sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One client's task, as the upstream saw it and as it was reported.

    `answered` is the upstream's record, a row a request; `turns` the report's, in the same order.
    """

    client: Client
    folder: Path
    status: int
    asked: list[bytes]
    said: list[bytes]
    answered: list[Json]
    exchanges: list[Exchange]
    turns: list[Json]

    @property
    def sealed(self) -> bool:
        """Whether the capture holds no text."""
        return self.folder.name.endswith("sealed")

    @property
    def task(self) -> list[tuple[Json, Json]]:
        """The upstream's rows and the report's of the task itself, without what is beside it."""
        pairs = zip(self.answered, self.turns, strict=True)
        return [(row, turn) for row, turn in pairs if row["number"] is not None]


@pytest.fixture(scope="module", params=[*NAMES, SEALED])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    name, _, sealed = request.param.partition(" ")
    if reason := reason_missing(INSTALLED, name) or reason_no_tokenizer(TOKENIZER):
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp(name) / request.param
    folder.mkdir()
    options = ("--redact", "sealed", "--tokenizer", str(folder_of(TOKENIZER))) if sealed else ()
    status = play(request.config, name, folder, options)
    return read_run(client(name), folder, status)


def play(config: pytest.Config, name: str, folder: Path, options: tuple[str, ...]) -> int:
    """Play a client's task in a process, and a network, of its own."""
    alone = ["unshare", "--map-root-user", "--net"]
    if not _permitted(*alone):
        line = f"{name} runs with this machine's network: unshare --net is not permitted"
        config.get_terminal_writer().line(line)
        alone = []
    played = [sys.executable, "-m", "tests.clients.play", name, str(INSTALLED), str(folder), *options]
    variables = environment() | {"LOCALITY_TEST_TOKENIZERS": str(folder_of(TOKENIZER).parent.absolute())}
    made = subprocess.run([*alone, *played], cwd=ROOT, env=variables, timeout=LIMIT_SECONDS + 60)
    return made.returncode


def _permitted(*command: str) -> bool:
    try:
        return subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


def read_run(played: Client, folder: Path, status: int) -> Run:
    """What a run has left in its folder, and the report on it."""
    paths, answered = json.loads((folder / "answered.json").read_text(encoding="utf-8"))
    assert len(paths) == len(answered), f"not all were answered: {paths}"
    capture = str(folder / "capture.sqlite")
    with Capture.open(capture) as opened:
        exchanges = list(opened.exchanges())
    made = locality("report", capture, "--format", "json")
    assert made.returncode == 0, made.stderr
    return Run(
        client=played,
        folder=folder,
        status=status,
        asked=[file.read_bytes() for file in sorted(folder.glob("*.asked"))],
        said=[file.read_bytes() for file in sorted(folder.glob("*.said"))],
        answered=answered,
        exchanges=exchanges,
        turns=in_order_of_arrival(json.loads(made.stdout)["turns"], answered),
    )


def in_order_of_arrival(turns: list[Json], answered: list[Json]) -> list[Json]:
    """The report's rows in the upstream's order: two that are sent at once may arrive the other way round."""
    counts = [len(row["prompt_ids"]) for row in answered]
    return sorted(turns, key=lambda turn: [*counts, turn["prompt_tokens"]].index(turn["prompt_tokens"]))


def test_the_client_did_its_task_through_the_proxy(run: Run) -> None:
    said = (run.folder / "said.txt").read_text(encoding="utf-8", errors="replace")
    assert run.status == 0, said
    assert RIGHT in (run.folder / "home" / "work" / "prices.py").read_text(encoding="utf-8")
    wanted = len(run.client.answers(run.folder))
    assert [row["number"] for row, _ in run.task] == list(range(wanted)), said
    assert f"{len(run.asked)} exchanges recorded, 0 lost" in said


def test_the_capture_holds_the_bytes_that_went_over_the_wire(run: Run) -> None:
    sent = sorted(zip(run.asked, run.said, strict=True))
    lengths = sorted((seen.request.wire_length, seen.response.wire_length) for seen in run.exchanges)
    assert lengths == sorted((len(asked), len(said)) for asked, said in sent)
    if not run.sealed:
        assert sorted((seen.request.content, seen.response.content) for seen in run.exchanges) == sent


def test_every_prompt_has_as_many_tokens_as_the_upstream_counted(run: Run) -> None:
    assert [turn["prompt_tokens"] for turn in run.turns] == [len(row["prompt_ids"]) for row in run.answered]
    assert {turn["rendering"] for turn in run.turns} <= {"exact", "unchecked"}
    unchecked = [turn["id"] for turn in run.turns if turn["rendering"] == "unchecked"]
    assert bool(unchecked) == (not run.client.asks_usage), unchecked


def test_every_cache_hit_is_predicted(run: Run) -> None:
    assert [turn["predicted_cached_tokens"] for turn in run.turns] == [
        row["cached_tokens"] for row in run.answered
    ]
    told = [turn["cache"] for turn in run.turns if turn["reported_cached_tokens"] is not None]
    assert told == ["exact"] * len(told)


def test_the_task_is_one_conversation_and_what_is_beside_it_is_in_none_of_its_turns(run: Run) -> None:
    turns = [turn for _, turn in run.task]
    (conversation,) = {turn["conversation"] for turn in turns}
    assert [turn["turn"] for turn in turns] == list(range(1, len(turns) + 1))
    assert [turn["parent"] for turn in turns] == [None, *[turn["id"] for turn in turns[:-1]]]
    beside = [turn for turn in run.turns if turn not in turns]
    assert conversation not in {turn["conversation"] for turn in beside}
    assert {(turn["dialect"], turn["outcome"]) for turn in turns} == {(run.client.dialect, "done")}


def test_each_prompt_parts_from_the_one_before_where_the_upstream_saw_it_part(run: Run) -> None:
    common = [(turn["common_prefix_tokens"], turn["reusable_tokens"]) for _, turn in run.task[1:]]
    expected = []
    for row, _ in run.task[1:]:
        whole = min(row["common_tokens"], len(row["prompt_ids"]) - 1) // BLOCK_SIZE * BLOCK_SIZE
        expected.append((row["common_tokens"], whole))
    assert common == expected


def test_the_history_breaks_where_the_client_breaks_it_and_nowhere_else(run: Run) -> None:
    broken = [turn for _, turn in run.task[1:] if not turn["append"]]
    assert [turn["turn"] for turn in broken] == [item.turn for item in run.client.breaks]
    for turn, item in zip(broken, run.client.breaks, strict=True):
        assert turn["divergence"]["path"] == item.path
        assert tuple(turn["divergence"]["causes"]) == item.causes
    appended = [turn for _, turn in run.task[1:] if turn["append"]]
    assert {turn["invalidated_blocks"] for turn in appended} <= {0}


def test_a_field_is_named_at_the_character_where_it_is_another(run: Run) -> None:
    task = [(turn, asked) for turn, asked in zip(run.turns, run.asked, strict=True)]
    bodies = {turn["id"]: json.loads(asked) for turn, asked in task}
    for _, turn in run.task:
        found = turn["divergence"]
        if found is None or found["cause"].startswith("template."):
            continue
        before, after = (value_at(bodies[turn[key]], found["path"]) for key in ("parent", "id"))
        pairs = zip_longest(before, after)
        assert next(at for at, (one, other) in enumerate(pairs) if one != other) == found["char"]


def value_at(body: Json, path: str) -> str:
    """The text that a path leads to."""
    value: Any = body
    for step in re.findall(r"\w+", path):
        value = value[int(step) if step.isdigit() else step]
    assert isinstance(value, str)
    return value


def test_the_key_is_in_no_file_of_the_capture_and_in_nothing_that_was_said(run: Run) -> None:
    files = [file.read_bytes() for file in run.folder.glob("capture.sqlite*")]
    held = [
        repr((seen.request_headers, seen.request.content, seen.response_headers, seen.response.content))
        for seen in run.exchanges
    ]
    written = b"\n".join([*files, (run.folder / "said.txt").read_bytes(), *(text.encode() for text in held)])
    assert KEY.encode() not in written


def test_a_sealed_capture_holds_no_text_of_the_task(run: Run) -> None:
    if not run.sealed:
        return
    files = b"\n".join(file.read_bytes() for file in run.folder.glob("capture.sqlite*"))
    assert b"test_prices" not in files
    assert {seen.request.content for seen in run.exchanges} == {b""}


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not VLLM:
        pytest.skip("no vLLM; make test-vllm builds one")
    python = Path(VLLM).absolute() / "bin" / "python"
    subprocess.run([python, "-m", "tests.vllm.models"], cwd=ROOT, check=True)
    log = tmp_path_factory.mktemp("vllm") / "render.log"
    with rendering(SETUPS[TOKENIZER], Path(VLLM).absolute(), free_port(), log) as url:
        yield url


def test_vllm_renders_every_body_as_the_upstream_did(run: Run, vllm: str) -> None:
    for asked, row in zip(run.asked, run.answered, strict=True):
        status, said = post(f"{vllm}{row['path']}/render", asked)
        assert status == 200, said
        rendered = json.loads(said)
        (prompt,) = rendered if isinstance(rendered, list) else [rendered]
        assert prompt["token_ids"] == row["prompt_ids"]
