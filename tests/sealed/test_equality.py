"""The report on a sealed copy has the numbers, labels and paths of the report on the open capture."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from analyzer.pipeline import Options
from analyzer.sealed_equality import differences
from tests.analyzer import random_sessions
from tests.captures import Sent, tokenizer_with, usage, write_capture
from tests.causes.faults import FAULTS
from tests.causes.sessions import appended, body, request, session
from tests.sealed.made import report_of, sealed_copy
from tests.test_no_text import ALL, every_change, every_failure

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
SPELT = {
    PATHS["chat"]: random_sessions.chat_body,
    PATHS["messages"]: random_sessions.messages_body,
    PATHS["responses"]: random_sessions.responses_body,
}


@pytest.fixture(scope="module")
def folder(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    template = (
        "{% if 'raise' in messages[0].content %}{{ raise_exception(messages[0].content) }}{% endif %}" + ALL
    )
    return tokenizer_with(tmp_path_factory.mktemp("own") / "tokenizer", sample_tokenizer, template)


def growing(seed: int) -> Iterator[Sent]:
    """Sessions that grow, are edited and branch, interleaved; some are salted, some stream, some fail."""
    dice = random.Random(seed)
    playing = []
    for path in SPELT:
        turns = random_sessions.Session(dice, calls=True).turns(9)
        playing.append((path, dice.choice((None, "salt one", "salt two")), turns))
    while playing:
        path, salt, turns = chosen = dice.choice(playing)
        found = next(turns, None)
        if found is None:
            playing.remove(chosen)
            continue
        sent = SPELT[path](*found) | ({"cache_salt": salt} if salt else {})
        sent |= {"model": dice.choice(("tiny", "tiny", "canary-model")), "stream": dice.random() < 0.5}
        for _ in range(dice.choice((1, 1, 1, 2))):  # some are sent again
            count = dice.randrange(20, 400)
            said = dice.choice((None, usage(count, count // 16 * 16 if dice.random() < 0.6 else None)))
            yield Sent(path=path, body=sent, usage=said, ttft_ms=dice.choice((None, 30.0, 55.0)))


def broken() -> Iterator[Sent]:
    """A turn of each known fault behind its parent, each pair a session of its own."""
    for seed, (name, (_, put_in)) in enumerate(FAULTS.items()):
        rng = random.Random(f"{name} {seed}")
        before = copy.deepcopy(request(rng, session(rng, steps=12)))
        after = appended(rng, before)
        if put_in(rng, before, after):
            dialect = "chat" if "image" in name else rng.choice(list(PATHS))
            for one in (before, after):
                yield Sent(path=PATHS[dialect], body=body(dialect, one), usage=usage(900, 320), ttft_ms=44)


def held_equal(source: Path, options: Options, tmp_path: Path) -> None:
    copied = sealed_copy(source, tmp_path / "sealed.sqlite", options)
    original = report_of(source, options)
    assert differences(original, report_of(copied, Options(pool_sweep=options.pool_sweep))) == []
    assert original.summary.rendered


@pytest.mark.parametrize("seed", range(3))
def test_random_sessions_have_the_same_numbers(seed: int, folder: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "open.sqlite", growing(seed))
    held_equal(source, Options(tokenizer=str(folder), pool_sweep=True), tmp_path)


def test_every_fault_has_the_same_numbers_and_causes(folder: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "open.sqlite", broken())
    held_equal(source, Options(tokenizer=str(folder)), tmp_path)


def test_every_field_that_changes_and_every_failure_has_the_same_row(folder: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "open.sqlite", [*every_change(), *every_failure()])
    held_equal(source, Options(tokenizer=str(folder)), tmp_path)


@pytest.mark.parametrize("engine", ["sglang", "llama_cpp"])
def test_other_engines_have_the_same_numbers(engine: str, folder: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "open.sqlite", growing(7))
    copied = sealed_copy(source, tmp_path / "sealed.sqlite", Options(tokenizer=str(folder)))
    original = report_of(source, Options(tokenizer=str(folder), engine=engine))
    assert differences(original, report_of(copied, Options(engine=engine))) == []


@pytest.mark.parametrize("block_size", [1, 5, 64])
def test_blocks_are_counted_again_in_another_size(block_size: int, folder: Path, tmp_path: Path) -> None:
    source = write_capture(tmp_path / "open.sqlite", [*growing(4), *broken()])
    copied = sealed_copy(source, tmp_path / "sealed.sqlite", Options(tokenizer=str(folder)))
    original = report_of(source, Options(tokenizer=str(folder), block_size=block_size, pool_blocks=500))
    again = report_of(copied, Options(block_size=block_size, pool_blocks=500))
    assert differences(original, again) == []
