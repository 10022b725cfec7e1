"""The Jinja environment for sourced values: what a template prints keeps the fields it came from.

Texts and errors are those of the plain environment. Where a filter or method cannot be followed, its
result is attributed as a whole to its first sourced argument; what is left is noted in `run.unmarked`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable
from types import BuiltinMethodType, MethodType
from typing import Any

from jinja2 import nodes
from jinja2.environment import Template
from jinja2.filters import do_indent, do_replace, do_title, sync_do_join
from jinja2.nodes import EvalContext
from jinja2.runtime import Context, Undefined
from jinja2.utils import pass_eval_context
from markupsafe import Markup, escape

from analyzer.chat_template_limits import limited_filters
from analyzer.chat_template_sandbox import LimitedEnvironment, LimitedFormatter, limited_environment
from analyzer.sourced import Sourced, as_sourced, concat, covered, join, stretched, substituted
from analyzer.sourced_format import SourcedFormatter
from analyzer.sourced_json import SourcedDict, SourcedList, dumps
from analyzer.sourced_repr import repr_of

# These return one of the values they were given, so a plain result is not a lost one.
_CHOOSERS = frozenset(("attr", "d", "default", "first", "last", "max", "min", "random", "sum"))
_HTML = re.compile("[&<>'\"]")


class MarkedMarkup(Markup):
    """Text that a template declared safe: prints as the same text with its fields, if they are known.

    What Jinja computes from it (a sum, upper case) is of this class too, and has no fields.
    """

    _origin: str | None = None

    def __str__(self) -> str:
        return str.__str__(self) if self._origin is None else self._origin


class _Formatter(SourcedFormatter, LimitedFormatter):
    pass


class MarkingEnvironment(LimitedEnvironment):
    """The limited environment in which text from sourced values stays sourced."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        """As the sandbox's; methods of a plain string see the sources of their arguments."""
        return super().getattr(Sourced(obj) if type(obj) is str else obj, attribute)

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The sandbox's guarded `format`, keeping spans."""
        guarded = super().wrap_str_format(value)
        template = getattr(value, "__self__", None)
        if guarded is None or not isinstance(template, Sourced):
            return guarded
        formatter = _Formatter(self)
        if value.__name__ == "format_map":
            return lambda mapping: formatter.vformat(template, (), mapping)
        return lambda *args, **kwargs: formatter.vformat(template, args, kwargs)

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As the sandbox's; what a string method lost is attributed as a whole."""
        result = super().call(context, obj, *args, **kwargs)
        if type(result) is str and isinstance(obj, BuiltinMethodType | MethodType):
            return self.cover(result, (obj.__self__, *args, *kwargs.values()))
        return result

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """As the limited environment's, with `%` keeping the spans of its values."""
        if operator == "%" and type(left) is str:
            left = Sourced(left)
        return super().call_binop(context, operator, left, right)

    def cover(self, text: str, origins: Iterable[Any]) -> str:
        """`text` attributed as a whole to the first of `origins` that has a source."""
        values = list(origins)
        if any(isinstance(value, SourcedDict | SourcedList) for value in values):
            self.run.unmarked = True
        return covered(text, values)

    def printed(self, value: Any) -> str:
        """`str(value)`, keeping spans; notes a computed text that has none."""
        if type(value) in (str, Sourced):
            return value  # type: ignore[no-any-return]
        text = repr_of(value) if isinstance(value, list | tuple | dict) else str(value)
        lost = isinstance(value, MarkedMarkup) or not isinstance(value, str | Undefined)
        if lost and text and type(text) is str:
            self.run.unmarked = True
        return text

    def tojson(
        self,
        x: Any,
        ensure_ascii: bool = False,
        indent: int | None = None,
        separators: tuple[str, str] | None = None,
        sort_keys: bool = False,
    ) -> str:
        """transformers' `tojson` filter, keeping spans."""
        text = dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)
        if type(text) is str and x and not isinstance(x, str):
            self.run.unmarked = True
        return text


def marking_environment() -> MarkingEnvironment:
    """A new environment for sourced values; needs transformers."""
    made = limited_environment(MarkingEnvironment)
    ours: dict[str, Callable[..., Any]] = {
        "tojson": made.tojson, "string": made.printed, "join": _joined, "indent": _indented,
        "replace": _replaced, "title": _titled, "safe": _safe, "escape": _escaped, "e": _escaped,
    }  # fmt: skip
    ours["format"] = _formatted
    for name, function in made.filters.items():
        ours.setdefault(name, function if name in _CHOOSERS else _covering(made, function))
    made.filters = limited_filters(lambda: made.run, ours)
    made.concat = lambda chunks: concat(made.gather(chunks))  # type: ignore[method-assign]
    return made


def compile_marked(environment: MarkingEnvironment, source: str) -> Template:
    """Compile `source` so that its own conversions to text go through the environment's."""
    template = environment.from_string(source)
    # Generated code takes these names from its module, where ours come before the builtins.
    template.root_render_func.__globals__.update(
        str=environment.printed,
        str_join=lambda values: concat(environment.gather(map(environment.printed, values))),
    )
    return template


def escapes_all(tree: nodes.Template) -> bool:
    """Whether the template switches autoescape, whose markup carries no spans."""
    return tree.find(nodes.EvalContextModifier) is not None


def _covering(environment: MarkingEnvironment, function: Callable[..., Any]) -> Callable[..., Any]:
    # wraps() also copies the mark that says which of Jinja's contexts the filter wants first.
    @functools.wraps(function)
    def covering(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if type(result) is str:
            return environment.cover(result, (*args, *kwargs.values()))
        if isinstance(result, Markup) and any(isinstance(value, Sourced) for value in args):
            environment.run.unmarked = True
        return result

    return covering


@pass_eval_context
def _joined(context: EvalContext, value: Any, d: str = "", attribute: Any = None) -> str:
    return sync_do_join(context, value, as_sourced(d) if type(d) is str else d, attribute)


@pass_eval_context
def _replaced(context: EvalContext, s: Any, old: str, new: str, count: int | None = None) -> str:
    return do_replace(context, as_sourced(s) if type(s) is str else s, old, new, count)


def _indented(s: Any, width: int | str = 4, first: bool = False, blank: bool = False) -> str:
    if not isinstance(s, Sourced):
        return do_indent(list(s) if isinstance(s, list) else s, width, first, blank)  # type: ignore[arg-type]
    margin = width if isinstance(width, str) else " " * width
    head, *lines = as_sourced(s + "\n").splitlines()
    rows = [head, *(concat((margin, line)) if line or blank else line for line in lines)]
    return concat((margin if first else "", join("\n", rows)))


def _titled(s: Any) -> str:
    text = do_title(s)
    return (
        stretched(s, text, [1] * len(s))
        if isinstance(s, Sourced) and len(text) == len(s)
        else covered(text, [s])
    )


def _formatted(value: Any, *args: Any, **kwargs: Any) -> str:
    from jinja2.filters import do_format

    return do_format(Sourced(value) if type(value) is str else value, *args, **kwargs)


def _safe(value: Any) -> Markup:
    return _marked(Markup(value), value)


def _escaped(value: Any) -> Markup:
    return _marked(
        escape(value),
        substituted(value, _HTML, lambda char: f"{escape(char)}") if isinstance(value, Sourced) else "",
    )


def _marked(text: Markup, origin: Any) -> Markup:
    if not isinstance(origin, Sourced) or str.__ne__(origin, text):
        return text
    marked = MarkedMarkup(text)
    marked._origin = origin
    return marked
