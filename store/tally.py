"""How many exchanges a running proxy has begun, in a small file beside the capture that outlives a kill.

The file is locked for as long as its writer lives, and removed by one that ends in order: one that is left
behind, and free, is that of a proxy that was killed. It knows no capture, and losing it loses no record.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from dataclasses import dataclass
from pathlib import Path

_MODE = 0o600
_WIDTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What the file of a run says: the exchanges begun, None where it cannot be read; `running`: locked."""

    begun: int | None
    running: bool


def tally_path(capture: Path, key: str) -> Path:
    """Where the run of this key keeps its count."""
    return Path(f"{capture}-run-{key}")


class Tally:
    """Counts exchanges as they begin, in memory that is the file's: it outlives the process, and waits for no
    disk.

    Raises OSError where the file cannot be made.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _MODE)
        self.begun = 0
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # waits at most while a reader looks whether it is free
            # All of it now: the disk may be full later, and there is no error for memory without a disk.
            os.pwrite(descriptor, bytes(mmap.PAGESIZE), 0)
            self._count = mmap.mmap(descriptor, mmap.PAGESIZE)
        except (OSError, ValueError) as error:
            self._remove()
            os.close(descriptor)
            raise OSError(f"{path}: {error}") from error
        self._descriptor = descriptor

    def add(self) -> None:
        """One exchange more has begun."""
        self.begun += 1
        self._count[:_WIDTH] = self.begun.to_bytes(_WIDTH, "big")

    def close(self, *, keep: bool) -> None:
        """End it; the file is kept where the capture itself could not take the counts."""
        if not keep:
            self._remove()
        self._count.close()
        os.close(self._descriptor)

    def _remove(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink()


def read_tally(path: Path) -> Left:
    """Read what a run has left, or is still writing."""
    try:
        with path.open("rb") as file:
            held = file.read(_WIDTH)
            running = not _free(file.fileno())
    except OSError:
        return Left(begun=None, running=False)
    return Left(begun=int.from_bytes(held, "big") if len(held) == _WIDTH else None, running=running)


def _free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
