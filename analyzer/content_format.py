"""Decides whether a chat template wants a message's content as a string or as a list of parts.

The rule is vLLM 0.32's (renderers/hf.py:323-490), read off the template's syntax tree; the template is
not run. Where that rule stumbles over a construct it does not expect, its answer is `string`, and so is ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import jinja2
from jinja2 import nodes
from jinja2.ext import loopcontrols

from analyzer.chat_messages import ContentFormat


class _Generation(jinja2.ext.Extension):
    """Lets `{% generation %}` parse; transformers marks the assistant's part with it."""

    tags = {"generation"}  # noqa: RUF012 - jinja2 declares it so

    def parse(self, parser: jinja2.parser.Parser) -> nodes.Node | list[nodes.Node]:
        """Take the block's body as it stands."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _UnexpectedError(Exception):
    """A construct the server's rule does not expect, such as a loop over messages with two names."""


@lru_cache(maxsize=64)  # a request may bring a template of its own
def content_format_of(template: str) -> ContentFormat:
    """`openai` where the template loops over a message's content, else `string`."""
    environment = jinja2.Environment(
        extensions=[loopcontrols, _Generation], trim_blocks=True, lstrip_blocks=True, autoescape=False
    )
    try:
        tree = environment.parse(template)
    except jinja2.TemplateSyntaxError:
        return "string"  # what cannot be parsed fails when it is rendered, with a message
    try:
        return "openai" if any(_content_loops(tree)) else "string"
    except _UnexpectedError:
        return "string"


def _content_loops(tree: nodes.Template) -> Iterator[bool]:
    """True for each loop over content: of a loop variable over messages, a macro's argument, or `content`."""
    messages = list(_message_names(tree))
    parameters: dict[int, set[str]] = {}
    inside_macros: set[int] = set()
    for macro in tree.find_all(nodes.Macro):
        names = _content_parameters(tree, macro, messages)
        for loop in macro.find_all(nodes.For):
            inside_macros.add(id(loop))
            if names:
                parameters[id(loop)] = names
    for loop in tree.find_all(nodes.For):
        free = set() if id(loop) in inside_macros else {"content"}
        if any(_is_access(loop.iter, name, "content") for name in messages) or (
            isinstance(loop.iter, nodes.Name) and loop.iter.name in parameters.get(id(loop), set()) | free
        ):
            _target_name(loop.target)
            yield True


def _message_names(tree: nodes.Template) -> Iterator[str]:
    """Loop variables over `messages` or a variable that was set from it."""
    lists = _assigned_names(tree, "messages")
    for loop in tree.find_all(nodes.For):
        if any(_is_access(loop.iter, name) for name in lists):
            yield _target_name(loop.target)


def _assigned_names(tree: nodes.Template, name: str) -> list[str]:
    """`name`, and every variable set from it, directly or over others."""
    found = [name]
    for known in found:
        for assignment in tree.find_all(nodes.Assign):
            if _is_access(assignment.node, known):
                target = _target_name(assignment.target)
                if target not in found:
                    found.append(target)
    return found


def _content_parameters(tree: nodes.Template, macro: nodes.Macro, messages: list[str]) -> set[str]:
    """Parameters that some call of the macro gives a message's content."""
    declared = [argument.name for argument in macro.args]
    found: set[str] = set()
    for call in tree.find_all(nodes.Call):
        if not isinstance(call.node, nodes.Name) or call.node.name != macro.name:
            continue
        given = list(zip(declared, call.args, strict=False))
        given += [(item.key, item.value) for item in call.kwargs if item.key in declared]
        found |= {
            name for name, value in given if any(_is_access(value, held, "content") for held in messages)
        }
    return found


def _is_access(node: nodes.Node | None, name: str, key: str | None = None) -> bool:
    """Whether `node` reads the variable, or that member of it, maybe sliced, filtered or tested."""
    match node:
        case nodes.Filter() | nodes.Test():
            return _is_access(node.node, name, key)
        case nodes.Getitem(arg=nodes.Slice()):
            return _is_access(node.node, name, key)
        case nodes.Getitem():
            constant = isinstance(node.arg, nodes.Const) and node.arg.value == key
            return key is not None and constant and _is_access_to_name(node.node, name)
        case nodes.Getattr():
            return key is not None and node.attr == key and _is_access_to_name(node.node, name)
        case _:
            return key is None and _is_access_to_name(node, name)


def _is_access_to_name(node: nodes.Node | None, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.ctx == "load" and node.name == name


def _target_name(target: nodes.Node) -> str:
    if not isinstance(target, nodes.Name):
        raise _UnexpectedError
    return target.name
