"""Plays one client's task through `locality run`, with a scripted upstream behind it.

`python -m tests.clients.play NAME CLIENTS FOLDER [OPTION ...]`: CLIENTS is where `tests.clients.install` put
them, and the options go to `locality run`. Everything happens in FOLDER: the client's home, its work, the
capture, what the upstream got and answered. Started in a network namespace of its own, it brings up `lo`
there; it asserts nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path

from samples.session import Answer
from tests.clients.contract import Client, write_task
from tests.clients.install import binaries, client
from tests.clients.upstream import ClientUpstream, ScriptedModel
from tests.conftest import environment
from tests.tokenizers import folder_of

LIMIT_SECONDS = 120
TOKENIZER = "qwen3"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def main() -> int:
    """Play, and end with the status of `locality run`."""
    name, installed, folder, *options = sys.argv[1:]
    bring_up_loopback()
    return play(client(name), binaries(Path(installed), name), Path(folder), options)


def bring_up_loopback() -> None:
    """Set the flag of `lo` that says it is up; where it is already, nothing changes."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, SIOCGIFFLAGS, request), 16)
        if not flags & IFF_UP:
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def play(agent: Client, first: list[Path], folder: Path, options: list[str]) -> int:
    """Serve the script, run the client, and write down what came."""
    home, work = folder / "home", folder / "home" / "work"
    write_task(work)
    agent.prepare(home)
    aside = Answer(content=agent.aside)
    model = ScriptedModel(folder_of(TOKENIZER), agent.answers(work), agent.is_side, aside)
    server = ClientUpstream(model)
    server.start()
    locality = [sys.executable, "-m", "analyzer", "run", "--upstream", server.url]
    # PYTHONPATH is for this program; a client in Python has packages of its own.
    script = " && ".join(("unset PYTHONPATH", *agent.commands))
    locality += ["--capture", str(folder / "capture.sqlite"), *options, "--", "sh", "-c", script]
    try:
        with (folder / "said.txt").open("wb") as said:
            return _run(locality, work, client_environment(agent, home, first), said.fileno())
    finally:
        server.stop()
        server.save(folder)


def client_environment(agent: Client, home: Path, first: list[Path]) -> dict[str, str]:
    """A home and XDG folders of its own, and no variable that would point it elsewhere."""
    kinds = ("CONFIG", "DATA", "STATE", "CACHE")
    own = {f"XDG_{kind}_HOME": str(home / f".{kind.lower()}") for kind in kinds}
    path = ":".join([*map(str, first), os.environ.get("PATH", "")])
    own |= {"HOME": str(home), "PATH": path, "PWD": str(home / "work")}
    return environment() | own | agent.environment


def _run(command: list[str], work: Path, variables: dict[str, str], output: int) -> int:
    process = subprocess.Popen(
        command,
        cwd=work,
        env=variables,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    try:
        return process.wait(LIMIT_SECONDS)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
