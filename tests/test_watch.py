"""`watch` as a user runs it: it waits, follows, survives what happens to its capture, and ends when told."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from analyzer.pipeline import Options
from store.db import Capture
from tests.captures import Sent, chat, request_seen, response_seen, usage, write_capture
from tests.conftest import environment, eventually, locality, process, proxy, running
from tests.sealed.made import sealed_copy

SENT = [
    Sent(body=chat("09:12", "List."), usage=usage(120, 0)),
    Sent(body=chat("09:12", "List.", "Two.", "Read."), usage=usage(130, 112)),
    Sent(body=chat("09:13", "List.", "Two.", "Read.", "Done.", "More."), usage=usage(140, 0)),
    Sent(body=b"{", status=400, answer={"error": {"message": "no JSON"}}),
]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return write_capture(tmp_path / "c.sqlite", SENT)


def watched(capture: Path, tokenizer: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return locality("watch", str(capture), "--tokenizer", str(tokenizer), *options)


def objects(stdout: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stdout.splitlines()]


class Watching:
    """A `watch` in a process of its own; its lines gather in `lines`."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "analyzer", "watch", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.lines: list[str] = []
        self.told: list[str] = []
        self._threads = [
            threading.Thread(target=self._gather, args=pair, daemon=True)
            for pair in ((self.process.stdout, self.lines), (self.process.stderr, self.told))
        ]
        for thread in self._threads:
            thread.start()

    def _gather(self, stream: Any, lines: list[str]) -> None:
        with stream:
            for line in stream:
                lines.append(line.rstrip("\n"))

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        self.process.wait(30)
        for thread in self._threads:
            thread.join(10)
        return self.process.returncode


@contextmanager
def watching(*arguments: str) -> Iterator[Watching]:
    started = Watching(*arguments)
    try:
        yield started
    finally:
        if started.process.poll() is None:
            started.end(signal.SIGKILL)


def test_a_line_says_what_the_row_of_the_report_says(capture: Path, sample_tokenizer: Path) -> None:
    watch = watched(capture, sample_tokenizer, "--once").stdout.splitlines()
    report = locality("report", str(capture), "--tokenizer", str(sample_tokenizer), COLUMNS="400").stdout
    rows = {line.split()[0]: line.split() for line in report.splitlines() if line[:2].strip().isdigit()}
    assert len(watch) == 1 + len(SENT)
    for line in watch[1:]:
        number, conversation, tokens, _, *rest = line.split()
        theirs = " ".join(rows[number])
        # What the report adds is told by the whole capture alone.
        assert theirs.replace("!", "").startswith(f"{number} {conversation} {tokens} {' '.join(rest[:3])}")
    assert "messages[0].content" in watch[3] and "(volatile.clock)" in watch[3]


def test_objects_are_the_reports_without_what_the_whole_capture_tells(
    capture: Path, sample_tokenizer: Path
) -> None:
    found = objects(watched(capture, sample_tokenizer, "--once", "--format", "jsonl").stdout)
    made = locality("report", str(capture), "--tokenizer", str(sample_tokenizer), "--format", "json").stdout
    for ours, theirs in zip(found, json.loads(made)["turns"], strict=True):
        assert ours.pop("schema") == "locality-watch/1"
        assert ours.pop("settled") is True and ours.pop("corrects") is False
        assert ours.pop("engine") == "vllm"
        assert (theirs.pop("problem") or "").startswith(ours.pop("problem") or "")
        for finding in theirs["findings"]:
            del finding["seconds"]
        assert theirs.keys() - ours.keys() == {"conversation_rendering", "residual", "notes"}
        assert ours == {name: theirs[name] for name in ours}


