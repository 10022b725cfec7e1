"""Opening the database behind a capture: file modes, WAL, and errors that say what to do next.

It knows no table but the one of applied migrations.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError
from sqlalchemy.pool import StaticPool

from store import migrations
from store.errors import CaptureError, explained

MODE = 0o600
BUSY_SECONDS = 10
# Small pages: a capture is many blobs of 1 to 5 KB, and each wastes half a page on average.
PAGE_BYTES = 1024
_MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """The file behind a capture as it was when it was opened: SQLite writes on into a deleted one."""

    path: Path
    device: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> OpenedFile:
        """Return the file that is at `path` now."""
        found = path.stat()
        return cls(path.absolute(), found.st_dev, found.st_ino)

    def check(self) -> None:
        """Raise CaptureError unless it is still there under its path."""
        try:
            there = OpenedFile.at(self.path) == self
        except OSError:
            there = False
        if not there:
            raise CaptureError(
                f"{self.path} was deleted, moved or replaced while it was written; "
                "what was recorded in it until then went with it"
            )


def open_for_writing(target: str) -> Engine:
    """Return an engine on `target`, a path or SQLAlchemy URL, created (mode 0600) where it is missing."""
    path = sqlite_path(target)
    if path is None:
        return _other_engine(target)
    _require_file(path)
    try:
        # Before SQLite does: it would follow the umask. WAL and SHM files take over this mode.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), MODE)
    except FileNotFoundError as error:
        raise CaptureError(
            f"cannot create {path}: its folder does not exist; create the folder first"
        ) from error
    except OSError as error:
        raise CaptureError(
            f"cannot write {path} ({error.strerror}); choose another path or fix its mode"
        ) from error
    try:
        _require_sqlite(path)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, MODE)
    finally:
        os.close(descriptor)
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        with explained(str(path)):
            _prepare_for_writing(connection, path)
    except BaseException:
        connection.close()
        raise
    return _engine(lambda: connection, begin="BEGIN IMMEDIATE")


def open_in_memory() -> Engine:
    """Return an engine on a new database that is gone with the process, and never touches the disk."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    # What SQLite sorts or undoes must not go into a temporary file either.
    connection.execute("PRAGMA temp_store=MEMORY")
    return _engine(lambda: connection, begin="BEGIN IMMEDIATE")


def _prepare_for_writing(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
    if mode != "wal":
        raise CaptureError(
            f"{path} cannot use a write-ahead log (SQLite answered {mode!r}), so nobody could read while it "
            "is written; choose a path on a local disk"
        )
    connection.execute("PRAGMA synchronous=NORMAL")


def open_for_reading(target: str) -> Engine:
    """Return an engine on an existing `target` that cannot write; raise CaptureError with the next step."""
    path = sqlite_path(target)
    if path is None:
        return _other_engine(target)
    if not path.exists():
        raise CaptureError(f"there is no capture at {path}; check the path, or start the proxy to make one")
    if path.is_dir():
        raise CaptureError(f"{path} is a folder; give the path of the capture file inside it")
    _require_file(path)
    try:
        _require_sqlite(path)
    except PermissionError as error:
        raise CaptureError(
            f"{path} may not be read by you; ask its owner for a copy or fix its mode"
        ) from error
    connection = _connect_read_only(path)
    return _engine(lambda: connection, begin="BEGIN")


def _connect_read_only(path: Path) -> sqlite3.Connection:
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    wal = Path(f"{path}-wal")
    for attempt in (uri, uri + "&immutable=1"):
        connection = sqlite3.connect(
            attempt, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.DatabaseError as error:
            connection.close()
            # A reader of a WAL file needs its SHM file, which a read-only folder does not let it make. With
            # no log left beside it the file is whole, and may be read as if nobody ever wrote it.
            if attempt == uri and isinstance(error, sqlite3.OperationalError) and not _has_content(wal):
                continue
            raise CaptureError(
                f"{path} cannot be read ({error}); copy it with its -wal file to a folder of yours"
            ) from error
        return connection
    raise AssertionError("unreachable: the second attempt returns or raises")


def _has_content(path: Path) -> bool:
    return path.exists() and path.stat().st_size > 0


def checkpoint(database: Engine) -> None:
    """Move SQLite's log into the file; a busy reader only postpones it to whoever closes last.

    Raise CaptureError where it cannot be moved. Nothing is lost by that while the log stays where it is.
    """
    if database.dialect.name != "sqlite":
        return
    # Not through SQLAlchemy, which would begin a transaction around it.
    raw = database.raw_connection()
    try:
        raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        raise CaptureError(
            f"the last records could not be moved from the -wal file into the capture ({error}); "
            "keep the two together: whatever opens them reads both"
        ) from error
    finally:
        raw.close()


def leave_log(database: Engine) -> None:
    """Make a SQLite database one file, which whoever reads it need not put a log beside."""
    raw = database.raw_connection()
    try:
        raw.cursor().execute("PRAGMA journal_mode=DELETE").fetchall()
    finally:
        raw.close()


def check_version(connection: Connection, target: str, *, writing: bool) -> None:
    """Raise CaptureError unless this program can read (or write) the database."""
    found = migrations.version(connection)
    newest = len(migrations.STEPS)
    if found is None:
        raise CaptureError(f"{target} is a database, but not a locality capture; check the path")
    if found > newest:
        raise CaptureError(
            f"{target} was made by a newer version (format {found}, this one knows {newest}); "
            "upgrade locality"
        )
    if writing or found >= migrations.OLDEST_READABLE:
        return
    raise CaptureError(f"{target} is an empty database: no capture was started in it; check the path")


def sqlite_path(target: str) -> Path | None:
    """Return the file behind `target`, None where it is a URL of another database."""
    if "://" not in target:
        return Path(target)
    try:
        url = make_url(target)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError) as error:
        raise CaptureError(
            f"cannot understand the database URL {shown(target)}; give a file path instead"
        ) from error
    if url.get_backend_name() != "sqlite":
        return None
    if url.database in (None, "", ":memory:"):
        raise CaptureError("a capture in memory would be lost; give a file path")
    return Path(str(url.database))


def shown(target: str) -> str:
    """Return `target` for a message, without the password of a URL."""
    if "://" not in target:
        return target
    try:
        return make_url(target).render_as_string(hide_password=True)
    except ArgumentError:
        return target.partition("://")[0] + "://…"


def _require_file(path: Path) -> None:
    """Refuse a pipe or a device before it is opened: a pipe would wait for somebody at its other end."""
    with contextlib.suppress(OSError):  # what cannot be looked at is for whoever opens it to explain
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise CaptureError(f"{path} is a pipe or a device, and a capture is a file; give another path")


def _require_sqlite(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(len(_MAGIC))
    if head and head != _MAGIC:
        raise CaptureError(f"{path} is not a capture: it is no SQLite file; check the path")


def _other_engine(url: str) -> Engine:
    """Return an engine on a database that is not SQLite."""
    try:
        # An error of the database would quote what was being written.
        return create_engine(url, hide_parameters=True)
    except ImportError as error:
        raise CaptureError(f"{shown(url)} needs a database driver: install {error.name}") from error


def _engine(creator: Callable[[], Any], *, begin: str) -> Engine:
    engine = create_engine("sqlite://", creator=creator, poolclass=StaticPool, hide_parameters=True)

    # sqlite3's own transactions leave out DDL and start too late to lock; this is SQLAlchemy's way around.
    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
