"""Starts a real vLLM for a set-up of the corpus, on loopback, and stops it by its own process.

`rendering(...)` starts `vllm launch render` (no weights, `/render` alone); `serving(...)` the whole server.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.corpus.setups import MODELS, ROOT, Setup

SECONDS_TO_START = 300
SECONDS_TO_STOP = 40
REVEALING = (
    "--enforce-eager",
    "--enable-prefix-caching",
    "--enable-prompt-tokens-details",
    "--enable-scale-out",
)
SERVE = ("--max-model-len", "32768", "--block-size", "32")


@contextmanager
def rendering(setup: Setup, vllm: Path, port: int, log: Path) -> Iterator[str]:
    """The URL of a server that renders only; `vllm` is the folder of its environment."""
    with _running(["launch", "render", *setup.arguments], vllm, port, log) as url:
        yield url


@contextmanager
def serving(setup: Setup, vllm: Path, port: int, log: Path, sizes: tuple[str, ...] = SERVE) -> Iterator[str]:
    """The URL of a whole server, with a block of 32 tokens by default; it needs the model's weights."""
    with _running(["serve", *setup.arguments, *REVEALING, *sizes], vllm, port, log) as url:
        yield url


@contextmanager
def _running(arguments: list[str], vllm: Path, port: int, log: Path) -> Iterator[str]:
    command = [str(vllm / "bin" / "vllm"), *arguments, "--host", "127.0.0.1", "--port", str(port)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=_environment(vllm), stdout=output, stderr=output, start_new_session=True
        )
        try:
            url = f"http://127.0.0.1:{port}"
            _wait(process, url, log)
            yield url
        finally:
            _stop(process)


def _environment(vllm: Path) -> dict[str, str]:
    return os.environ | {
        "PATH": f"{vllm / 'bin'}:{os.environ.get('PATH', '')}",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "DO_NOT_TRACK": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "TIKTOKEN_ENCODINGS_BASE": str(ROOT / MODELS / "tiktoken"),
        "no_proxy": "127.0.0.1,localhost",
        "TZ": "UTC",
    }


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_START
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"vLLM ended while starting:\n{_tail(log)}")
        try:
            urllib.request.urlopen(url + "/v1/models", timeout=5).close()
        except OSError:
            time.sleep(0.5)
        else:
            return
    raise RuntimeError(f"vLLM did not answer in {SECONDS_TO_START} s:\n{_tail(log)}")


def _tail(log: Path) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-25:])


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask its process group to end; it is a session of its own, so nobody else is in it."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(SECONDS_TO_STOP)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def post(url: str, body: bytes, *, timeout: float = 120) -> tuple[int, bytes]:
    """Send a JSON body as it stands; the status and the answer, refusals included."""
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
