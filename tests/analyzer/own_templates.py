"""Chat templates written for the tests, and the two ways of rendering one of them."""

# ruff: noqa: E501 (a template's line breaks are part of its text)
from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from analyzer.chat_template import compile_template
from analyzer.sourced_json import wrap

CLOCK = datetime(2026, 3, 4, 5, 6, 7)
REAL = ("qwen3-tok", "gemma3-tok")
CHATML = """{% for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>{{ m.reasoning_content|trim }}</think>{% endif %}
{{ m.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
TOOLS = """{% if tools %}{{ tools|tojson }}
{% for tool in tools %}{{ tool|tojson(indent=2) }}{{ tool.function.description|upper }}{% endfor %}{% endif %}
{% for m in messages %}{% generation %}[{{ m.role }}]{{ m.content|string }}{% endgeneration %}
{% for call in m.tool_calls %}{{ call.function.name }}({% for k, v in call.function.arguments|items %}{{ k }}={{ v|tojson }}{{ ', ' if not loop.last }}{% endfor %})
{{ dict(name=call.function.name, args=call.function.arguments)|tojson(sort_keys=true, ensure_ascii=true) }}{% endfor %}
{% endfor %}"""
CRAFTY = """{% macro turn(who, text) %}<{{ who|capitalize }}>{{ text }}{{ caller() if caller }}</{{ '%s' % (who,) }}>{% endmacro %}
{% set ns = namespace(all='', rev='') %}
{% for m in messages %}{% set body %}{{ m.content|replace('a', 'o')|trim }}{% endset %}
{{ turn(m.role, body) }}{% call turn(m.role, 'x') %}{{ m.content[1:5] ~ '|' ~ m.content[:2] }}{% endcall %}
{% for c in m.content %}{% if loop.index0 < 9 %}{% set ns.all = ns.all + c %}{% set ns.rev = c ~ ns.rev %}{% endif %}{% endfor %}
{{ [m.role, m.content]|join(': ') }}{{ ', '.join([m.content, 'z']) }}{{ '{}-{x}'.format(m.content, x=m.role) }}
{{ m.content.split(' ')|join('_') }}{{ m.content|indent(2) }}{{ m.content|e }}{{ m.content|safe }}{{ '%s!' % m.content }}
{{ 'role: ' + m.role|title }}{{ m.content|truncate(9) }}{{ m|string }}{{ m.content|center(30) }}{{ "%s=%s"|format(m.role, m.content) }}
{% filter lower %}{{ m.content }}{% endfilter %}{{ m.content|default('none')|first }}{{ m.content.lstrip()|last }}
{% endfor %}{{ ns.all }}{{ ns.rev }}{{ messages|map(attribute='content')|map('upper')|join }}{{ strftime_now('%Y') }}"""
OWN = {"chatml": CHATML, "tools": TOOLS, "crafty": CRAFTY}


def source_of(name: str) -> str:
    if name in OWN:
        return OWN[name]
    folder = os.environ.get("LOCALITY_TEST_TOKENIZERS")
    file = Path(folder or "nowhere") / name / "tokenizer_config.json"
    if not file.exists():
        pytest.skip(f"LOCALITY_TEST_TOKENIZERS holds no {name}/tokenizer_config.json")
    source: str = json.loads(file.read_text(encoding="utf-8"))["chat_template"]
    return source


def both(source: str, body: dict[str, Any], **options: Any) -> tuple[str, str]:
    template = compile_template(source)
    wrapped = wrap(body)
    ours = template.render(messages=body["messages"], tools=body["tools"], clock=CLOCK, **options)
    marked = template.render_sourced(
        messages=wrapped["messages"], tools=wrapped["tools"], clock=CLOCK, **options
    )
    return ours, marked.text
