"""Chat templates render here what transformers renders, and every character knows the field it came from."""

from __future__ import annotations

import copy
import time
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

from analyzer.chat_template import ChatTemplate, TemplateFailed, compile_template
from analyzer.sourced import plain, spans_of
from analyzer.sourced_json import wrap
from tests.analyzer.own_templates import CHATML, CLOCK, CRAFTY, OWN, REAL, both, source_of

WORDS = st.text(alphabet=" \n\"'\\<>&abcéΣß{}%", max_size=14).map(lambda text: text + "x")


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    messages: list[dict[str, Any]] = [{"role": "system", "content": draw(WORDS)}]
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(WORDS)})
        answer: dict[str, Any] = {"role": "assistant", "content": draw(WORDS)}
        if draw(st.booleans()):
            answer["reasoning_content"] = draw(WORDS)
        if draw(st.booleans()):
            arguments = {
                "city": draw(WORDS),
                "days": draw(st.integers(0, 99)),
                "deep": [{"x y": draw(WORDS)}],
            }
            answer["tool_calls"] = [{"type": "function", "function": {"name": "get", "arguments": arguments}}]
        messages.append(answer)
    properties = {"city": {"type": "string", "description": draw(WORDS)}}
    function = {
        "name": "get",
        "description": draw(WORDS),
        "parameters": {"properties": properties, "strict": True},
    }
    return {
        "messages": messages,
        "tools": draw(st.sampled_from([None, [{"type": "function", "function": function}]])),
    }


def theirs(source: str, body: dict[str, Any], **options: Any) -> str:
    # Later releases copy reasoning to other names; the one that vLLM 0.32 runs with does not.
    with patch.object(chat_template_utils, "_alias_reasoning_fields", lambda chat: chat):
        made = render_jinja_template([body["messages"]], tools=body["tools"], chat_template=source, **options)
    text: str = made[0][0]
    return text


@pytest.mark.parametrize("name", [*OWN, *REAL])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(body=bodies(), prompt=st.booleans(), keep=st.booleans())
def test_both_renderings_equal_those_of_transformers(
    name: str, body: dict[str, Any], prompt: bool, keep: bool
) -> None:
    source = source_of(name)
    options = {"add_generation_prompt": prompt, "continue_final_message": keep}
    before = copy.deepcopy(body)
    try:
        wanted = theirs(source.replace("strftime_now('%Y')", "'2026'"), body, **options)
    except ValueError as error:
        with pytest.raises(TemplateFailed) as caught:
            both(source, body, **options)
        assert str(caught.value).startswith(str(error)[:60])
    else:
        ours, marked = both(source, body, **options)
        assert (type(ours), ours, plain(marked)) == (str, wanted, wanted)
    assert body == before


def rendered(source: str, **options: Any) -> str:
    messages = options.pop("messages", [])
    return ChatTemplate(source, max_seconds=0.5, max_chars=10_000).render(
        messages=messages, clock=CLOCK, **options
    )


def test_every_way_of_printing_a_field_keeps_its_name() -> None:
    body = wrap({"messages": [{"role": "user", "content": "a <b> c"}], "tools": None})
    for line in CRAFTY.splitlines()[3:]:
        for expression in [part.split("}}")[0] for part in line.split("{{")[1:]]:
            if "m." in expression and "turn" not in expression:
                source = "{% for m in messages %}{{" + expression + "}}{% endfor %}"
                made = compile_template(source).render_sourced(messages=body["messages"], clock=CLOCK)
                assert spans_of(made.text), expression
                assert not made.unmarked, expression


def test_a_computed_value_without_a_source_is_reported() -> None:
    messages = wrap([{"role": "user", "content": "abc"}], "messages")
    counted = compile_template("{{ messages[0].content|length }}").render_sourced(
        messages=messages, clock=CLOCK
    )
    literal = compile_template("{{ 'x' if messages else 'y' }}").render_sourced(
        messages=messages, clock=CLOCK
    )
    assert (counted.text, counted.unmarked) == ("3", True)
    assert (literal.text, literal.unmarked) == ("x", False)


@pytest.mark.parametrize(
    "expression",
    ["(m|safe) + m", "(m|e) + m", "m|safe|upper", "'{:{}}'.format(m, 9)", "m|wordwrap(3)", "m.zfill(9)"],
)
def test_what_cannot_be_followed_prints_alike_and_is_never_called_exact(expression: str) -> None:
    template = compile_template("{% set m = messages[0].content %}{{ " + expression + " }}")
    messages = [{"role": "user", "content": "a & b"}]
    made = template.render_sourced(messages=wrap(messages, "messages"), clock=CLOCK)
    assert plain(made.text) == template.render(messages=messages, clock=CLOCK)
    assert made.unmarked or [span.exact for span in spans_of(made.text)] == [False]


