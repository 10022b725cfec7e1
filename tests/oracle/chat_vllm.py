"""Asks a real vLLM's /render for every body of tests/chat_cases.py, and writes tests/golden/chat/*.json.

Usage, with vLLM 0.32 installed and `vllm` on the PATH (an environment of its own):

    python -m tests.oracle.chat_vllm [PORT]

A server without weights is started for each set of flags, one after another, and stopped again. A golden
file holds, by case, the text of the ids the server answered, or the status with which it refused the body.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.byte_tokenizer import make_folder, text_of
from tests.chat_cases import CASES, SERVERS, TOLD

GOLDEN = Path(__file__).parent.parent / "golden" / "chat"
START_SECONDS = 300


def main() -> None:
    """Write all golden files."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8121
    with tempfile.TemporaryDirectory() as temporary:
        model = make_folder(Path(temporary) / "bytes")
        template = Path(temporary) / "template.jinja"
        template.write_text(TOLD, encoding="utf-8")
        for name, flags in SERVERS.items():
            command = ["vllm", "launch", "render", str(model), "--host", "127.0.0.1", "--port", str(port)]
            command += ["--served-model-name", "m", *shlex.split(flags.replace("TEMPLATE", str(template)))]
            _freeze(name, flags, model, command, port)


def _freeze(name: str, flags: str, model: Path, command: list[str], port: int) -> None:
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}
    log = (model.parent / f"{name}.log").open("w+b")
    server = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        version = _wait(url, server, model.parent / f"{name}.log")
        answers = {case: _ask(url, model, body) for case, body in CASES[name].items()}
    finally:
        server.terminate()
        server.wait(60)
        log.close()
    made = f"vllm {version} launch render BYTES {flags}; python -m tests.oracle.chat_vllm"
    GOLDEN.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"made": made, "answers": answers}, ensure_ascii=False, indent=1)
    (GOLDEN / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(name, len(answers), "cases")


def _wait(url: str, server: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url + "/version", timeout=2) as answer:
                return str(json.loads(answer.read())["version"])
        except OSError:
            time.sleep(0.5)
    raise RuntimeError("the server did not start:\n" + log.read_text(errors="replace")[-3000:])


def _ask(url: str, model: Path, body: dict[str, Any]) -> str | int:
    request = urllib.request.Request(
        url + "/v1/chat/completions/render",
        data=json.dumps({"model": "m"} | body).encode(),
        headers={"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return text_of(model, json.loads(answer.read())["token_ids"])
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


if __name__ == "__main__":
    main()
