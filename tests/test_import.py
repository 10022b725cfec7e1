"""`locality import` from outside: what a file tells comes into the capture, what it lacks is said."""

from __future__ import annotations

import base64
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from store.db import Capture
from store.records import Exchange
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality

SAMPLES = Path(__file__).parent.parent / "samples" / "sessions"
KEY = "sk-ant-api03-Zx8Kq2Lm5Np7Rt9Vw1Yb3Cd6Ef8Gh0Jk2Lm4Np6Qr8St0UvAA"
BODY = {"model": "tiny", "messages": [{"role": "user", "content": "One?"}]}
ANSWER = {"usage": usage(12, 0), "choices": []}


def imported(file: Path, form: str, *options: str, code: int = 0) -> tuple[list[Exchange], str]:
    """The exchanges that an import made, and what it said."""
    capture = file.with_suffix(".sqlite")
    made = locality("import", str(file), "--format", form, "-o", str(capture), *options)
    assert made.returncode == code, made.stderr
    with Capture.open(str(capture)) as opened:
        return list(opened.exchanges()), made.stderr


def jsonl(folder: Path, *lines: Any) -> Path:
    file = folder / "bodies.jsonl"
    written = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    file.write_bytes(b"\n".join(written) + b"\n")
    return file


def har_entry(**changed: Any) -> dict[str, Any]:
    """An entry as a browser writes it."""
    entry = {
        "startedDateTime": "2026-03-02T08:00:00.250Z",
        "time": 130.5,
        "request": {
            "method": "POST",
            "url": "http://localhost:8000/v1/chat/completions?beta=true",
            "httpVersion": "HTTP/1.1",
            "headers": [{"name": "Content-Type", "value": "application/json"}],
            "queryString": [{"name": "beta", "value": "true"}],
            "cookies": [],
            "postData": {"mimeType": "application/json", "text": json.dumps(BODY)},
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            "status": 200,
            "statusText": "OK",
            "httpVersion": "HTTP/1.1",
            "headers": [
                {"name": "content-type", "value": "application/json"},
                {"name": "content-encoding", "value": "gzip"},
            ],
            "cookies": [],
            "content": {"size": 60, "mimeType": "application/json", "text": json.dumps(ANSWER)},
            "redirectURL": "",
            "headersSize": -1,
            "bodySize": -1,
        },
        "cache": {},
        "timings": {"blocked": 3, "dns": -1, "connect": 2, "send": 0.5, "wait": 100, "receive": 25},
    }
    return {**entry, **changed}


def har(folder: Path, *entries: Any) -> Path:
    file = folder / "session.har"
    archive = {"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "entries": entries}}
    file.write_text(json.dumps(archive), encoding="utf-8")
    return file


@pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "completions"])
def test_a_samples_dialect_is_told_from_its_shape_and_its_bytes_are_kept(
    dialect: str, tmp_path: Path
) -> None:
    body = json.loads((SAMPLES / f"{dialect}.json").read_text(encoding="utf-8"))
    line = json.dumps(body, ensure_ascii=False, indent=None).encode()
    ((exchange,), _) = imported(jsonl(tmp_path, line), "jsonl")
    paths = {
        "chat": "/v1/chat/completions",
        "messages": "/v1/messages",
        "responses": "/v1/responses",
        "completions": "/v1/completions",
    }
    assert exchange.path == paths[dialect]
    assert exchange.request.content == line
    assert (exchange.status, exchange.ended) == (None, "open")


def test_a_dialect_that_is_given_is_that_of_every_body(tmp_path: Path) -> None:
    ((exchange,), _) = imported(jsonl(tmp_path, BODY), "jsonl", "--dialect", "messages")
    assert exchange.path == "/v1/messages"
    made = locality(
        "import", str(tmp_path / "bodies.jsonl"), "--format", "jsonl", "-o", "x", "--dialect", "soap"
    )
    assert made.returncode == 2
    assert "there are chat, completions, messages, responses" in made.stderr


