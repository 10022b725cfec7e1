"""Rows of the capture as the shapes of `records`, and back.

It runs no query of its own except for the blobs a row refers to.
"""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import Connection, Row

from store import timings
from store.blobs import BlobReader
from store.door import CleanHead
from store.records import Body, Exchange, Headers


def body_values(side: str, *, headers: int, content: int, body: Body) -> dict[str, Any]:
    """Return the columns of one side ("request", "response"); `headers` and `content` are blob ids."""
    return {
        f"{side}_headers": headers,
        f"{side}_content": content,
        f"{side}_wire_length": body.wire_length,
        f"{side}_wire_sha256": bytes.fromhex(body.wire_sha256),
        f"{side}_problem": body.problem,
        f"{side}_secrets": _written_secrets(body) if body.secrets else None,
    }


def _written_secrets(body: Body) -> str:
    by_kind: dict[str, dict[str, int]] = {}
    for (kind, path), count in body.secret_paths.items():
        by_kind.setdefault(kind, {})[path] = count
    return json.dumps(by_kind, sort_keys=True)


def _read_secrets(written: str | None) -> dict[tuple[str, str], int]:
    """Counts by kind and path; captures of an earlier version have them by kind alone."""
    found: dict[tuple[str, str], int] = {}
    for kind, counts in json.loads(written or "{}").items():
        by_path = counts if isinstance(counts, dict) else {"": counts}
        found.update({(kind, path): count for path, count in by_path.items()})
    return found


def bare_values(exchange: Exchange, head: CleanHead) -> dict[str, Any]:
    """Return the columns of an exchange of which nothing that was said is kept, but for its two sides."""
    return {
        "id": exchange.id,
        "started_at_ns": exchange.started_at_ns,
        "method": head.method,
        "path": head.path,
        "query": head.query,
        "status": exchange.status,
        "ttft_ns": exchange.ttft_ns,
        "duration_ns": exchange.duration_ns,
        "ended": exchange.ended,
    }


def read_exchange(connection: Connection, blobs: BlobReader, row: Row[Any]) -> Exchange:
    """Return the exchange of a row; raise ValueError where a body cannot be read back."""
    columns = row._mapping
    request_headers, request = _side(connection, blobs, columns, "request")
    response_headers, response = _side(connection, blobs, columns, "response")
    return Exchange(
        id=row.id,
        started_at_ns=row.started_at_ns,
        method=row.method,
        path=row.path,
        query=row.query,
        request_headers=request_headers,
        request=request,
        status=row.status,
        response_headers=response_headers,
        response=response,
        chunks=timings.unpack(row.chunks),
        ttft_ns=row.ttft_ns,
        duration_ns=row.duration_ns,
        ended=row.ended,
        error=row.error,
    )


def _side(connection: Connection, blobs: BlobReader, columns: Any, side: str) -> tuple[Headers, Body]:
    if columns[f"{side}_headers"] is None:
        return (), Body()
    pairs = json.loads(blobs.get(connection, columns[f"{side}_headers"]))
    paths = _read_secrets(columns[f"{side}_secrets"])
    body = Body(
        content=blobs.get(connection, columns[f"{side}_content"]),
        wire_length=columns[f"{side}_wire_length"],
        wire_sha256=columns[f"{side}_wire_sha256"].hex(),
        problem=columns[f"{side}_problem"],
        secrets={kind: sum(paths[key] for key in paths if key[0] == kind) for kind, _ in paths},
        secret_paths=paths,
    )
    return tuple((name, value) for name, value in pairs), body
