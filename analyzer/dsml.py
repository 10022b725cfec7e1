"""What the encodings of DeepSeek V3.2 and V4 share: special tokens, and tool calls in DSML.

DSML is the markup in which these models call tools (vLLM 0.32 tokenizers/deepseek_v32_encoding.py and
deepseek_v4_encoding.py). Strings may be sourced; what is made of them keeps their spans.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analyzer import sourced_json
from analyzer.sourced import concat, covered, join

BOS = "<｜begin▁of▁sentence｜>"
EOS = "<｜end▁of▁sentence｜>"
USER = "<｜User｜>"
ASSISTANT = "<｜Assistant｜>"
THINK = "<think>"
END_THINK = "</think>"
DSML = "｜DSML｜"


class NotEncodable(ValueError):
    """Messages that the server's encoder refuses."""


def last_user_index(roles: Sequence[str]) -> int:
    """Index of the last user or developer message; -1 where there is none (deepseek_v4_encoding.py:155)."""
    return max((at for at, role in enumerate(roles) if role in ("user", "developer")), default=-1)


def tool_calls_text(calls: Iterable[Mapping[str, Any]], block: str) -> str:
    """Calls with parsed arguments, as the model wrote them, in a block of that name."""
    lines = join("\n", [_call_text(call["function"]) for call in calls])
    return concat((f"<{DSML}{block}>\n", lines, f"\n</{DSML}{block}>"))


def tool_schemas(tools: Iterable[Mapping[str, Any]]) -> str:
    """The tools' functions, one line of JSON each."""
    return join("\n", [sourced_json.dumps(tool["function"]) for tool in tools])


def _call_text(function: Mapping[str, Any]) -> str:
    arguments: Mapping[str, Any] = function["arguments"]
    rows = [_parameter_text(arguments, key) for key in arguments]
    return concat((f'<{DSML}invoke name="', function["name"], '">\n', join("\n", rows), f"\n</{DSML}invoke>"))


def _parameter_text(arguments: Mapping[str, Any], key: str) -> str:
    value = arguments[key]
    is_text = isinstance(value, str)
    text = value if is_text else _json_of(arguments, key)
    kind = "true" if is_text else "false"
    opening, middle = (covered(each, [key]) for each in (f'<{DSML}parameter name="', f'" string="{kind}">'))
    return concat((opening, key, middle, text, f"</{DSML}parameter>"))


def _json_of(arguments: Mapping[str, Any], key: str) -> str:
    """A member's JSON; a bare number, boolean or null is placed by the object that holds it."""
    value = arguments[key]
    return sourced_json.scalar_text(sourced_json.dumps(value), sourced_json.place_in(arguments, key))