def test_it_follows_the_proxy_and_ends_on_ctrl_c_with_what_the_session_adds_up_to(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    capture = tmp_path / "c.sqlite"
    with (
        running("samples.upstream", "--tokenizer", str(sample_tokenizer), "--port", "0") as server,
        watching(str(capture), "--format", "jsonl") as watch,
    ):
        assert eventually(lambda: any("waiting for" in line for line in watch.told), 60)
        with proxy(server.url, capture) as listening:
            agent = [sys.executable, "-m", "samples.agent", "--clock", "head", "--turns", "6"]
            variables = environment() | {"OPENAI_BASE_URL": f"{listening.url}/v1"}
            subprocess.run(agent, env=variables, check=True, timeout=60, capture_output=True)
            assert eventually(lambda: len(watch.lines) >= 6, 60)  # while the proxy still runs
            listening.stop()
        assert watch.end() == 0
    made = json.loads(locality("report", str(capture), "--format", "json").stdout)
    found = [json.loads(line) for line in watch.lines]
    assert [row["cache"] for row in found] == ["exact"] * len(made["turns"])
    for ours, theirs in zip(found, made["turns"], strict=True):
        assert ours["divergence"] == theirs["divergence"]
        assert ours["predicted_cached_tokens"] == theirs["predicted_cached_tokens"]
    pct = made["summary"]["reusable_prefix_pct"]
    assert f"{pct} % of the prompt tokens reusable" in watch.told[-1]
    assert "Traceback" not in "\n".join(watch.told)


def test_with_new_only_what_comes_is_told_and_compared_with_what_was_there(
    capture: Path, sample_tokenizer: Path
) -> None:
    arguments = (str(capture), "--tokenizer", str(sample_tokenizer), "--new", "--format", "jsonl")
    with watching(*arguments) as watch:
        assert eventually(lambda: any("there already: 4 exchanges" in line for line in watch.told), 60)
        assert watch.lines == []
        with Capture.create_or_open(str(capture), redaction="secrets") as writer:
            writer.save_request(
                request_seen("late", chat("09:13", "List.", "Two.", "Read.", "Done.", "More."))
            )
            writer.save_response(response_seen("late"))
        assert eventually(lambda: len(watch.lines) == 1, 60)
        assert watch.end() == 0
    row = json.loads(watch.lines[0])
    assert (row["id"], row["parent"]) == (5, 3)


def test_sealed_captures_are_watched_too(capture: Path, sample_tokenizer: Path, tmp_path: Path) -> None:
    options = Options(tokenizer=str(sample_tokenizer))
    sealed = sealed_copy(capture, tmp_path / "sealed.sqlite", options)
    found = objects(locality("watch", str(sealed), "--once", "--format", "jsonl").stdout)
    made = json.loads(locality("report", str(sealed), "--format", "json").stdout)["turns"]
    for name in ("id", "conversation", "prompt_tokens", "reusable_tokens", "predicted_cached_tokens"):
        assert [row[name] for row in found] == [row[name] for row in made]
    assert found[2]["divergence"]["cause"] == "volatile.clock"


def test_what_is_taken_for_granted_is_said_and_inexact_rules_are_marked(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    capture = write_capture(tmp_path / "c.sqlite", SENT[:2], block_size=None)
    made = watched(capture, sample_tokenizer, "--once", "--engine", "sglang")
    assert all(line.split("  ")[-2].endswith("≈") for line in made.stdout.splitlines()[1:])
    assert "assumed: block_size 1" in made.stderr
    assert made.stderr.count("assumed: block_size") == 1


def test_a_damaged_exchange_is_said_and_the_others_are_told(capture: Path, sample_tokenizer: Path) -> None:
    import sqlite3

    with sqlite3.connect(capture) as database:
        query = "UPDATE blob SET data = x'00' WHERE id = (SELECT request_content FROM exchange WHERE id = 4)"
        database.execute(query)
    made = watched(capture, sample_tokenizer, "--once", "--format", "jsonl")
    assert [row["id"] for row in objects(made.stdout)] == [1, 2, 3]
    assert "exchange 4 cannot be read" in made.stderr
    assert made.returncode == 0


def test_a_capture_that_is_replaced_is_followed_anew(
    capture: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    other = write_capture(tmp_path / "other.sqlite", SENT[:1])
    with watching(str(capture), "--tokenizer", str(sample_tokenizer), "--format", "jsonl") as watch:
        assert eventually(lambda: len(watch.lines) == len(SENT), 60)
        capture.unlink()
        assert eventually(lambda: any("deleted or replaced" in line for line in watch.told))
        other.rename(capture)
        assert eventually(lambda: len(watch.lines) == len(SENT) + 1, 60)
        assert watch.end() == 0
    assert json.loads(watch.lines[-1])["id"] == 1


def test_without_a_tokenizer_it_ends_at_once_and_says_what_to_give(capture: Path) -> None:
    made = locality("watch", str(capture))
    assert made.returncode == 1
    assert made.stdout.count("\n") == 1  # the heading
    assert "give --tokenizer DIR" in made.stderr


def test_a_tokenizer_that_is_none_is_said_before_anything_is_waited_for(tmp_path: Path) -> None:
    made = locality("watch", str(tmp_path / "none.sqlite"), "--tokenizer", str(tmp_path / "nowhere"))
    assert made.returncode == 1
    assert "no such folder" in made.stderr


def test_it_ends_by_itself_when_nothing_has_come_for_so_long(capture: Path, sample_tokenizer: Path) -> None:
    made = watched(capture, sample_tokenizer, "--until-idle", "0.3", "--format", "jsonl")
    assert made.returncode == 0
    assert len(objects(made.stdout)) == len(SENT)
    assert "4 exchanges, 1 conversation" in made.stderr


def test_a_file_that_is_no_capture_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_text("no database at all", encoding="utf-8")
    made = process("watch", str(tmp_path / "c.sqlite"))
    assert made.returncode == 1
    assert "is not a capture" in made.stderr
