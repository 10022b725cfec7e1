"""The rows of a sealed capture: exchanges without their bodies, and what stands for these.

It knows no meaning of what it keeps: whoever seals has taken the text out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, inspect, select

from store import tables
from store.blobs import BlobReader, BlobWriter
from store.door import CleanHead, CleanMessage, Door, EndedWith
from store.records import ENDPOINTS, Body, RequestSeen, ResponseSeen

POLICY = "sealed"

WITHHELD = "withheld"
_METHODS = frozenset(("GET", "POST"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Bytes that stand for something of an exchange, or of the whole capture where `exchange_id` is None.

    `kind` says what they are, `number` which of several.
    """

    exchange_id: int | None
    kind: str
    number: int
    content: bytes


class SealedDoor(Door):
    """Lets no header, body, query or message in: of an exchange only its sizes, times and status are kept.

    Of a body not even a hash, by which a guessed text could be confirmed.
    """

    def request(self, seen: RequestSeen) -> tuple[CleanHead, CleanMessage]:
        """Return a request without all that was said in it."""
        return bare_head(seen.method, seen.path), bare_message(len(seen.body))

    def response(self, seen: ResponseSeen) -> CleanMessage:
        """Return a response without all that was said in it."""
        return bare_message(len(seen.body))

    def ended(self, seen: ResponseSeen) -> EndedWith:
        """Return neither the chunks, which tell the lengths of words, nor a message that may quote."""
        return EndedWith(chunks=(), error=None)


def bare_head(method: str, path: str) -> CleanHead:
    """Return a request line in the words of known endpoints alone."""
    return CleanHead(
        method=method if method in _METHODS else WITHHELD,
        path=path if path in ENDPOINTS else f"/{WITHHELD}",
        query="",
    )


def bare_message(wire_length: int) -> CleanMessage:
    """Return a side of an exchange of which its length on the wire is left."""
    return CleanMessage(headers=b"[]", body=Body(wire_length=wire_length))


def put(connection: Connection, writer: BlobWriter, parts: Sequence[Part]) -> None:
    """Write parts; each kind is stored against its predecessors."""
    for part in parts:
        blob_id = writer.put(connection, f"sealed {part.kind}", part.content)
        connection.execute(
            tables.sealed.insert().values(
                exchange_id=part.exchange_id, kind=part.kind, number=part.number, content=blob_id
            )
        )


def drop(connection: Connection, kinds: Sequence[str]) -> None:
    """Take the parts of some kinds out again; the bytes they referred to may stay."""
    connection.execute(tables.sealed.delete().where(tables.sealed.c.kind.in_(kinds)))


def get(connection: Connection, reader: BlobReader, kind: str) -> Iterator[Part]:
    """Yield all parts of a kind in the order they were written; ValueError where one is damaged."""
    if not inspect(connection).has_table(tables.sealed.name):
        return
    column = tables.sealed.c
    for row in connection.execute(select(tables.sealed).where(column.kind == kind).order_by(column.id)).all():
        content = reader.get(connection, row.content)
        yield Part(exchange_id=row.exchange_id, kind=kind, number=row.number, content=content)
