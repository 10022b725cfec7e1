"""A template that would fill the memory, or hold the processor, is a message long before it does."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import _compile_jinja_template

from analyzer.chat_template import ChatTemplate, TemplateFailed
from analyzer.sourced import plain
from analyzer.sourced_json import wrap
from tests.analyzer.own_templates import CLOCK

HUGE = 2 * 10**9
BOMBS = [
    *(f"{{{{ 'a'.{method}({HUGE}) }}}}" for method in ("center", "ljust", "rjust", "zfill")),
    f"{{{{ '\\t'.expandtabs({HUGE}) }}}}",
    f"{{{{ (1).to_bytes({HUGE}, 'big')|length }}}}",
    f"{{{{ '%{HUGE}d' % 1 }}}}",
    f"{{{{ '%.{HUGE}f' % 1.5 }}}}",
    f"{{{{ '%*d' % ({HUGE}, 1) }}}}",
    f"{{{{ '%{HUGE}d'|format(1) }}}}",
    f"{{{{ '%(a){HUGE}d'|format(a=1) }}}}",
    f"{{{{ '{{:{HUGE}}}'.format(1) }}}}",
    f"{{{{ '{{:{{w}}}}'.format(1, w={HUGE}) }}}}",
    f"{{{{ '{{a:{{b[c]}}}}'.format(a=1, b={{'c': {HUGE}}}) }}}}",
    f"{{{{ '{{a:{HUGE}}}'.format_map({{'a': 1}}) }}}}",
    f"{{{{ ('{{:{HUGE}}}'|safe).format(1) }}}}",
    f"{{{{ 'a'|center({HUGE}) }}}}",
    f"{{{{ ['a']|map('center', {HUGE})|list }}}}",
    f"{{{{ 'a\\nb'|indent({HUGE}) }}}}",
    "{{ 'a\\nb'|indent('x' * 50000000) }}",
    f"{{{{ {{'a': [1]}}|tojson(indent={HUGE}) }}}}",
    f"{{{{ 'a'|batch({HUGE}, 'x')|list|length }}}}",
    f"{{{{ 'a'|slice({HUGE})|list|length }}}}",
    f"{{{{ lipsum(n={HUGE}) }}}}",
    "{{ ('a' * 10**6)|wordwrap(1)|length }}",
    "{{ ('a' * 10**6).replace('', 'x' * 10**6)|length }}",
    "{{ ('a' * 10**6)|replace('a', 'x' * 10**6)|length }}",
    "{{ ('x' * 10**6).join(range(10**5)|map('string')|list)|length }}",
    "{{ ('x' * 10**7).join(range(10**5)|map('string'))|length }}",
    "{{ range(10**5)|map('string')|list|join('x' * 10**6)|length }}",
    "{{ ('a' * 10**6).translate({97: 'x' * 10**6})|length }}",
    "{{ ('f' * 10**7)|int(base=16) // 3 }}",
    *(
        "{% set n = namespace(v="
        + start
        + ") %}{% for i in range(60) %}{% set n.v = "
        + step
        + " %}{% endfor %}"
        for start, step in (
            ("'aa'", "n.v.replace('a', 'aaaa')"),
            ("[1]", "n.v + n.v"),
            ("[1]", "n.v * 9"),
            ("99", "n.v * n.v"),
            ("''", "n.v.ljust(n.v|length * 8 + 8)"),
        )
    ),
    "{% set n = namespace(v=[]) %}{% for _ in range(99) %}{% set n.v = n.v + ['a' * 30**5] %}{% endfor %}",
]
HARMLESS = [
    "{{ 'a'.center(9) }}|{{ 'a'|center(9) }}|{{ '%9d' % 123456789 }}|{{ '{:>9}'.format(1234567890) }}",
    "{{ 'id 9999999999 of %s' % 'x' }}|{{ '9999999999 {}'.format(9999999999) }}|{{ '%d' % 9999999999 }}",
    "{{ '%*d' % (7, 1) }}|{{ '{:{w}}'.format(1, w=7) }}|{{ '{a}'.format_map({'a': 1}) }}",
    "{{ 'a\nb'|indent(3) }}|{{ {'a': [1, 2]}|tojson(indent=2) }}|{{ [1, 2, 3]|batch(2)|list }}",
    "{{ 'a-b'.replace('-', '+') }}|{{ ['a', 'b']|join(', ') }}|{{ 'ff'|int(base=16) }}|{{ 2 ** 64 * 3 }}",
]


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Room for another 3 GiB of addresses, so that what is not refused fails and harms nobody."""
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (own + (3 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited by way of /proc")
@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("source", BOMBS)
def test_what_would_be_huge_is_refused_before_it_is_made(source: str) -> None:
    template = ChatTemplate(source, max_seconds=5)
    for render in (template.render, template.render_sourced):
        start = time.monotonic()
        with pytest.raises(TemplateFailed, match=r"^the template .*\(template line 1\)$"):
            render(messages=wrap([]), clock=CLOCK)
        assert time.monotonic() - start < 60  # without a limit, hours


@pytest.mark.parametrize("source", HARMLESS)
def test_what_looks_like_it_and_is_small_is_printed_as_jinja_does(source: str) -> None:
    theirs = _compile_jinja_template(source).render(messages=[])
    template = ChatTemplate(source)
    assert template.render(messages=[], clock=CLOCK) == theirs
    assert plain(template.render_sourced(messages=wrap([]), clock=CLOCK).text) == theirs
