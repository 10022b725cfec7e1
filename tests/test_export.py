"""`locality export` from outside: what it writes, what it says, and that nothing of a prompt is in either."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from analyzer.registry import plugins
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality
from tests.test_no_text import CANARY, every_change, every_failure

FORMATS = sorted(plugins("exports"))
PARAGRAPH = "High water at the second berth is at eight in the morning. "


def session(turns: int, *, model: str = "tiny") -> list[Sent]:
    """A conversation that appends."""
    messages: list[dict[str, str]] = [{"role": "system", "content": PARAGRAPH * 90}]
    sent = []
    for number in range(turns):
        messages = [*messages, {"role": "user", "content": f"{number}? {PARAGRAPH * 5}"}]
        body = {"model": model, "messages": messages, "max_tokens": 8}
        sent.append(Sent(body=body, usage={"completion_tokens": 3, "prompt_tokens": 1}))
        messages = [*messages, {"role": "assistant", "content": "Yes."}]
    return sent


def export(capture: Path, form: str, tokenizer: Path, output: Path, *options: str) -> str:
    """An export's text; what it says is part of it."""
    arguments = ("--format", form, "--tokenizer", str(tokenizer), "-o", str(output), *options)
    made = locality("export", str(capture), *arguments)
    assert made.returncode == 0, made.stderr
    return output.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("export") / "c.sqlite", session(4))


@pytest.mark.parametrize("form", FORMATS)
def test_no_canary_of_any_field_is_in_an_export_nor_in_what_is_said(
    form: str, sample_tokenizer: Path, tmp_path: Path
) -> None:
    salted = Sent(
        body={
            "model": "canary-adapter",
            "cache_salt": "canary-salt",
            "user": "canary",
            "messages": [{"role": "user", "content": "canary"}],
        },
        usage=usage(10),
    )
    made = write_capture(tmp_path / "canaries.sqlite", [*every_change(), *every_failure(), salted])
    arguments = ("--format", form, "--tokenizer", str(sample_tokenizer), "-o", str(tmp_path / "out"))
    result = locality("export", str(made), *arguments)
    assert result.returncode == 0, result.stderr
    written = (tmp_path / "out").read_bytes()
    assert len(written) > 1000
    assert CANARY.encode() not in (written + (result.stdout + result.stderr).encode()).lower()


@pytest.mark.parametrize("form", ["mooncake", "bailian", "weka"])
def test_blocks_are_the_formats_own_whatever_the_servers_are(
    form: str, sample_tokenizer: Path, tmp_path: Path
) -> None:
    texts = [
        export(
            write_capture(tmp_path / f"{size}.sqlite", session(3), block_size=size),
            form,
            sample_tokenizer,
            tmp_path / f"{size}",
        )
        for size in (16, 48)
    ]
    assert texts[0] == texts[1]


