"""Texts that would take minutes if they were looked through again from each of their characters."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from analyzer.causes._wholes import is_tagged
from analyzer.causes.history_reasoning_dropped import without_thoughts
from analyzer.servers import read_profile
from analyzer.volatile_shapes import nonces
from store.records import ServerFact


@pytest.fixture(autouse=True)
def at_once() -> Iterator[None]:
    began = time.process_time()
    yield
    assert time.process_time() - began < 1


def test_an_id_in_a_megabyte_without_a_space_is_found() -> None:
    before, after = ("A1b2" * 250_000 + end for end in ("C3", "D4"))
    assert nonces(before, after, 1_000_000, 1_000_000) == (0, 1_000_002, 0, 1_000_002)


def test_an_id_behind_a_hundred_thousand_spaces_is_found() -> None:
    before, after = (" " * 100_000 + made for made in ("a1b2c3d4", "9f8e7d6c"))
    assert nonces(before, after, 100_000, 100_000) == (100_000, 100_008, 100_000, 100_008)


def test_a_model_that_opens_thoughts_without_end_is_read() -> None:
    opened = "<think>" * 20_000
    assert without_thoughts(f"<think>a</think>b{opened}") == f"b{opened}"


def test_a_tag_without_end_is_none() -> None:
    assert is_tagged("<note>x")
    assert not is_tagged("<" + "a" * 100_000)


def test_a_label_without_value_is_passed_over() -> None:
    page = b'vllm:cache_config_info{block_size="16",' + b"a" * 100_000 + b"} 1.0"
    assert read_profile([ServerFact(at_ns=0, path="/metrics", status=200, body=page)]).block_size == 16
