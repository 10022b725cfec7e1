"""Storage, report and rendering, on the big session of the samples: 100 turns, 50 MB sent, 1 MB the last."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from fastokens import Tokenizer as Fast

from analyzer.chat_messages import parse_chat_messages
from analyzer.chat_template import compile_template
from analyzer.core import Rendering, Reply, TokenIds
from analyzer.prompts import PromptReader
from analyzer.reading import read_request
from analyzer.rendering import prepare, render
from analyzer.shared_json import SharedBodies
from analyzer.tokens import Tokenizer
from samples.big_session import big_session
from store.db import Capture
from store.records import Exchange, RequestSeen, ResponseSeen
from tests.bench.rounds import Line, medians, seconds_of
from tests.conftest import environment

ROUNDS, RENDERING_ROUNDS = 3, 9
ANOTHER = "another text"
CHAT = "/v1/chat/completions"
CLOCK = datetime(2026, 3, 4, tzinfo=UTC)


def make_capture(path: Path, sessions: int = 1) -> list[bytes]:
    """A capture of that many big sessions, turn by turn interleaved; gives the bodies as sent."""
    sent = []
    with Capture.create_or_open(str(path), redaction="secrets") as capture:
        for turn, (body, stream) in enumerate(big_session()):
            for number in range(sessions):
                mine = body if sessions == 1 else body.replace(b'"content":"', b'"content":"%d: ' % number)
                save(capture, f"{turn}.{number}", (turn * sessions + number) * 10**9, mine, stream)
                sent.append(mine)
    return sent


def save(capture: Capture, key: str, at_ns: int, body: bytes, stream: bytes) -> None:
    """Store one request and its answer."""
    capture.save_request(request_seen(key, at_ns, body))
    capture.save_response(response_seen(key, stream))


def request_seen(key: str, at_ns: int, body: bytes) -> RequestSeen:
    """A chat request as the proxy sees it."""
    return RequestSeen(
        key=key, started_at_ns=at_ns, method="POST", path=CHAT, query="", headers=(), body=body
    )


def response_seen(key: str, stream: bytes) -> ResponseSeen:
    """Its answer, an event stream that came to its end in a tenth of a second."""
    return ResponseSeen(
        key=key,
        status=200,
        headers=(("content-type", "text/event-stream"),),
        body=stream,
        chunks=(),
        ttft_ns=10**7,
        duration_ns=10**8,
        ended="complete",
        error=None,
    )


def storage(path: Path, sent: list[bytes]) -> list[Line]:
    """Bytes on disk, exactness, and what reading one body takes."""
    with Capture.open(str(path)) as capture:
        exact = [exchange.request.content for exchange in capture.exchanges()] == sent
    assert exact, "a body came back changed"
    on_disk = sum(item.stat().st_size for item in path.parent.glob(f"{path.name}*"))

    def read(number: int) -> float:
        with Capture.open(str(path)) as capture:
            return seconds_of(lambda: capture.exchange(number))

    last = medians({"last": partial(read, len(sent))}, ROUNDS)["last"]
    return [
        Line(
            "bytes on disk / bytes sent",
            f"{100 * on_disk / sum(map(len, sent)):.2f} %",
            "<= 3 %",
            f"{on_disk:,} of {sum(map(len, sent)):,}; every body came back byte-exact",
        ),
        Line(
            "reading the last body", f"{1000 * last:.0f} ms", "", "from a cold reader, through all before it"
        ),
    ]


@dataclass(frozen=True, slots=True)
class Yardsticks:
    """What the same session takes without this program: plain template, plain fastokens."""

    bodies: list[bytes]
    folder: Path

    def every_turn(self) -> float:
        """Seconds to parse, render and tokenize every turn afresh, by a tokenizer just loaded."""
        fast = self._fast()
        return seconds_of(lambda: [_tokenize(fast, self._render(body)) for body in self.bodies])

    def last_turn(self, *, used: bool = False) -> float:
        """Seconds to parse, render and tokenize the last prompt: all distinct text, once.

        The tokenizer has just been loaded, or has been `used` on another text.
        """
        fast = self._fast()
        if used:
            _tokenize(fast, ANOTHER)
        return seconds_of(lambda: _tokenize(fast, self._render(self.bodies[-1])))

    def ids(self) -> list[TokenIds]:
        """The ids of every turn, afresh."""
        fast = self._fast()
        return [_tokenize(fast, self._render(body)) for body in self.bodies]

    def _fast(self) -> Any:
        return Fast.from_file(str(self.folder / "tokenizer.json"))

    def _render(self, body: bytes) -> str:
        given = json.loads(body)
        template = compile_template((self.folder / "chat_template.jinja").read_text(encoding="utf-8"))
        return template.render(
            messages=parse_chat_messages(given["messages"], "string"),
            tools=given["tools"],
            add_generation_prompt=True,
            clock=CLOCK,
            kwargs=_special_tokens(self.folder),
        )


@cache
def _special_tokens(folder: Path) -> dict[str, str]:
    config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    return {
        key: value["content"]
        for key, value in config.items()
        if isinstance(value, dict) and "content" in value
    }


def _tokenize(fast: Any, text: str) -> TokenIds:
    ids, _ = fast.encode_batch_flat([text])
    return np.frombuffer(ids, dtype=np.int32)


def rendering(path: Path, folder: Path, bodies: list[bytes]) -> list[Line]:
    """All renderings of the session against its distinct text once, and against every turn afresh."""
    prepare()
    yardsticks = Yardsticks(bodies, folder)
    with Capture.open(str(path)) as capture:
        exchanges = list(capture.exchanges())
    ours = _read_all(folder, exchanges)
    assert all(np.array_equal(a, b) for a, b in zip(ours, yardsticks.ids(), strict=True)), "ids differ"
    assert all(np.array_equal(ours[-1][: len(ids)], ids) for ids in ours), "the last prompt does not hold all"
    found = medians(
        {
            "read": lambda: _timed(folder, exchanges),
            "last": yardsticks.last_turn,
            "rendered": lambda: _timed(folder, exchanges, replies=False),
            "every": yardsticks.every_turn,
            "read, used": lambda: _timed(folder, exchanges, used=True),
            "last, used": partial(yardsticks.last_turn, used=True),
        },
        RENDERING_ROUNDS,
    )
    tokens = sum(map(len, ours))
    every = f"every turn parsed, rendered and tokenized afresh: {found['every']:.3f} s"
    return [
        _ratio(
            ("all renderings / distinct text once", "<= 3.0"),
            (found["rendered"], found["last"]),
            f"{found['rendered']:.3f} s from bodies to {tokens:,} ids, all equal; the last prompt, which"
            f" holds all text, parsed, rendered and tokenized: {found['last']:.3f} s; tokenizers just loaded",
        ),
        _ratio(
            ("the same with the replies read", ""),
            (found["read"], found["last"]),
            f"{found['read']:.3f} s",
        ),
        _ratio(("all turns read / each turn afresh", ""), (found["read"], found["every"]), every),
        _ratio(
            ("all turns read / distinct text once", ""),
            (found["read, used"], found["last, used"]),
            f"with tokenizers used before, which saves their first call: {found['read, used']:.3f} s and"
            f" {found['last, used']:.3f} s",
        ),
    ]


def _ratio(name_and_target: tuple[str, str], seconds: tuple[float, float], meaning: str) -> Line:
    name, target = name_and_target
    return Line(name, f"{seconds[0] / seconds[1]:.2f}", target, meaning)


def _read_all(folder: Path, exchanges: Iterable[Exchange]) -> list[TokenIds]:
    reader = PromptReader(Tokenizer(folder))
    rendered = [prompt.rendering for exchange in exchanges for prompt in reader.read(exchange)]
    return [item.token_ids for item in rendered if item is not None]


def _timed(folder: Path, exchanges: list[Exchange], *, replies: bool = True, used: bool = False) -> float:
    """Seconds from the bodies of all turns to their ids."""
    tokenizer = Tokenizer(folder)
    if used:
        tokenizer.encode(ANOTHER)
    reader, shared = PromptReader(tokenizer), SharedBodies()

    def rendered(exchange: Exchange) -> list[Rendering]:
        asked = read_request(exchange, loads=shared.loads).conversations
        return [render(reader.job(exchange, item, Reply(outcome="done"))) for item in asked]

    return seconds_of(lambda: [reader.read(each) if replies else rendered(each) for each in exchanges])


def report(path: Path, folder: Path) -> list[Line]:
    """`locality report` as a user runs it: the whole process, start-up included, and its memory."""
    command = [sys.executable, "-m", "analyzer", "report", str(path), "--tokenizer", str(folder)]
    found = medians(
        {
            "report": lambda: seconds_of(lambda: _run(command)),
            "start": lambda: seconds_of(lambda: _load(folder)),
        },
        ROUNDS,
    )
    cpu, memory = _cost(command)
    return [
        Line(
            "locality report",
            f"{found['report']:.2f} s",
            "<= 3 s",
            f"whole process, {cpu:.2f} s of processor time; starting Python and loading the tokenizer"
            f" alone: {found['start']:.2f} s",
        ),
        Line("locality report, memory", f"{memory} MB", "< 1000 MB", "largest resident set"),
    ]


def report_memory(path: Path, folder: Path) -> list[Line]:
    """The same on ten big sessions interleaved, once."""
    command = [sys.executable, "-m", "analyzer", "report", str(path), "--tokenizer", str(folder)]
    begin = time.perf_counter()
    cpu, memory = _cost(command)
    return [
        Line(
            "ten sessions, report",
            f"{time.perf_counter() - begin:.1f} s",
            "",
            f"1000 turns, {cpu:.1f} s of processor time",
        ),
        Line("ten sessions, memory", f"{memory} MB", "< 1000 MB", "largest resident set"),
    ]


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment())


def _load(folder: Path) -> None:
    code = "import sys, fastokens; fastokens.Tokenizer.from_file(sys.argv[1])"
    _run([sys.executable, "-c", code, str(folder / "tokenizer.json")])


def _cost(command: list[str]) -> tuple[float, int]:
    """Processor seconds and largest resident MB of a command, measured from a process of its own."""
    code = (
        "import resource, subprocess, sys;"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);"
        "u = resource.getrusage(resource.RUSAGE_CHILDREN); print(u.ru_utime + u.ru_stime, u.ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *command], check=True, capture_output=True, text=True, env=environment()
    )
    cpu, size = done.stdout.split()
    return float(cpu), int(size) * (1 if sys.platform == "darwin" else 1024) // 1_000_000
