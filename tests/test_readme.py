"""What the README tells a reader to do and to open is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tests.conftest import locality

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks() -> list[str]:
    return re.findall(r"```\n(.*?)```", README, flags=re.DOTALL)


def commands() -> list[str]:
    """Every line of a code block that calls the program, without its comment."""
    lines = "\n".join(blocks()).replace("\\\n", " ").split("\n")
    return [line.partition("#")[0].strip() for line in lines if line.startswith("locality ")]


def test_the_readme_shows_commands() -> None:
    assert len(commands()) >= 3


@pytest.mark.parametrize("command", commands())
def test_every_command_in_the_readme_names_options_that_exist(command: str) -> None:
    words = shlex.split(command)[1:]
    given = words[: words.index("--")] if "--" in words else words
    explained = locality(given[0], "--help").stdout
    assert explained
    for option in (word.partition("=")[0] for word in given if word.startswith("-")):
        assert option in explained, option


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:store|proxy|analyzer|tests)/[\w/.]*)`", README)))
)
def test_every_file_the_readme_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_every_make_target_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    named = set(re.findall(r"make ([a-z-]+)", README))
    assert named
    assert named <= targets
