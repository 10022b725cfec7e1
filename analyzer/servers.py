"""Reads what a server said of itself: the answers that the proxy kept with the capture.

It asks nobody. What was not said is None; what has to be assumed is named by whoever assumes it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from analyzer.report import Server
from analyzer.settings import FACT_PATH, UNTOLD, ServerSettings, parse_settings
from analyzer.tokens import Tokenizer
from store.engine import CaptureError
from store.records import ServerFact

DEFAULT_BLOCK_SIZE = 16
"""vLLM's own default where no attention backend asks for more (vLLM 0.32 config/cache.py:72)."""

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """The upstream as it described itself. Sizes are tokens a block, and blocks.

    `owner` is who it says owns its model: most kinds of server put their own name there.
    """

    owner: str | None = None
    version: str | None = None
    model: str | None = None
    root: str | None = None
    max_model_len: int | None = None
    block_size: int | None = None
    pool_blocks: int | None = None
    adapters: frozenset[str] = frozenset()


def read_profile(facts: Iterable[ServerFact]) -> ServerProfile:
    """The latest good answer of each path counts."""
    answers = {fact.path: fact.body for fact in facts if fact.status == 200}
    models = _models(answers.get("/v1/models", b""))
    base = next((item for item in models if not item.get("parent")), {})
    labels = _cache_labels(answers.get("/metrics", b""))
    return ServerProfile(
        owner=_string(base, "owned_by"),
        version=_string(_json(answers.get("/version", b"")), "version"),
        model=_string(base, "id"),
        root=_string(base, "root"),
        max_model_len=_whole(base.get("max_model_len")),
        block_size=_whole(labels.get("block_size")),
        pool_blocks=_whole(labels.get("num_gpu_blocks")),
        adapters=frozenset(item["id"] for item in models if item.get("parent") and _string(item, "id")),
    )


def _models(body: bytes) -> list[dict[str, Any]]:
    listed = _json(body).get("data")
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _cache_labels(metrics: bytes) -> dict[str, str]:
    """Labels of `vllm:cache_config_info` (vLLM 0.32 v1/metrics/loggers.py:1114): the cache's settings."""
    for line in metrics.decode(errors="replace").split("\n"):
        if line.startswith("vllm:cache_config_info{"):
            return dict(_LABEL.findall(line))
    return {}


def _json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _string(holder: dict[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


def _whole(value: Any) -> int | None:
    """A positive whole number; labels are text, and an unset one is the word None."""
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and value > 0 else None


def read_settings(facts: Iterable[ServerFact], given: str | None) -> ServerSettings:
    """What the server's start line says: the one given, else the last that was kept with the capture.

    Raises ValueError where the one given is none, CaptureError where the one kept is none.
    """
    kept = [fact.body.decode(errors="replace") for fact in facts if fact.path == FACT_PATH]
    if given is not None or not kept:
        return UNTOLD if given is None else parse_settings(given)
    try:
        return parse_settings(kept[-1])
    except ValueError as error:
        raise CaptureError(f"the start line kept with it: {error}; give --serve-command") from error


def settle(
    profile: ServerProfile,
    settings: ServerSettings = UNTOLD,
    *,
    block_size: int | None,
    pool_blocks: int | None,
    tokenizer: Tokenizer | None,
    engine: str = "vllm",
) -> Server:
    """What the analysis goes by: the user's word, the server's, its start line's, an assumption it names."""
    assumed = []
    size = block_size or profile.block_size or settings.block_size
    if size is None:
        size = DEFAULT_BLOCK_SIZE
        assumed.append(f"block_size {size}: the server did not say; give --block-size")
    pool = pool_blocks or profile.pool_blocks or settings.num_gpu_blocks_override
    if pool is None:
        assumed.append("pool_blocks without limit: the server did not say; give --pool-blocks")
    return Server(
        engine=engine,
        version=profile.version,
        model=profile.model or next(iter(settings.served_model_name), settings.model),
        block_size=size,
        pool_blocks=pool,
        max_model_len=profile.max_model_len or settings.max_model_len,
        tokenizer=str(tokenizer.directory) if tokenizer else None,
        tokenizer_backend=tokenizer.backend if tokenizer else None,
        assumed=tuple(assumed),
    )
