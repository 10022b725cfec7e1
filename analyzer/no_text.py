"""A report without any text of a prompt: what is left are places, lengths, kinds and labels.

What a client chose is text too: the keys of its schemas and arguments, inside paths. Sentences that may
quote (an error of the server, a template's complaint, advice) are left out whole: nobody can tell by looking
at them which of their words were sent.
"""

from __future__ import annotations

import re
from dataclasses import replace

from analyzer.body_paths import parse_path
from analyzer.core import Divergence, Finding
from analyzer.report import Report, Turn
from analyzer.sourced_json import member_path

WITHHELD = "withheld"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FIELDS = _words("""
    messages input prompt system instructions tools tool_choice functions function_call response_format
    json_schema schema documents chat_template chat_template_kwargs suffix text format
    role name content type refusal reasoning reasoning_content thinking signature summary encrypted_content
    tool_calls tool_call_id call_id id function arguments output status index
    tool_use_id is_error cache_control ttl source media_type data url detail image_url video_url audio_url
    input_audio image audio video file file_id file_data filename annotations
    description parameters input_schema strict title
    """)
"""The four endpoints' own fields around what reaches a prompt (vLLM 0.32 entrypoints/openai/*/protocol.py,
entrypoints/anthropic/protocol.py, entrypoints/chat_utils.py)."""

_SCHEMA_WORDS = _words("""
    properties required items prefixItems enum const default examples anyOf allOf oneOf not if then else
    additionalProperties patternProperties propertyNames unevaluatedProperties dependentRequired
    dependentSchemas minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength
    pattern minItems maxItems uniqueItems contains minProperties maxProperties nullable deprecated readOnly
    writeOnly definitions $defs $ref
    """)
"""JSON Schema's own (draft 2020-12, sections 8 to 10, and validation, sections 6 to 9)."""

_TEMPLATE_ARGUMENTS = _words("enable_thinking thinking preserve_thinking clear_thinking reasoning_effort")
"""Those of templates that are served widely."""

_VOCABULARY = _FIELDS | _SCHEMA_WORDS | _TEMPLATE_ARGUMENTS

_NAMED_BY_THE_CLIENT = frozenset(
    ("properties", "patternProperties", "definitions", "$defs", "dependentRequired", "dependentSchemas")
)
"""Whatever key comes next is a name of the client's, even where it looks like one of the endpoint's."""

_VALUES = frozenset(("arguments", "input", "default", "const", "enum", "examples"))
"""Below these, where they do not begin the path, everything is the client's."""

_KIND = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")


def without_text(report: Report) -> Report:
    """The same report, and nothing in it that was sent to the server as part of a prompt."""
    keys = _Keys()
    return replace(
        report,
        turns=tuple(_turn(turn, report, keys) for turn in report.turns),
        problems=tuple(_sayable(problem, report) for problem in report.problems),
    )


class _Keys:
    """Gives each key of the client's a number, so that different ones stay different."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def shown(self, key: str) -> str:
        """The placeholder of a key."""
        return f"<key{self._numbers.setdefault(key, len(self._numbers) + 1)}>"

    def path(self, path: str | None) -> str | None:
        """The path with placeholders for what is not of an endpoint's own vocabulary."""
        if path is None or path == "template":
            return path
        try:
            steps = parse_path(path)
        except ValueError:
            return WITHHELD
        shown, names, free = "", False, False
        for at, step in enumerate(steps):
            if isinstance(step, int):
                shown += f"[{step}]"
                continue
            own = step in _VOCABULARY and not names and not free
            shown = member_path(shown, step) if own else f"{shown}.{self.shown(step)}".lstrip(".")
            free = free or (own and at > 0 and step in _VALUES)
            names = own and step in _NAMED_BY_THE_CLIENT
        return shown


def _turn(turn: Turn, report: Report, keys: _Keys) -> Turn:
    return replace(
        turn,
        # A model's name is no prompt, but a client may write anything there: the server's own word is safe.
        model=turn.model if turn.model in (None, report.server.model) else WITHHELD,
        problem=_problem(turn, report),
        divergence=None if turn.divergence is None else _divergence(turn.divergence, keys),
        findings=tuple(_finding(finding, keys) for finding in turn.findings),
    )


def _problem(turn: Turn, report: Report) -> str | None:
    if turn.problem is None or turn.problem == turn.reason:
        return turn.problem
    quoting = turn.problem if turn.reason is None else turn.problem.removesuffix(f"; {turn.reason}")
    return "; ".join(part for part in (_sayable(quoting, report), turn.reason) if part)


def _divergence(divergence: Divergence, keys: _Keys) -> Divergence:
    return replace(divergence, path=keys.path(divergence.path), before=None, after=None)


def _finding(finding: Finding, keys: _Keys) -> Finding:
    return replace(
        finding,
        kind=finding.kind if finding.kind and _KIND.fullmatch(finding.kind) else None,
        path=keys.path(finding.path),
        before=None,
        after=None,
        evidence=None,
        advice=None,
    )


def _sayable(sentence: str, report: Report) -> str:
    if sentence == report.missing:
        return sentence
    return f"{WITHHELD}: {len(sentence)} characters that may quote the prompt"
