"""Request bodies for the chat template's path, each by what it is about, and the servers that answered them.

Most bring their own template, one that prints all it is given: what a usual template leaves out shows too.
"""

from __future__ import annotations

from typing import Any

DUMP = "{{ messages|tojson }}|{{ tools|tojson }}"
PARTS = "{% for m in messages %}{% for part in m.content %}{% endfor %}{% endfor %}" + DUMP
NAMED = (
    "{{ add_generation_prompt }}|{{ enable_thinking }}|{{ reasoning_effort }}|"
    "{{ documents|tojson if documents else 0 }}|"
    "{{ tools|tojson if tools else 0 }}|{{ foo }}|{{ bos_token }}|{{ pad_token }}|{{ image_token }}|"
    "{{ think_token }}|{{ unk_token }}"
)
TOLD = NAMED + "{{ messages|tojson }}"
SAID = "{% for m in messages %}<{{ m.content }}>{% endfor %}"
BILLING = "x-anthropic-billing-header: cc_version=1; cch=1;"
USER = {"role": "user", "content": "hi"}
TEXTS = [
    {"type": "text", "text": "a", "cache_control": {"type": "x"}, "zz": None, "closed": True, "file": 1},
    {"text": "", "type": "text"},
    {"type": "text", "text": "b"},
]
FUNCTION = {
    "parameters": {"z": 1, "a": {"y": None, "b": "é"}},
    "name": "f",
    "returns": 1,
    "strict": None,
    "defer_loading": True,
}
TOOL = {"function": FUNCTION, "type": "function", "cache_control": {"type": "x"}}

SERVERS = {
    "trusting": "--trust-request-chat-template --enable-auto-tool-choice --tool-call-parser hermes"
    " --max-model-len 512",
    "told": "--enable-auto-tool-choice --tool-call-parser hermes --chat-template TEMPLATE"
    " --chat-template-content-format openai --exclude-tools-when-tool-choice-none"
    """ --default-chat-template-kwargs '{"foo": "server", "enable_thinking": true}'""",
}
"""Flags of the servers that were asked; TEMPLATE stands for a file that holds TOLD."""


def _call(arguments: Any, **more: Any) -> dict[str, Any]:
    function = {"name": "f", "y": 2, "arguments": arguments}
    return {"index": 0, "type": "function", "x": 1, "function": function, "id": "1"} | more


def _messages() -> dict[str, dict[str, Any]]:
    cases: dict[str, dict[str, Any]] = {}
    for role in ("user", "system", "assistant", "developer", "tool", "other"):
        message: dict[str, Any] = {
            "role": role,
            "content": TEXTS,
            "tool_call_id": "i",
            "name": "n",
            "task": "t",
        }
        message |= {"reasoning_content": "r", "thinking": "t", "prefix": True, "tools": None}
        for form, template in (("string", DUMP), ("parts", PARTS)):
            cases[f"keys of {role}, {form}"] = {"messages": [message], "chat_template": template}
            cases[f"{role} without content, {form}"] = {
                "messages": [{"role": role}],
                "chat_template": template,
            }
            cases[f"{role} with no parts, {form}"] = {
                "messages": [{"role": role, "content": []}],
                "chat_template": template,
            }
    for form, template in (("string", DUMP), ("parts", PARTS)):
        for name, messages in _lists().items():
            cases[f"{name}, {form}"] = {"messages": messages, "chat_template": template}
    return cases


def _lists() -> dict[str, list[dict[str, Any]]]:
    said: dict[str, Any] = {"role": "assistant", "content": "c"}
    thought = {"type": "thinking", "thinking": "th", "closed": True, "q": 2}
    reference = [{"type": "text", "text": "x"}, {"type": "tool_reference", "name": "nn", "z": 1}]
    parts = [{"type": "text", "text": "p"}, {"type": "text", "text": "q"}]
    lists: dict[str, list[dict[str, Any]]] = {
        "null content": [{"role": "assistant", "content": None}],
        "null user content": [{"role": "user", "content": None}],
        "null text": [{"role": "user", "content": [{"type": "text", "text": None}, *parts]}],
        "an image": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
        "other parts": [said | {"content": [thought, {"type": "refusal", "refusal": "no"}, "raw", ""]}],
        "a reference": [{"role": "tool", "tool_call_id": "1", "content": reference}],
        "reasoning": [said | {"reasoning": "R"}],
        "both reasonings": [said | {"reasoning": "", "reasoning_content": "B"}],
        "null reasoning": [said | {"reasoning": None, "reasoning_content": "B"}],
        "no calls": [said | {"tool_calls": []}],
        "two calls": [said | {"tool_calls": [_call("{}"), _call('{"b":1,"a":2}', id="2")]}],
        "a call of another type": [said | {"tool_calls": [_call("{}", type="custom")]}],
        "billing line": [{"role": "system", "content": BILLING + "\nrest\nmore"}, USER],
        "only a billing line": [{"role": "system", "content": BILLING}, USER],
        "billing parts": [
            {"role": "system", "content": [{"type": "text", "text": BILLING + "\nr", "k": 1}, BILLING, "s"]}
        ],
        "billing line of others": [{"role": "developer", "content": BILLING + "\nrest"}, USER],
        "developer first": [{"role": "developer", "content": "d", "name": "n"}, USER],
        "developer late": [USER, {"role": "developer", "content": parts, "name": "n"}],
        "developer among system": [
            {"role": "system", "content": "A"},
            USER,
            {"role": "developer", "content": parts, "tools": [TOOL]},
            {"role": "system", "content": ""},
            {"role": "system", "content": "Z"},
        ],
        "system messages alone": [
            {"role": "system", "content": "A"},
            USER,
            {"role": "system", "content": "B"},
        ],
        "special token in text": [{"role": "user", "content": "<e> <b>"}],
    }
    spellings = ('{"a": 1.0, "b":"\\u00e9", "a":2}', "", "[]", "nope", ' {"q":[1e3,"\\/"]}\n', "null", "{}{}")
    for at, arguments in enumerate(spellings):
        lists[f"arguments {at}"] = [{"role": "assistant", "content": None, "tool_calls": [_call(arguments)]}]
    return lists


