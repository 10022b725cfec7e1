"""The JSON that `locality share` writes is a capture to every command, and a damaged one a sentence."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.open_capture import open_capture
from analyzer.pipeline import Options
from analyzer.sealed_json import as_json
from store.db import Capture
from store.errors import CaptureError
from tests.captures import write_capture
from tests.conftest import locality
from tests.sealed.made import sealed_copy
from tests.sealed.test_equality import broken, growing

MESS: tuple[Any, ...] = (None, -1, 1 << 70, 1.5, "x", "\ud800", [], {}, [[0, 3]], True, "9" * 30)


@pytest.fixture(scope="module")
def both(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A sealed capture as a database and as JSON."""
    folder = tmp_path_factory.mktemp("both")
    source = write_capture(folder / "open.sqlite", [*list(growing(2))[:9], *list(broken())[:6]])
    sealed = sealed_copy(source, folder / "s.sqlite", Options(tokenizer=str(sample_tokenizer)))
    with Capture.open(str(sealed)) as opened:
        (folder / "s.json").write_text(as_json(opened), encoding="utf-8")
    return sealed, folder / "s.json"


@pytest.mark.parametrize(
    "command",
    [
        ("report", "{}", "--format", "text", "--pool-sweep"),
        ("report", "{}", "--format", "json"),
        ("report", "{}", "--format", "html"),
        ("show", "{}", "4"),
        ("compare", "{}", "{}", "--format", "json"),
        ("verify", "{}"),
    ],
    ids=lambda command: " ".join(command[:4:3]),
)
def test_every_command_says_of_the_json_what_it_says_of_the_database(
    command: tuple[str, ...], both: tuple[Path, Path]
) -> None:
    of_database, of_json = (
        locality(*(word.replace("{}", str(capture)) for word in command)) for capture in both
    )
    assert of_database.returncode == of_json.returncode
    database, as_object = map(str, both)
    assert of_json.stdout.replace(as_object, database) == of_database.stdout
    assert of_json.stderr.replace(as_object, database) == of_database.stderr
    assert of_json.stdout


def test_export_gives_block_numbers_of_the_json(both: tuple[Path, Path], tmp_path: Path) -> None:
    """They are numbered under a key that is thrown away: equal are which are equal to which."""
    shapes = []
    for capture in both:
        made = locality("export", str(capture), "--format", "bailian", "-o", str(tmp_path / "x"))
        assert made.returncode == 0
        numbers: dict[int, int] = {}
        lines = (tmp_path / "x").read_text(encoding="utf-8").splitlines()
        ids = [json.loads(line)["hash_ids"] for line in lines]
        shapes.append([[numbers.setdefault(one, len(numbers)) for one in row] for row in ids])
    assert shapes[0] == shapes[1] and shapes[0]


def test_a_sealed_json_cannot_be_shared_again(both: tuple[Path, Path], tmp_path: Path) -> None:
    made = locality("share", str(both[1]), "-o", str(tmp_path / "x.sqlite"))
    assert made.returncode == 1 and "is sealed already" in made.stderr


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from places(item)


@pytest.mark.parametrize("seed", range(60))
def test_a_json_of_a_stranger_is_a_report_or_a_sentence(
    seed: int, both: tuple[Path, Path], tmp_path: Path
) -> None:
    dice = random.Random(seed)
    read = copy.deepcopy(json.loads(both[1].read_text(encoding="utf-8")))
    rows = [part for part in read["parts"] if part["kind"] in ("prompt", "basis")]
    for _ in range(3):
        holder, key = dice.choice(list(places(dice.choice([read["exchanges"], read["facts"], rows, rows]))))
        holder[key] = copy.deepcopy(dice.choice(MESS))
    damaged = tmp_path / "d.json"
    damaged.write_text(json.dumps(read), encoding="utf-8")
    made = locality("report", str(damaged), "--format", dice.choice(["text", "json", "html"]))
    assert made.returncode in (0, 1)
    assert made.returncode == 0 or made.stderr.startswith(("Error:", "locality:"))
    assert "Traceback" not in made.stderr


@pytest.mark.parametrize(
    "text", ["{", "{}", '{"schema": "locality-report/1"}', '{"schema": "locality-sealed/1"}']
)
def test_other_json_is_no_capture(text: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(CaptureError, match="is no capture of schema locality-sealed/1"):
        open_capture(str(file))
