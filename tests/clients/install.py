"""Installs clients from their registries, each into a folder of its own.

`python -m tests.clients.install FOLDER NAME ...`
It is quick where they are there. One that cannot be had, because a registry or its program cannot be
reached, is one printed line `SKIPPED: …`, and kept as `NAME.missing` for the tests that skip; whatever else
fails is an error. If none can be had the exit status is 75.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

from tests.clients.contract import Client
from tests.vllm.build import SKIPPED, Unreachable, ask_index

NODE = "node@22"
OLDEST_NODE = 22
NO_WAY = re.compile(
    r"\b(EAI_AGAIN|ENOTFOUND|ECONN(?:REFUSED|RESET)|ETIMEDOUT|E(?:HOST|NET)UNREACH|ERR_SOCKET_TIMEOUT)\b"
)
NPM = ("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--fetch-retries=1")


def client(name: str) -> Client:
    """What a client's file says of it."""
    found: Client = import_module(f"tests.clients.{name}").CLIENT
    return found


def binaries(folder: Path, name: str) -> list[Path]:
    """The folders that PATH begins with for a client."""
    if client(name).pip:
        return [folder / name / "bin"]
    return [folder / part / "node_modules" / ".bin" for part in (name, "node")]


def reason_missing(folder: Path, name: str) -> str | None:
    """Why a client is not there, in one line; None where it is."""
    if _is_there(folder / name, client(name).packages):
        return None
    note = folder / f"{name}.missing"
    return note.read_text(encoding="utf-8") if note.is_file() else f"{name} is not in {folder}"


def main() -> int:
    """Install what is missing, and say what could not be."""
    folder, names = Path(sys.argv[1]).absolute(), sys.argv[2:]
    folder.mkdir(parents=True, exist_ok=True)
    missing = 0
    for name in names:
        note = folder / f"{name}.missing"
        note.unlink(missing_ok=True)
        begun = time.monotonic()
        try:
            if not _install(folder, name):
                continue
        except Unreachable as error:
            missing += 1
            note.write_text(str(error), encoding="utf-8")
            print(f"SKIPPED: no client {name} to test with, {error}", flush=True)
        else:
            print(f"{name}: installed in {time.monotonic() - begun:.0f} s", flush=True)
    return SKIPPED if missing == len(names) else 0


def _install(folder: Path, name: str) -> bool:
    """Have one client; whether anything was to do. Raises Unreachable."""
    if client(name).pip:
        return _install_pip(folder / name, client(name).packages)
    done = _install_npm(folder / name, client(name).packages)
    return (_is_old(shutil.which("node")) and _install_npm(folder / "node", (NODE,))) or done


def _is_there(target: Path, packages: tuple[str, ...]) -> bool:
    record = target / "installed.txt"
    return record.is_file() and record.read_text(encoding="utf-8").split() == list(packages)


def _install_npm(target: Path, packages: tuple[str, ...]) -> bool:
    if _is_there(target, packages):
        return False
    if shutil.which("npm") is None:
        raise Unreachable("npm is not installed")
    target.mkdir(exist_ok=True)
    done = subprocess.run([*NPM, "--prefix", str(target), *packages], capture_output=True, text=True)
    if done.returncode and (code := NO_WAY.search(done.stderr)):
        raise Unreachable(f"npm's registry cannot be reached ({code[0]})")
    return _recorded(target, packages, done)


def _install_pip(target: Path, packages: tuple[str, ...]) -> bool:
    if _is_there(target, packages):
        return False
    if sys.version_info >= (3, 13):
        raise Unreachable("it needs Python 3.12")  # aider-chat 0.86.2, `Requires-Python`
    ask_index(packages[0].partition("==")[0])
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(target)], check=True)
    pip = [str(target / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    done = subprocess.run([*pip, *packages], capture_output=True, text=True)
    return _recorded(target, packages, done)


def _recorded(target: Path, packages: tuple[str, ...], done: subprocess.CompletedProcess[str]) -> bool:
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        done.check_returncode()
    (target / "installed.txt").write_text("\n".join(packages), encoding="utf-8")
    return True


def _is_old(node: str | None) -> bool:
    if node is None:
        return True
    said = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    number = re.match(r"v(\d+)\.", said)
    return number is None or int(number[1]) < OLDEST_NODE


if __name__ == "__main__":
    sys.exit(main())
