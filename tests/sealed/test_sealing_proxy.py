"""A sealing proxy: the numbers are those of an open capture, and no text of the traffic is in any file."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from analyzer.pipeline import Options
from analyzer.sealed_equality import differences
from analyzer.sealing import SealedSink
from store.db import Capture
from store.errors import CaptureError
from store.records import RequestSeen, ResponseSeen, ServerFact
from tests.conftest import environment, eventually, locality, process, proxy, running
from tests.sealed.made import KEY, report_of
from tests.sealed.records import records_of
from tests.sealed.test_equality import broken, growing

type Record = RequestSeen | ResponseSeen | tuple[ServerFact, ...]


@pytest.fixture(scope="module")
def server(sample_tokenizer: Path) -> Iterator[str]:
    with running("samples.upstream", "--tokenizer", str(sample_tokenizer), "--port", "0") as upstream:
        yield upstream.url


def save(sink: Any, records: Iterable[Record]) -> None:
    for record in records:
        match record:
            case RequestSeen():
                sink.save_request(record)
            case ResponseSeen():
                sink.save_response(record)
            case _:
                sink.save_facts(record)


def both(folder: Path, tokenizer: Path, records: list[Record]) -> tuple[Path, Path]:
    """The same traffic, recorded openly and sealed."""
    plain, sealed = folder / "open.sqlite", folder / "sealed.sqlite"
    with Capture.create_or_open(str(plain), redaction="secrets") as capture:
        save(capture, records)
    with Capture.create_or_open(str(sealed), redaction="sealed") as capture:
        sink = SealedSink(capture, Options(tokenizer=str(tokenizer)), KEY)
        save(sink, records)
        assert sink.seal_rest() == 0
        sink.write()
        sink.forget()
    return plain, sealed


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sealed_at_capture_has_the_numbers_of_an_open_capture(
    seed: int, sample_tokenizer: Path, tmp_path: Path
) -> None:
    sent = [*growing(seed), *broken()] if seed == 0 else list(growing(seed))
    records = list(records_of(sent, dice=random.Random(seed)))
    plain, sealed = both(tmp_path, sample_tokenizer, records)
    original = report_of(plain, Options(tokenizer=str(sample_tokenizer)))
    assert differences(original, report_of(sealed, Options())) == []
    assert original.summary.rendered > 20


def test_facts_that_come_late_and_requests_out_of_order_are_sealed_once_more(
    sample_tokenizer: Path, tmp_path: Path
) -> None:
    records = list(records_of(growing(9), dice=random.Random(1)))
    facts = [record for record in records if isinstance(record, tuple)]
    others = [record for record in records if not isinstance(record, tuple)]
    first = others.index(next(record for record in others if record.key == "k1"))
    others.insert(30, others.pop(first))  # an upload that took long: it began before all others
    last = next(at for at, r in enumerate(others) if isinstance(r, ResponseSeen) and r.key == "k1")
    if last < 31:
        others.insert(31, others.pop(last))
    plain, sealed = both(tmp_path, sample_tokenizer, [*others, *facts])
    original = report_of(plain, Options(tokenizer=str(sample_tokenizer)))
    assert differences(original, report_of(sealed, Options())) == []


def test_a_busy_capture_loses_nothing(sample_tokenizer: Path, tmp_path: Path) -> None:
    path = tmp_path / "s.sqlite"
    with Capture.create_or_open(str(path), redaction="sealed") as capture:
        sink = SealedSink(capture, Options(tokenizer=str(sample_tokenizer)), KEY)
        whole = capture.save_sealed
        busy = iter([True, False] * 500)

        def sometimes(*given: Any, **more: Any) -> None:
            if next(busy):
                raise TimeoutError("another process holds the capture locked")
            whole(*given, **more)

        capture.save_sealed = sometimes  # type: ignore[method-assign]
        save(sink, records_of(growing(3)))
        capture.save_sealed = whole  # type: ignore[method-assign]
        assert sink.seal_rest() == 0
        sink.write()
        sink.forget()
    assert all(turn.prompt_tokens for turn in report_of(path, Options()).turns)


def test_a_sealed_capture_is_not_added_to(sample_tokenizer: Path, tmp_path: Path) -> None:
    both(tmp_path, sample_tokenizer, list(records_of(growing(3))))
    with (
        Capture.create_or_open(str(tmp_path / "sealed.sqlite"), redaction="sealed") as capture,
        pytest.raises(CaptureError, match="cannot be added to"),
    ):
        SealedSink(capture, Options(tokenizer=str(sample_tokenizer)), KEY)


def play(url: str, *options: str) -> None:
    agent = [sys.executable, "-m", "samples.agent", *options]
    variables = environment() | {"OPENAI_BASE_URL": f"{url}/v1"}
    subprocess.run(agent, env=variables, check=True, timeout=60, capture_output=True)


def numbers(capture: Path) -> list[Any]:
    made = locality("report", str(capture), "--format", "json")
    assert made.returncode == 0, made.stderr
    keys = ("prompt_tokens", "rendering", "common_prefix_tokens", "invalidated_blocks", "parent", "cache")
    turns = json.loads(made.stdout)["turns"]
    return [
        [turn[key] for key in keys] + [turn["divergence"] and turn["divergence"]["path"]] for turn in turns
    ]


def texts_of(capture: Path) -> set[bytes]:
    """Everything of at least twelve characters that an open capture's bodies say, cut at quotes."""
    with Capture.open(str(capture)) as opened:
        bodies = [
            body for item in opened.exchanges() for body in (item.request.content, item.response.content)
        ]
    pieces = {piece for body in bodies for piece in body.replace(b"\\n", b'"').split(b'"')}
    return {piece for piece in pieces if len(piece) >= 12 and b" " in piece}


