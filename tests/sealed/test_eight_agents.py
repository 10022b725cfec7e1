"""Eight agents at once through the writer of a sealed capture: all that was sent is sealed, none is lost."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

from analyzer.pipeline import Options
from analyzer.sealing_process import SealingProcess
from proxy.recorder import QUEUE_BYTES, Recorder
from store.db import Capture
from store.records import RequestSeen, ResponseSeen
from tests.sealed.made import KEY, report_of
from tests.sealed.records import FACTS, records_of
from tests.sealed.test_equality import growing

AGENTS = 8


def records(agent: int) -> list[RequestSeen | ResponseSeen]:
    """One agent's session, with keys and times of its own."""
    found: list[RequestSeen | ResponseSeen] = []
    for record in records_of(list(growing(20 + agent))[:12]):
        if isinstance(record, RequestSeen):
            at_ns = record.started_at_ns + agent
            found.append(replace(record, key=f"{agent} {record.key}", started_at_ns=at_ns))
        elif isinstance(record, ResponseSeen):
            found.append(replace(record, key=f"{agent} {record.key}"))
    return found


def test_all_that_eight_agents_send_at_once_is_sealed(sample_tokenizer: Path, tmp_path: Path) -> None:
    path, options = tmp_path / "s.sqlite", Options(tokenizer=str(sample_tokenizer))
    sessions = [records(agent) for agent in range(AGENTS)]
    sink = SealingProcess(str(path), options, KEY)
    recorder = Recorder(sink)
    recorder.put(FACTS)

    def play(session: list[RequestSeen | ResponseSeen]) -> None:
        for record in session:
            recorder.put(record)

    threads = [threading.Thread(target=play, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.close(120)
    sink.close()
    sent = sum(isinstance(record, RequestSeen) for session in sessions for record in session)
    assert (recorder.recorded, recorder.lost, recorder.room) == (sent, 0, QUEUE_BYTES)
    with Capture.create_or_open(str(tmp_path / "open.sqlite"), redaction="secrets") as capture:
        capture.save_facts(FACTS)
        for session in sessions:
            for record in session:
                if isinstance(record, RequestSeen):
                    capture.save_request(record)
                else:
                    capture.save_response(record)
    sealed, original = report_of(path, Options()), report_of(tmp_path / "open.sqlite", options)
    assert len({turn.id for turn in sealed.turns}) == sent
    assert [turn.prompt_tokens for turn in sealed.turns] == [turn.prompt_tokens for turn in original.turns]
