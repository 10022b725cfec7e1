"""How much a capture holds, and whether all of it still reads back.

It repairs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, func, or_, select
from sqlalchemy.exc import DatabaseError

from store import blobs, tables

_SIDES, _PARTS = ("request", "response"), ("headers", "content")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much a capture holds. `wire_bytes` crossed the wire; `stored_bytes` are what blobs take.

    `secrets` counts distinct secrets by kind, `open` the exchanges whose end was never seen.
    """

    exchanges: int
    open: int
    facts: int
    secrets: dict[str, int]
    wire_bytes: int
    stored_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A stored byte string that does not read back as it was written, and who refers to it.

    `blob_id` is 0 where the database itself cannot be read.
    """

    blob_id: int
    exchange_ids: tuple[int, ...]
    fact_ids: tuple[int, ...]
    reason: str


def counts(connection: Connection) -> Counts:
    """Return how much the capture holds."""
    exchange, secret = tables.exchange.c, tables.secret.c
    wire = func.coalesce(exchange.request_wire_length, 0) + func.coalesce(exchange.response_wire_length, 0)
    kinds = connection.execute(select(secret.kind, func.count()).group_by(secret.kind)).all()
    still_open = select(func.count(exchange.id)).where(exchange.ended == "open")
    return Counts(
        exchanges=connection.scalar(select(func.count(exchange.id))) or 0,
        open=connection.scalar(still_open) or 0,
        facts=connection.scalar(select(func.count(tables.fact.c.id))) or 0,
        secrets={row[0]: row[1] for row in kinds},
        wire_bytes=int(connection.scalar(select(func.sum(wire))) or 0),
        stored_bytes=int(connection.scalar(select(func.sum(func.length(tables.blob.c.data)))) or 0),
    )


def damages(connection: Connection) -> list[Damage]:
    """Read every stored byte string back and hash it; return those that disagree or are not there."""
    try:
        found = [
            *blobs.damaged(connection),
            *((missing, "it is not there") for missing in _missing(connection)),
        ]
        return [_damage(connection, blob_id, reason) for blob_id, reason in found]
    except DatabaseError as error:
        reason = f"the database cannot be read: {error.orig}"
        return [Damage(blob_id=0, exchange_ids=(), fact_ids=(), reason=reason)]


def _missing(connection: Connection) -> list[int]:
    """Byte strings that an exchange or a fact refers to and that are not there."""
    users = [tables.exchange.c[f"{side}_{part}"] for side in _SIDES for part in _PARTS]
    there = select(tables.blob.c.id)
    found: set[int] = set()
    for column in (*users, tables.fact.c.body, tables.sealed.c.content):
        found.update(connection.scalars(select(column).where(column.is_not(None), column.not_in(there))))
    return sorted(found)


def _damage(connection: Connection, blob_id: int, reason: str) -> Damage:
    columns = tables.exchange.c
    references = or_(*(columns[f"{side}_{part}"] == blob_id for side in _SIDES for part in _PARTS))
    exchange_ids = connection.scalars(select(columns.id).where(references).order_by(columns.id)).all()
    fact_ids = connection.scalars(select(tables.fact.c.id).where(tables.fact.c.body == blob_id)).all()
    return Damage(blob_id=blob_id, exchange_ids=tuple(exchange_ids), fact_ids=tuple(fact_ids), reason=reason)
