"""A small disk of its own for a proxy, where the kernel lets a test mount one.

The file system lives in the proxy's own mount namespace and is gone with it; nothing of the machine changes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Running, running

MOUNT = 'mount -t tmpfs -o "$1" none "$2" && shift 2 && exec "$@"'


def why_no_disk() -> str | None:
    """Why no file system can be mounted here, or None where one can."""
    if shutil.which("unshare") is None:
        return "no unshare here, so that a test cannot mount a file system of its own"
    tried = subprocess.run(
        ["unshare", "-rm", "sh", "-c", "mount -t tmpfs none /mnt"], capture_output=True, check=False
    )
    return None if tried.returncode == 0 else f"no mounting here: {tried.stderr.decode().strip()}"


@dataclass
class Disk:
    """The disk as the test sees it: through a descriptor, which can still be read when the proxy is gone."""

    folder: Path
    seen: Path

    def fill(self) -> None:
        """Leave no room at all."""
        with (self.seen / "filler").open("wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                while True:
                    try:
                        file.write(b"x" * size)
                    except OSError:
                        break

    def make_room(self) -> None:
        """Take away what `fill` wrote."""
        (self.seen / "filler").unlink()

    def copied_to(self, target: Path) -> Path:
        """The capture, taken off the disk with its log: SQLite opens nothing through a descriptor's path."""
        for name in ("c.sqlite", "c.sqlite-wal"):
            (target / name).unlink(missing_ok=True)
            if (self.seen / name).exists():
                shutil.copyfile(self.seen / name, target / name)
        return target / "c.sqlite"


@contextmanager
def proxy_on_disk(upstream: str, folder: Path, mounted: str) -> Iterator[tuple[Running, Disk]]:
    """A proxy that records on a disk that is mounted so, such as `size=2m`."""
    folder.mkdir()
    options = ("--upstream", upstream, "--capture", str(folder / "c.sqlite"), "--listen", "127.0.0.1:0")
    within = ("unshare", "-rm", "sh", "-c", MOUNT, "sh", mounted, str(folder))
    with running("analyzer", "proxy", *options, within=within) as proxy:
        descriptor = os.open(f"/proc/{proxy.process.pid}/root{folder}", os.O_RDONLY | os.O_DIRECTORY)
        try:
            yield proxy, Disk(folder, Path(f"/proc/self/fd/{descriptor}"))
        finally:
            os.close(descriptor)


@contextmanager
def immutable(*paths: Path) -> Iterator[None]:
    """Files and folders that nobody may write to, root and those who have them open among them.

    Skips the test where the file system or the kernel does not let it.
    """
    command = ["chattr", "+i", *map(str, paths)]
    if shutil.which("chattr") is None:
        pytest.skip("no chattr here, so that nothing can be made read-only under its writer")
    done = subprocess.run(command, capture_output=True, check=False)
    try:
        if done.returncode:
            pytest.skip(
                f"nothing can be made read-only under its writer here: {done.stderr.decode().strip()}"
            )
        yield
    finally:
        subprocess.run(["chattr", "-i", *map(str, paths)], capture_output=True, check=False)
