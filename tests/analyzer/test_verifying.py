"""`locality verify` on captures made here, beside a stub that gives a real vLLM's recorded answers."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import pytest

from analyzer.pipeline import Options
from analyzer.renderers import RenderFailed
from analyzer.verifying import run_verify
from store.db import Capture
from store.records import RequestSeen, ResponseSeen, ServerFact
from tests.analyzer.server_stub import answering, as_recorded, golden
from tests.conftest import locality

CHAT = "/v1/chat/completions"
COMPLETIONS = "/v1/completions"
AGREED = [
    (CHAT, "plain"),
    (CHAT, "spaced and escaped"),
    (CHAT, "tools"),
    (CHAT, "calls"),
    (CHAT, "reasoning"),
    (CHAT, "reasoning_content"),
    (COMPLETIONS, "one"),
    (COMPLETIONS, "many"),
    (COMPLETIONS, "ids"),
]


def keep(target: Path, path: str, body: str, answer: dict[str, Any]) -> None:
    """Write one exchange."""
    with Capture.create_or_open(str(target), redaction="secrets") as capture:
        number = capture.counts().exchanges
        capture.save_request(
            RequestSeen(
                key=str(number),
                started_at_ns=10**18 + number,
                method="POST",
                path=path,
                query="",
                headers=(("content-type", "application/json"),),
                body=body.encode(),
            )
        )
        capture.save_response(
            ResponseSeen(
                key=str(number),
                status=200,
                headers=(("content-type", "application/json"),),
                body=json.dumps(answer).encode(),
                chunks=(),
                ttft_ns=1,
                duration_ns=2,
                ended="complete",
                error=None,
            )
        )


def captured(target: Path, wanted: Sequence[tuple[str, str]] = AGREED) -> Path:
    """A capture of golden bodies whose responses report the count of the real server's ids."""
    for path, name in wanted:
        row = golden(f"{path}/render", name)
        answers = row["answer"] if isinstance(row["answer"], list) else [row["answer"]]
        total = sum(len(item["token_ids"]) for item in answers)
        keep(target, path, row["body"], {"usage": {"prompt_tokens": total}})
    return target


def other_template(tokenizer: Path, folder: Path) -> Path:
    """The samples' tokenizer with a template that words its head of tools otherwise."""
    folder.mkdir()
    for file in tokenizer.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    template = folder / "chat_template.jinja"
    text = template.read_text(encoding="utf-8")
    assert "# Tools" in text
    template.write_text(text.replace("# Tools", "# All tools"), encoding="utf-8")
    return folder


def test_renderings_that_are_the_servers_are_counted(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = captured(tmp_path / "c.sqlite")
    with answering(as_recorded) as stub:
        options = Options(tokenizer=str(sample_tokenizer), server=stub.url)
        assert run_verify(str(target), options) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "store: whole",
        "the server's /render: 12 of 12 prompts equal",
        "counts: 12 prompts agree, 0 exchanges do not",
    ]
    assert said.err == ""


