"""What a chat template may use: time, memory, and the size of what one operation makes.

A template is untrusted code, and Python cannot be interrupted within an operation, so each that could make
something huge is checked before it runs. It knows nothing of compiling. Operations and filters are those of
Python 3.12's str and of Jinja 3.1.6 (filters.py).
"""

from __future__ import annotations

import functools
import re
import resource
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

MAX_BITS = 100_000
"""Bits of the largest whole number that is made: arithmetic with larger ones takes more than linear time."""

MAX_COUNT = 100_000
"""How often a filter may do something that asks for no time: Jinja's sandbox allows a range as many turns."""

MAX_INDENT = 100
"""Spaces for each level of `tojson`."""

MAX_MEMORY = 1 << 30
"""Bytes by which the process may grow during one rendering, looked at where something large was made."""

_LARGE = 1 << 20
_WIDTH = re.compile(r"%(?:\([^()]*\))?[-#0 +]*(\d*)(?:\.(\d*))?")
_STARRED = re.compile(r"%[-#0 +]*(?:\*|\d*\.\*)")
_DIGITS = re.compile(r"\d+")
_STATM = Path("/proc/self/statm")


class LimitError(RuntimeError):
    """A rendering took longer or grew larger than allowed."""


class TimeUpError(LimitError):
    """A rendering took longer than allowed."""


def _used_bytes() -> int:
    """The memory of this process; where the system does not tell, its peak, which only grows."""
    try:
        return int(_STATM.read_bytes().split()[1]) * resource.getpagesize()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


@dataclass(slots=True)
class Run:
    """What one rendering may use and what it found: seconds on the monotonic clock, characters, a time."""

    deadline: float
    max_chars: int
    clock: datetime
    unmarked: bool = False
    began_bytes: int = field(default_factory=_used_bytes)

    def check_time(self) -> None:
        """Raise `TimeUpError` after the deadline."""
        if time.monotonic() > self.deadline:
            raise TimeUpError("the template ran longer than allowed")

    def check_size(self, chars: int) -> None:
        """Raise `LimitError` where a text of `chars` characters, or a list as long, is too large."""
        if chars > self.max_chars:
            raise LimitError(f"the template made a text of more than {self.max_chars} characters")

    def check_made(self, value: Any) -> None:
        """Raise `LimitError` where a value is too large, or one too many of the large ones."""
        size = size_of(value)
        if size > self.max_chars or size > _LARGE:
            self.check_size(size)
            if _used_bytes() - self.began_bytes > MAX_MEMORY:
                raise LimitError(f"the template used more than {MAX_MEMORY >> 30} GiB of memory")

    def check_number(self, bits: int) -> None:
        """Raise `LimitError` where a whole number of so many bits is too large."""
        if bits > MAX_BITS:
            raise LimitError("the template made too large a number")

    def check_count(self, times: int) -> None:
        """Raise `LimitError` where a filter is asked to do something too often."""
        if times > MAX_COUNT:
            raise LimitError(f"the template asked a filter for more than {MAX_COUNT} of something")

    def check_spec(self, spec: str) -> None:
        """Check the widths in one format specification."""
        for digits in _DIGITS.findall(spec):
            self.check_size(number_in(digits))


def size_of(value: Any) -> int:
    """Characters of a text, items of a list; 0 of all else."""
    return len(value) if isinstance(value, str | bytes | list | tuple) else 0


def number_in(digits: str) -> int:
    """A whole number that a text spells; a long one is only known to be large."""
    return int(digits) if len(digits) < 20 else 10**20


def check_binop(run: Run, operator: str, left: Any, right: Any) -> None:
    """Raise `LimitError` before `+ * ** %` makes what is too large."""
    if isinstance(left, int) and isinstance(right, int):
        bits = left.bit_length() * right if operator == "**" else left.bit_length() + right.bit_length()
        if operator in ("*", "**"):
            run.check_number(bits)
    elif operator == "+":
        run.check_size(size_of(left) + size_of(right))
    elif operator == "*":
        run.check_size(max(size_of(left) * _whole(right), size_of(right) * _whole(left)))
    elif operator == "%" and isinstance(left, str):
        check_percent(run, left, right)


def check_percent(run: Run, template: str, values: Any) -> None:
    """Check the widths of `template % values`."""
    for found in _WIDTH.finditer(template):
        for digits in found.groups():
            run.check_size(number_in(digits or "0"))
    if _STARRED.search(template):
        _check_widths(run, values if isinstance(values, tuple) else (values,))


