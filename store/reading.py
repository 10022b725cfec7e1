"""Reading a capture: its exchanges, facts and sealed parts, and whether all of it is whole.

It opens nothing and writes nothing; `db` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Row, Select, select, tuple_
from sqlalchemy import text as text_

from store import audit, blobs, rows, runs, sealed, tables
from store.audit import Counts, Damage
from store.records import Exchange, Run, ServerFact

_PAGE = 64


class Reading:
    """The part of a capture that reads."""

    def __init__(self, database: Engine, *, redaction: str, path: Path | None = None) -> None:
        self._engine = database
        self._path = path
        self._redaction = redaction
        self._reader = blobs.BlobReader()

    @property
    def redaction(self) -> str:
        """Return the policy the capture was created with."""
        return self._redaction

    @property
    def database(self) -> Engine:
        """Return where it is read from."""
        return self._engine

    def settings(self) -> dict[str, str]:
        """Return what holds for the whole capture: its policy, the salt of its placeholders."""
        with self._engine.connect() as connection:
            return {row.name: row.value for row in connection.execute(select(tables.capture))}

    def schema(self) -> list[str]:
        """Return the statements that made the tables of a SQLite database."""
        with self._engine.connect() as connection:
            return [text for text in connection.scalars(text_("SELECT sql FROM sqlite_master")) if text]

    def bytes_in_memory(self) -> bytes:
        """Return a database in memory as the bytes of the file that it would be."""
        raw = self._engine.raw_connection()
        try:
            found: bytes = raw.driver_connection.serialize()  # type: ignore[union-attr]
            return found
        finally:
            raw.close()

    def stored(self) -> Iterator[bytes]:
        """Yield every byte string that it stores, as it was before it was compressed."""
        with self._engine.connect() as connection:
            for blob_id in connection.scalars(select(tables.blob.c.id).order_by(tables.blob.c.id)).all():
                yield self._reader.get(connection, blob_id)

    def sealed(self, kind: str) -> Iterator[sealed.Part]:
        """Yield the parts of a kind in the order they were written; ValueError where one is damaged."""
        with self._engine.connect() as connection:
            yield from sealed.get(connection, self._reader, kind)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield every exchange in the order of their start; ValueError where a body is damaged."""
        key = tuple_(tables.exchange.c.started_at_ns, tables.exchange.c.id)
        query = (
            select(tables.exchange)
            .order_by(tables.exchange.c.started_at_ns, tables.exchange.c.id)
            .limit(_PAGE)
        )
        page = self._rows(query)
        while page:
            for row in page:
                with self._engine.connect() as connection:
                    exchange = rows.read_exchange(connection, self._reader, row)
                yield exchange
            # By key, not in one long query: that would keep the writer's log from being taken up.
            page = self._rows(query.where(key > (page[-1].started_at_ns, page[-1].id)))

    def exchange(self, exchange_id: int) -> Exchange:
        """Return one exchange; raise KeyError where there is none of this id."""
        found = self._rows(select(tables.exchange).where(tables.exchange.c.id == exchange_id))
        if not found:
            raise KeyError(f"the capture has no exchange {exchange_id}")
        with self._engine.connect() as connection:
            return rows.read_exchange(connection, self._reader, found[0])

    def facts(self) -> list[ServerFact]:
        """Return every fact in the order they were written."""
        with self._engine.connect() as connection:
            return [
                ServerFact(
                    at_ns=row.at_ns,
                    path=row.path,
                    status=row.status,
                    body=self._reader.get(connection, row.body),
                )
                for row in connection.execute(select(tables.fact).order_by(tables.fact.c.id)).all()
            ]

    def runs(self) -> tuple[Run, ...]:
        """Return the runs of the proxy that wrote it, in their order; none where nobody entered any."""
        with self._engine.connect() as connection:
            return runs.read(connection, self._path)

    def counts(self) -> Counts:
        """Return how much the capture holds."""
        with self._engine.connect() as connection:
            return audit.counts(connection)

    def verify(self) -> Iterator[Damage]:
        """Read every stored byte string back and hash it; yield those that disagree."""
        with self._engine.connect() as connection:
            damages = audit.damages(connection)
        yield from damages

    def _rows(self, query: Select[Any]) -> Sequence[Row[Any]]:
        with self._engine.connect() as connection:
            return connection.execute(query).all()
