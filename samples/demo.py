"""The demo: a scripted agent plays a session through the real proxy, twice, and both are reported.

The first session keeps its clock in the newest message, the second in the head of the system text. It
needs no server and no network: upstream and agent are this folder's own.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from samples.tokenizer import make_tokenizer_folder

LOCALITY = (sys.executable, "-m", "analyzer")
SESSIONS = (
    ("tail", "The clock stands in the newest message, and stays there: the session only appends."),
    ("head", "The clock stands in the head of the system text: one line changes at every turn."),
)


def main() -> None:
    """Play and report both sessions."""
    with tempfile.TemporaryDirectory(prefix="locality-demo-") as name:
        folder = Path(name)
        tokenizer = make_tokenizer_folder(folder / "tokenizer")
        for clock, story in SESSIONS:
            print(f"\n== {story}\n", flush=True)
            # A server of its own for each session: the second must not find the first's cache.
            with _upstream(tokenizer) as url:
                capture = folder / f"{clock}.sqlite"
                agent = (sys.executable, "-m", "samples.agent", "--clock", clock)
                _run("run", "--upstream", url, "--capture", str(capture), "--", *agent)
                _run("report", str(capture))


def _run(*arguments: str) -> None:
    subprocess.run([*LOCALITY, *arguments], check=True)


@contextmanager
def _upstream(tokenizer: Path) -> Iterator[str]:
    """The scripted server, for as long as the block lasts; gives its base URL."""
    command = [sys.executable, "-m", "samples.upstream", "--tokenizer", str(tokenizer), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
        try:
            yield _announced(server)
        finally:
            server.terminate()


def _announced(server: subprocess.Popen[str]) -> str:
    assert server.stderr is not None
    for line in server.stderr:
        if "listening on " in line:
            return line.partition("listening on ")[2].strip()
    raise RuntimeError("the sample server ended before it listened")


if __name__ == "__main__":
    main()
