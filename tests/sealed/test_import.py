"""`locality import --redact sealed`: what was recorded elsewhere comes in with its numbers, not its text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analyzer.pipeline import Options
from analyzer.sealed_equality import differences
from tests.captures import Sent
from tests.conftest import locality
from tests.sealed.made import report_of
from tests.sealed.test_equality import growing

SAMPLES = Path(__file__).parents[2] / "samples" / "sessions"


def lines(sent: list[Sent]) -> str:
    written = [
        {"body": one.body, "path": one.path, "response": {"usage": one.usage}, "started_at": 10**9 + at}
        for at, one in enumerate(sent)
    ]
    return "".join(json.dumps(line) + "\n" for line in written)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("recorded") / "bodies.jsonl"
    file.write_text(lines(list(growing(5))), encoding="utf-8")
    return file


def imported(file: Path, capture: Path, *options: str) -> str:
    made = locality("import", str(file), "--format", "jsonl", "-o", str(capture), *options)
    assert made.returncode == 0, made.stderr
    return made.stderr


def test_the_numbers_are_those_of_an_open_import_and_no_text_is_written(
    recorded: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "sealed"
    folder.mkdir()
    imported(recorded, tmp_path / "open.sqlite")
    sealed = ("--redact", "sealed", "--tokenizer", str(sample_tokenizer))
    said = imported(recorded, folder / "s.sqlite", *sealed)
    assert f"{len(list(growing(5)))} exchanges imported, 0 not read" in said
    original = report_of(tmp_path / "open.sqlite", Options(tokenizer=str(sample_tokenizer)))
    copied = report_of(folder / "s.sqlite", Options())
    assert copied.redaction == "sealed" and original.summary.rendered
    assert differences(original, copied) == []
    written = b"".join(file.read_bytes() for file in folder.iterdir())
    texts = {
        text.encode()
        for line in recorded.read_text(encoding="utf-8").splitlines()
        for text in json.dumps(json.loads(line)["body"]).split('"')
        if len(text) >= 12 and " " in text
    }
    assert len(texts) > 20
    assert not [text for text in texts if text in written]


def test_that_times_are_made_up_is_told_of_a_sealed_import_too(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    file = tmp_path / "b.jsonl"
    file.write_text(json.dumps(json.loads((SAMPLES / "chat.json").read_text())) + "\n", encoding="utf-8")
    imported(file, tmp_path / "s.sqlite", "--redact", "sealed", "--tokenizer", str(sample_tokenizer))
    made = locality("export", str(tmp_path / "s.sqlite"), "--format", "mooncake")
    assert made.returncode == 0, made.stderr
    assert "the times are made up" in made.stderr


def test_a_key_file_is_made_for_a_sealed_import_alone(
    recorded: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    key, capture = tmp_path / "key", tmp_path / "s.sqlite"
    given = ("import", str(recorded), "--format", "jsonl", "-o", str(capture), "--key-file", str(key))
    refused = locality(*given)
    assert refused.returncode == 2 and "--key-file is for --redact sealed" in refused.stderr
    bare = locality(*given, "--redact", "sealed")
    assert bare.returncode == 2 and "give --tokenizer" in bare.stderr
    missing = locality(*given, "--redact", "sealed", "--tokenizer", str(tmp_path / "none"))
    assert missing.returncode == 1 and not capture.exists() and not key.exists()
    made = locality(*given, "--redact", "sealed", "--tokenizer", str(sample_tokenizer))
    assert made.returncode == 0 and len(key.read_text().strip()) == 64
