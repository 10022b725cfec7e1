"""What readers of traces demand, written down from their source: for where they are not installed.

AIPerf 0.13.0: dataset/loader/models.py (MooncakeTrace:250, BailianTrace:361), weka_trace_models.py, and
dataset/generator/prompt.py:576 for how many tokens N block numbers may stand for. vLLM 0.32.0:
benchmarks/datasets/datasets.py:1417 (TimedTrace). OpenTelemetry: docs/specs/otlp (JSON Protobuf Encoding),
opentelemetry/proto/trace/v1/trace.proto, and semantic-conventions-genai docs/gen-ai/gen-ai-spans.md.
"""

from __future__ import annotations

import re
from typing import Any

INTEGER, NUMBER, TEXT, LIST = (int,), (int, float), (str,), (list,)

type Fields = dict[str, tuple[type, ...]]

MOONCAKE: Fields = {"timestamp": NUMBER, "input_length": INTEGER, "output_length": INTEGER, "hash_ids": LIST}
BAILIAN: Fields = {
    "chat_id": INTEGER,
    "parent_chat_id": INTEGER,
    "timestamp": NUMBER,
    "input_length": INTEGER,
    "output_length": INTEGER,
    "type": TEXT,
    "turn": INTEGER,
    "hash_ids": LIST,
}
_WEKA: Fields = {
    "id": TEXT,
    "models": LIST,
    "block_size": INTEGER,
    "hash_id_scope": TEXT,
    "requests": LIST,
}
_WEKA_OPTIONAL: Fields = {"tool_tokens": INTEGER, "system_tokens": INTEGER, "totals": (dict,)}
_REQUEST: Fields = {
    "t": NUMBER,
    "type": TEXT,
    "model": TEXT,
    "in": INTEGER,
    "out": INTEGER,
    "hash_ids": LIST,
    "input_types": LIST,
    "output_types": LIST,
    "stop": TEXT,
}
_REQUEST_OPTIONAL: Fields = {"api_time": NUMBER, "think_time": NUMBER, "ttft": NUMBER}
_SUBAGENT: Fields = {
    "t": NUMBER,
    "type": TEXT,
    "agent_id": TEXT,
    "subagent_type": TEXT,
    "status": TEXT,
    "requests": LIST,
    "models": LIST,
}
_SUBAGENT_OPTIONAL: Fields = {
    "duration_ms": INTEGER,
    "total_tokens": INTEGER,
    "tool_use_count": INTEGER,
    "tool_tokens": INTEGER,
    "system_tokens": INTEGER,
}


def check_line(line: dict[str, Any], fields: Fields, block_size: int) -> None:
    """A line of Mooncake's or Bailian's, as both readers take it."""
    _check(line, fields, {})
    blocks, tokens = len(line["hash_ids"]), line["input_length"]
    assert all(type(number) is int and number >= 0 for number in line["hash_ids"])
    assert (blocks - 1) * block_size < tokens <= blocks * block_size


def check_session(session: dict[str, Any]) -> None:
    """A session of Weka's: no key that is not theirs."""
    _check(session, _WEKA, _WEKA_OPTIONAL)
    assert session["hash_id_scope"] == "local"
    for entry in session["requests"]:
        if entry["type"] == "subagent":
            _check(entry, _SUBAGENT, _SUBAGENT_OPTIONAL)
            for request in entry["requests"]:
                _check_request(request, session["block_size"])
        else:
            _check_request(entry, session["block_size"])


GEN_AI = {
    "gen_ai.operation.name": "stringValue",
    "gen_ai.provider.name": "stringValue",
    "gen_ai.request.model": "stringValue",
    "gen_ai.request.stream": "boolValue",
    "gen_ai.conversation.id": "stringValue",
    "gen_ai.usage.input_tokens": "intValue",
    "gen_ai.usage.output_tokens": "intValue",
    "gen_ai.usage.cache_read.input_tokens": "intValue",
    "gen_ai.response.finish_reasons": "arrayValue",
    "gen_ai.response.time_to_first_chunk": "doubleValue",
    "error.type": "stringValue",
}


def check_span(span: dict[str, Any]) -> None:
    """A client span of one inference, in OTLP's JSON: ids in hex, 64-bit numbers as strings."""
    assert re.fullmatch("[0-9a-f]{32}", span["traceId"])
    assert re.fullmatch("[0-9a-f]{16}", span["spanId"])
    assert span["kind"] == 3
    assert 0 < int(span["startTimeUnixNano"]) <= int(span["endTimeUnixNano"])
    assert type(span["startTimeUnixNano"]) is type(span["endTimeUnixNano"]) is str
    found = {attribute["key"]: attribute["value"] for attribute in span["attributes"]}
    assert {"gen_ai.operation.name", "gen_ai.provider.name"} <= found.keys()
    assert ("error.type" in found) == (span["status"] == {"code": 2})
    for key, value in found.items():
        (kind,) = value
        assert key.startswith("locality.") or GEN_AI[key] == kind
        assert kind != "intValue" or (type(value[kind]) is str and int(value[kind]) >= 0)
    name = f"{found['gen_ai.operation.name']['stringValue']}"
    model = found.get("gen_ai.request.model")
    assert span["name"] == (name if model is None else f"{name} {model['stringValue']}")


def _check_request(request: dict[str, Any], block_size: int) -> None:
    _check(request, _REQUEST, _REQUEST_OPTIONAL)
    assert request["type"] in ("n", "s")
    assert ("ttft" in request) <= (request["type"] == "s")
    assert len(request["hash_ids"]) == request["in"] // block_size


def _check(shape: dict[str, Any], required: Fields, optional: Fields) -> None:
    assert required.keys() <= shape.keys() <= required.keys() | optional.keys()
    for key, value in shape.items():
        assert type(value) in (required | optional)[key], key