def test_an_envelope_tells_what_else_is_known(tmp_path: Path) -> None:
    envelope = {
        "body": ' {"prompt": "One?"}',
        "path": "/v1/completions?x=1",
        "response": ANSWER,
        "status": 201,
        "started_at": "2026-03-02T08:00:00.250Z",
        "duration_ms": 12.5,
    }
    stream = {
        "body": BODY,
        "response": 'data: {"usage": {"prompt_tokens": 7}}\n\ndata: [DONE]\n\n',
        "started_at": 1e9,
    }
    (streamed, whole), said = imported(jsonl(tmp_path, envelope, stream), "jsonl")
    assert whole.request.content == b' {"prompt": "One?"}'
    assert (whole.path, whole.query, whole.status) == ("/v1/completions", "x=1", 201)
    assert (whole.started_at_ns, whole.duration_ns) == (1772438400_250_000_000, 12_500_000)
    assert json.loads(whole.response.content) == ANSWER
    assert streamed.started_at_ns == 10**18
    assert ("content-type", "text/event-stream") in streamed.response_headers
    assert "made from the order" not in said


def test_a_batch_files_line_is_an_envelope(tmp_path: Path) -> None:
    # as vLLM 0.32 entrypoints/openai/run_batch.py (BatchRequestInput) has it
    line = {"custom_id": "r-1", "method": "POST", "url": "/v1/chat/completions", "body": {"messages": []}}
    ((exchange,), _) = imported(jsonl(tmp_path, line), "jsonl")
    assert (exchange.path, exchange.request.content) == ("/v1/chat/completions", b'{"messages":[]}')


def test_times_that_are_missing_are_made_from_the_order_and_said_here_and_by_exports(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    bodies = [{**BODY, "n": number} for number in (1, 2, 3)]
    exchanges, said = imported(jsonl(tmp_path, *bodies), "jsonl")
    assert [json.loads(item.request.content)["n"] for item in exchanges] == [1, 2, 3]
    assert len({item.started_at_ns for item in exchanges}) == 3
    assert "3 times are made from the order" in said
    arguments = ("--format", "mooncake", "--tokenizer", str(sample_tokenizer))
    assert "the times are made up" in locality("export", str(tmp_path / "bodies.sqlite"), *arguments).stderr


def test_lines_that_cannot_be_read_are_counted_with_their_place_and_the_others_kept(tmp_path: Path) -> None:
    file = jsonl(
        tmp_path,
        BODY,
        b'{"messages": [{"role": "user", "con',
        b"",
        b"[1]",
        {"model": "tiny"},
        {"body": BODY, "started_at": "noon of canary"},
        BODY,
    )
    exchanges, said = imported(file, "jsonl", code=1)
    assert len(exchanges) == 2
    for place in (
        "line 2: no JSON",
        "line 4: no JSON object",
        "line 5: no request body",
        "line 6: started_at",
    ):
        assert place in said
    assert "2 exchanges imported, 4 not read" in said
    assert "canary" not in said


def test_a_har_entry_comes_whole_without_what_its_encoding_no_longer_is(tmp_path: Path) -> None:
    ((exchange,), said) = imported(har(tmp_path, har_entry()), "har")
    assert (exchange.path, exchange.query) == ("/v1/chat/completions", "beta=true")
    assert json.loads(exchange.request.content) == BODY
    assert json.loads(exchange.response.content) == ANSWER
    assert exchange.response.problem is None
    assert "content-encoding" not in dict(exchange.response_headers)
    assert exchange.started_at_ns == 1772438400_255_000_000  # 5 ms until the connection was there
    assert (exchange.duration_ns, exchange.ttft_ns) == (125_500_000, None)
    assert "1 exchanges imported, 0 not read" in said


def test_a_har_of_a_whole_page_gives_the_exchanges_with_the_model_alone(tmp_path: Path) -> None:
    request = har_entry()["request"]
    page = har_entry(request={"method": "GET", "url": "http://localhost/index.html", "headers": []})
    beacon = har_entry(request={"method": "POST", "url": "http://localhost/seen", "headers": []})
    prefixed = har_entry(request={**request, "url": "https://example.org/team/v1/messages"})
    exchanges, said = imported(har(tmp_path, page, beacon, har_entry(), prefixed), "har")
    assert sorted(item.path for item in exchanges) == ["/v1/chat/completions", "/v1/messages"]
    assert "2 requests to other endpoints are left out" in said


def test_bodies_in_base64_and_answers_that_never_came_are_read(tmp_path: Path) -> None:
    encoded = {"encoding": "base64", "text": base64.b64encode(b"data: {}\n\n").decode()}
    failed = {"status": 0, "statusText": "", "headers": [], "content": {}, "_error": "net::ERR_FAILED"}
    whole = har_entry()["response"]
    file = har(tmp_path, har_entry(response={**whole, "content": encoded}), har_entry(response=failed))
    (first, second), said = imported(file, "har")
    assert first.response.content == b"data: {}\n\n"
    assert (second.status, second.ended, second.error) == (None, "reset", "net::ERR_FAILED")
    empty = har(tmp_path / "..", har_entry(response={**whole, "content": {"size": 9}}))
    (tmp_path / "../session.sqlite").unlink(missing_ok=True)
    _, said = imported(empty, "har")
    assert "1 exchanges are without an answer" in said


def test_a_har_that_breaks_off_keeps_what_is_readable(tmp_path: Path) -> None:
    file = har(tmp_path, har_entry(), har_entry(request={"method": "POST"}), har_entry(), har_entry())
    file.write_bytes(file.read_bytes()[:-700])
    exchanges, said = imported(file, "har", code=1)
    assert len(exchanges) == 2
    assert "entry 2: not as HAR 1.2 has it: KeyError has no 'url'" in said
    assert "entry 4: the file breaks off" in said


@pytest.mark.parametrize("part", range(20))
def test_no_cut_of_a_har_ends_in_a_traceback(tmp_path: Path, part: int) -> None:
    file = har(tmp_path, har_entry(), har_entry())
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) * part // 20])
    made = locality("import", str(file), "--format", "har", "-o", str(tmp_path / "c.sqlite"))
    assert made.returncode == 1
    assert "not read" in made.stderr


