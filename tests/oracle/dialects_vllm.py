"""Asks a running vLLM's /render for the token ids of the bodies in tests/golden/dialects, and keeps them.

Not part of the test suite. The golden files hold the bodies, each under the rule it is about; a new body
is added there, and this script fills in what the server made of it: `ids`, one list a prompt, or `refused`,
the status. The server runs the tokenizer that the file names, and its `chat_template` where it has one:
    vllm serve MODEL --served-model-name tiny --enable-auto-tool-choice --tool-call-parser hermes
        --enable-scale-out [--chat-template FILE]          (or: vllm launch render MODEL ...)
    python tests/oracle/dialects_vllm.py URL tests/golden/dialects/messages.json
"""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any


def render(url: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """What the server makes of a body: `ids`, or `refused`."""
    data = json.dumps(body).encode()
    request = urllib.request.Request(f"{url}{path}/render", data, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            answer = json.load(response)
    except urllib.error.HTTPError as error:
        return {"refused": error.code}
    prompts = answer if isinstance(answer, list) else [answer]
    return {"ids": [prompt["token_ids"] for prompt in prompts]}


def version(url: str) -> str:
    with urllib.request.urlopen(url + "/version", timeout=10) as response:
        return str(json.load(response)["version"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("file", type=Path)
    args = parser.parse_args()
    golden = json.loads(args.file.read_text(encoding="utf-8"))
    kept = ("rule", "path", "body")
    cases = [
        {key: case[key] for key in kept} | render(args.url, case["path"], case["body"])
        for case in golden["cases"]
    ]
    made = f"tests/oracle/dialects_vllm.py, from /render of vLLM {version(args.url)}"
    rows = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    head = {"made": made} | {key: value for key, value in golden.items() if key not in ("made", "cases")}
    text = json.dumps(head, ensure_ascii=False)[:-1] + f', "cases": [\n{rows}\n]}}\n'
    args.file.write_text(text, encoding="utf-8")
    print(f"{len(cases)} bodies, {sum('refused' in case for case in cases)} refused")


if __name__ == "__main__":
    main()
