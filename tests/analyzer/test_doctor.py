"""What a server reveals is told from its answers: those of vLLM 0.32, started with other flags each time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from analyzer.clients import CLIENTS
from analyzer.doctor_answers import STREAM, Answers
from analyzer.doctor_checks import VLLM, Result, examined, lacking
from analyzer.doctor_env import detours, read_variables
from analyzer.doctor_others import CHECKS, LLAMA_CPP, SGLANG, UNNAMED
from analyzer.registry import plugins
from analyzer.servers import read_profile
from store.records import ServerFact

GOLDEN = Path(__file__).parent.parent / "golden" / "doctor"
PROXY = "http://127.0.0.1:8900"


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((GOLDEN / f"vllm_{name}.json").read_text(encoding="utf-8"))
    return found


def answers_of(told: dict[str, tuple[int | None, str]], **known: Any) -> Answers:
    facts = {
        key: ServerFact(
            at_ns=1, path="/v1/chat/completions" if key == STREAM else key, status=status, body=body.encode()
        )
        for key, (status, body) in told.items()
    }
    return Answers(facts=facts, profile=read_profile(facts.values()), **known)


def vllm(name: str, **known: Any) -> dict[str, Result]:
    """What the checks see in the answers of a real server; its tokenizer is on this machine, unless said."""
    rows = recorded(name)["answers"]
    usual = {"tokenizer": "/models/tiny"} | known
    told = {key: (row["status"], row["body"]) for key, row in rows.items()}
    return {item.check.name: item for item in examined(answers_of(told, **usual), VLLM)}


def states(results: dict[str, Result], state: str) -> set[str]:
    return {name for name, item in results.items() if item.seen.state == state}


def test_of_a_server_with_every_flag_only_its_start_line_is_not_known() -> None:
    results = vllm("revealing")
    assert states(results, "unknown") == {"start_line"}
    assert states(results, "found") == set(results) - {"start_line"}
    assert lacking(list(results.values())) == ()


def test_a_server_with_no_flags_hides_what_flags_reveal() -> None:
    results = vllm("default")
    assert states(results, "hidden") == {"chat_template", "render", "cached_tokens", "stream_usage"}
    assert [item.check.name for item in lacking(list(results.values()))] == ["cached_tokens"]
    assert "32 tokens" in results["block_size"].seen.told
    assert "sha256" in results["hash_algorithm"].seen.told


@pytest.mark.parametrize("name", ["chat_template", "render", "cached_tokens", "stream_usage"])
def test_the_flag_that_is_named_is_one_that_the_revealing_server_was_started_with(name: str) -> None:
    remedy = vllm("default")[name].check.remedy
    named = [word.strip(",;") for word in remedy.split() if word.startswith("--")]
    assert named[0] in recorded("revealing")["started_with"]
    assert named[0] not in recorded("default")["started_with"]


def test_without_statistics_the_cache_is_hidden_and_the_flag_is_named() -> None:
    results = vllm("closed", tokenizer=None, missing="no tokenizer: it did not say")
    hidden = {"prefix_caching", "block_size", "pool_blocks", "hash_algorithm", "counters"}
    assert hidden <= states(results, "hidden")
    assert "--disable-log-stats" in recorded("closed")["started_with"]
    assert all("--disable-log-stats" in results[name].check.remedy for name in hidden)


def test_what_asks_for_a_key_is_not_known_rather_than_hidden() -> None:
    results = vllm("closed", tokenizer=None, missing="no tokenizer: it did not say")
    assert {"model", "tokenizer", "cached_tokens"} <= states(results, "unknown")
    assert "API key" in results["model"].seen.told


def test_caching_that_is_off_is_in_the_reports_way() -> None:
    results = vllm("off")
    assert results["prefix_caching"].seen.state == "wrong"
    assert "prefix_caching" in {item.check.name for item in lacking(list(results.values()))}


def test_without_a_probe_what_only_an_answer_tells_is_not_known() -> None:
    rows = recorded("revealing")["answers"]
    told = {
        key: (row["status"], row["body"])
        for key, row in rows.items()
        if key not in ("/v1/chat/completions", STREAM)
    }
    found = {item.check.name: item for item in examined(answers_of(told, tokenizer="/t"), VLLM)}
    assert {"cached_tokens", "token_ids", "stream_usage"} <= states(found, "unknown")
    assert "--probe" in found["cached_tokens"].seen.told


def test_another_template_than_the_folder_holds_is_said() -> None:
    own = json.loads(recorded("revealing")["answers"]["/tokenizer_info"]["body"])["chat_template"]
    assert vllm("revealing", templates={"default": own})["chat_template"].seen.state == "found"
    assert vllm("revealing", templates={"default": "another"})["chat_template"].seen.state == "wrong"


def test_a_tokenizer_that_is_not_on_this_machine_is_lacking() -> None:
    results = vllm(
        "default", tokenizer=None, missing="no tokenizer: the server loaded /m, which is not here; x"
    )
    assert results["tokenizer"].seen.state == "hidden"
    assert results["tokenizer"].seen.told == "the server loaded /m, which is not here"


def test_every_kind_of_server_has_checks_that_end_with_what_nobody_tells() -> None:
    assert CHECKS.keys() == plugins("engines").keys()
    for checks in (*CHECKS.values(), UNNAMED):
        assert checks[-1].name == "start_line"
        assert len({check.name for check in checks}) == len(checks)
        assert {"tokenizer", "cached_tokens"} <= {check.name for check in checks if check.needed}


def test_sglang_names_its_own_flags_and_reads_its_own_gauges() -> None:
    models = json.dumps({"data": [{"id": "m", "owned_by": "sglang", "root": "/m"}]})
    metrics = "sglang:page_size 64\nsglang:num_pages 100\n"
    answers = answers_of({"/v1/models": (200, models), "/metrics": (200, metrics)}, tokenizer="/m")
    found = {item.check.name: item for item in examined(answers, SGLANG)}
    assert "64" in found["block_size"].seen.told and "100" in found["num_gpu_blocks"].seen.told
    assert found["cached_tokens"].check.remedy == "--enable-cache-report"
    hidden = examined(answers_of({"/v1/models": (200, models), "/metrics": (404, "")}), SGLANG)
    page = next(item for item in hidden if item.check.name == "block_size")
    assert page.seen.state == "hidden" and "--enable-metrics" in page.check.remedy


def test_llama_cpp_tells_its_slots_and_template_in_its_properties() -> None:
    props = json.dumps({"total_slots": 4, "chat_template": "{{ x }}"})
    found = {item.check.name: item for item in examined(answers_of({"/props": (200, props)}), LLAMA_CPP)}
    assert found["slots"].seen.told == "4 slots"
    assert found["chat_template"].seen.state == "found"


@pytest.mark.parametrize(
    ("variables", "where", "problem"),
    [
        ({"OPENAI_BASE_URL": f"{PROXY}/v1"}, "proxy", None),
        ({"OPENAI_BASE_URL": "http://localhost:8900/v1/"}, "proxy", None),
        ({"OPENAI_BASE_URL": PROXY}, "proxy", "does not end in /v1"),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:8000/v1"}, "server", None),
        ({"OPENAI_BASE_URL": "https://api.example.com/v1"}, "elsewhere", None),
        ({"OPENAI_BASE_URL": "127.0.0.1:8900"}, "elsewhere", "no http(s) address"),
        ({"ANTHROPIC_BASE_URL": PROXY}, "proxy", None),
        ({"ANTHROPIC_BASE_URL": f"{PROXY}/v1"}, "proxy", "ends in /v1, which clients add themselves"),
        ({}, "unset", None),
    ],
)
def test_a_variable_leads_somewhere(variables: dict[str, str], where: str, problem: str | None) -> None:
    name = next(iter(variables), "OPENAI_BASE_URL")
    found = {
        item.name: item for item in read_variables(variables, proxy=PROXY, server="http://127.0.0.1:8000")
    }
    assert (found[name].where, found[name].problem) == (where, problem)
    assert {item.where for other, item in found.items() if other != name} == {"unset"}


def test_an_address_is_shown_without_its_credentials() -> None:
    value = "https://user:hunter2@host.example/v1?key=hunter2"
    (shown, *_) = read_variables({"OPENAI_BASE_URL": value}, proxy=None, server=None)
    assert shown.url == "https://host.example/v1"


@pytest.mark.parametrize(
    ("environ", "warned"),
    [
        ({"http_proxy": "http://p:3128"}, True),
        ({"HTTPS_PROXY": "http://p:3128", "NO_PROXY": "example.com"}, True),
        ({"http_proxy": "http://p:3128", "no_proxy": "localhost, 127.0.0.1"}, False),
        ({"http_proxy": "http://p:3128", "NO_PROXY": "*"}, False),
        ({}, False),
    ],
)
def test_a_detour_over_another_proxy_is_warned_of(environ: dict[str, str], warned: bool) -> None:
    said = detours(environ, PROXY)
    assert bool(said) is warned
    assert all("NO_PROXY" in sentence and str(urlsplit(PROXY).hostname) in sentence for sentence in said)


def test_every_client_has_an_example_with_a_place_for_the_address() -> None:
    assert all("{url}" in client.example and client.reads for client in CLIENTS)
