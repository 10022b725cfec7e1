"""Asks vLLM's `/render` for the ids of every body of the corpus, and freezes them as golden files.

    python -m tests.oracle.freeze --vllm .venv-vllm [--only SETUP ...] [--port 8139]
Needs the tokenizers (`python -m tests.tokenizers`) and `python -m tests.vllm.models`.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.corpus.cases import Case, cases
from tests.corpus.setups import SETUPS
from tests.golden_renderings import Golden, pack, path_of
from tests.vllm.server import post, rendering


def rendered_ids(url: str, case: Case) -> tuple[int, list[list[int]]]:
    """The status of `/render`, and the ids of each prompt of the body (none where it was refused)."""
    status, answer = post(f"{url}{case.path}/render", case.body)
    if status != 200:
        return status, []
    said: Any = json.loads(answer)
    return status, [item["token_ids"] for item in (said if isinstance(said, list) else [said])]


def freeze(name: str, vllm: Path, port: int) -> str:
    """Freeze one set-up's file; returns what to tell."""
    setup, wanted = SETUPS[name], [case for case in cases() if name in case.setups]
    with tempfile.TemporaryDirectory() as temporary:
        log = Path(temporary) / "vllm.log"
        with rendering(setup, vllm, port, log) as url:
            begun = datetime.now(UTC)
            with urllib.request.urlopen(url + "/version", timeout=10) as response:
                version = str(json.load(response)["version"])
            goldens = [_golden(case, *rendered_ids(url, case)) for case in wanted]
    if datetime.now(UTC).date() != begun.date():
        raise RuntimeError("the day changed while freezing, and some prompts hold the date: do it again")
    head = {
        "made": f"tests/oracle/freeze.py: vllm launch render, vLLM {version}, TZ=UTC",
        "at": begun.isoformat(timespec="seconds"),
        "setup": name,
        "serve_command": ["vllm", "serve", *setup.arguments],
    }
    rows = [json.dumps(head), *(golden.line() for golden in goldens)]
    path_of(name).write_text("\n".join(rows) + "\n", encoding="utf-8")
    refused = sum(golden.status != 200 for golden in goldens)
    return f"{name}: {len(goldens)} cases, {refused} refused, {path_of(name).stat().st_size} bytes"


def _golden(case: Case, status: int, prompts: list[list[int]]) -> Golden:
    return Golden(
        case=case.name, digest=case.digest, status=status, prompts=tuple(pack(ids) for ids in prompts)
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--vllm", type=Path, required=True, help="the folder of vLLM's environment")
    parser.add_argument("--port", type=int, default=8139)
    parser.add_argument("--only", nargs="*", choices=list(SETUPS), default=list(SETUPS))
    args = parser.parse_args()
    for name in args.only:
        print(freeze(name, args.vllm.absolute(), args.port), flush=True)


if __name__ == "__main__":
    main()
