"""What every export format keeps to, and what each says of sessions, lengths and times."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from analyzer.exports import Exported, ExportForm, Trace
from analyzer.registry import plugins
from tests.analyzer.traces import SECOND, made, trace

FORMS: dict[str, ExportForm] = plugins("exports")
BLOCK_SIZES = {"mooncake": 512, "bailian": 16, "weka": 64}
"""The formats that number blocks, with the size each has everywhere: for Mooncake and Bailian as vLLM 0.32's
help of --timed-trace-chunk-hash-size has it, for Weka as kv-cache-tester docs/trace_replay_tester.md."""


def export(name: str, *rows: Any) -> Exported:
    return FORMS[name].export(trace(*rows))


def shapes(exported: Exported) -> list[dict[str, Any]]:
    return [json.loads(part) for part in exported.parts]


def requests(name: str, exported: Exported) -> list[dict[str, Any]]:
    """The requests of a block format in their order, under Mooncake's names."""
    read = shapes(exported)
    if name != "weka":
        return read
    return [{"input_length": item["in"], **item} for session in read for item in session["requests"]]


def common(a: list[int], b: list[int]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


@pytest.mark.parametrize("name", FORMS)
def test_a_format_is_found_by_its_name_and_described(name: str) -> None:
    assert FORMS[name].name == name
    assert (type(FORMS[name]).__doc__ or "").split("\n")[0].endswith(".")


@pytest.mark.parametrize("name", FORMS)
def test_a_capture_of_nothing_gives_nothing(name: str) -> None:
    exported = FORMS[name].export(Trace(rows=(), engine="vllm"))
    assert (exported.parts, exported.rows) == ((), 0)


@pytest.mark.parametrize("name", FORMS)
def test_a_part_is_one_line_of_ascii_json(name: str) -> None:
    for part in export(name, made(1, list(range(700)), model="größe\n")).parts:
        assert part.isascii()
        assert "\n" not in part
        json.loads(part)


@pytest.mark.parametrize("name", BLOCK_SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_two_prompts_share_numbers_as_far_as_they_share_whole_blocks_and_no_further(
    name: str, seed: int
) -> None:
    rng, size = random.Random(seed), BLOCK_SIZES[name]
    prompts = [[rng.randrange(9) for _ in range(size * 3 + 5)]]
    for _ in range(20):
        kept = rng.choice(prompts)
        prompts.append(
            kept[: rng.randrange(len(kept))] + [rng.randrange(9) for _ in range(rng.randrange(1, 3 * size))]
        )
    rows = [made(at, tokens) for at, tokens in enumerate(prompts, start=1)]
    read = requests(name, export(name, *rows))
    assert len(read) == len(prompts)
    for a, one in enumerate(read):
        for b, other in enumerate(read):
            shared = common(prompts[a], prompts[b]) // size
            if prompts[a] == prompts[b]:
                assert one["hash_ids"] == other["hash_ids"]
            else:
                assert common(one["hash_ids"], other["hash_ids"]) == shared
                assert not set(one["hash_ids"][shared:]) & set(other["hash_ids"][shared:])


@pytest.mark.parametrize("name", ["mooncake", "bailian"])
@pytest.mark.parametrize("blocks", [(0, 1), (1, 0), (1, 1), (2, -1), (3, 0)])
def test_n_numbers_cover_more_than_n_minus_one_blocks_and_at_most_n(
    name: str, blocks: tuple[int, int]
) -> None:
    tokens = blocks[0] * BLOCK_SIZES[name] + blocks[1]
    (read,) = requests(name, export(name, made(1, list(range(tokens)))))
    numbers = len(read["hash_ids"])
    assert read["input_length"] == tokens
    assert (numbers - 1) * BLOCK_SIZES[name] < tokens <= numbers * BLOCK_SIZES[name]


def test_weka_numbers_full_blocks_only() -> None:
    (read,) = requests("weka", export("weka", made(1, list(range(130)))))
    assert (read["input_length"], len(read["hash_ids"])) == (130, 2)


@pytest.mark.parametrize("name", BLOCK_SIZES)
@pytest.mark.parametrize("namespace", [("adapter", None), (None, "salt")])
def test_prompts_that_the_server_keeps_apart_share_no_number(
    name: str, namespace: tuple[str | None, str | None]
) -> None:
    tokens = list(range(BLOCK_SIZES[name] * 2))
    exported = export(name, made(1, tokens), made(2, tokens, namespace=namespace))
    one, other = requests(name, exported)
    assert not set(one["hash_ids"]) & set(other["hash_ids"])
    assert "salt" not in "".join(exported.parts)


@pytest.mark.parametrize("name", ["mooncake", "bailian"])
def test_numbers_are_small_and_count_up_as_they_are_first_seen(name: str) -> None:
    size = BLOCK_SIZES[name]
    first, second = list(range(2 * size)), [*range(size), *([7] * size)]
    read = requests(name, export(name, made(1, first), made(2, second)))
    assert [item["hash_ids"] for item in read] == [[0, 1], [0, 2]]


@pytest.mark.parametrize("name", BLOCK_SIZES)
def test_what_was_not_rendered_is_left_out_and_counted(name: str) -> None:
    exported = export(name, made(1, None), made(2, list(range(70))), made(3, list(range(70)), media=True))
    assert exported.rows == len(requests(name, exported)) == 1
    assert any("1 of 3 prompts left out: not rendered" in note for note in exported.notes)
    assert any("1 of 2 prompts left out: images" in note for note in exported.notes)


def test_mooncake_leaves_an_unknown_output_length_out_and_says_so() -> None:
    exported = export("mooncake", made(1, [1, 2]), made(2, [1, 2], output_tokens=None))
    known, unknown = shapes(exported)
    assert known["output_length"] == 3
    assert "output_length" not in unknown
    assert any("1 of 2 lines have no output_length" in note for note in exported.notes)


@pytest.mark.parametrize("name", ["bailian", "weka"])
def test_formats_that_require_an_output_length_leave_the_prompt_out(name: str) -> None:
    exported = export(name, made(1, list(range(70))), made(2, list(range(70)), output_tokens=None))
    assert exported.rows == 1
    assert any("1 of 2 prompts left out: nobody counted" in note for note in exported.notes)


def test_times_begin_at_zero_in_the_units_of_each_format() -> None:
    late = made(2, list(range(70)), started_at_ns=SECOND + 1_234_567_890)
    assert [item["timestamp"] for item in shapes(export("mooncake", made(1, [1]), late))] == [0, 1234]
    assert [item["timestamp"] for item in shapes(export("bailian", made(1, [1]), late))] == [0, 1.234568]
    assert [item["t"] for item in requests("weka", export("weka", made(1, [1]), late))] == [0, 1.234568]


def test_a_bailian_chat_names_its_parent_and_skips_one_that_is_left_out() -> None:
    exported = export(
        "bailian",
        made(1, [1]),
        made(2, [1, 2], parent=(1, 0), output_tokens=None),
        made(3, [1, 2, 3], parent=(2, 0)),
        made(4, [9]),
    )
    read = [(item["chat_id"], item["parent_chat_id"], item["turn"]) for item in shapes(exported)]
    assert read == [(0, -1, 1), (1, 0, 2), (2, -1, 1)]


def test_a_weka_session_holds_the_conversation_that_its_client_names_as_its_childs() -> None:
    exported = export(
        "weka",
        made(1, list(range(64)), session="main"),
        made(2, list(range(64)), conversation=2, session="child", parent_session="main"),
        made(3, list(range(128)), session="main"),
    )
    (session,) = shapes(exported)
    kinds = [entry["type"] for entry in session["requests"]]
    assert kinds == ["n", "subagent", "n"]
    child = session["requests"][1]
    assert child["requests"][0]["hash_ids"] == session["requests"][0]["hash_ids"] == [1]
    assert (child["t"], child["duration_ms"], child["total_tokens"]) == (1, 500, 67)
    assert exported.notes == ()
    assert "main" not in exported.parts[0]


def test_a_conversation_within_another_ones_wait_is_guessed_to_be_a_sub_agents_and_said() -> None:
    exported = export("weka", made(1, [1]), made(2, [2], conversation=2), made(3, [1, 3]))
    (session,) = shapes(exported)
    assert [entry["type"] for entry in session["requests"]] == ["n", "subagent", "n"]
    assert any("1 conversations are written as sub-agents" in note for note in exported.notes)


def test_a_conversation_that_overlaps_another_is_a_session_of_its_own() -> None:
    overlapping = made(2, [2], conversation=2, duration_ns=5 * SECOND)
    exported = export("weka", made(1, [1]), overlapping, made(3, [1, 3]))
    assert [len(session["requests"]) for session in shapes(exported)] == [2, 1]
    assert exported.part_names == ("session_0001.json", "session_0002.json")


def test_weka_tells_the_times_of_a_stream_and_of_the_client() -> None:
    rows = [made(1, [1], streams=True, ttft_ns=SECOND // 4), made(2, [1, 2], duration_ns=None)]
    first, second = requests("weka", export("weka", *rows))
    assert (first["type"], first["ttft"], first["api_time"]) == ("s", 0.25, 0.5)
    assert (second["type"], second["think_time"]) == ("n", 0.5)
    assert not {"think_time"} & first.keys()
    assert not {"ttft", "api_time"} & second.keys()


def test_otel_writes_every_exchange_with_what_is_known_of_it() -> None:
    exported = export("otel", made(1, [1, 2], finish="length"), made(2, None, status=400, conversation=None))
    ((first, second),) = [
        item["scopeSpans"][0]["spans"] for shape in shapes(exported) for item in shape["resourceSpans"]
    ]
    known = {item["key"]: item["value"] for item in first["attributes"]}
    assert first["name"] == "chat tiny"
    assert (first["startTimeUnixNano"], first["endTimeUnixNano"]) == ("1000000000", "1500000000")
    assert known["gen_ai.usage.input_tokens"] == {"intValue": "2"}
    assert known["gen_ai.usage.output_tokens"] == {"intValue": "3"}
    assert known["gen_ai.response.finish_reasons"] == {"arrayValue": {"values": [{"stringValue": "length"}]}}
    assert "gen_ai.usage.cache_read.input_tokens" not in known
    refused = {item["key"]: item["value"] for item in second["attributes"]}
    assert refused["error.type"] == {"stringValue": "400"}
    assert second["status"] == {"code": 2}
    assert "gen_ai.usage.input_tokens" not in refused
    assert first["traceId"] != second["traceId"]
