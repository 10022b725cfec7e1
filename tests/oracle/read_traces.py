"""Reads exported traces with the readers people replay them with, and prints what these understood as JSON.

Run by an interpreter that has the reader, with nothing of this project:

    PYTHON tests/oracle/read_traces.py aiperf FOLDER
    PYTHON tests/oracle/read_traces.py vllm FOLDER TOKENIZER

FOLDER holds `mooncake.jsonl`, `bailian.jsonl` and, for AIPerf, a folder `weka`.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import sys
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

CHUNKS = {"mooncake": (512, 0.001), "bailian": (16, 1.0)}
"""Tokens a hash id, and seconds a unit of time: what a user gives `vllm bench serve` for each."""


def read_with_aiperf(folder: Path) -> dict[str, Any]:
    """The requests of each session, as AIPerf's loaders hold them."""
    loaders = {
        "mooncake.jsonl": ("mooncake_trace", "MooncakeTraceDatasetLoader"),
        "bailian.jsonl": ("bailian_trace", "BailianTraceDatasetLoader"),
        "weka": ("weka_trace", "WekaTraceLoader"),
    }
    read = {}
    for name, (module, loader) in loaders.items():
        kind = getattr(importlib.import_module(f"aiperf.dataset.loader.{module}"), loader)
        path = folder / name
        first = None if path.is_dir() else json.loads(path.read_text().split("\n")[0])
        assert kind.can_load(first, str(path)), f"{loader} does not take {path.name} for its own"
        loaded = kind(filename=str(path), prompt_generator=MagicMock(), run=_run()).load_dataset()
        read[path.stem] = {
            session: [trace.model_dump(by_alias=True, mode="json") for trace in traces]
            for session, traces in loaded.items()
        }
    return read


def _run() -> Any:
    """A configuration in which nothing is asked for."""
    run = MagicMock()
    run.cfg.phases = []
    dataset = run.cfg.get_default_dataset.return_value
    for name in ("synthesis", "block_size", "prompts", "inter_turn_delay_cap_seconds", "max_context_length"):
        setattr(dataset, name, None)
    return run


def read_with_vllm(folder: Path, tokenizer: str) -> dict[str, Any]:
    """The prompts that `vllm bench serve --dataset-name timed_trace` would send."""
    datasets = importlib.import_module("vllm.benchmarks.datasets.datasets")
    transformers = importlib.import_module("transformers")
    made = transformers.PreTrainedTokenizerFast(tokenizer_file=f"{tokenizer}/tokenizer.json")
    labels = ("timestamp", "input_length", "output_length", "hash_ids")
    read = {}
    for name, (tokens, seconds) in CHUNKS.items():
        dataset = datasets.TimedTrace(
            dataset_path=str(folder / f"{name}.jsonl"),
            random_seed=0,
            timed_trace_chunk_hash_size=tokens,
            timed_trace_sec_multiplier=seconds,
            **{f"timed_trace_label_{label}": label for label in labels},
        )
        read[name] = [
            {"prompt": sample.prompt, "output": sample.expected_output_len, "timestamp": sample.timestamp}
            for sample in dataset.sample(made, 10_000)
        ]
    return read


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        reader, source, *rest = sys.argv[1:]
        understood = (
            read_with_aiperf(Path(source)) if reader == "aiperf" else read_with_vllm(Path(source), *rest)
        )
    print(json.dumps(understood))