def test_through_the_real_proxy_the_numbers_are_the_same_and_no_text_is_written(
    server: str, tmp_path: Path
) -> None:
    play_options = ("--clock", "head", "--turns", "5")
    folder = tmp_path / "sealed"
    folder.mkdir()
    with proxy(server, tmp_path / "open.sqlite") as listening:
        play(listening.url, *play_options)
        assert listening.stop() == 0
    with running("samples.upstream", "--tokenizer", _tokenizer(server), "--port", "0") as fresh:
        with proxy(fresh.url, folder / "s.sqlite", "--redact", "sealed") as listening:
            play(listening.url, *play_options)
            assert listening.stop() == 0, listening.said
        assert "5 exchanges recorded, 0 lost" in listening.said
    assert numbers(folder / "s.sqlite") == numbers(tmp_path / "open.sqlite")
    texts = texts_of(tmp_path / "open.sqlite")
    assert len(texts) > 50
    written = b"".join(file.read_bytes() for file in folder.iterdir())
    assert not [text for text in texts if text in written or text.decode() in listening.said]


def _tokenizer(server: str) -> str:
    models = httpx.get(f"{server}/v1/models").json()
    return str(models["data"][0]["root"])


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_proxy_leaves_no_text_and_a_capture_that_reads(
    seed: int, server: str, tmp_path: Path
) -> None:
    capture = tmp_path / "s.sqlite"
    with proxy(server, capture, "--redact", "sealed") as listening:
        variables = environment() | {"OPENAI_BASE_URL": f"{listening.url}/v1"}
        agent = subprocess.Popen(
            [sys.executable, "-m", "samples.agent"],
            env=variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(random.Random(seed).uniform(0.5, 2.5))
        listening.stop(signal.SIGKILL)
        agent.wait(60)
    session = (Path(__file__).parents[2] / "samples" / "session.txt").read_bytes()
    lines = [line for line in session.split(b"\n") if len(line) >= 12 and b" " in line]

    def ended() -> bool:  # the process that seals ends by itself once the proxy is gone
        return not Path(f"{capture}-wal").exists()

    assert eventually(ended, 30)
    written = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert not [line for line in lines if line in written]
    made = locality("report", str(capture), "--format", "json")
    assert json.loads(made.stdout)["capture"]["redaction"] == "sealed"


def test_without_a_tokenizer_the_proxy_refuses_to_start(tmp_path: Path) -> None:
    capture = tmp_path / "s.sqlite"
    made = process(
        "proxy", "--upstream", "http://127.0.0.1:9", "--capture", str(capture), "--redact", "sealed"
    )
    assert made.returncode == 1
    assert "--redact sealed counts tokens before anything is written" in made.stderr
    assert "give --tokenizer DIR" in made.stderr
    assert not capture.exists()


def test_a_key_file_without_sealing_is_refused(tmp_path: Path) -> None:
    made = locality("proxy", "--upstream", "http://127.0.0.1:9", "--key-file", str(tmp_path / "key"))
    assert made.returncode == 2
    assert "--key-file is for --redact sealed" in made.stderr
