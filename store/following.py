"""Follows a capture that is still written: which exchanges are new, and which are over by now.

It reads no body; each question sees what was written up to then.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy import Connection, Select, func, or_, select
from sqlalchemy.exc import DatabaseError

from store import tables
from store.blobs import BlobReader
from store.errors import CaptureError
from store.reading import Reading


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Mark:
    """That an exchange is there, in the order of their start; `over`: its end was written, too."""

    started_at_ns: int
    id: int
    over: bool


class Following:
    """What came to a capture since it was last asked. Methods raise CaptureError where it cannot be read."""

    def __init__(self, capture: Reading) -> None:
        self._database = capture.database
        self._reader = BlobReader()
        self._newest = 0
        self._open: set[int] = set()

    def news(self) -> list[Mark]:
        """Exchanges that are new, or over since the last question."""
        column = tables.exchange.c
        query = select(column.id, column.started_at_ns, column.ended).where(
            or_(column.id > self._newest, column.id.in_(self._open))
        )
        found = []
        with self._connected() as connection:
            for row in connection.execute(query.order_by(column.id)).all():
                over = row.ended != "open"
                if row.id in self._open and not over:
                    continue
                self._newest = max(self._newest, row.id)
                (self._open.discard if over else self._open.add)(row.id)
                found.append(Mark(started_at_ns=row.started_at_ns, id=row.id, over=over))
        return sorted(found)

    def facts_written(self) -> int:
        """A number that grows with every fact."""
        return self._number(select(func.max(tables.fact.c.id)))

    def sealed_written(self, kind: str) -> int:
        """A number that stays as long as what was sealed first stays; 0 where nothing was."""
        return self._number(select(func.min(tables.sealed.c.id)).where(tables.sealed.c.kind == kind))

    def sealed_of(self, exchange_id: int, kind: str) -> list[bytes]:
        """What was sealed of one exchange; ValueError where it is damaged."""
        column = tables.sealed.c
        query = select(column.content).where(column.exchange_id == exchange_id, column.kind == kind)
        with self._connected() as connection:
            ids = connection.scalars(query.order_by(column.id)).all()
            return [self._reader.get(connection, blob_id) for blob_id in ids]

    def _number(self, query: Select[tuple[int]]) -> int:
        with self._connected() as connection:
            return connection.scalar(query) or 0

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with self._database.connect() as connection:
                yield connection
        except DatabaseError as error:
            raise CaptureError(f"the capture cannot be read any more ({error.orig})") from error
