"""Records what a real vLLM answers to /render and /tokenize: makes tests/golden/verify/sample.json.

The server renders the samples' tokenizer and template; no weights are needed:

    python -c 'import pathlib, samples.tokenizer as t; t.make_tokenizer_folder(pathlib.Path("DIR"))'
    cp A_QWEN3_MODEL/config.json DIR    # any text model's: it only has to load
    vllm launch render DIR --served-model-name sample --port P \\
        --enable-auto-tool-choice --tool-call-parser hermes    # else bodies with tools are refused
    python -m tests.oracle.verify_vllm http://127.0.0.1:P > tests/golden/verify/sample.json
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from typing import Any

MADE = (
    "tests/oracle/verify_vllm.py, against `vllm launch render` of vLLM 0.32.0 (CPU) with the samples' "
    "tokenizer and chat template; bodies were sent as they stand here, answers are the server's"
)

_CALL = (
    '{"id":"c1","type":"function","function":{"name":"read",'
    '"arguments":"{\\"path\\":  \\"a\\\\u00e9.py\\"}"}}'
)
_TOOL = (
    '{"type":"function","function":{"parameters":{"type":"object","properties":{"path":{"type":"string"}}},'
    '"name":"read","vendor":1}}'
)

CHAT = {
    "plain": '{"model":"sample","messages":[{"role":"user","content":"What is in a.py?"}]}',
    "spaced and escaped": '{ "messages" : [ {"content":"caf\\u00e9 \\ud83d\\ude00 <\\/x>", "role":"user"} ],'
    '\n "model":"sample"}',
    "tools": '{"model":"sample","messages":[{"role":"system","content":"Be brief."},'
    f'{{"role":"user","content":"Read a.py"}}],"tools":[{_TOOL}]}}',
    "calls": '{"model":"sample","stream":true,"messages":[{"role":"user","content":"Read a.py"},'
    f'{{"role":"assistant","content":null,"tool_calls":[{_CALL}]}},'
    f'{{"role":"tool","tool_call_id":"c1","content":"x = 1"}}],"tools":[{_TOOL}]}}',
    "reasoning": '{"model":"sample","messages":[{"role":"user","content":"1+1?"},'
    '{"role":"assistant","reasoning":"easy","content":"2"},{"role":"user","content":"2+2?"}]}',
    "reasoning_content": '{"model":"sample","messages":[{"role":"user","content":"1+1?"},'
    '{"role":"assistant","reasoning_content":"easy","content":"2"},{"role":"user","content":"2+2?"}]}',
    "truncated": '{"model":"sample","truncate_prompt_tokens":5,"max_tokens":3,'
    '"messages":[{"role":"user","content":"one two three four five six seven"}]}',
    "special tokens asked for": '{"model":"sample","add_special_tokens":true,'
    '"messages":[{"role":"user","content":"hello"}]}',
    "refused": '{"model":"sample","messages":[{"role":"user","content":null}]}',
    "another model": '{"model":"other","messages":[{"role":"user","content":"hello"}]}',
}

COMPLETIONS = {
    "one": '{"model":"sample","prompt":"def main():\\n    return 1"}',
    "many": '{"model":"sample","prompt":["one two","three","caf\\u00e9"],"max_tokens":2}',
    "ids": '{"model":"sample","prompt":[[5,6,7],[8,9]]}',
}

MESSAGES = {
    "plain": '{"model":"sample","max_tokens":5,"system":"Be brief.",'
    '"messages":[{"role":"user","content":"What is in a.py?"}]}',
}

RESPONSES = {
    "plain": '{"model":"sample","input":"What is in a.py?","instructions":"Be brief."}',
    "previous": '{"model":"sample","input":"And in b.py?","previous_response_id":"resp_1"}',
}

TOKENIZE = {
    "one two": '{"model": "sample", "prompt": "one two", "add_special_tokens": true}',
    "three": '{"model": "sample", "prompt": "three", "add_special_tokens": true}',
    "accent": '{"model": "sample", "prompt": "caf\\u00e9", "add_special_tokens": true}',
}


def main() -> None:
    """Print the golden file."""
    url = sys.argv[1]
    rows = []
    for path, bodies in (
        ("/v1/chat/completions/render", CHAT),
        ("/tokenize", CHAT),
        ("/v1/completions/render", COMPLETIONS),
        ("/v1/messages/render", MESSAGES),
        ("/v1/responses/render", RESPONSES),
        ("/tokenize", TOKENIZE),
        ("/v1/nothing/render", {"no such endpoint": "{}"}),
    ):
        for name, body in bodies.items():
            status, answer = _post(url + path, body)
            rows.append({"name": name, "path": path, "body": body, "status": status, "answer": answer})
    lines = ",\n".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows)
    print(f'{{"made": {json.dumps(MADE)},\n"answers": [\n{lines}\n]}}')


def _post(url: str, body: str) -> tuple[int, Any]:
    request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


if __name__ == "__main__":
    main()
