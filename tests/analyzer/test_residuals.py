"""Each label by its rule, and the evidence that is gathered for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from analyzer.residuals import LABELS, Evidence, label

SAME = Evidence(predicted=128, reported=128, block_size=32)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({}, None),
        ({"reported": None}, "usage.unknown"),
        ({"reported": 96, "suspect": True}, "render.suspect"),
        ({"predicted": None}, "engine.unexplained"),
        ({"reported": 112}, "engine.block_granularity"),  # no multiple of 32
        ({"reported": 96, "speculation": True}, "engine.spec_drop"),
        ({"reported": 64, "speculation": True}, "engine.unexplained"),
        ({"reported": 0, "namespace": True}, "engine.namespace"),
        ({"reported": 160, "answer_ids": True}, "engine.answer_ids"),
        ({"reported": 0, "in_flight": True}, "engine.in_flight"),
        ({"reported": 160, "cached_before": True, "in_flight": True}, "engine.cached_before"),
        ({"reported": 96, "cached_before": True}, "engine.unexplained"),
        ({"reported": 96, "several_engines": True}, "engine.other_replica"),
        ({"reported": 160, "other_traffic": True}, "engine.other_traffic"),
        ({"reported": 96, "other_traffic": True}, "engine.evicted"),
        ({"reported": 96, "full_pool": True}, "engine.evicted"),
        ({"reported": 160, "full_pool": True}, "engine.evicted"),
        ({"reported": 96, "full_pool": None}, "engine.evicted"),
        ({"reported": 160, "full_pool": None}, "engine.unexplained"),
        ({"reported": 96}, "engine.unexplained"),
    ],
)
def test_the_surest_evidence_decides(facts: dict[str, Any], expected: str | None) -> None:
    found = label(replace(SAME, **facts))
    assert found == expected
    assert found is None or found in LABELS