def test_a_har_without_request_bodies_says_so(tmp_path: Path) -> None:
    request = {key: value for key, value in har_entry()["request"].items() if key != "postData"}
    made = locality(
        "import", str(har(tmp_path, har_entry(request=request))), "--format", "har", "-o", str(tmp_path / "c")
    )
    assert made.returncode == 1
    assert "entry 1: the request's body is not in the file" in made.stderr
    assert not (tmp_path / "c").exists()


def test_secrets_never_reach_the_capture(tmp_path: Path) -> None:
    request = har_entry()["request"]
    secret = {**BODY, "messages": [{"role": "user", "content": f"My key is {KEY}."}]}
    headers = [{"name": "x-api-key", "value": KEY}, {"name": "cookie", "value": f"session={KEY}"}]
    entry = har_entry(
        request={
            **request,
            "url": f"http://u:{KEY}@localhost/v1/chat/completions?key={KEY}",
            "headers": headers,
            "postData": {"text": json.dumps(secret)},
        }
    )
    ((exchange,), said) = imported(har(tmp_path, entry), "har")
    assert b"My key is <secret:" in exchange.request.content
    assert exchange.request.secrets
    for path in tmp_path.glob("session.sqlite*"):
        assert KEY.encode() not in path.read_bytes()
    with sqlite3.connect(tmp_path / "session.sqlite") as raw:
        assert KEY not in "\n".join(raw.iterdump())
    raw.close()
    assert KEY not in said


def test_a_capture_that_is_there_is_not_touched(tmp_path: Path) -> None:
    there = write_capture(tmp_path / "c.sqlite", [Sent(body=BODY)])
    before = there.read_bytes()
    made = locality("import", str(jsonl(tmp_path, BODY)), "--format", "jsonl", "-o", str(there))
    assert made.returncode == 1
    assert "is there already" in made.stderr
    assert there.read_bytes() == before


def test_the_formats_are_listed_with_what_each_is() -> None:
    listed = locality("list", "imports").stdout.splitlines()
    assert sorted(line.split()[0] for line in listed) == ["har", "jsonl", "mitmproxy"]


def test_an_unknown_format_is_wrong_usage_that_names_the_known_ones(tmp_path: Path) -> None:
    made = locality("import", str(jsonl(tmp_path, BODY)), "--format", "csv", "-o", str(tmp_path / "c"))
    assert made.returncode == 2
    assert "har" in made.stderr
    assert "jsonl" in made.stderr
    assert "mitmproxy" in made.stderr


