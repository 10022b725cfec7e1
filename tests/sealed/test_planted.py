"""Planted secrets and all text around them, through a sealing proxy that is killed: in nothing it writes."""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from analyzer.share_search import TextSearch
from analyzer.share_texts import words_of
from store.db import Capture
from tests.conftest import locality, proxy
from tests.proxy.test_planted_secrets import A_REQUEST, exchange, files, found_in, send, temporary, upstream
from tests.store.planted import Planted, planted

__all__ = ["temporary"]  # a fixture

COUNT, KILLS = 1000, 6
OWN = (
    *(b'"messages":', b'"content":', b'"arguments":', b'"tool_calls":', b'"assistant",', b'[{"message":{'),
    b'["bearer","request","headers","authorization",',
)
"""What the program may write, and a client as well."""


def asked_for(secrets: list[Planted]) -> list[tuple[str, bytes, dict[str, str]]]:
    return [
        exchange(number, secrets[start : start + A_REQUEST])
        for number, start in enumerate(range(0, len(secrets), A_REQUEST))
    ]


def runs_of_text(written: bytes, asked: list[tuple[str, bytes, dict[str, str]]]) -> list[bytes]:
    """Runs of what was sent or answered that stand in what was written, in whatever encoding."""
    bodies = [json.loads(body) for _, body, _ in asked]
    said = {json.dumps(message, ensure_ascii=False) for body in bodies for message in body["messages"]}
    said |= {body["metadata"]["answer"] for body in bodies}
    lines = [word for word in words_of(said) if len(word) >= 12]
    assert len(lines) > 300
    return list(TextSearch([written], OWN).found(line.encode() for line in lines))


def stored(capture: Path) -> bytes:
    """What a capture holds, decompressed."""
    with Capture.open(str(capture)) as opened:
        return b"\n".join(opened.stored())


def sealing(tokenizer: Path) -> tuple[str, ...]:
    return "--redact", "sealed", "--tokenizer", str(tokenizer)


def test_no_secret_and_no_text_is_written_while_it_runs_nor_when_it_ended(
    temporary: Path, sample_tokenizer: Path
) -> None:
    secrets = list(planted(16, COUNT))
    asked = asked_for(secrets)
    capture = temporary / "c.sqlite"
    with upstream() as server, proxy(server, capture, *sealing(sample_tokenizer)) as running:
        for one in asked:
            assert send(running.url, one) in (200, 500)
        while_it_runs = files(temporary)
        assert running.stop(signal.SIGTERM, timeout=300) == 0, running.said
    assert f"{len(asked)} exchanges recorded, 0 lost" in running.said
    outputs = [running.said]
    for command in (("report",), ("report", "--format", "json"), ("show",), ("verify",)):
        done = locality(*command, str(capture), *(("1",) if command == ("show",) else ()))
        outputs += (done.stdout, done.stderr)
    written = b"\n".join((while_it_runs, files(temporary), stored(capture), running.said.encode()))
    assert found_in(written + "\n".join(outputs).encode(), secrets) == []
    found = runs_of_text(written, asked)
    assert sorted(set(found)) == []
    counted = json.loads(outputs[3])["capture"]["secrets"]
    assert sum(item["count"] for item in counted) >= COUNT


@pytest.mark.parametrize("seed", range(KILLS))
def test_a_sealing_proxy_killed_at_any_moment_leaves_neither(
    seed: int, temporary: Path, sample_tokenizer: Path
) -> None:
    secrets = list(planted(17 + seed, A_REQUEST * 6))
    asked = asked_for(secrets)
    capture = temporary / "c.sqlite"

    def keep_asking(url: str) -> None:
        with suppress(OSError, http.client.HTTPException):
            for _ in range(3):
                for one in asked:
                    send(url, one)

    with upstream() as server, proxy(server, capture, *sealing(sample_tokenizer)) as running:
        threads = [threading.Thread(target=keep_asking, args=(running.url,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(random.Random(seed).uniform(0.05, 1.2))
        running.process.kill()
        running.process.wait(30)
        at_that_moment = files(temporary)  # with the log, while the process that seals may still write
        running.stop(signal.SIGKILL, timeout=120)  # it says what it has to say until then
        for thread in threads:
            thread.join()
    written = b"\n".join((at_that_moment, files(temporary), stored(capture), running.said.encode()))
    assert found_in(written, secrets) == []
    found = runs_of_text(written, asked)
    assert sorted(set(found)) == []
    assert locality("report", str(capture), "--format", "json").returncode in (0, 1)