def test_the_clock_is_the_one_of_the_request() -> None:
    assert rendered("{{ strftime_now('%d %b %Y') }}") == "04 Mar 2026"


def test_variables_are_those_that_the_template_does_not_set() -> None:
    template = compile_template("{% set x = 1 %}{{ x }}{{ enable_thinking }}{{ messages }}")
    assert template.template_variables() == {"enable_thinking", "messages"}


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\n{{ raise_exception('roles must alternate') }}", r"roles must alternate \(template line 2\)"),
        ("{{ missing.name }}", r"'missing' is undefined \(template line 1\)"),
        ("a\nb\n{{ 1 + 'x' }}", r"unsupported operand .* \(template line 3\)"),
        ("{{ ''.__class__.mro() }}", "unsafe"),
        ("{{ messages.append(1) }}", "unsafe"),
        ("\n{% if %}", r"\(template line 2\)"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            "longer than allowed",
        ),
        ("{{ range(999999) }}", "Range too big"),
        ("{{ 'a' * 999999999 }}", "more than 10000 characters"),
        ("{% for a in range(9999) %}aaaaaaaa{% endfor %}", "more than 10000 characters"),
        (
            "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
            "more than",
        ),
        (
            "{% set n = namespace(s='ab') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
            "more than",
        ),
        ("{{ 9 ** 99999999 }}", "too large a number"),
        ("{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(0) }}", "recursion"),
    ],
)
def test_a_failing_template_says_why_and_where(source: str, message: str) -> None:
    with pytest.raises(TemplateFailed, match=message):
        rendered(source)
    with pytest.raises(TemplateFailed, match=message):
        template = ChatTemplate(source, max_seconds=0.5, max_chars=10_000)
        template.render_sourced(messages=wrap([]), clock=CLOCK)


def test_two_calls_per_macro_end_at_the_time_limit_without_any_loop() -> None:
    body = "{% if n %}{% set x = f(n - 1) %}{% set y = f(n - 1) %}{% endif %}"
    source = "{% macro f(n) %}" + body + "{% endmacro %}{{ f(60) }}"
    start = time.monotonic()
    with pytest.raises(TemplateFailed, match="longer than allowed"):
        rendered(source)
    assert time.monotonic() - start < 5


def test_an_indented_list_is_refused_and_left_as_it_was() -> None:
    messages = [{"role": "user", "content": "a"}]
    with pytest.raises(TemplateFailed, match="splitlines"):
        rendered("{{ messages|indent }}", messages=messages)
    assert messages == [{"role": "user", "content": "a"}]


@pytest.mark.parametrize(
    ("messages", "field", "text"),
    [
        ([{"role": "assistant", "content": "so far "}], True, "so far "),
        ([{"role": "assistant", "content": [{"type": "text", "text": "so far"}]}], True, None),
        ([{"role": "assistant", "content": "a", "reasoning": "hm"}], "reasoning", "hm"),
        ([{"role": "assistant"}], True, None),
        ([], True, None),
        ([{"role": "assistant", "content": "a"}], "unknown", None),
    ],
)
def test_a_message_is_continued_or_refused_as_in_transformers(
    messages: Any, field: Any, text: str | None
) -> None:
    body = {"messages": messages, "tools": None}
    source = "{{ messages[0].reasoning }}" if field == "reasoning" else CHATML
    try:
        wanted = theirs(source, body, continue_final_message=field)
    except (ValueError, TypeError) as error:
        with pytest.raises(TemplateFailed) as caught:
            both(source, body, continue_final_message=field)
        assert str(caught.value).startswith(str(error))
    else:
        ours, marked = both(source, body, continue_final_message=field)
        assert (ours, plain(marked)) == (wanted, wanted)
        assert text is None or wanted.endswith(text)


def test_tools_and_messages_that_are_no_objects_are_refused() -> None:
    with pytest.raises(TemplateFailed, match="Chat messages should be dicts"):
        rendered("x", messages=["hello"])
    with pytest.raises(TemplateFailed, match="Tools should either be a JSON schema"):
        rendered("x", tools=["get"])
    with pytest.raises(TemplateFailed, match="Documents should be a list of dicts"):
        rendered("x", documents=["text"])


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% set ns = namespace(_x=1) %}[{{ ns._x }}]", "[]"),
        ("{% set ns = namespace(x=1) %}{% set ns._x = 2 %}[{{ ns._x }}{{ ns.x }}]", "[1]"),
        ("{{ namespace(_a=3)._a }}!", "!"),
    ],
)
def test_a_namespace_forgets_underscored_names(template: str, text: str) -> None:
    # As transformers 5.19 printed them; vLLM 0.32 takes none from 5.20 on, and 5.24 refuses the names.
    made = ChatTemplate(template).render(
        messages=[],
        tools=None,
        documents=None,
        add_generation_prompt=True,
        continue_final_message=False,
        clock=CLOCK,
        kwargs={},
    )
    assert made == text