def test_the_first_differing_token_is_told_with_its_text_and_field(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = captured(tmp_path / "c.sqlite", [(CHAT, "tools"), (CHAT, "plain")])
    theirs = golden(f"{CHAT}/render", "tools")["answer"]["token_ids"]
    folder = other_template(sample_tokenizer, tmp_path / "other")
    with answering(as_recorded) as stub:
        assert run_verify(str(target), Options(tokenizer=str(folder), server=stub.url)) == 3
    out = capsys.readouterr().out
    assert "the server's /render: 1 of 2 prompts equal" in out
    assert "counts: 1 prompts agree, 1 exchanges do not" in out
    told = next(line for line in out.splitlines() if "exchange 1: jinja differs at token" in line)
    token = int(told.partition("token ")[2].partition(",")[0])
    assert told.endswith(", template")
    assert f"theirs {theirs[token]}  " in out
    assert "| All tools" in out.replace("|  All", "| All") and "| Tools" in out.replace("|  Tools", "| Tools")


def test_a_difference_inside_a_field_names_the_field(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = golden(f"{CHAT}/render", "plain")
    # The server was asked this body, and answered to another: a.py became b.py.
    keep(tmp_path / "c.sqlite", CHAT, row["body"].replace("a.py", "b.py"), {})
    with answering(lambda path, body: (200, json.dumps(row["answer"]).encode())) as stub:
        options = Options(tokenizer=str(sample_tokenizer), server=stub.url)
        assert run_verify(str(tmp_path / "c.sqlite"), options) == 3
    # "What is in a.py?": the token is " a", which begins at character 10.
    assert "jinja differs at token 5, messages[0].content char 10" in capsys.readouterr().out


def test_ids_in_the_response_are_compared_without_a_server(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = golden(f"{CHAT}/render", "tools")
    keep(tmp_path / "c.sqlite", CHAT, row["body"], {"prompt_token_ids": row["answer"]["token_ids"]})
    assert run_verify(str(tmp_path / "c.sqlite"), Options(tokenizer=str(sample_tokenizer))) == 0
    assert "the ids in the response: 1 of 1 prompts equal" in capsys.readouterr().out
    folder = other_template(sample_tokenizer, tmp_path / "other")
    assert run_verify(str(tmp_path / "c.sqlite"), Options(tokenizer=str(folder))) == 3


def test_a_count_that_differs_does_not_hold(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = golden(f"{CHAT}/render", "plain")
    reported = len(row["answer"]["token_ids"]) + 1
    keep(tmp_path / "c.sqlite", CHAT, row["body"], {"usage": {"prompt_tokens": reported}})
    assert run_verify(str(tmp_path / "c.sqlite"), Options(tokenizer=str(sample_tokenizer))) == 3
    assert f"exchange 1: {reported - 1} tokens rendered, {reported} reported" in capsys.readouterr().out


def test_a_body_without_its_secrets_is_not_held_against_what_the_server_saw(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = golden(f"{CHAT}/render", "plain")["body"].replace("a.py", "sk-ant-api03-" + "a1B2" * 10)
    answer = {"usage": {"prompt_tokens": 99}, "prompt_token_ids": [1, 2, 3]}
    keep(tmp_path / "c.sqlite", CHAT, body, answer)
    assert run_verify(str(tmp_path / "c.sqlite"), Options(tokenizer=str(sample_tokenizer))) == 0
    assert "not compared: 1 of 1 prompts: secrets in the body were replaced" in capsys.readouterr().out


def test_what_tells_nothing_is_left_out_and_said(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(tmp_path / "c.sqlite", CHAT, golden(f"{CHAT}/render", "plain")["body"], {})
    assert run_verify(str(tmp_path / "c.sqlite"), Options(tokenizer=str(sample_tokenizer))) == 0
    said = capsys.readouterr()
    assert "not compared: 1 of 1 prompts: the response tells neither ids nor a count" in said.out
    assert "--server URL" in said.err


def test_a_server_that_is_not_there_is_status_one(
    tmp_path: Path, sample_tokenizer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    target = captured(tmp_path / "c.sqlite", [(CHAT, "plain"), (CHAT, "tools")])
    assert run_verify(str(target), Options(tokenizer=str(sample_tokenizer), server=url)) == 1
    said = capsys.readouterr()
    assert "2 of 2 prompts could not be compared" in said.err and "cannot be asked" in said.err
    assert "counts: 2 prompts agree" in said.out


def test_without_a_tokenizer_the_store_is_verified_and_the_rest_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = captured(tmp_path / "c.sqlite", [(CHAT, "plain")])
    assert run_verify(str(target), Options()) == 0
    said = capsys.readouterr()
    assert said.out.startswith("store: whole\n") and "--tokenizer DIR" in said.err
    assert run_verify(str(target), Options(server="http://127.0.0.1:1")) == 1


@pytest.mark.parametrize("column", ["request_content", "response_content", "body"])
def test_a_damaged_piece_is_named_with_its_exchange(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], column: str
) -> None:
    target = captured(tmp_path / "c.sqlite", [(CHAT, "plain")])
    with Capture.create_or_open(str(target), redaction="secrets") as capture:
        capture.save_facts([ServerFact(at_ns=1, path="/version", status=200, body=b'{"version": "0.32.0"}')])
    table = "fact" if column == "body" else "exchange"
    with sqlite3.connect(target) as database:
        database.execute(f"update blob set data = x'00' where id = (select {column} from {table})")
    database.close()
    assert run_verify(str(target), Options()) == 3
    out = capsys.readouterr().out
    assert "store: damaged, 1 stored pieces" in out
    assert f"({table} 1)" in out


def test_a_piece_that_is_gone_is_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = captured(tmp_path / "c.sqlite", [(CHAT, "plain")])
    with sqlite3.connect(target) as database:
        database.execute("delete from blob where id = (select response_content from exchange)")
    database.close()
    assert run_verify(str(target), Options()) == 3
    assert "(exchange 1): it is not there" in capsys.readouterr().out


def test_a_named_renderer_fails_hard_and_the_server_is_not_held_against_itself(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    target = str(captured(tmp_path / "c.sqlite", [(COMPLETIONS, "one")]))
    with pytest.raises(RenderFailed, match="exchange 1"):
        run_verify(target, Options(tokenizer=str(sample_tokenizer), renderer="jinja"))
    for renderer in ("server", "wire", "none"):
        with pytest.raises(click.UsageError):
            run_verify(target, Options(renderer=renderer))


def test_the_report_takes_the_servers_ids_and_says_where_it_could_not(tmp_path: Path) -> None:
    target = captured(tmp_path / "c.sqlite")
    with answering(as_recorded) as stub:
        made = locality("report", str(target), "--server", stub.url, "--format", "json")
        assert made.returncode == 0, made.stderr
        turns = json.loads(made.stdout)["turns"]
        assert {turn["token_source"] for turn in turns} == {"server"}
        assert {turn["rendering"] for turn in turns} == {"exact"}
        asked = {body for _, body in stub.asked}
        assert asked == {golden(f"{path}/render", name)["body"].encode() for path, name in AGREED}
    gone = locality("report", str(target), "--server", stub.url, "--renderer", "server")
    assert gone.returncode == 1 and "cannot be asked" in gone.stderr


def test_a_mismatch_lowers_what_the_report_claims(tmp_path: Path, sample_tokenizer: Path) -> None:
    target = captured(tmp_path / "c.sqlite", [(CHAT, "tools"), (COMPLETIONS, "one")])
    folder = other_template(sample_tokenizer, tmp_path / "other")
    text = locality("report", str(target), "--tokenizer", str(folder))
    assert text.returncode == 0
    said = " ".join(text.stdout.split())
    assert "1 of 2 renderings exact, 1 mismatched, 0 unchecked" in said
    assert "1 of 2 conversations resting on renderings that the server contradicts (!)" in said
    assert " 1.1! " in said and " 2.1 " in said
    report = json.loads(
        locality("report", str(target), "--tokenizer", str(folder), "--format", "json").stdout
    )
    assert report["summary"]["conversations_mismatch"] == 1
    assert [turn["conversation_rendering"] for turn in report["turns"]] == ["mismatch", "exact"]
    assert "prints tools otherwise" in report["turns"][0]["problem"]
