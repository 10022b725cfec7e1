"""A real vLLM with a sliding-window model and with a hybrid one: every `cached_tokens` is predicted.

Run by `make test-vllm` as `tests/vllm/live.py` is. The prompts' ids and the sampled ones are the server's.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from analyzer.kv_groups import read_layout
from analyzer.replay import TokenCache
from analyzer.settings import parse_settings
from tests.corpus.setups import CACHED, MODELS, ROOT
from tests.tokenizers import reason_missing
from tests.vllm.cache_traffic import CacheTraffic
from tests.vllm.live import VLLM
from tests.vllm.server import free_port, post, serving

REQUESTS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A server of `tests/corpus/setups.py` with a pool of so many blocks, and its traffic.

    `groups` is how many block tables vLLM makes of the model's layers, as it says in its log.
    """

    setup: str
    groups: int
    unit: int
    longest: int
    pool: int | None = None


TRIALS = [
    Trial(setup="sliding window", groups=6, unit=64, longest=5000),
    # The smallest pools that these servers start with are 622 and 22 blocks.
    Trial(setup="sliding window", groups=6, unit=64, longest=5000, pool=640),
    Trial(setup="hybrid", groups=4, unit=1152, longest=9000),
    Trial(setup="hybrid", groups=4, unit=1152, longest=9000, pool=40),
]


@pytest.fixture(scope="module", autouse=True)
def models() -> None:
    subprocess.run([VLLM / "bin" / "python", "-m", "tests.vllm.models"], cwd=ROOT, check=True)


def labels_of(url: str) -> dict[str, str]:
    """The labels of `vllm:cache_config_info`."""
    with urllib.request.urlopen(url + "/metrics", timeout=10) as response:
        lines: list[str] = response.read().decode().split("\n")
    line = next(line for line in lines if line.startswith("vllm:cache_config_info{"))
    return dict(re.findall(r'(\w+)="([^"]*)"', line))


@pytest.mark.parametrize(
    "trial", TRIALS, ids=lambda trial: f"{trial.setup}, pool of {trial.pool or 'its own size'}"
)
def test_every_request_hits_what_is_predicted(trial: Trial, tmp_path: Path) -> None:
    setup = CACHED[trial.setup]
    if reason := reason_missing(setup.tokenizer):
        pytest.skip(reason)
    pool = ("--num-gpu-blocks-override", str(trial.pool)) if trial.pool else ()
    command = shlex.join(("vllm", "serve", *setup.arguments, *pool))
    config = json.loads((ROOT / MODELS / setup.model / "config.json").read_text(encoding="utf-8"))
    traffic = CacheTraffic(7, trial.unit, trial.longest)
    wrong, hits = {}, 0
    with serving(setup, VLLM, free_port(), tmp_path / "vllm.log", pool) as url:
        labels = labels_of(url)
        layout, _ = read_layout(config, labels, parse_settings(command), int(labels["block_size"]))
        cache = TokenCache(layout.hash_block_size, int(labels["num_gpu_blocks"]) - 1, layout)
        for number in range(REQUESTS):
            path, body = traffic.body()
            status, answered = post(url + path, body)
            assert status == 200, answered
            answer = json.loads(answered)
            traffic.remember(path, body, answer)
            choice, usage = answer["choices"][0], answer["usage"]
            prompt = answer.get("prompt_token_ids") or choice["prompt_token_ids"]
            skips = "prompt_logprobs" in json.loads(body)
            hit = cache.admit(str(number), np.array(prompt, dtype=np.int32), skip_reading=skips)
            cache.finish(str(number), choice["token_ids"])
            predicted, reported = hit and hit.tokens, usage["prompt_tokens_details"]["cached_tokens"]
            hits += reported > 0
            if predicted != reported:
                wrong[number] = (len(prompt), predicted, reported)
    assert len(layout.groups) == trial.groups
    assert wrong == {}
    assert hits >= REQUESTS // 3
    assert trial.pool is None or cache.cache.pool.evicted > 100
