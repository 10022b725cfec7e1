"""`%` and `str.format` with sourced values: each value's characters keep their fields.

It takes the conversions one at a time and leaves what they mean to Python; a result that does not come
out as Python's own is attributed as a whole.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping, Sequence
from typing import Any

from analyzer.sourced import Sourced, checked, concat, covered, plain

# A `*` width takes a value of its own, and a length mark is ignored by Python: both are left to str.
_CONVERSION = re.compile(r"%(?:\((?P<key>[^()]*)\))?(?P<how>[-#0 +]*\d*(?:\.\d+)?[diouxXeEfFgGcrsa%])")


def printf(template: Sourced, values: Any) -> str:
    """`template % values`, with its errors."""
    text = str.__mod__(plain(template), values)
    row = iter(values if isinstance(values, tuple) else (values,))
    parts: list[str] = []
    last = 0
    for found in _CONVERSION.finditer(plain(template)):
        parts.append(template[last : found.start()])
        last = found.end()
        if found["how"].endswith("%"):
            parts.append("%")
            continue
        value = next(row, "") if found["key"] is None else values[found["key"]]
        if found["how"] == "s" and isinstance(value, str):
            parts.append(value)
        else:
            parts.append(covered(("%" + found["how"]) % (value,), [value]))
    return checked(concat([*parts, template[last:]]), text)


class SourcedFormatter(string.Formatter):
    """`string.Formatter` whose `vformat` keeps the spans of its values and of the template's text."""

    def vformat(self, format_string: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        """The formatted text; raises what `string.Formatter.vformat` raises."""
        text = super().vformat(plain(format_string), args, kwargs)
        if not _any_sourced([format_string, *args, *kwargs.values()]):
            return text
        if any("{" in (spec or "") for _, _, spec, _ in self.parse(plain(format_string))):
            return covered(text, [format_string, *args, *kwargs.values()])  # a spec that takes values
        return checked(self._written(format_string, args, kwargs), text)

    def _written(self, template: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
        parts: list[str] = []
        count = 0
        for literal, name, spec, conversion in self.parse(plain(template)):
            parts.append(covered(literal, [template]))
            if name is None:
                continue
            if not name or name[0] in ".[":
                name, count = f"{count}{name}", count + 1
            value = self.get_field(name, args, kwargs)[0]
            value = self.convert_field(value, conversion)
            whole = isinstance(value, str) and not spec
            parts.append(value if whole else covered(self.format_field(value, spec or ""), [value]))
        return concat(parts)


def _any_sourced(values: list[Any]) -> bool:
    return any(isinstance(value, Sourced | dict | list | tuple) for value in values)
