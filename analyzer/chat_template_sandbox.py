"""The Jinja environment that chat templates run in: transformers' own sandbox, with limits on top.

It adds no feature a template could see. A chat template is untrusted code: every loop turn and macro call
asks for the time, and what could build a huge value asks `chat_template_limits` first. Written against
Jinja 3.1.6 (compiler.py, sandbox.py) and transformers 5.24 (utils/chat_template_utils.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from jinja2 import nodes
from jinja2.compiler import CodeGenerator, Frame
from jinja2.environment import Environment, Template
from jinja2.filters import do_indent
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEscapeFormatter, SandboxedFormatter
from jinja2.utils import Namespace
from markupsafe import Markup

from analyzer.chat_template_limits import Run, check_binop, check_call, limited_filters, limited_lipsum

_DICT_NAMES = frozenset(dir(dict))
_KEPT_CHARS = 8 << 20


class LimitedFormatter(SandboxedFormatter):
    """`str.format` whose fields are no wider than a text may be."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """One field; raises `LimitError`."""
        self._env.run.check_spec(format_spec)  # type: ignore[attr-defined]
        return str(super().format_field(value, format_spec))


class _EscapeFormatter(LimitedFormatter, SandboxedEscapeFormatter):
    pass


class _Generator(CodeGenerator):
    def blockvisit(self, nodes: Iterable[nodes.Node], frame: Frame) -> None:
        # Soft frames are the branches of an if: no loop closes inside one without another frame.
        if not frame.soft_frame:
            self.writeline("environment.run.check_time()")
        super().blockvisit(nodes, frame)


class LimitedEnvironment(ImmutableSandboxedEnvironment):
    """transformers' environment with `run`, the limits and the clock of the rendering at hand."""

    run: Run
    code_generator_class = _Generator
    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        """Apply `+ * ** %`; raises `LimitError` before a result that is too large is made."""
        check_binop(self.run, operator, left, right)
        # Jinja's `+` goes through a table of operators; a prompt is built of thousands.
        result = left + right if operator == "+" else super().call_binop(context, operator, left, right)
        self.run.check_made(result)
        return result

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """As the sandbox's; raises `LimitError` before a method makes what is too large."""
        check_call(self.run, obj, args, kwargs)
        result = super().call(context, obj, *args, **kwargs)
        self.run.check_made(result)
        return result

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        """The sandbox's guarded `format`, with the widths of its fields checked."""
        guarded = super().wrap_str_format(value)
        if guarded is None:
            return None
        template: str = value.__self__
        mapped = value.__name__ == "format_map"
        escape = template.escape if isinstance(template, Markup) else None
        formatter = LimitedFormatter(self) if escape is None else _EscapeFormatter(self, escape=escape)

        def formatted(*args: Any, **kwargs: Any) -> str:
            if mapped and (kwargs or len(args) != 1):
                return str(guarded(*args, **kwargs))  # its error is the one that users know
            given = ((), *args) if mapped else (args, kwargs)
            return type(template)(formatter.vformat(template, *given))

        return functools.update_wrapper(formatted, guarded)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """The sandbox's rule; a member of a plain object needs no look at what else the name could mean."""
        if type(obj) is dict and attribute not in _DICT_NAMES:
            return obj[attribute] if attribute in obj else self.undefined(obj=obj, name=attribute)
        return super().getattr(obj, attribute)

    def gather(self, chunks: Iterable[str]) -> list[str]:
        """The chunks of a text, checked as they come."""
        gathered: list[str] = []
        chars, most = 0, self.run.max_chars
        for chunk in chunks:
            chars += len(chunk)
            gathered.append(chunk)
            if chars > most:
                self.run.check_size(chars)
        return gathered

    def strftime_now(self, format: str) -> str:  # noqa: A002 (a template may pass it by this name)
        """The request's time in the template's format."""
        return self.run.clock.strftime(format)


def limited_environment[E: LimitedEnvironment](kind: type[E]) -> E:
    """A new environment of `kind`, set up as transformers sets up its own; needs transformers."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    base: Environment = _compile_jinja_template("").environment
    made: Any = base.overlay()
    made.__class__ = kind
    globals_: dict[str, Any] = base.globals
    ours: dict[str, Any] = {"indent": _indent, "tojson": _KeptJson(base.filters["tojson"])}
    made.filters = limited_filters(lambda: made.run, {**base.filters, **ours})
    made.globals = {
        **globals_,
        "strftime_now": made.strftime_now,
        "namespace": _Namespace,
        "lipsum": limited_lipsum(lambda: made.run, globals_["lipsum"]),
    }
    made.concat = lambda chunks: "".join(made.gather(chunks))
    return made  # type: ignore[no-any-return]


def compile_limited(environment: LimitedEnvironment, source: str) -> Template:
    """Compile `source` so that `~` checks the size of what it makes."""
    template = environment.from_string(source)
    # Generated code takes this name from its module's globals.
    names = template.root_render_func.__globals__
    names["str_join"] = lambda values: "".join(environment.gather(map(str, values)))
    return template


def template_line(template: Template, error: BaseException) -> int | None:
    """The line of the template's source that `error` was raised from, if it was raised inside it."""
    line: int | None = getattr(error, "lineno", None)
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__jinja_template__") is template:
            line = template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return line


def chunks_of(template: Template, variables: dict[str, Any]) -> Iterator[str]:
    """The text of a rendering in pieces, with errors as the template raised them."""
    return template.root_render_func(template.new_context(variables))


class _KeptJson:
    """transformers' `tojson`, printing an object only once: prompts repeat their calls and tools.

    An object is known by its identity, and kept so that no other can have it. Nothing may change it; a
    template cannot.
    """

    def __init__(self, tojson: Callable[..., str]) -> None:
        self._tojson = tojson
        self._kept: dict[int, tuple[Any, str]] = {}
        self._chars = 0

    def __call__(self, x: Any, *args: Any, **kwargs: Any) -> str:
        if type(x) is not dict or args or kwargs:
            return self._tojson(x, *args, **kwargs)
        kept = self._kept.get(id(x))
        if kept is None:
            if self._chars > _KEPT_CHARS:
                self._kept, self._chars = {}, 0
            kept = self._kept[id(x)] = x, self._tojson(x)
            self._chars += len(kept[1])
        return kept[1]


class _Namespace(Namespace):
    """Forgets names that begin with an underscore: the sandbox reads none of them.

    So a template prints what it prints with the transformers that vLLM 0.32 takes (below 5.20); later ones
    refuse to store such a name.
    """

    def __init__(*args: Any, **kwargs: Any) -> None:
        own, *given = args  # a template may name an attribute `self`
        kept = {name: value for name, value in dict(*given, **kwargs).items() if not _is_private(name)}
        Namespace.__init__(own, kept)

    def __setitem__(self, name: str, value: Any) -> None:
        if not _is_private(name):
            super().__setitem__(name, value)


def _is_private(name: Any) -> bool:
    return isinstance(name, str) and name.startswith("_")


def _indent(s: Any, *args: Any, **kwargs: Any) -> str:
    # Jinja's filter uses `+=`, which would change a list of the caller's in place before it fails.
    return do_indent(list(s) if isinstance(s, list) else s, *args, **kwargs)  # type: ignore[arg-type]
