"""What a server said of itself, cut down to what a report is made from: counters, sizes and names.

A sealed capture holds nothing else of it: no path of its machine, no chat template, no line of a log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from analyzer.imports import FACT_PATH as IMPORTED
from analyzer.sealed_settings import only_for_the_cache
from analyzer.settings import FACT_PATH
from store.records import ServerFact

_METRICS = re.compile(
    rb"^(?:vllm:cache_config_info|vllm:prefix_cache_(?:queries|hits)_(?:total|created)|process_start_time_seconds"
    rb"|sglang:(?:cache_config_info|page_size|num_pages))[{ ].*$",
    re.MULTILINE,
)
_MODEL = ("id", "parent", "owned_by", "max_model_len")


def bare_fact(fact: ServerFact) -> ServerFact | None:
    """The fact with what is needed of it; None where that is nothing."""
    if fact.status != 200:
        return None
    body = _bare(fact.path, fact.body)
    return None if body is None else replace(fact, body=body)


def bare_facts(facts: Iterable[ServerFact]) -> list[ServerFact]:
    """All that is needed of some facts."""
    return [bare for fact in facts if (bare := bare_fact(fact)) is not None]


def _bare(path: str, body: bytes) -> bytes | None:
    if path == "/metrics":
        return b"\n".join(_METRICS.findall(body))
    if path == FACT_PATH:
        return _start_line(body.decode(errors="replace"))
    try:
        said = json.loads(body)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    if path == "/v1/models":
        listed = said.get("data")
        models = [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []
        return _json({"data": [{key: item[key] for key in _MODEL if key in item} for item in models]})
    if path == IMPORTED:
        return _json({key: said[key] for key in ("format", "times", "untimed") if key in said})
    if path in ("/version", "/props"):
        return _json({key: said[key] for key in ("version", "total_slots") if key in said})
    return None


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _start_line(command: str) -> bytes | None:
    try:
        return only_for_the_cache(command).encode()
    except ValueError:
        return None
