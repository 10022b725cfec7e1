"""Exports as AIPerf's and vLLM's own readers understand them; where these are not, as their source demands.

LOCALITY_TEST_AIPERF and LOCALITY_TEST_VLLM name virtual environments that have them: AIPerf alone brings a
gigabyte, which is no dependency for a test.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.captures import Sent, write_capture
from tests.conftest import locality
from tests.export_schemas import BAILIAN, MOONCAKE, check_line, check_session, check_span
from tests.test_export import session

OUTPUTS = {"mooncake": "mooncake.jsonl", "bailian": "bailian.jsonl", "weka": "weka", "otel": "otel.json"}
READER = Path(__file__).parent / "oracle" / "read_traces.py"


@pytest.fixture(scope="module")
def traces(sample_tokenizer: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with each format's export of one capture: two conversations of three turns."""
    folder = tmp_path_factory.mktemp("traces")
    other = [Sent(body={**sent.body, "model": "other"}, usage=sent.usage) for sent in session(3)]
    capture = write_capture(folder / "c.sqlite", [*session(3), *other])
    (folder / "weka").mkdir()
    for form, output in OUTPUTS.items():
        arguments = ("--format", form, "--tokenizer", str(sample_tokenizer), "-o", str(folder / output))
        assert locality("export", str(capture), *arguments).returncode == 0
    return folder


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def understood(reader: str, *arguments: str) -> Any:
    """What a reader in an environment of its own printed."""
    variable = f"LOCALITY_TEST_{reader.upper()}"
    if not (environment := os.environ.get(variable)):
        pytest.skip(f"{variable} names no virtual environment with {reader}")
    command = [str(Path(environment) / "bin" / "python"), str(READER), reader, *arguments]
    made = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert made.returncode == 0, made.stderr[-2000:]
    return json.loads(made.stdout)


def test_the_files_are_as_their_readers_demand(traces: Path) -> None:
    for line in lines(traces / "mooncake.jsonl"):
        check_line(line, MOONCAKE, 512)
    for line in lines(traces / "bailian.jsonl"):
        check_line(line, BAILIAN, 16)
    sessions = [json.loads(path.read_text()) for path in sorted((traces / "weka").iterdir())]
    assert len(sessions) == 2
    for read in sessions:
        check_session(read)
    (resource,) = json.loads((traces / "otel.json").read_text())["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    assert len(scope["spans"]) == 6
    for span in scope["spans"]:
        check_span(span)


def test_aiperf_reads_what_was_written(traces: Path) -> None:
    read = understood("aiperf", str(traces))
    written = lines(traces / "mooncake.jsonl")
    mooncake = [request for requests in read["mooncake"].values() for request in requests]
    assert [{key: request[key] for key in written[0]} for request in mooncake] == written
    bailian = read["bailian"]
    assert [[request["turn"] for request in requests] for requests in bailian.values()] == [[1, 2, 3]] * 2
    assert [request["hash_ids"] for requests in bailian.values() for request in requests] == [
        line["hash_ids"] for line in lines(traces / "bailian.jsonl")
    ]
    for path in sorted((traces / "weka").iterdir()):
        own = json.loads(path.read_text())
        (loaded,) = read["weka"][own["id"]]
        for mine, theirs in zip(own["requests"], loaded["requests"], strict=True):
            assert {key: theirs[key] for key in mine} == mine


def test_vllms_benchmark_would_send_prompts_that_share_what_the_captured_ones_shared(
    traces: Path, sample_tokenizer: Path
) -> None:
    read = understood("vllm", str(traces), str(sample_tokenizer))
    for name, size in (("mooncake", 512), ("bailian", 16)):
        written = lines(traces / f"{name}.jsonl")
        assert [len(sample["prompt"]) for sample in read[name]] == [line["input_length"] for line in written]
        assert [sample["output"] for sample in read[name]] == [3] * 6
        assert [sample["timestamp"] for sample in read[name]] == [0, 1, 2, 3, 4, 5]
        for before, after, line, later in zip(read[name], read[name][1:], written, written[1:], strict=False):
            shared = _common(line["hash_ids"], later["hash_ids"]) * size
            sent = _common(before["prompt"], after["prompt"])
            # Behind the shared blocks tokens are random: a few may agree by chance.
            assert min(shared, len(before["prompt"])) <= sent < shared + size


def _common(a: list[int], b: list[int]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
