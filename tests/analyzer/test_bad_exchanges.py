"""One bad exchange is a sentence on its row, and the rows around it stand: in process, over captures."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from analyzer import accounting
from analyzer.chat_template import ChatTemplate, TemplateFailed
from analyzer.divergences import DivergenceFinder, Pair
from analyzer.pipeline import Options, analyze
from analyzer.registry import plugins
from analyzer.renderers import RenderFailed
from analyzer.report import Report
from analyzer.reporting import run_report
from store.db import Capture
from store.records import Chunk, RequestSeen, ResponseSeen

CHAT, COMPLETIONS, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/messages"


def record(capture: Capture, number: int, path: str, body: bytes, answer: bytes = b"{}") -> None:
    kind = (("content-type", "application/json"),)
    capture.save_request(
        RequestSeen(
            key=f"k{number}",
            started_at_ns=1_700_000_000_000_000_000 + number * 10**9,
            method="POST",
            path=path,
            query="",
            headers=kind,
            body=body,
        )
    )
    capture.save_response(
        ResponseSeen(
            key=f"k{number}",
            status=200,
            headers=kind,
            body=answer,
            chunks=(Chunk(byte_end=len(answer), at_ns=5_000_000),),
            ttft_ns=5_000_000,
            duration_ns=6_000_000,
            ended="complete",
            error=None,
        )
    )


def user(content: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}]}


def calls(value: Any) -> dict[str, Any]:
    said = {"role": "assistant", "content": "x", "tool_calls": value}
    return {"model": "m", "messages": [*user("hello")["messages"], said]}


def around(path: Path, endpoint: str, body: bytes, answer: bytes = b"{}") -> Path:
    """A capture of three exchanges: two good turns with a strange one between them."""
    first, target = user("one"), path / "c.sqlite"
    second = {**first, "messages": [*first["messages"], {"role": "assistant", "content": "ok"}]}
    with Capture.create_or_open(str(target), redaction="secrets") as made:
        record(made, 1, CHAT, json.dumps(first).encode())
        record(made, 2, endpoint, body, answer)
        record(made, 3, CHAT, json.dumps(second).encode())
    return target


def reported(target: Path, tokenizer: Path, **options: Any) -> Report:
    with Capture.open(str(target)) as capture:
        return analyze(capture, Options(tokenizer=str(tokenizer), **options)).report


def good_rows_stand(report: Report) -> None:
    first, last = report.turns[0], report.turns[-1]
    assert first.prompt_tokens and last.prompt_tokens
    assert (first.problem, last.problem, last.parent) == (None, None, 1)
    assert first.predicted_cached_tokens is not None
    for form in plugins("reports").values():
        assert form.format(report, width=None, color=False)


DEEP = "[" * 5000 + "]" * 5000
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": DEEP}}


@pytest.mark.parametrize(
    ("endpoint", "body", "said"),
    [
        (CHAT, user("a\ud800b"), "UnicodeEncodeError"),
        (CHAT, user(5), "neither text nor a list"),
        (CHAT, user(float("nan")), "neither text nor a list"),
        (CHAT, calls([CALL]), "nested too deeply"),
        (CHAT, calls({"a": 1}), "not a function call"),
        (CHAT, calls("abc"), "not a function call"),
        (CHAT, calls([1, 2]), "not a function call"),
        (CHAT, calls(7), "TypeError"),
        (CHAT, user([{"type": "image_url", "image_url": {"url": "x"}}]), "only text can be rendered"),
        (CHAT, {"messages": []}, "the body has no messages"),
        (MESSAGES, {"messages": []}, "the body has no messages"),
        (COMPLETIONS, {"prompt": ""}, "neither text"),
        (COMPLETIONS, {"prompt": []}, "neither text"),
        (COMPLETIONS, {"prompt": [""], "add_special_tokens": False}, "no tokens"),
        (COMPLETIONS, {"prompt": [-1, 2**40]}, "neither text"),
        (COMPLETIONS, {"prompt": [2**31]}, "neither text"),
        (COMPLETIONS, {"prompt": [float("inf")]}, "neither text"),
        (COMPLETIONS, {"prompt": "a", "truncate_prompt_tokens": "x"}, "not a whole number"),
    ],
)
def test_a_body_that_cannot_be_rendered_is_a_sentence_on_its_row(
    tmp_path: Path, sample_tokenizer: Path, endpoint: str, body: Any, said: str
) -> None:
    report = reported(around(tmp_path, endpoint, json.dumps(body).encode()), sample_tokenizer)
    assert said in str(report.turns[1].problem)
    assert report.turns[1].prompt_tokens is None
    good_rows_stand(report)


def test_a_body_nested_too_deeply_is_told_as_that_and_not_as_no_json(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    deep = b'{"messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    report = reported(around(tmp_path, CHAT, deep), sample_tokenizer)
    assert report.turns[1].problem == "the body is nested too deeply to be read"
    good_rows_stand(report)


@pytest.mark.parametrize("ids", [[10**30], [-1], [2**31], [True], ["1"], [1.5], 7])
@pytest.mark.parametrize("key", ["prompt_token_ids", "token_ids"])
def test_ids_that_no_vocabulary_has_are_not_taken_for_the_servers(
    tmp_path: Path, sample_tokenizer: Path, ids: Any, key: str
) -> None:
    answer = {"choices": [{"index": "x", key: ids}], "prompt_token_ids": ids}
    target = around(tmp_path, CHAT, json.dumps(user("two")).encode(), json.dumps(answer).encode())
    report = reported(target, sample_tokenizer)
    assert report.turns[1].token_source == "jinja"
    good_rows_stand(report)


@pytest.mark.parametrize("count", [-1, 10**400, True, "12", 1.5, [], {}, 2**53])
def test_a_count_that_is_none_is_not_known(tmp_path: Path, sample_tokenizer: Path, count: Any) -> None:
    details = {"cached_tokens": count}
    usage = {"prompt_tokens": count, "completion_tokens": count, "prompt_tokens_details": details}
    answer = json.dumps({"choices": [], "usage": usage}).encode()
    report = reported(around(tmp_path, CHAT, json.dumps(user("two")).encode(), answer), sample_tokenizer)
    row = report.turns[1]
    assert (row.reported_prompt_tokens, row.reported_cached_tokens) == (None, None)
    good_rows_stand(report)


@pytest.mark.parametrize("pool", [None, 8])
def test_more_generated_tokens_than_any_pool_holds_do_not_stop_the_prediction(
    tmp_path: Path, sample_tokenizer: Path, pool: int | None
) -> None:
    answer = json.dumps({"choices": [], "usage": {"completion_tokens": 2**53 - 1}}).encode()
    target = around(tmp_path, CHAT, json.dumps(user("two")).encode(), answer)
    good_rows_stand(reported(target, sample_tokenizer, pool_blocks=pool))


@pytest.mark.parametrize(
    ("broken", "said"),
    [("analyzer.prompts.traits_of", "not read"), ("analyzer.lineage.Lineage.place", "not placed")],
)
def test_a_fault_nobody_foresaw_is_a_sentence_on_every_row_it_hits(
    tmp_path: Path, sample_tokenizer: Path, monkeypatch: pytest.MonkeyPatch, broken: str, said: str
) -> None:
    def fails(*given: Any, **named: Any) -> Any:
        raise ArithmeticError("nobody foresaw it")

    monkeypatch.setattr(broken, fails)
    report = reported(around(tmp_path, CHAT, json.dumps(user("x")).encode()), sample_tokenizer)
    assert [turn.problem for turn in report.turns] == [f"{said}: ArithmeticError: nobody foresaw it"] * 3


def test_a_comparison_that_fails_leaves_the_token_and_says_why() -> None:
    def read_again(key: tuple[int, int], body: Any) -> Any:
        raise IndexError("gone")

    parent_ids, child_ids = np.arange(50, dtype=np.int32), np.arange(40, dtype=np.int32)
    pair = Pair(parent=(1, 0), child=(2, 0), parent_ids=parent_ids, child_ids=child_ids)
    parting = DivergenceFinder(read_again, 16).find(pair)
    assert parting.divergence is not None
    assert (parting.append, parting.divergence.token, parting.divergence.block) == (False, 40, 2)
    assert parting.problem == "not compared with 1: IndexError: gone"


def test_a_named_renderer_fails_hard_whatever_it_stumbles_over(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    target = around(tmp_path, CHAT, json.dumps(user("a\ud800b")).encode())
    with pytest.raises(RenderFailed, match=r"exchange 2: .*UnicodeEncodeError"):
        reported(target, sample_tokenizer, renderer="jinja")


@pytest.mark.parametrize(
    "wrong",
    [{"renderer": "nope"}, {"server": "ftp://x"}, {"serve_command": "ls -l"}, {"server": "http://h:x"}],
)
def test_only_what_a_user_typed_is_wrong_usage(tmp_path: Path, wrong: dict[str, Any]) -> None:
    target = around(tmp_path, CHAT, b"{}")
    with pytest.raises(click.UsageError):
        run_report(str(target), Options(**wrong), form="text", output=None)


def test_an_error_of_the_analysis_is_not_shown_as_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> Any:
        raise ValueError("a fault")

    monkeypatch.setattr(accounting, "summarise", fails)
    with pytest.raises(ValueError, match="a fault"):
        run_report(str(around(tmp_path, CHAT, b"{}")), Options(), form="text", output=None)


def test_half_a_surrogate_pair_in_a_name_is_written_as_json_escapes_it(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    target = around(tmp_path, CHAT, json.dumps({**user("x"), "model": "\ud800"}).encode())
    written = tmp_path / "r.json"
    options = Options(tokenizer=str(sample_tokenizer))
    assert run_report(str(target), options, form="json", output=written) == 0
    assert json.loads(written.read_text())["turns"][1]["model"] == "\ud800"


def test_a_template_that_ran_over_its_time_is_not_run_again() -> None:
    loop = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}"
    template = ChatTemplate(loop, max_seconds=0.05)
    with pytest.raises(TemplateFailed, match="longer than allowed") as first:
        template.render(messages=[], clock=datetime.min)
    template._limits = (60.0, 1)
    for render in (template.render, template.render_sourced):
        with pytest.raises(TemplateFailed) as again:
            render(messages=[], clock=datetime.min)
        assert str(again.value) == str(first.value)
