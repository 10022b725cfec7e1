"""`show` tells one turn in depth: both token sequences, the blocks they lie in, and cause after cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.cells import cell_len
from tokenizers import Tokenizer

from tests.captures import Sent, tokenizer_with, usage, write_capture
from tests.conftest import locality

TEMPLATE = """{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
REST = "You are a coding agent with tools. " * 8


def chat(system: str, *said: str) -> dict[str, Any]:
    messages = [{"role": "system", "content": system}]
    for at, text in enumerate(said):
        messages.append({"role": "assistant" if at % 2 else "user", "content": text})
    return {"model": "tiny", "messages": messages}


FIRST = chat(f"Session 81 is here.\n{REST}", "List the files.")
SECOND = chat(f"Session 97 is here.\n{REST}", "List the files.", "There are two.", "Read both.")
THIRD = chat(
    f"Session 97 is here.\n{REST}",
    "List the files.",
    "There are two.",
    "Read both.",
    "They are empty.",
    "Why?",
)


@pytest.fixture(scope="module")
def folder(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tokenizer_with(tmp_path_factory.mktemp("own") / "tokenizer", sample_tokenizer, TEMPLATE)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sent = [Sent(body=FIRST, usage=usage(1, 0), ttft_ms=30), Sent(body=SECOND), Sent(body=THIRD)]
    sent.append(Sent(body=b"{", status=400, answer={"error": {"message": "no JSON"}}))
    completions = {"model": "tiny", "prompt": ["one prompt of two", "another prompt"]}
    sent.append(Sent(path="/v1/completions", body=completions))
    return write_capture(tmp_path_factory.mktemp("shown") / "c.sqlite", sent)


def shown(capture: Path, name: str, *options: str, **extra: str) -> str:
    made = locality("show", str(capture), name, *options, **extra)
    assert made.returncode == 0, made.stderr
    return made.stdout


def as_json(capture: Path, name: str, *options: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(shown(capture, name, "--format", "json", *options))
    return told


def prompt_of(body: dict[str, Any]) -> str:
    """The prompt as the template prints it, by hand."""
    return "".join(f"<|{m['role']}|>\n{m['content']}<|end|>\n" for m in body["messages"]) + "<|assistant|>\n"


def test_both_sequences_are_those_of_the_tokenizer(capture: Path, folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    before, after = (
        tokenizer.encode(prompt_of(body), add_special_tokens=False).ids for body in (FIRST, SECOND)
    )
    told = as_json(capture, "2", "--tokenizer", str(folder))
    parts_at = told["turn"]["divergence"]["token"]
    assert before[:parts_at] == after[:parts_at] and before[parts_at] != after[parts_at]
    indices = [row["index"] for row in told["tokens"]]
    assert indices == list(range(parts_at - 6, parts_at + 12))
    for row in told["tokens"]:
        assert row["parent"]["id"] == before[row["index"]]
        assert row["child"]["id"] == after[row["index"]]
        assert row["child"]["text"] == tokenizer.decode([after[row["index"]]], skip_special_tokens=False)
    assert told["parent"]["id"] == told["turn"]["parent"] == 1


def test_a_person_sees_where_they_part_and_where_blocks_begin(capture: Path, folder: Path) -> None:
    lines = shown(capture, "2", "--tokenizer", str(folder)).split("\n")
    assert lines[0] == "exchange 2, turn 2 of conversation 1: chat, model tiny, status 200, done"
    differing = [line for line in lines if " ≠ " in line]
    assert any('"81"' in line and '"97"' in line for line in differing)
    assert "-- block 0 (from token 0)" in lines
    block = lines.index("-- block 1")
    assert lines[block + 1].split()[0] == "16"
    assert lines[block - 1].split()[0] == "15"


def test_the_chain_tells_what_each_restoring_brings(capture: Path, folder: Path) -> None:
    told = as_json(capture, "2", "--tokenizer", str(folder))
    finding = told["turn"]["findings"][0]
    reached = finding["token"] + finding["tokens"]
    text = shown(capture, "2", "--tokenizer", str(folder))
    assert f"leaves at token {finding['token']}; restored, both agree up to token {reached}" in text
    assert f"fix this and keep {finding['tokens']} more tokens" in text
    assert "field   messages[0].content" in text


def test_an_append_shows_the_join(capture: Path, folder: Path) -> None:
    told = as_json(capture, "3", "--tokenizer", str(folder))
    assert told["turn"]["append"] is True
    assert "no findings: nothing that was sent before was changed" in shown(
        capture, "3", "--tokenizer", str(folder)
    )


def test_the_first_of_a_conversation_has_nobody_to_be_compared_with(capture: Path, folder: Path) -> None:
    text = shown(capture, "1", "--tokenizer", str(folder))
    assert "none: the first of its conversation" in text
    assert "first token  after 30 ms" in text
    assert "reported     1 token" in text  # the server's count, since it is not ours
    told = as_json(capture, "1", "--tokenizer", str(folder))
    assert (told["parent"], told["tokens"]) == (None, [])


def test_what_was_not_rendered_says_why(capture: Path, folder: Path) -> None:
    text = shown(capture, "4", "--tokenizer", str(folder))
    assert "problem  the body is not JSON" in text
    assert "none: nothing was rendered to compare" in text


def test_a_body_of_several_prompts_has_each_by_its_number(capture: Path, folder: Path) -> None:
    assert as_json(capture, "5#1", "--tokenizer", str(folder))["turn"]["prompt_index"] == 1
    assert "exchange 5#1" in shown(capture, "5#1", "--tokenizer", str(folder))
    made = locality("show", str(capture), "5#2", "--tokenizer", str(folder))
    assert (made.returncode, made.stdout) == (1, "")
    assert "exchange 5 has no prompt 2; it has 2" in made.stderr


@pytest.mark.parametrize(
    ("name", "status", "said"),
    [
        ("99", 1, "no exchange 99; `locality report` lists those from 1 to 5"),
        ("0", 1, "no exchange 0"),
        ("seven", 2, "give an id as in `locality report`"),
        ("-1", 2, ""),
    ],
)
def test_an_id_that_is_not_there_is_told_as_such(
    capture: Path, folder: Path, name: str, status: int, said: str
) -> None:
    made = locality("show", str(capture), name, "--tokenizer", str(folder))
    assert (made.returncode, made.stdout) == (status, "")
    assert said in made.stderr


def test_an_empty_capture_has_no_turn_to_show(tmp_path: Path, folder: Path) -> None:
    made = locality("show", str(write_capture(tmp_path / "c.sqlite", [])), "1", "--tokenizer", str(folder))
    assert made.returncode == 1
    assert "it is empty" in made.stderr


def test_ids_from_the_wire_are_told_without_a_tokenizer(tmp_path: Path) -> None:
    sent = [Sent(body=FIRST, ids=[*range(40), 7, 7]), Sent(body=SECOND, ids=[*range(40), 8, 8, 9])]
    capture = write_capture(tmp_path / "c.sqlite", sent)
    told = as_json(capture, "2")
    assert told["turn"]["divergence"]["token"] == 40
    assert told["turn"]["divergence"]["path"] is None
    assert [row["parent"] and row["parent"]["id"] for row in told["tokens"]] == [*range(34, 40), 7, 7, None]
    assert {row["child"]["text"] for row in told["tokens"]} == {None}
    text = shown(capture, "2")
    assert "-- block 2 (from token 32)" in text
    assert "≠       7 ?" in text
    assert "+" in text.split("\n")[-4]  # only the child has a token there
    assert "only token ids are known here" in text


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_it_fits_the_terminal(capture: Path, folder: Path, columns: int) -> None:
    text = shown(capture, "2", "--tokenizer", str(folder), COLUMNS=str(columns))
    assert max(cell_len(line) for line in text.split("\n")) <= columns


def test_without_text_no_token_is_told(capture: Path, folder: Path) -> None:
    text = shown(capture, "2", "--no-text", "--tokenizer", str(folder))
    assert "leaves at token" in text
    assert "81" not in text and "97" not in text
    assert "Session" not in text
