"""The command line from outside: exit statuses, where output goes, and what an error tells to do next."""

from __future__ import annotations

import io
import json
import socket
import sqlite3
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from analyzer import cli, reporting
from store.db import Capture
from store.records import Chunk, RequestSeen, ResponseSeen, ServerFact
from tests.conftest import locality, process

NO_UPSTREAM = "http://127.0.0.1:9"


def record(capture: Capture, number: int, body: bytes, *, status: int = 200, answer: bytes = b"{}") -> None:
    """One finished chat exchange."""
    key = f"k{number}"
    capture.save_request(
        RequestSeen(
            key=key,
            started_at_ns=1_700_000_000_000_000_000 + number * 10**9,
            method="POST",
            path="/v1/chat/completions",
            query="",
            headers=(("content-type", "application/json"),),
            body=body,
        )
    )
    capture.save_response(
        ResponseSeen(
            key=key,
            status=status,
            headers=(("content-type", "application/json"),),
            body=answer,
            chunks=(Chunk(byte_end=len(answer), at_ns=5_000_000),),
            ttft_ns=5_000_000,
            duration_ns=6_000_000,
            ended="complete",
            error=None,
        )
    )


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Five exchanges: two good turns, a refusal, a body that is not JSON, and one of another shape."""
    path = tmp_path / "c.sqlite"
    first = {"model": "m", "messages": [{"role": "user", "content": "one"}]}
    second = {**first, "messages": [*first["messages"], {"role": "assistant", "content": "ok"}]}
    with Capture.create_or_open(str(path), redaction="secrets") as made:
        record(made, 1, json.dumps(first).encode())
        record(made, 2, b"{not json")
        record(made, 3, json.dumps(first).encode(), status=400, answer=b'{"error": {"message": "too long"}}')
        record(made, 4, b'{"messages": 7}')
        record(made, 5, json.dumps(second).encode())
    return path


def rows(path: Path, *options: str) -> list[dict[str, object]]:
    made = locality("report", str(path), "--format", "json", *options)
    assert made.returncode == 0, made.stderr
    turns: list[dict[str, object]] = json.loads(made.stdout)["turns"]
    return turns


def test_what_cannot_be_read_is_a_row_that_says_why(capture: Path, sample_tokenizer: Path) -> None:
    told = rows(capture, "--tokenizer", str(sample_tokenizer))
    assert [row["id"] for row in told] == [1, 2, 3, 4, 5]
    assert [row["prompt_tokens"] is None for row in told] == [False, True, True, True, False]
    assert "not JSON" in str(told[1]["problem"])
    assert (told[2]["status"], told[2]["problem"]) == (400, "too long")
    assert "no list of messages" in str(told[3]["problem"])
    assert told[4]["parent"] == 1


def test_a_server_that_reports_nothing_leaves_nulls_and_not_zeros(
    capture: Path, sample_tokenizer: Path
) -> None:
    row = rows(capture, "--tokenizer", str(sample_tokenizer))[0]
    assert row["reported_prompt_tokens"] is None
    assert row["reported_cached_tokens"] is None
    assert (row["rendering"], row["cache"]) == ("unchecked", "not_reported")


def test_without_a_tokenizer_the_report_says_what_to_give_and_fails(capture: Path) -> None:
    made = locality("report", str(capture), "--format", "json")
    assert made.returncode == 1
    assert "--tokenizer DIR" in made.stderr
    told = json.loads(made.stdout)
    assert told["summary"]["rendered"] == 0
    assert len(told["turns"]) == 5
    assert told["summary"]["reusable_prefix_pct"] is None


def test_a_template_that_raises_is_a_sentence_on_its_row(
    capture: Path, tmp_path: Path, sample_tokenizer: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "tokenizer.json").symlink_to(sample_tokenizer / "tokenizer.json")
    (broken / "chat_template.jinja").write_text("{{ raise_exception('no users here') }}")
    told = rows(capture, "--tokenizer", str(broken))
    assert "no users here" in str(told[0]["problem"])
    assert told[0]["prompt_tokens"] is None


def test_a_named_renderer_that_cannot_render_fails_hard(capture: Path, sample_tokenizer: Path) -> None:
    made = locality("report", str(capture), "--renderer", "wire", "--tokenizer", str(sample_tokenizer))
    assert made.returncode == 1
    assert "return_token_ids" in made.stderr
    assert made.stdout == ""


def test_the_block_size_is_the_users_then_the_servers_then_an_assumption(
    capture: Path, sample_tokenizer: Path
) -> None:
    def sizes(*options: str) -> tuple[int, list[str]]:
        made = locality(
            "report", str(capture), "--format", "json", "--tokenizer", str(sample_tokenizer), *options
        )
        server = json.loads(made.stdout)["server"]
        return server["block_size"], server["assumed"]

    size, assumed = sizes()
    assert size == 16 and "block_size 16" in assumed[0]
    metrics = b'vllm:cache_config_info{block_size="32",num_gpu_blocks="None"} 1.0'
    with Capture.create_or_open(str(capture), redaction="secrets") as made:
        made.save_facts([ServerFact(at_ns=1, path="/metrics", status=200, body=metrics)])
    size, assumed = sizes()
    assert size == 32 and not any("block_size" in item for item in assumed)
    assert sizes("--block-size", "64")[0] == 64


def test_a_report_goes_to_a_file_when_asked(capture: Path, tmp_path: Path, sample_tokenizer: Path) -> None:
    target = tmp_path / "r.json"
    made = locality(
        "report", str(capture), "--format", "json", "-o", str(target), "--tokenizer", str(sample_tokenizer)
    )
    assert (made.returncode, made.stdout) == (0, "")
    assert json.loads(target.read_text())["schema"] == "locality-report/1"


def test_an_empty_capture_is_reported_as_empty(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    Capture.create_or_open(str(path), redaction="secrets").close()
    made = locality("report", str(path))
    assert made.returncode == 0
    assert made.stdout.startswith("0 exchanges, 0 conversations: nothing rendered to compare\n")


def test_the_opening_lines_are_a_line_each_however_narrow_the_output(
    capture: Path, sample_tokenizer: Path
) -> None:
    for columns in ("60", "1", "200", "nonsense"):
        made = locality("report", str(capture), "--tokenizer", str(sample_tokenizer), COLUMNS=columns)
        lines = made.stdout.split("\n")
        assert lines[0].startswith("5 exchanges, 1 conversation: ")
        assert "over 1 turn with a parent" in lines[0]
        assert lines[1].startswith("checked against the server: ")
        assert lines[1].endswith("predicted exactly")
        assert lines[2].startswith("server version not known")
    assert max(map(len, locality("report", str(capture), COLUMNS="70").stdout.split("\n")[3:])) <= 70


def test_ctrl_c_is_one_line_and_130(monkeypatch: pytest.MonkeyPatch, capture: Path) -> None:
    def interrupted(*given: object, **named: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(reporting, "run_report", interrupted)
    made = CliRunner().invoke(cli.main, ["report", str(capture)])
    assert (made.exit_code, made.stdout, made.stderr) == (130, "", "locality: interrupted\n")


@pytest.mark.parametrize("quiet", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}], ids=str)
def test_no_progress_is_drawn_where_it_cannot_be_drawn_again(
    monkeypatch: pytest.MonkeyPatch, quiet: dict[str, str]
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in quiet.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with reporting.ProgressBar() as progress:
        progress(1, 2)
    assert bool(terminal.getvalue()) is not bool(quiet)


def other_database(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("create table a (b)")
    connection.close()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no capture at"),
        (lambda path: path.write_text("hello"), "not a capture"),
        (lambda path: path.touch(), "empty database"),
        (lambda path: path.mkdir(), "is a folder"),
        (other_database, "not a locality capture"),
    ],
    ids=["missing", "text", "empty", "folder", "other database"],
)
def test_a_file_that_is_no_capture_is_refused_with_the_reason(
    tmp_path: Path, make: object, said: str
) -> None:
    assert callable(make)
    make(tmp_path / "c")
    made = locality("report", str(tmp_path / "c"))
    assert made.returncode == 1
    assert said in made.stderr
    assert "Traceback" not in made.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("report",),
        ("report", "c", "--block-size", "0"),
        ("report", "c", "--tolerance", "-1"),
        ("report", "c", "--baseline", "none.json"),
        ("show", "c"),
        ("show", "c", "seven"),
        ("show", "c", "7", "--format", "html"),
        ("compare", "c"),
        ("report", "c", "--no-such-option"),
        ("proxy", "--upstream", "not-a-url"),
        ("proxy", "--upstream", NO_UPSTREAM, "--listen", "nowhere"),
        ("run", "--upstream", NO_UPSTREAM),
        ("list", "nothing"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_two(arguments: tuple[str, ...]) -> None:
    # A proxy's options are read by what runs it, which takes mitmproxy along.
    made = process(*arguments) if "--upstream" in arguments else locality(*arguments)
    assert made.returncode == 2
    assert "Error: " in made.stderr


def test_an_unknown_renderer_or_format_is_wrong_usage_and_lists_what_there_is(capture: Path) -> None:
    for option in ("--renderer", "--format"):
        made = locality("report", str(capture), option, "nope")
        assert made.returncode == 2
        assert "there are" in made.stderr


def test_a_capture_that_cannot_be_written_stops_the_proxy_before_it_starts(tmp_path: Path) -> None:
    made = process("proxy", "--upstream", NO_UPSTREAM, "--capture", str(tmp_path / "none" / "c.sqlite"))
    assert made.returncode == 1
    assert "listening" not in made.stderr
    assert "create the folder first" in made.stderr


def test_a_port_that_is_taken_is_told_with_the_option_to_change(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        made = process(
            "proxy", "--upstream", NO_UPSTREAM, "--capture", str(tmp_path / "c.sqlite"), "--listen", listen
        )
    assert made.returncode == 1
    assert f"cannot listen on {listen}" in made.stderr
    assert "address already in use; choose another with --listen" in made.stderr


def test_an_upstream_that_is_not_up_is_told_at_once_and_the_command_still_runs(tmp_path: Path) -> None:
    made = process("run", "--upstream", NO_UPSTREAM, "--capture", str(tmp_path / "c.sqlite"), "--", "true")
    assert made.returncode == 0
    assert "does not answer" in made.stderr


def test_a_command_that_cannot_be_started_has_the_shells_status(tmp_path: Path) -> None:
    made = process(
        "run", "--upstream", NO_UPSTREAM, "--capture", str(tmp_path / "c.sqlite"), "--", "no-such-cmd"
    )
    assert made.returncode == 127
    assert "cannot start no-such-cmd" in made.stderr


@pytest.mark.parametrize("command", ["proxy", "run", "report", "show", "compare", "verify", "list"])
def test_every_command_explains_itself(command: str) -> None:
    made = locality(command, "--help")
    assert made.returncode == 0
    assert len(made.stdout.split("\n")) > 5


@pytest.mark.parametrize("what", ["renderers", "dialects", "engines", "causes", "reports"])
def test_the_plug_ins_are_listed_with_their_purpose(what: str) -> None:
    made = locality("list", what)
    lines = made.stdout.strip().split("\n")
    assert lines
    assert all(len(line.split(maxsplit=1)) == 2 for line in lines)


def test_the_engines_are_three() -> None:
    names = [line.split()[0] for line in locality("list", "engines").stdout.strip().split("\n")]
    assert names == ["llama_cpp", "sglang", "vllm"]
