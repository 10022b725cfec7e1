"""A sealed capture as one JSON object, and back: for who cannot or will not open a database.

It seals nothing: it writes what a sealed capture holds.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict
from typing import Any

from analyzer.typed import typed
from store.db import Capture
from store.records import Body, Exchange, Run, ServerFact
from store.sealed import POLICY, Part

SCHEMA = "locality-sealed/1"

_KINDS = ("basis", "prompt", "request", "response", "segments", "chain")
_BINARY = "chain"


def as_json(capture: Capture) -> str:
    """The object, a line for each exchange, fact and part."""
    rows = {
        "exchanges": [_exchange(item) for item in capture.exchanges()],
        "facts": [
            {"at_ns": fact.at_ns, "path": fact.path, "status": fact.status, "body": fact.body.decode()}
            for fact in capture.facts()
        ],
        "runs": [asdict(run) for run in capture.runs()],
        "parts": [_part(part) for kind in _KINDS for part in capture.sealed(kind)],
    }
    members = [
        json.dumps(name) + ": [\n" + ",\n".join(map(_line, items)) + "\n]" for name, items in rows.items()
    ]
    return "{" + f'"schema": "{SCHEMA}",\n' + ",\n".join(members) + "}\n"


def from_json(text: str) -> Capture:
    """The same capture, in memory. Raises ValueError where it is none."""
    read = json.loads(text)
    if not isinstance(read, dict) or read.get("schema") != SCHEMA:
        raise ValueError(f"no object of schema {SCHEMA}")
    capture = Capture.in_memory(POLICY)
    try:  # whatever fails, in whatever way: a stranger may have written it
        for row in read["exchanges"]:
            capture.copy_sealed(_read_exchange(row))
        capture.save_facts(
            [typed(ServerFact, {**fact, "body": fact["body"].encode()}) for fact in read["facts"]]
        )
        capture.copy_runs([typed(Run, run) for run in read.get("runs", ())])
        capture.save_sealed([_read_part(part) for part in read["parts"]])
    except Exception as error:
        capture.close()
        raise ValueError(f"it is damaged ({type(error).__name__})") from error
    return capture


def _line(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _exchange(exchange: Exchange) -> dict[str, Any]:
    return {
        "id": exchange.id,
        "started_at_ns": exchange.started_at_ns,
        "method": exchange.method,
        "path": exchange.path,
        "status": exchange.status,
        "ttft_ns": exchange.ttft_ns,
        "duration_ns": exchange.duration_ns,
        "ended": exchange.ended,
        "request_bytes": exchange.request.wire_length,
        "response_bytes": exchange.response.wire_length,
    }


def _read_exchange(row: dict[str, Any]) -> Exchange:
    sizes = {name: row.pop(f"{name}_bytes") for name in ("request", "response")}
    return typed(
        Exchange,
        {
            **row,
            "query": "",
            "request_headers": (),
            "response_headers": (),
            "request": Body(wire_length=sizes["request"]),
            "response": Body(wire_length=sizes["response"]),
            "chunks": (),
            "error": None,
        },
    )


def _part(part: Part) -> dict[str, Any]:
    binary = part.kind == _BINARY
    content = base64.b64encode(part.content).decode() if binary else json.loads(part.content)
    return {"exchange_id": part.exchange_id, "kind": part.kind, "number": part.number, "content": content}


def _read_part(part: dict[str, Any]) -> Part:
    content = part["content"]
    binary = part["kind"] == _BINARY
    return Part(**{**part, "content": base64.b64decode(content) if binary else _line(content).encode()})