def test_a_later_turn_begins_with_the_numbers_of_the_one_before(
    capture: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    report = json.loads(
        locality("report", str(capture), "--tokenizer", str(sample_tokenizer), "--format", "json").stdout
    )
    lines = export(capture, "bailian", sample_tokenizer, tmp_path / "b").splitlines()
    ids = [json.loads(line)["hash_ids"] for line in lines]
    for before, after, row in zip(ids[:-1], ids[1:], report["turns"][1:], strict=True):
        shared = row["common_prefix_tokens"] // 16
        assert shared > 60
        assert before[:shared] == after[:shared]
        assert not set(before[shared:]) & set(after[shared:])


def test_an_answer_that_the_server_did_not_count_is_counted_with_the_tokenizer_and_said(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    """A stream without `stream_options.include_usage` reports none; each event of it holds one token here."""
    words = ["Yes", ",", " at", " eight"]
    events = [{"choices": [{"index": 0, "delta": {"content": word}}]} for word in words]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"
    body = {**session(1)[0].body, "stream": True, "max_tokens": 4}
    line, several = {"body": body, "response": stream}, {"body": {**body, "n": 2}, "response": stream}
    file = tmp_path / "bodies.jsonl"
    file.write_text("\n".join(map(json.dumps, [line, several])), encoding="utf-8")
    assert (
        locality("import", str(file), "--format", "jsonl", "-o", str(tmp_path / "c.sqlite")).returncode == 0
    )
    arguments = ("--format", "mooncake", "--tokenizer", str(sample_tokenizer))
    made = locality("export", str(tmp_path / "c.sqlite"), *arguments)
    one, two = map(json.loads, made.stdout.splitlines())
    assert one["output_length"] == len(words)
    assert "output_length" not in two  # which of two answers it would be nobody can say
    assert "1 answers were counted with the tokenizer" in made.stderr


def test_prompts_with_another_cache_salt_share_no_block(sample_tokenizer: Path, tmp_path: Path) -> None:
    (sent,) = session(1)
    salted = [Sent(body={**sent.body, "cache_salt": salt}, usage=sent.usage) for salt in ("a", "b", "a")]
    made = write_capture(tmp_path / "c.sqlite", salted)
    lines = export(made, "bailian", sample_tokenizer, tmp_path / "b").splitlines()
    one, other, again = (json.loads(line)["hash_ids"] for line in lines)
    assert one == again
    assert not set(one) & set(other)


def test_only_the_servers_own_name_of_a_model_is_shown(sample_tokenizer: Path, tmp_path: Path) -> None:
    sent = [*session(1), *session(1, model="my-secret-name"), *session(1, model="another")]
    made = write_capture(tmp_path / "c.sqlite", sent)
    read = json.loads(export(made, "otel", sample_tokenizer, tmp_path / "o"))
    spans = read["resourceSpans"][0]["scopeSpans"][0]["spans"]
    assert [span["name"] for span in spans] == ["chat tiny", "chat model-1", "chat model-2"]


def test_weka_writes_a_file_a_session_into_a_folder(sample_tokenizer: Path, tmp_path: Path) -> None:
    other = [Sent(body={**item.body, "model": "other"}, usage=item.usage) for item in session(2)]
    made = write_capture(tmp_path / "c.sqlite", [*session(2), *other])
    folder = tmp_path / "sessions"
    folder.mkdir()
    arguments = ("--format", "weka", "--tokenizer", str(sample_tokenizer), "-o", str(folder))
    assert locality("export", str(made), *arguments).returncode == 0
    assert [path.name for path in sorted(folder.iterdir())] == ["session_0001.json", "session_0002.json"]
    assert [json.loads(path.read_text())["id"] for path in sorted(folder.iterdir())] == [
        "session_0001",
        "session_0002",
    ]


def test_without_a_file_the_trace_goes_to_stdout_and_the_rest_to_stderr(
    capture: Path, sample_tokenizer: Path
) -> None:
    made = locality("export", str(capture), "--format", "mooncake", "--tokenizer", str(sample_tokenizer))
    lines: list[dict[str, Any]] = [json.loads(line) for line in made.stdout.splitlines()]
    assert [line["output_length"] for line in lines] == [3, 3, 3, 3]
    assert "4 of 4 prompts exported" in made.stderr
    assert "4 prompts have another number of tokens than the server counted" in made.stderr


def test_nothing_to_export_is_a_failure_that_writes_no_file(capture: Path, tmp_path: Path) -> None:
    made = locality("export", str(capture), "--format", "mooncake", "-o", str(tmp_path / "m"))
    assert made.returncode == 1
    assert "no tokenizer" in made.stderr or "--tokenizer" in made.stderr
    assert "4 of 4 prompts left out: not rendered" in made.stderr
    assert not (tmp_path / "m").exists()


def test_otel_needs_no_tokenizer(capture: Path, tmp_path: Path) -> None:
    assert locality("export", str(capture), "--format", "otel", "-o", str(tmp_path / "o")).returncode == 0


def test_the_formats_are_listed_with_what_each_is() -> None:
    listed = locality("list", "exports").stdout.splitlines()
    assert [line.split()[0] for line in listed] == FORMATS
    assert all(len(line.split()) > 5 for line in listed)


def test_an_unknown_format_is_wrong_usage_that_names_the_known_ones(capture: Path) -> None:
    made = locality("export", str(capture), "--format", "csv")
    assert made.returncode == 2
    assert "there are bailian, mooncake, otel, weka" in made.stderr


def test_a_folder_that_is_not_there_does_not_become_a_file(tmp_path: Path) -> None:
    made = write_capture(tmp_path / "c.sqlite", session(1))
    told = locality("export", str(made), "--format", "weka", "-o", f"{tmp_path}/sessions/")
    assert (told.returncode, (tmp_path / "sessions").exists()) == (2, False)
    assert "there is no such folder; make it first" in told.stderr


def test_a_folder_is_wrong_usage_for_a_format_of_one_file(
    capture: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    arguments = ("--format", "mooncake", "--tokenizer", str(sample_tokenizer), "-o", str(tmp_path))
    assert locality("export", str(capture), *arguments).returncode == 2
