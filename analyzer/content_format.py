"""Decides whether a chat template wants a message's content as a string or as a list of parts.

The rule is vLLM 0.32's (renderers/hf.py:323-664), read off the template's syntax tree; the template is
not run.
"""

from __future__ import annotations

from functools import cache

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


@cache
def content_format_of(template: str) -> ContentFormat:
    """`openai` where the template loops over a message's content, else `string`."""
    environment = jinja2.Environment(extensions=[loopcontrols, _Generation], autoescape=False)
    try:
        tree = environment.parse(template)
    except jinja2.TemplateSyntaxError:
        return "string"  # what cannot be parsed fails when it is rendered, with a message
    names = _content_names(tree)
    loops = (loop.iter for loop in tree.find_all(nodes.For))
    return "openai" if any(_is_content(iterated, names) for iterated in loops) else "string"


def _content_names(tree: nodes.Template) -> frozenset[str]:
    """Variables that hold a message's content: set from it, or a macro's argument of that name."""
    names = {"content"}
    for assignment in tree.find_all(nodes.Assign):
        if isinstance(assignment.target, nodes.Name) and _is_content(assignment.node, frozenset(names)):
            names.add(assignment.target.name)
    return frozenset(names)


def _is_content(node: nodes.Node | None, names: frozenset[str]) -> bool:
    match node:
        case nodes.Getattr():
            return node.attr == "content"
        case nodes.Getitem():
            return isinstance(node.arg, nodes.Const) and node.arg.value == "content"
        case nodes.Name():
            return node.name in names
        case nodes.Filter() | nodes.Test():
            return _is_content(node.node, names)
        case _:
            return False
