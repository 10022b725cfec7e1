"""Chat templates for the examples of causes: each prints messages in one way that some real ones have."""

# A line break of a template is part of what it prints.
PLAIN = """\
{% if tools %}<|tools|>{% for tool in tools %}{{ tool|tojson }}
{% endfor %}{% endif %}{% for m in messages %}<|{{ m.role }}|>
{% if m.reasoning %}<think>{{ m.reasoning }}</think>
{% endif %}{{ m.content }}{% for call in m.tool_calls or [] %}
<call>{{ call.function.name }}({{ call.function.arguments|tojson }})</call>{% endfor %}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""Tools at the head, then every message with all that was sent; no ids."""

STRIPS_REASONING = """\
{% set last = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}\
{% set last.user = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|{{ m.role }}|>
{% if m.reasoning and loop.index0 > last.user %}<think>{{ m.reasoning }}</think>
{% endif %}{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""Reasoning only behind the last message of a user."""

DROPS_THINKING = """\
{% set last = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}\
{% set last.user = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}<|{{ m.role }}|>
{% if m.role == 'assistant' and loop.index0 > last.user %}<think>
{{ m.reasoning or '' }}
</think>

{% endif %}{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""The block for reasoning only behind the last message of a user, there also where it is empty."""

OPENS_WITH_THINK = """\
{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
<think>

</think>

{% endif %}"""
"""An empty block for reasoning opens an answer, and is not printed for one of the past."""

HOISTS_SYSTEM = """\
<|system|>
{% for m in messages if m.role == 'system' %}{{ m.content }}{% endfor %}<|end|>
{% for m in messages if m.role != 'system' %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""All system messages in one, at the head."""

PRINTS_TODAY = """\
<|system|>
Today is {{ strftime_now('%d %b %Y') }}.<|end|>
{% for m in messages %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""The day of the request at the head."""

TOOLS_BEFORE_LAST_USER = """\
{% set last = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}\
{% set last.user = loop.index0 %}{% endif %}{% endfor %}{% for m in messages %}\
{% if tools and loop.index0 == last.user %}<|tools|>{% for tool in tools %}{{ tool|tojson }}
{% endfor %}{% endif %}<|{{ m.role }}|>
{{ m.content }}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""The tools before the last message of a user."""

MARKS_PARTS = """\
{% for m in messages %}<|{{ m.role }}|>
{% if m.content is string %}{{ m.content }}{% else %}{% for part in m.content %}<part>{{ part.text }}</part>\
{% endfor %}{% endif %}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""Each part of a message by itself."""

PRINTS_IDS = """\
{% for m in messages %}<|{{ m.role }}|>{{ m.tool_call_id or '' }}
{{ m.content }}{% for call in m.tool_calls or [] %}
<call {{ call.id }}>{{ call.function.name }}({{ call.function.arguments|tojson }})</call>{% endfor %}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
"""The ids of calls, as some models are trained to read them."""
