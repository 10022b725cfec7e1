"""Proxies that start in a moment, to be killed by the hundred: forked from a process that has imported all.

Each is the real command in a process of its own, with its own sockets, threads and files.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.conftest import ANNOUNCEMENT, eventually


@dataclass
class Forked:
    """A proxy, where it listens, and the file that its stderr goes to."""

    process: BaseProcess
    stderr: Path

    @property
    def said(self) -> str:
        return self.stderr.read_text(encoding="utf-8") if self.stderr.exists() else ""

    @property
    def port(self) -> int:
        assert eventually(lambda: f"{ANNOUNCEMENT}http" in self.said and self.said.endswith("\n"), 30)
        return int(self.said.partition(ANNOUNCEMENT)[2].split()[0].rpartition(":")[2])


def _run(arguments: Sequence[str], stderr: Path) -> None:
    descriptor = os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(descriptor, 2)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the server that forks ignores it
    from analyzer.cli import main

    main(list(arguments), prog_name="locality")


@contextmanager
def forked(stderr: Path, *arguments: str) -> Iterator[Forked]:
    """A command for as long as the block lasts."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.proxy.preloaded"])
    stderr.unlink(missing_ok=True)
    process = context.Process(target=_run, args=(arguments, stderr))
    process.start()
    try:
        yield Forked(process, stderr)
    finally:
        process.kill()
        process.join(30)
