"""Which words of a request are the endpoint's own, and which are the client's and so text of a prompt.

It is a list: whatever is not on it is the client's.
"""

from __future__ import annotations

from collections.abc import Callable

from analyzer.body_paths import parse_path
from analyzer.sourced_json import member_path

WITHHELD = "withheld"


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


_FIELDS = words("""
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

_SCHEMA_WORDS = words("""
    properties required items prefixItems enum const default examples anyOf allOf oneOf not if then else
    additionalProperties patternProperties propertyNames unevaluatedProperties dependentRequired
    dependentSchemas minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength
    pattern minItems maxItems uniqueItems contains minProperties maxProperties nullable deprecated readOnly
    writeOnly definitions $defs $ref
    """)
"""JSON Schema's own (draft 2020-12, sections 8 to 10, and validation, sections 6 to 9)."""

_TEMPLATE_ARGUMENTS = words("enable_thinking thinking preserve_thinking clear_thinking reasoning_effort")
"""Those of templates that are served widely."""

PROMPT_FIELDS = _FIELDS | _SCHEMA_WORDS | _TEMPLATE_ARGUMENTS

NAMED_BY_THE_CLIENT = frozenset(
    ("properties", "patternProperties", "definitions", "$defs", "dependentRequired", "dependentSchemas")
)
"""Whatever key comes next is a name of the client's, even where it looks like one of the endpoint's."""

FREE_BELOW = frozenset(("arguments", "input", "default", "const", "enum", "examples"))
"""Below these, where they do not begin the path, everything is the client's."""


class Keys:
    """Gives each key of the client's a name that stands for it, so that different ones stay different.

    They are numbered where `name` gives none.
    """

    def __init__(self, name: Callable[[str], str] | None = None) -> None:
        self._name = name
        self._numbers: dict[str, int] = {}

    def shown(self, key: str) -> str:
        """The placeholder of a key."""
        if self._name is not None:
            return self._name(key)
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
            own = step in PROMPT_FIELDS and not names and not free
            shown = member_path(shown, step) if own else f"{shown}.{self.shown(step)}".lstrip(".")
            free = free or (own and at > 0 and step in FREE_BELOW)
            names = own and step in NAMED_BY_THE_CLIENT
        return shown
