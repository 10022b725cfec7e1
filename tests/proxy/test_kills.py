"""`kill -9` at a hundred random moments: what was finished is whole, and what is missing is counted."""

from __future__ import annotations

import http.client
import json
import random
import sqlite3
import threading
import time
from contextlib import closing, suppress
from pathlib import Path

from store.db import Capture
from store.records import Exchange
from tests.conftest import eventually, locality
from tests.proxy.forked import forked
from tests.upstream.faults import DONE, EVENTS
from tests.upstream.misbehaving import MisbehavingUpstream

KILLS = 100
SEED = 20261130
CLIENTS, EXCHANGES = 2, 3
STREAM = b"".join(EVENTS) + DONE


class Client:
    """Asks again and again until its proxy is gone."""

    def __init__(self, port: int, name: str) -> None:
        self.port, self.name = port, name
        self.sent: list[bytes] = []
        self.answered: list[bytes] = []
        self.thread = threading.Thread(target=self._ask)
        self.thread.start()

    def _ask(self) -> None:
        history: list[dict[str, str]] = []
        with suppress(OSError, http.client.HTTPException):
            for turn in range(EXCHANGES):
                history.append({"role": "user", "content": f"{self.name} turn {turn} " + "é漢 " * 300})
                body = json.dumps({"model": "m", "messages": history}, ensure_ascii=turn % 2 == 0).encode()
                with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as connection:
                    self.sent.append(body)
                    fault = {"x-fault": "event_split"}
                    connection.request("POST", "/v1/chat/completions", body, fault)
                    if connection.getresponse().read() == STREAM:
                        self.answered.append(body)


def whole(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def unchanged(exchange: Exchange, sent: set[bytes]) -> bool:
    """Whether what is there of an exchange is what went over the wire."""
    if exchange.ended == "open":
        return exchange.request.content in sent and exchange.response.content == b""
    whole_answer = exchange.ended == "complete" and exchange.response.content == STREAM
    broken_off = exchange.ended in ("reset", "client_gone") and STREAM.startswith(exchange.response.content)
    return exchange.request.content in sent and (whole_answer or broken_off)


def test_a_hundred_kills_at_random_moments_leave_what_was_finished_and_count_what_is_missing(
    tmp_path: Path,
) -> None:
    print(f"seed {SEED}")
    moments = random.Random(SEED)
    capture = tmp_path / "c.sqlite"
    sent: set[bytes] = set()
    answered: list[bytes] = []
    runs: list[tuple[int, int]] = []
    with MisbehavingUpstream() as upstream:
        options = ("--upstream", upstream.url, "--capture", str(capture), "--listen", "127.0.0.1:0")
        for number in range(KILLS):
            with forked(tmp_path / "stderr", "proxy", *options) as proxy:
                clients = [Client(proxy.port, f"{number}.{client}") for client in range(CLIENTS)]
                time.sleep(moments.uniform(0, 0.25))
                proxy.process.kill()
                proxy.process.join(30)
                for client in clients:
                    client.thread.join(30)
            assert proxy.process.exitcode == -9
            sent.update(body for client in clients for body in client.sent)
            answered += [body for client in clients for body in client.answered]
            runs.append((sum(len(c.answered) for c in clients), sum(len(c.sent) for c in clients)))
            whole(capture)
    # The last writer outlives its proxy for as long as it takes to move the log into the file.
    assert eventually(lambda: not Path(f"{capture}-wal").exists(), 60)
    with Capture.open(str(capture)) as opened:
        assert list(opened.verify()) == []
        read = list(opened.exchanges())
        told = opened.runs()
    assert all(unchanged(exchange, sent) for exchange in read)
    assert len(told) == KILLS
    for run, (answers, requests) in zip(told, runs, strict=True):
        assert not run.running
        assert run.ended_at_ns is None
        assert run.lost is not None
        assert answers <= run.requests + run.lost <= requests
    assert len(read) == sum(run.requests for run in told)
    lost = sum(run.lost or 0 for run in told)
    unfinished = sum(exchange.ended == "open" for exchange in read)
    there = {exchange.request.content for exchange in read if exchange.ended == "complete"}
    print(
        f"{len(answered)} answered, {len(read)} written, {unfinished} without an end, {lost} counted missing"
    )
    assert len(set(answered) - there) <= lost + unfinished
    report = json.loads(locality("report", str(capture), "--format", "json").stdout)
    assert (report["capture"]["lost"], report["capture"]["unfinished"]) == (lost, unfinished)
    assert len({turn["id"] for turn in report["turns"]}) == len(read)
    assert any(f"{unfinished} exchange" in problem for problem in report["problems"])
    assert sorted(file.name for file in tmp_path.glob("c.sqlite-run-*"))[1:] == []  # the last one's, if any
