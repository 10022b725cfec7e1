"""What the other commands say of a sealed capture: what is known, and plainly what is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.pipeline import Options
from samples.big_session import big_session
from store.db import Capture
from tests.bench.sessions import save
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality
from tests.sealed.made import sealed_copy

SYSTEM = "The canary sings at {}:05:17.\n" + "It sings of a quay, a crane and a tide that is late. " * 9


def body(hour: int) -> dict[str, Any]:
    said = [("system", SYSTEM.format(hour)), ("user", "When does the canary sing?")]
    return {"model": "tiny", "messages": [{"role": role, "content": text} for role, text in said]}


@pytest.fixture(scope="module")
def sealed(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("commands")
    sent = [Sent(body=body(hour), usage=usage(100, 0)) for hour in (10, 11)]
    source = write_capture(folder / "open.sqlite", sent)
    return sealed_copy(source, folder / "sealed.sqlite", Options(tokenizer=str(sample_tokenizer)))


@pytest.mark.parametrize("form", ["text", "json"])
def test_report_and_show_tell_the_place_and_no_text(sealed: Path, form: str) -> None:
    for command in (("report", str(sealed)), ("show", str(sealed), "2")):
        made = locality(*command, "--format", form)
        assert made.returncode == 0, made.stderr
        assert "messages[0].content" in made.stdout
        assert "canary" not in made.stdout + made.stderr
    assert "tokens and texts of both prompts are not known" in made.stderr
    if form == "json":
        assert json.loads(made.stdout)["tokens"] == []


def test_a_cause_that_needs_text_says_so(sealed: Path) -> None:
    report = json.loads(locality("report", str(sealed), "--format", "json").stdout)
    findings = report["turns"][1]["findings"]
    assert findings and all(
        item["evidence"].startswith("withheld: the capture is sealed") for item in findings
    )


def test_an_option_that_needs_text_says_that_it_changes_nothing(sealed: Path, sample_tokenizer: Path) -> None:
    made = locality("report", str(sealed), "--tokenizer", str(sample_tokenizer))
    assert made.returncode == 0
    assert "--tokenizer changes nothing: a sealed capture holds no text" in made.stdout


def test_verify_says_what_is_left_to_verify(sealed: Path) -> None:
    made = locality("verify", str(sealed))
    assert "store: whole" in made.stdout
    assert "0 prompts agreed when they were sealed, 2 did not" in made.stdout
    assert "no text left to render again" in made.stderr
    assert made.returncode == 3


def test_captures_can_be_compared(sealed: Path) -> None:
    made = locality("compare", str(sealed), str(sealed))
    assert made.returncode == 0, made.stderr
    assert "neither is better" in made.stdout


def test_a_damaged_row_is_said_to_be_damaged(sealed: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "d.sqlite"
    with (
        Capture.open(str(sealed)) as source,
        Capture.create_or_open(str(damaged), redaction="sealed") as copy,
    ):
        from store.sealed import Part

        for exchange in source.exchanges():
            copy.copy_sealed(exchange)
        huge = json.loads(next(source.sealed("prompt")).content) | {"tokens": [[0, 1 << 40]]}
        for content in (json.dumps(huge).encode(),):
            copy.save_sealed([Part(exchange_id=1, kind="prompt", number=0, content=content)])
    made = locality("report", str(damaged))
    assert made.returncode == 1
    assert "the sealed capture is damaged: a sealed row has more tokens than any prompt" in made.stderr


def test_a_sealed_session_takes_one_per_cent_of_the_bytes_sent(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    sent = 0
    with Capture.create_or_open(str(tmp_path / "open.sqlite"), redaction="secrets") as capture:
        for turn, (body, stream) in enumerate(big_session()):
            save(capture, str(turn), turn * 10**9, body, stream)
            sent += len(body)
    copied = sealed_copy(
        tmp_path / "open.sqlite", tmp_path / "s.sqlite", Options(tokenizer=str(sample_tokenizer))
    )
    assert copied.stat().st_size <= 0.01 * sent
