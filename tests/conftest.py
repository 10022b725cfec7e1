"""What several rooms' tests use: the program as a user runs it, and the sample server in front of it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import hypothesis
import pytest
from click.testing import CliRunner

ROOT = Path(__file__).parent.parent
ANNOUNCEMENT = "listening on "

# How long an example takes is the machine's business, and never a failure.
hypothesis.settings.register_profile("steady", deadline=None)
hypothesis.settings.load_profile("steady")


FOREIGN = ("OPENAI_", "ANTHROPIC_", "LOCALITY_", "HF_", "HTTP_", "HTTPS_", "http_proxy", "https_proxy")
"""Variables that would point a client, a model hub or a proxy elsewhere."""


def overrides() -> dict[str, str | None]:
    """What a test's program finds otherwise than this process; None: not at all."""
    foreign = dict.fromkeys(name for name in os.environ if name.startswith(FOREIGN))
    # A parallel test run sets COLUMNS for its own output; what is printed here is as wide as into a pipe.
    own = {"HF_HUB_OFFLINE": "1", "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": None}
    return foreign | own


def environment() -> dict[str, str]:
    """The environment of a program in a process of its own."""
    return {name: value for name, value in (os.environ | overrides()).items() if value is not None}


def locality(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run one command to its end, in this process: importing what a report needs takes seconds each time.

    `extra` are environment variables.
    """
    from analyzer.cli import main

    result = CliRunner(env=overrides() | extra).invoke(main, arguments, prog_name="locality")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)


def process(*arguments: str, timeout: float = 60) -> subprocess.CompletedProcess[str]:
    """Run one command to its end as a user does, in a process of its own."""
    command = [sys.executable, "-m", "analyzer", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environment(), check=False
    )


@dataclass
class Running:
    """A server process that has said where it listens, and what before; `said` is the rest, once it ended."""

    process: subprocess.Popen[str]
    url: str
    said_before: str = ""
    said: str = ""

    def speaks(self, seconds: float = 60) -> bool:
        """Whether it says something more on stderr in time, or ends; what that is, is still to be read."""
        assert self.process.stderr is not None
        return bool(select.select([self.process.stderr], [], [], seconds)[0])

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> int:
        """Send a signal and wait; returns the exit status."""
        self.process.send_signal(number)
        _, self.said = self.process.communicate(timeout=timeout)
        return self.process.returncode


@contextmanager
def running(*command: str, within: tuple[str, ...] = ()) -> Iterator[Running]:
    """A server process for as long as the block lasts; `within` is a command that starts it."""
    process = subprocess.Popen(
        [*within, sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    assert process.stderr is not None
    try:
        yield Running(process, *_announced(process.stderr))
    finally:
        if process.poll() is None:
            process.kill()
        if process.stderr and not process.stderr.closed:
            process.communicate(timeout=30)


def _announced(stderr: IO[str]) -> tuple[str, str]:
    said = b""
    # Byte by byte: what is read ahead into a buffer is lost to whoever reads on.
    while byte := os.read(stderr.fileno(), 1):
        said += byte
        if byte == b"\n" and ANNOUNCEMENT in (line := said.decode().splitlines()[-1]):
            return line.partition(ANNOUNCEMENT)[2].strip(), said.decode().removesuffix(f"{line}\n")
    raise RuntimeError(f"the server ended before it listened: {said.decode()}")


@contextmanager
def proxy(upstream: str, capture: Path, *options: str) -> Iterator[Running]:
    """The real proxy on a free port, in a process of its own."""
    arguments = ("--upstream", upstream, "--capture", str(capture), "--listen", "127.0.0.1:0")
    with running("analyzer", "proxy", *arguments, *options) as server:
        yield server


@pytest.fixture(scope="session")
def sample_tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DeepSeek V4's tokenizer with the samples' chat template."""
    from samples.tokenizer import make_tokenizer_folder

    return make_tokenizer_folder(tmp_path_factory.mktemp("tokenizer"))


def eventually(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether something comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
