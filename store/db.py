"""A capture: the exchanges of a proxy run and the facts about its server, in one database.

It interprets no body; a capture belongs to one thread at a time.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, Self

from sqlalchemy import Connection, Engine, select
from sqlalchemy.exc import DatabaseError

from store import blobs, engine, errors, migrations, rows, runs, sealed, tables, timings
from store.audit import Counts, Damage
from store.door import CleanMessage, Door
from store.errors import CaptureError
from store.reading import Reading
from store.records import Exchange, RequestSeen, ResponseSeen, Run, RunSeen, ServerFact
from store.vault import SALT_BYTES, Fingerprint, Vault

POLICIES = ("secrets", sealed.POLICY)
"""The redaction policies a capture can be created with."""

__all__ = ["POLICIES", "Capture", "CaptureError", "Counts", "Damage"]


class Capture(Reading):
    """A capture file, for writing (`create_or_open`) or reading (`open`); close it, or use `with`.

    Its `save_` methods raise TimeoutError while another process holds it locked (the same call may work
    later), and CaptureError once its file was deleted or replaced.
    """

    def __init__(
        self,
        database: Engine,
        *,
        redaction: str,
        door: Door | None,
        name: str = "",
        file: engine.OpenedFile | None = None,
    ) -> None:
        super().__init__(database, redaction=redaction, path=engine.sqlite_path(name) if name else None)
        self._name = engine.shown(name)
        self._file = file
        self._door = door
        self._run: str | None = None
        self._ids: dict[str, int] = {}
        self._writer = blobs.BlobWriter()

    @classmethod
    def create_or_open(cls, target: str, *, redaction: str) -> Self:
        """Open `target`, a path or SQLAlchemy URL, for writing; a missing file is created with mode 0600.

        Raise ValueError for a policy not in POLICIES, CaptureError where `target` cannot be used.
        """
        if redaction not in POLICIES:
            raise ValueError(f"unknown redaction policy {redaction!r}; use one of: {', '.join(POLICIES)}")
        database = engine.open_for_writing(target)
        path = engine.sqlite_path(target)
        try:
            file = engine.OpenedFile.at(path) if path else None
            with errors.explained(engine.shown(target)), database.begin() as connection:
                engine.check_version(connection, engine.shown(target), writing=True)
                migrations.migrate(connection)
                if path:
                    runs.settle(connection, path)
                settings = _settings(connection, redaction)
                vault = Vault(bytes.fromhex(settings["salt"]), _fingerprints(connection))
            if settings["redaction"] != redaction:
                raise CaptureError(
                    f"{engine.shown(target)} was started with redaction {settings['redaction']!r}; "
                    "go on with that, or choose another path"
                )
        except BaseException:
            database.dispose()
            raise
        return cls(database, redaction=redaction, door=_door(redaction, vault), name=target, file=file)

    @classmethod
    def in_memory(cls, redaction: str = "secrets") -> Self:
        """Return a new capture that never touches the disk."""
        database = engine.open_in_memory()
        with database.begin() as connection:
            migrations.migrate(connection)
            settings = _settings(connection, redaction)
        return cls(
            database, redaction=redaction, door=_door(redaction, Vault(bytes.fromhex(settings["salt"])))
        )

    @classmethod
    def open(cls, target: str) -> Self:
        """Open an existing capture for reading, also while a proxy writes it.

        Raise CaptureError where it is missing, not a capture, or of another version.
        """
        database = engine.open_for_reading(target)
        try:
            with database.connect() as connection:
                engine.check_version(connection, engine.shown(target), writing=False)
                settings = _read_settings(connection)
        except BaseException:
            database.dispose()
            raise
        return cls(database, redaction=settings["redaction"], door=None, name=target)

    def into_one_file(self) -> None:
        """Make it a file that can be given away: nothing more is to be written, nor read meanwhile."""
        engine.leave_log(self._engine)

    def close(self) -> None:
        """Close the database; a writer first moves its log into the file.

        It is closed also where CaptureError is raised: the file is gone, or the log could not be moved.
        """
        try:
            self._check_file()
            if self._door is not None:
                engine.checkpoint(self._engine)
        finally:
            self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def learn(self, secret: str) -> None:
        """Keep a secret out of all that is written from now on, whatever it looks like."""
        self._checked_door().learn(secret)

    def save_request(self, seen: RequestSeen) -> int:
        """Write a request in state `open` and return its exchange id; raise ValueError for a used key."""
        if seen.key in self._ids:
            raise ValueError(f"request key {seen.key!r} is already open")
        head, message = self._checked_door().request(seen)
        with self._transaction() as connection:
            values = self._store(connection, "request", head.path, message)
            result = connection.execute(
                tables.exchange.insert().values(
                    started_at_ns=seen.started_at_ns,
                    method=head.method,
                    path=head.path,
                    query=head.query,
                    ended="open",
                    **values,
                )
            )
            if self._run is not None:
                runs.count_request(connection, self._run)
        assert result.inserted_primary_key is not None
        self._ids[seen.key] = int(result.inserted_primary_key[0])
        return self._ids[seen.key]

    def save_response(self, seen: ResponseSeen) -> int:
        """Finish the exchange of `seen.key` and return its id; raise KeyError where it is not open."""
        if seen.key not in self._ids:
            raise KeyError(f"no open exchange has the key {seen.key!r}: save its request first")
        exchange_id = self._ids[seen.key]
        door = self._checked_door()
        message, end = door.response(seen), door.ended(seen)
        mine = tables.exchange.c.id == exchange_id
        with self._transaction() as connection:
            path = connection.execute(select(tables.exchange.c.path).where(mine)).scalar_one()
            values = self._store(connection, "response", path, message)
            connection.execute(
                tables.exchange.update()
                .where(mine)
                .values(
                    status=seen.status,
                    chunks=timings.pack(end.chunks),
                    ttft_ns=seen.ttft_ns,
                    duration_ns=seen.duration_ns,
                    ended=seen.ended,
                    error=end.error,
                    **values,
                )
            )
        del self._ids[seen.key]
        return exchange_id

    def save_facts(self, facts: Sequence[ServerFact]) -> None:
        """Write what the server answered about itself."""
        door = self._checked_door()
        clean = [(fact, door.text(fact.path), door.fact(fact)) for fact in facts]
        with self._transaction() as connection:
            for fact, path, body in clean:
                blob_id = self._writer.put(connection, f"fact {path}", body)
                connection.execute(
                    tables.fact.insert().values(at_ns=fact.at_ns, path=path, status=fact.status, body=blob_id)
                )

    def save_run(self, seen: RunSeen) -> None:
        """Write that a run of the proxy began, whose requests are counted from now on; or that it ended."""
        with self._transaction() as connection:
            runs.save(connection, seen)
        self._run = seen.key

    def copy_runs(self, copied: Sequence[Run]) -> None:
        """Write the runs of another capture."""
        with self._transaction() as connection:
            runs.copy(connection, copied)

    def save_sealed(self, parts: Sequence[sealed.Part], *, instead_of: Sequence[str] = ()) -> None:
        """Write what stands for bodies, after taking out all parts of the kinds in `instead_of`."""
        with self._transaction() as connection:
            sealed.drop(connection, instead_of)
            sealed.put(connection, self._writer, parts)

    def copy_sealed(self, exchange: Exchange) -> None:
        """Write an exchange of another capture under its own id, without all that was said in it."""
        head = sealed.bare_head(exchange.method, exchange.path)
        with self._transaction() as connection:
            sides: dict[str, Any] = {}
            for side, body in (("request", exchange.request), ("response", exchange.response)):
                bare = sealed.bare_message(body.wire_length)
                sides |= self._store(connection, side, head.path, bare)
            connection.execute(tables.exchange.insert().values(**rows.bare_values(exchange, head), **sides))

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _checked_door(self) -> Door:
        if self._door is None:
            raise ValueError("this capture is open for reading; use Capture.create_or_open to write")
        return self._door

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[Connection]:
        vault = self._checked_door().vault
        self._check_file()
        try:
            with self._engine.begin() as connection:
                for item in vault.unsaved:
                    connection.execute(
                        tables.secret.insert().values(
                            number=item.number, kind=item.kind, fingerprint=item.digest
                        )
                    )
                yield connection
        except BaseException as error:
            # What was not committed must not serve as a predecessor.
            self._writer.forget()
            if not isinstance(error, DatabaseError):
                raise
            if errors.is_busy(error):
                raise TimeoutError("another process holds the capture locked") from error
            raise errors.readable(error, self._name) from error
        vault.unsaved.clear()

    def _store(self, connection: Connection, side: str, path: str, message: CleanMessage) -> dict[str, Any]:
        ids = {}
        for part, content in (("headers", message.headers), ("content", message.body.content)):
            column = tables.exchange.c[f"{side}_{part}"]
            stream = f"{column.name} {path}"
            if not self._writer.knows(stream):
                same = select(column).where(tables.exchange.c.path == path, column.is_not(None))
                latest = connection.scalars(
                    same.order_by(tables.exchange.c.id.desc()).limit(blobs.RECENT)
                ).all()
                self._writer.load(connection, self._reader, stream, latest[::-1])
            ids[part] = self._writer.put(connection, stream, content)
        return rows.body_values(side, headers=ids["headers"], content=ids["content"], body=message.body)


def _door(redaction: str, vault: Vault) -> Door:
    return sealed.SealedDoor(vault) if redaction == sealed.POLICY else Door(vault)


def _settings(connection: Connection, redaction: str) -> dict[str, str]:
    found = _read_settings(connection)
    if not found:
        found = {"redaction": redaction, "salt": secrets.token_hex(SALT_BYTES)}
        for name, value in found.items():
            connection.execute(tables.capture.insert().values(name=name, value=value))
    return found


def _read_settings(connection: Connection) -> dict[str, str]:
    return {row.name: row.value for row in connection.execute(select(tables.capture))}


def _fingerprints(connection: Connection) -> list[Fingerprint]:
    found = connection.execute(select(tables.secret)).all()
    return [Fingerprint(number=row.number, kind=row.kind, digest=row.fingerprint) for row in found]