def check_call(run: Run, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise `LimitError` before a method of a text or a number makes what is too large."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, str | bytes | int) and (check := _METHODS.get(function.__name__)):
        check(run, owner, *args, *kwargs.values())


def limited_filters(
    run_of: Callable[[], Run], filters: Mapping[str, Callable[..., Any]]
) -> dict[str, Callable[..., Any]]:
    """The filters, each that could make something huge checked before it runs; `run_of` gives the run."""
    return {
        name: _checked(run_of, function, _FILTERS[name]) if name in _FILTERS else function
        for name, function in filters.items()
    }


def limited_lipsum(run_of: Callable[[], Run], lipsum: Callable[..., Any]) -> Callable[..., Any]:
    """Jinja's maker of blind text, with a limit to its words."""

    @functools.wraps(lipsum)
    def limited(n: int = 5, html: bool = True, min: int = 20, max: int = 100) -> Any:  # noqa: A002
        run_of().check_count(n * max)
        return lipsum(n, html, min, max)

    return limited


def _checked(
    run_of: Callable[[], Run], function: Callable[..., Any], check: Callable[..., None]
) -> Callable[..., Any]:
    # Jinja marks the filters that want one of its contexts first; wraps() copies the mark.
    first = 1 if hasattr(function, "jinja_pass_arg") else 0

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check(run_of(), *args[first:], **kwargs)
        return function(*args, **kwargs)

    return checked


def _whole(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _check_widths(run: Run, values: Iterable[Any]) -> None:
    for value in values:
        run.check_size(_whole(value))


def _check_width(run: Run, _text: Any, width: Any = 0, *_: Any, **_more: Any) -> None:
    run.check_size(_whole(width))


def _check_tabs(run: Run, text: Any, width: Any = 8, *_: Any) -> None:
    run.check_size(text.count("\t" if isinstance(text, str) else b"\t") * _whole(width))


def _check_replace(run: Run, text: Any, old: Any, new: Any, count: Any = None, *_: Any) -> None:
    if isinstance(text, str) and isinstance(old, str):
        found = text.count(old) if count is None or _whole(count) < 0 else min(text.count(old), _whole(count))
        run.check_size(found * size_of(new))


def _check_join(run: Run, glue: Any, pieces: Any = (), *_: Any) -> None:
    if isinstance(pieces, list | tuple):
        run.check_size(len(pieces) * size_of(glue) + sum(map(size_of, pieces)))
    elif size_of(glue) > _LARGE:
        raise LimitError("the template joined with too long a text")


def _check_joined(run: Run, value: Any, d: Any = "", attribute: Any = None) -> None:
    _check_join(run, d, value)


def _check_translate(run: Run, text: Any, table: Any) -> None:
    if isinstance(table, dict):
        run.check_size(size_of(text) * max(map(size_of, table.values()), default=0))


def _check_indent(run: Run, s: Any, width: Any = 4, first: Any = False, blank: Any = False) -> None:
    if isinstance(s, str):
        run.check_size((s.count("\n") + 1) * (_whole(width) or size_of(width)))


def _check_tojson(_run: Run, _value: Any, *args: Any, indent: Any = None, **_: Any) -> None:
    given = indent if len(args) < 2 else args[1]  # ensure_ascii comes first
    if max(_whole(given), size_of(given)) > MAX_INDENT:
        raise LimitError(f"the template indented by more than {MAX_INDENT} spaces")


def _check_cuts(run: Run, _value: Any, count: Any = 0, *_: Any, **more: Any) -> None:
    run.check_count(max(_whole(count), _whole(more.get("linecount")), _whole(more.get("slices"))))


def _check_wrap(run: Run, s: Any, *_: Any, **_more: Any) -> None:
    run.check_count(size_of(s))


def _check_format(run: Run, value: Any, *args: Any, **kwargs: Any) -> None:
    check_percent(run, str(value), args or tuple(kwargs.values()))


def _check_int(run: Run, value: Any, default: Any = 0, base: Any = 10) -> None:
    if base != 10:  # Python limits the others itself
        run.check_number(size_of(value) * _whole(base).bit_length())


_METHODS: Mapping[str, Callable[..., None]] = {
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), _check_width),
    "to_bytes": lambda run, _number, length=1, *_: run.check_size(_whole(length)),
    "expandtabs": _check_tabs,
    "replace": _check_replace,
    "join": _check_join,
    "translate": _check_translate,
}
_FILTERS: Mapping[str, Callable[..., None]] = {
    "center": _check_width,
    "indent": _check_indent,
    "tojson": _check_tojson,
    "replace": _check_replace,
    "join": _check_joined,
    "format": _check_format,
    "int": _check_int,
    "wordwrap": _check_wrap,
    **dict.fromkeys(("batch", "slice"), _check_cuts),
}