def test_a_file_of_another_kind_is_a_failure_that_makes_no_capture(tmp_path: Path) -> None:
    file = tmp_path / "other"
    for content in (b"", b"\x00\xff" * 40, b'{"log": {}}', b"[]"):
        file.write_bytes(content)
        for form in ("har", "mitmproxy", "jsonl"):
            made = locality("import", str(file), "--format", form, "-o", str(tmp_path / "c"))
            assert made.returncode == 1, (form, content)
            assert not (tmp_path / "c").exists()


def test_sessions_that_the_clients_headers_name_are_a_weka_traces(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    def asked(second: int, text: str, *headers: tuple[str, str]) -> dict[str, Any]:
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}]}
        request = {
            **har_entry()["request"],
            "headers": [{"name": name, "value": value} for name, value in headers],
            "postData": {"text": json.dumps(body)},
        }
        return har_entry(request=request, startedDateTime=f"2026-03-02T08:00:{second:02d}.000Z")

    # The child's answer comes after its parent's next request: times alone would not tell.
    main, child = ("x-session-id", "ses-main"), ("x-session-id", "ses-child")
    late = asked(2, "Look into the quay.", child, ("x-parent-session-id", "ses-main"))
    late["timings"] = {"send": 0, "wait": 9000, "receive": 0}
    imported(
        har(tmp_path, asked(1, "Close the berth.", main), late, asked(4, "Close the berth.", main)), "har"
    )
    arguments = ("--format", "weka", "--tokenizer", str(sample_tokenizer))
    made = locality("export", str(tmp_path / "session.sqlite"), *arguments)
    (session,) = map(json.loads, made.stdout.splitlines())
    assert [entry["type"] for entry in session["requests"]] == ["n", "subagent", "n"]
    assert "ses-" not in made.stdout + made.stderr


def without_times(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what a file of bodies and answers does not tell: when the first bytes came."""
    for turn in report["turns"]:
        for key in ("ttft_ms", "first_token_ms"):
            del turn[key]
        for finding in turn["findings"]:
            del finding["seconds"]
    for cause in report["summary"]["causes"]:
        del cause["seconds"]
    del report["summary"]["prefill_rate"]
    return report


@pytest.mark.parametrize("form", ["jsonl", "har"])
def test_a_capture_written_out_and_imported_again_gives_the_same_report(
    form: str, tmp_path: Path, sample_tokenizer: Path
) -> None:
    from tests.test_export import session

    turns = [Sent(body=sent.body, usage=usage(900 + at, 16 * at)) for at, sent in enumerate(session(4))]
    changed = json.loads(json.dumps(turns[3].body).replace("High water", "Low water"))
    first = write_capture(tmp_path / "first.sqlite", [*turns, Sent(body=changed, usage=usage(950, 0))])
    with Capture.open(str(first)) as capture:
        exchanges = list(capture.exchanges())
        facts = capture.facts()
    file = (
        jsonl(tmp_path, *map(_line, exchanges)) if form == "jsonl" else har(tmp_path, *map(_entry, exchanges))
    )
    second = file.with_suffix(".sqlite")
    assert locality("import", str(file), "--format", form, "-o", str(second)).returncode == 0
    with Capture.create_or_open(str(second), redaction="secrets") as capture:
        capture.save_facts(facts)
    reports = [
        without_times(
            json.loads(
                locality("report", str(path), "--tokenizer", str(sample_tokenizer), "--format", "json").stdout
            )
        )
        for path in (first, second)
    ]
    assert reports[0]["summary"]["reusable_prefix_pct"] > 50
    assert reports[1] == reports[0]


def _line(exchange: Exchange) -> dict[str, Any]:
    assert exchange.duration_ns is not None
    return {
        "body": exchange.request.content.decode(),
        "path": exchange.path,
        "response": exchange.response.content.decode(),
        "started_at": exchange.started_at_ns / 1e9,
        "duration_ms": exchange.duration_ns / 1e6,
    }


def _entry(exchange: Exchange) -> dict[str, Any]:
    assert exchange.duration_ns is not None
    entry = har_entry(
        startedDateTime=f"2023-11-14T22:13:{20 + exchange.id:02d}.000Z",
        timings={"send": 0, "wait": exchange.duration_ns / 1e6, "receive": 0},
    )
    entry["request"]["postData"] = {"text": exchange.request.content.decode()}
    entry["response"]["content"] = {"text": exchange.response.content.decode()}
    return entry
