"""What becomes of a database's errors: one sentence that names the capture and the next step to try.

It opens nothing and decides nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator

from sqlalchemy.exc import DatabaseError

_NOT_OURS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_IOERR)
_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class CaptureError(Exception):
    """A capture that cannot be used; the message names the target and the next step to try."""


def is_busy(error: DatabaseError) -> bool:
    """Whether another process holds the database, so that the same may work later."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def readable(error: DatabaseError | sqlite3.Error, target: str) -> CaptureError:
    """What a failing database means to whoever chose `target`."""
    said = getattr(error, "orig", None) or error
    match _code(error):
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return CaptureError(
                f"another process holds {target} locked; wait until it is done, or choose another path"
            )
        case sqlite3.SQLITE_FULL:
            return CaptureError(
                f"there is no room on the disk of {target}; make room, or choose another path"
            )
        case code if code in _NOT_OURS:
            return CaptureError(
                f"{target} cannot be written ({said}); see that its disk has room and that its folder may be "
                "written too, since a log is kept beside it, or choose another path on a local disk"
            )
        case code if code in _DAMAGED:
            return CaptureError(f"{target} is damaged ({said}); keep it, and choose another path")
    return CaptureError(f"{target} cannot be used ({said}); choose another path")


@contextlib.contextmanager
def explained(target: str) -> Iterator[None]:
    """Raise what a database raises as a CaptureError."""
    try:
        yield
    except (DatabaseError, sqlite3.Error) as error:
        raise readable(error, target) from error


def _code(error: DatabaseError | sqlite3.Error) -> int | None:
    """SQLite's primary code, None for another database's error."""
    code: int | None = getattr(getattr(error, "orig", None) or error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