def _arguments() -> dict[str, dict[str, Any]]:
    """Tools, template arguments, and which template it is."""
    ask: dict[str, Any] = {"messages": [USER], "chat_template": NAMED}
    plain: dict[str, Any] = {"messages": [USER]}
    going = [USER, {"role": "assistant", "content": "so "}]
    kept = {"continue_final_message": True, "add_generation_prompt": False}
    spoken = {"role": "developer", "name": "n", "content": "d", "tools": [TOOL]}
    inner = {"chat_template": "X{{ messages|tojson }}"}
    return {
        "tools": ask | {"tools": [TOOL]},
        "tools deferred outside": ask | {"tools": [{"function": {"name": "g"}, "defer_loading": True}]},
        "tools with tool_choice none": ask | {"tools": [TOOL], "tool_choice": "none"},
        "no tools in a list": ask | {"tools": []},
        "request arguments": ask
        | {"chat_template_kwargs": {"add_generation_prompt": False, "enable_thinking": "auto", "foo": None}},
        "arguments beat special tokens": ask
        | {"chat_template_kwargs": {"bos_token": "B", "tools": [{"a": 1}]}},
        "documents": ask | {"documents": [{"b": "1", "a": "2"}]},
        "documents as argument": ask | {"chat_template_kwargs": {"documents": [{"t": "x"}]}},
        "effort none": ask | {"reasoning_effort": "none"},
        "effort high": ask | {"reasoning_effort": "high", "add_generation_prompt": "false"},
        "effort and thinking": ask
        | {"reasoning_effort": "high", "chat_template_kwargs": {"enable_thinking": False}},
        "effort and thinking null": ask
        | {"reasoning_effort": "low", "chat_template_kwargs": {"enable_thinking": None}},
        "default template": plain,
        "template for tools": plain | {"tools": [TOOL]},
        "template for tools, choice none": plain | {"tools": [TOOL], "tool_choice": "none"},
        "template by name": plain | {"chat_template": "tool_use"},
        "empty template": plain | {"chat_template": ""},
        "template among arguments": {"messages": [USER | {"content": TEXTS}], "chat_template_kwargs": inner},
        "template twice": plain | {"chat_template": "A{{ foo }}", "chat_template_kwargs": inner},
        "special tokens added": plain | {"add_special_tokens": True},
        "continued": {"messages": going, "chat_template": SAID} | kept,
        "continued and trimmed": {"messages": going, "chat_template": SAID.replace("content", "content|trim")}
        | kept,
        "continued with a prompt": {"messages": going, "chat_template": SAID, "continue_final_message": True},
        "developer spoken": {"messages": [spoken, USER], "chat_template": DUMP + "{# 'developer' #}"},
        "template error": plain | {"chat_template": "{{ raise_exception('no') }}"},
        "reasoning under other names": {
            "messages": [{"role": "assistant", "content": "x", "reasoning": "r"}],
            "chat_template": "{{ messages[0].thinking }}|{{ messages[0].keys()|list }}",
        },
        "no messages": ask | {"messages": []},
        "forwarded ids": plain | {"kv_transfer_params": {"prompt_token_ids": [1, 2, 3]}},
        "forwarded ids and echo": plain | {"kv_transfer_params": {"prompt_token_ids": [1, 2]}, "echo": True},
        "truncated": plain | {"truncate_prompt_tokens": 5},
        "truncated on the right": plain | {"truncate_prompt_tokens": 5, "truncation_side": "right"},
        "truncated with special tokens": plain | {"truncate_prompt_tokens": 5, "add_special_tokens": True},
        "truncated to the model's length": {
            "messages": [{"role": "user", "content": "word " * 200}],
            "truncate_prompt_tokens": -1,
            "max_tokens": 4,
        },
    }


def _told() -> dict[str, dict[str, Any]]:
    plain: dict[str, Any] = {"messages": [{"role": "developer", "content": "d"}, USER]}
    return {
        "told: server's template and defaults": plain,
        "told: tools withheld": plain | {"tools": [TOOL], "tool_choice": "none"},
        "told: tools": plain | {"tools": [TOOL]},
        "told: request wins": plain | {"chat_template_kwargs": {"foo": 1, "enable_thinking": False}},
        "told: null and auto do not": plain
        | {"chat_template_kwargs": {"foo": None, "enable_thinking": "auto"}},
        "told: effort wins": plain | {"reasoning_effort": "none"},
        "told: own template refused": plain | {"chat_template": DUMP},
    }


CASES: dict[str, dict[str, dict[str, Any]]] = {
    "trusting": _messages() | _arguments(),
    "told": _told(),
}
"""Bodies by name, for each server."""
