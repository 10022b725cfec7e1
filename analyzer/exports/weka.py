"""Writes a trace as agent sessions with their sub-agents, as kv-cache-tester defined and AIPerf replays them.

It numbers full blocks only: what is behind the last of them belongs to no block. Numbers count within a
session. Fields as callanjfox/kv-cache-tester docs/trace_replay_tester.md and AIPerf 0.13
dataset/loader/weka_trace_models.py have them; a field that is not theirs is refused there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from analyzer.exports import Exported, Row, Trace
from analyzer.exports._blocks import BlockNumbers
from analyzer.exports._rows import answered, line, rendered, seconds
from analyzer.exports._sessions import Session, end_ns, sessions_of

BLOCK_SIZE = 64
UNKNOWN = "unknown"


class Weka:
    """Agent sessions with sub-agents, 64 tokens a block number: one JSON object a session.

    Into a folder, each session is a file of its own, as AIPerf reads them; into a file, a line.
    """

    name = "weka"

    def export(self, trace: Trace) -> Exported:
        """One object a session. Content types and the tokens of tools and system are left open."""
        notes: list[str] = []
        rows = answered(rendered(trace.rows, notes), notes)
        sessions = sessions_of(rows)
        names = [f"session_{number:04d}" for number in range(1, len(sessions) + 1)]
        parts = tuple(line(_session(item, name)) for item, name in zip(sessions, names, strict=True))
        if guessed := sum(session.guessed for session in sessions):
            notes.append(
                f"{guessed} conversations are written as sub-agents of another: nobody said so, but they"
                " began and ended while it waited between two requests"
            )
        return Exported(
            parts=parts,
            rows=len(rows),
            notes=tuple(notes),
            part_names=tuple(f"{name}.json" for name in names),
        )


def _session(session: Session, name: str) -> dict[str, Any]:
    numbers = BlockNumbers(BLOCK_SIZE, first=1)
    start_ns = session.rows[0].turn.started_at_ns
    entries = list(_requests(session.rows, start_ns, numbers))
    for number, rows in enumerate(session.children, start=1):
        entries.append(_subagent(rows, start_ns, numbers, f"agent_{number:03d}"))
    every = [row for rows in (session.rows, *session.children) for row in rows]
    return {
        "id": name,
        "models": _models(every),
        "block_size": BLOCK_SIZE,
        "hash_id_scope": "local",
        "requests": sorted(entries, key=lambda entry: entry["t"]),
    }


def _subagent(rows: Sequence[Row], start_ns: int, numbers: BlockNumbers, name: str) -> dict[str, Any]:
    requests = list(_requests(rows, start_ns, numbers))
    ended_ns = max(end_ns(row) for row in rows)
    whole = all(row.turn.outcome == "done" for row in rows)
    return {
        "t": seconds(rows[0], start_ns),
        "type": "subagent",
        "agent_id": name,
        "subagent_type": UNKNOWN,
        "duration_ms": (ended_ns - rows[0].turn.started_at_ns) // 1_000_000,
        "total_tokens": sum(request["in"] + request["out"] for request in requests),
        "status": "completed" if whole else "interrupted",
        "requests": requests,
        "models": _models(rows),
    }


def _requests(rows: Sequence[Row], start_ns: int, numbers: BlockNumbers) -> Iterator[dict[str, Any]]:
    before: Row | None = None
    for row in rows:
        assert row.token_ids is not None
        turn = row.turn
        waited_ns = None if before is None else turn.started_at_ns - end_ns(before)
        timings = {
            "api_time": _seconds(turn.duration_ns),
            "think_time": _seconds(waited_ns) if waited_ns is not None and waited_ns >= 0 else None,
            "ttft": _seconds(turn.ttft_ns if turn.first_token_ns is None else turn.first_token_ns),
        }
        if not row.streams:
            del timings["ttft"]
        yield {
            "t": seconds(row, start_ns),
            "type": "s" if row.streams else "n",
            "model": row.model or UNKNOWN,
            "in": len(row.token_ids),
            "out": row.output_tokens,
            "hash_ids": numbers.full(row.token_ids, row.namespace),
            "input_types": [],
            "output_types": [],
            "stop": "",
            **{name: value for name, value in timings.items() if value is not None},
        }
        before = row


def _models(rows: Iterable[Row]) -> list[str]:
    return list(dict.fromkeys(row.model or UNKNOWN for row in rows))


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else round(nanoseconds / 1e9, 6)


EXPORT = Weka()
