"""Reads what a server said of itself: the answers that the proxy kept with the capture.

It asks nobody. What was not said is None; what has to be assumed is named by whoever assumes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Protocol

from analyzer.kv_groups import read_layout
from analyzer.kv_layout import KVLayout
from analyzer.report import Server
from analyzer.settings import FACT_PATH, UNTOLD, ServerSettings, parse_settings
from analyzer.told import json_object, size_of
from store.errors import CaptureError
from store.records import ServerFact

# A name is looked for where one begins, and not again at each of its letters.
_LABEL = re.compile(r'(?<!\w)(\w+)="((?:[^"\\]|\\.)*)"')
_GAUGE = re.compile(r"sglang:(page_size|num_pages)(?:\{.*\})? ([0-9]+)(?:\.0)?\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerProfile:
    """The upstream as it described itself. Sizes are tokens a block, and blocks.

    `owner` is who it says owns its model: most kinds of server put their own name there. `slots` are the
    prompts it works on at once, each with a cache of its own, where it is a server of that kind.
    """

    owner: str | None = None
    version: str | None = None
    model: str | None = None
    root: str | None = None
    max_model_len: int | None = None
    block_size: int | None = None
    pool_blocks: int | None = None
    slots: int | None = None
    adapters: frozenset[str] = frozenset()
    cache_labels: Mapping[str, str] = field(default_factory=dict)


class EngineKind(Protocol):
    """What a kind of server says of itself before it predicts anything.

    `title` is its name as its makers write it; `exact` says whether its rules are held against a running
    server in the tests, and `left_out` what they do not follow, a sentence each. `block_pool` says that its
    cache is one pool of blocks of which the least recently used goes first. `usual_block_size` is taken
    where nobody said, and so is `usual_slots` by a kind that keeps a prompt for each slot (else None).
    `groups_layers` says that it caches layers of different reach in groups, as `analyzer.kv_layout` has it.
    """

    name: str
    title: str
    exact: bool
    block_pool: bool
    groups_layers: bool
    usual_block_size: int
    usual_slots: int | None
    left_out: tuple[str, ...]


class TokenizerFacts(Protocol):
    """What is told of a tokenizer, and of the model beside it; a sealed capture tells it without one."""

    @property
    def directory(self) -> PurePath:
        """Where it was loaded from."""

    @property
    def backend(self) -> str:
        """What encodes."""

    @property
    def model_config(self) -> Mapping[str, Any]:
        """The model's config.json; empty where there is none beside it."""


def read_profile(facts: Iterable[ServerFact]) -> ServerProfile:
    """The latest good answer of each path counts."""
    answers = {fact.path: fact.body for fact in facts if fact.status == 200}
    models = _models(answers.get("/v1/models", b""))
    base = next((item for item in models if not item.get("parent")), {})
    metrics = answers.get("/metrics", b"")
    labels = _cache_labels(metrics) or _sglang_pages(metrics)
    return ServerProfile(
        owner=_string(base, "owned_by"),
        version=_string(json_object(answers.get("/version", b"")) or {}, "version"),
        model=_string(base, "id"),
        root=_string(base, "root"),
        max_model_len=size_of(base.get("max_model_len")),
        block_size=size_of(labels.get("block_size")),
        pool_blocks=size_of(labels.get("num_gpu_blocks")),
        # llama.cpp tools/server: what /props says
        slots=size_of((json_object(answers.get("/props", b"")) or {}).get("total_slots")),
        cache_labels=labels,
        adapters=frozenset(item["id"] for item in models if item.get("parent") and _string(item, "id")),
    )


def _models(body: bytes) -> list[dict[str, Any]]:
    listed = (json_object(body) or {}).get("data")
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def _cache_labels(metrics: bytes) -> dict[str, str]:
    """Labels of `vllm:cache_config_info` (vLLM 0.32 v1/metrics/loggers.py:1114): the cache's settings."""
    for line in metrics.decode(errors="replace").split("\n"):
        if line.startswith("vllm:cache_config_info{"):
            return dict(_LABEL.findall(line))
    return {}


def _sglang_pages(metrics: bytes) -> dict[str, str]:
    """SGLang's page size and pages, named as vLLM names them (SGLang srt/observability/metrics_collector.py).

    Two gauges since 0.5.11; labels of `sglang:cache_config_info` before.
    """
    found: dict[str, str] = {}
    names = {"page_size": "block_size", "num_pages": "num_gpu_blocks"}
    for line in metrics.decode(errors="replace").split("\n"):
        if line.startswith("sglang:cache_config_info{"):
            found |= {names[key]: value for key, value in _LABEL.findall(line) if key in names}
        elif match := _GAUGE.fullmatch(line):
            found[names[match[1]]] = match[2]
    return found


def _string(holder: dict[str, Any], key: str) -> str | None:
    value = holder.get(key)
    return value if isinstance(value, str) else None


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
    tokenizer: TokenizerFacts | None,
    engine: EngineKind,
) -> Server:
    """What the analysis goes by: the user's word, the server's, its start line's, an assumption it names."""
    assumed = []
    size = block_size or profile.block_size or settings.block_size
    pool = pool_blocks or profile.pool_blocks or settings.num_gpu_blocks_override
    slots = None if engine.usual_slots is None else profile.slots or engine.usual_slots
    if slots is None and size is None:
        assumed.append(f"block_size {engine.usual_block_size}: the server did not say; give --block-size")
    if slots is None and pool is None:
        assumed.append("pool_blocks without limit: the server did not say; give --pool-blocks")
    if slots is not None and profile.slots is None:
        assumed.append(f"{slots} slots, {engine.title}'s own default: the server did not say")
    layout: KVLayout | None = None
    taken: tuple[str, ...] = ()
    if engine.groups_layers:
        config = model_config(profile, tokenizer)
        told = size or engine.usual_block_size
        layout, taken = read_layout(config, profile.cache_labels, settings, told)
    if not engine.exact:
        assumed.append(f"{engine.title}'s rules as its source has them, held against no running server")
    return Server(
        engine=engine.name,
        engine_title=engine.title,
        engine_exact=engine.exact,
        version=profile.version,
        model=profile.model or next(iter(settings.served_model_name), settings.model),
        block_size=size or engine.usual_block_size,
        pool_blocks=pool,
        slots=slots,
        max_model_len=profile.max_model_len or settings.max_model_len,
        tokenizer=str(tokenizer.directory) if tokenizer else None,
        tokenizer_backend=tokenizer.backend if tokenizer else None,
        assumed=(*assumed, *taken, *engine.left_out),
        layout=layout,
    )


def model_config(profile: ServerProfile, tokenizer: TokenizerFacts | None) -> Mapping[str, Any] | None:
    """The model's config.json: beside what the server loaded, else beside the tokenizer."""
    if profile.root is not None:
        with suppress(OSError, ValueError):  # a path may be any text, too
            found = json_object((Path(profile.root) / "config.json").read_bytes())
            if found is not None:
                return found
    return (tokenizer.model_config or None) if tokenizer else None
