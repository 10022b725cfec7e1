"""Sealed and open reports are equal on every sample, turn by turn, in its own dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from analyzer.pipeline import Options
from tests.captures import Sent, usage, write_capture
from tests.sealed.test_equality import held_equal

FILES = sorted((Path(__file__).parents[2] / "samples" / "sessions").glob("*.json"))
PATHS = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
HISTORY = {"chat": "messages", "messages": "messages", "responses": "input"}


def turns(dialect: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The sample as an agent would have come to it: turn by turn, then with another word in its head."""
    field = HISTORY.get(dialect)
    if field is None:
        text = body["prompt"] if isinstance(body["prompt"], str) else body["prompt"][0]
        yield from ({**body, "prompt": text[:end]} for end in (len(text) // 2, len(text)))
        yield body
        yield {**body, "prompt": [f"Now {text}", text]}
        return
    yield from ({**body, field: body[field][:count]} for count in range(1, len(body[field]) + 1))
    yield json.loads(json.dumps(body).replace("harbour", "port"))


def test_there_is_a_sample_of_every_dialect() -> None:
    assert [path.stem for path in FILES] == sorted(PATHS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_every_number_is_the_same(path: Path, streams: bool, sample_tokenizer: Path, tmp_path: Path) -> None:
    bodies = list(turns(path.stem, json.loads(path.read_text(encoding="utf-8"))))
    assert len(bodies) >= 3
    sent = [
        Sent(
            path=PATHS[path.stem],
            body={**body, "stream": streams},
            usage=usage(90 + 10 * at, 16 * at),
            ttft_ms=20.0 + at if streams else None,
        )
        for at, body in enumerate(bodies)
    ]
    source = write_capture(tmp_path / "open.sqlite", sent)
    held_equal(source, Options(tokenizer=str(sample_tokenizer), pool_sweep=True), tmp_path)
