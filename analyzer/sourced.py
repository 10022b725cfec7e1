"""Text that knows, for each run of its characters, which field of the request body it came from.

It does not parse JSON (see `sourced_json`) and knows nothing of templates. A `Sourced` compares, hashes
and prints like the plain string it holds; only `spans_of` shows the difference. Characters that no span
covers are template text, or of unknown origin.
"""

# ruff: noqa: D102 (the methods are those of str, and so are their descriptions)
from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import Any, SupportsIndex

from analyzer.core import Span

type Run = tuple[int, int, str, int, bool]
"""(char_start, char_end, path, path_char, exact): a `Span` in its cheap form."""

_run_end = itemgetter(1)


class Sourced(str):
    """A string and the fields its characters came from; the operations a template uses keep its spans.

    Methods have the signatures, results and errors of `str`. They return a plain `str` where nothing is
    known about any character of the result, and so do the rarer methods, left to `str`.
    There are no public attributes beyond those of `str`, since a template can read them.
    """

    __slots__ = ("_runs",)
    _runs: tuple[Run, ...]

    def __new__(cls, text: str, runs: Iterable[Run] = ()) -> Sourced:
        made = str.__new__(cls, text)
        made._runs = tuple(runs)
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        return plain(self), self._runs

    def __str__(self) -> str:
        return self

    def __format__(self, spec: str) -> str:
        if not spec or spec == "s":
            return self
        return covered(format(plain(self), spec), [self])

    def __add__(self, other: str) -> str:
        return concat((self, other)) if isinstance(other, str) else NotImplemented

    def __radd__(self, other: str) -> str:
        return concat((other, self)) if isinstance(other, str) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> str:
        return _same_runs(self, plain(self) * times) if not self._runs else concat([self] * int(times))

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> str:
        from analyzer.sourced_format import printf

        return printf(self, values)

    def __rmod__(self, template: Any) -> str:
        return Sourced(template) % self if isinstance(template, str) else NotImplemented

    def __getitem__(self, key: SupportsIndex | slice) -> str:
        text = str.__getitem__(self, key)
        if not self._runs:
            return text
        start, stop, step = (key if isinstance(key, slice) else _one(key, len(self))).indices(len(self))
        if step == 1:
            return _cut(self, text, start, stop)
        return concat(_cut(self, c, at, at + 1) for c, at in zip(text, range(start, stop, step), strict=True))

    def __iter__(self) -> Iterator[str]:
        return (_cut(self, char, at, at + 1) for at, char in enumerate(str.__iter__(self)))

    def strip(self, chars: str | None = None, /) -> str:
        return Sourced.rstrip(as_sourced(self.lstrip(chars)), chars)

    def lstrip(self, chars: str | None = None, /) -> str:
        return self[len(self) - len(str.lstrip(self, chars)) :]

    def rstrip(self, chars: str | None = None, /) -> str:
        return self[: len(str.rstrip(self, chars))]

    def removeprefix(self, prefix: str, /) -> str:
        return self[len(prefix) :] if self.startswith(prefix) else self

    def removesuffix(self, suffix: str, /) -> str:
        return self[: len(self) - len(suffix)] if self.endswith(suffix) else self

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return _pieces(self, str.split(self, sep, maxsplit), sep)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        return _pieces(self, str.rsplit(self, sep, maxsplit), sep)

    def splitlines(self, keepends: bool = False) -> list[str]:
        bounds = [0]
        for line in str.splitlines(self, True):
            bounds.append(bounds[-1] + len(line))
        kept = str.splitlines(self, keepends)
        return [
            self[start : start + len(line)] for (start, _), line in zip(pairwise(bounds), kept, strict=True)
        ]

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        head, found, _ = str.partition(self, sep)
        return self[: len(head)], self[len(head) : len(head) + len(found)], self[len(head) + len(found) :]

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        head, found, _ = str.rpartition(self, sep)
        return self[: len(head)], self[len(head) : len(head) + len(found)], self[len(head) + len(found) :]

    def replace(self, old: str, new: str, count: SupportsIndex = -1, /) -> str:
        if not self._runs and not isinstance(new, Sourced):
            return str.replace(self, old, new, count)
        if old:
            return join(new, _pieces(self, str.split(self, old, count), old)) if old in self else self
        text, limit = str.replace(self, old, new, count), int(count)
        places = len(self) + 1 if limit < 0 else min(limit, len(self) + 1)
        parts = [part for at in range(places) for part in (new, self[at : at + 1])]
        return checked(concat([*parts, self[places:]]), text)

    def format(self, *args: Any, **kwargs: Any) -> str:
        from analyzer.sourced_format import SourcedFormatter

        return SourcedFormatter().vformat(self, args, kwargs)

    def join(self, parts: Iterable[str], /) -> str:
        listed = list(parts)
        text = str.join(plain(self), listed)  # an item that is no string fails as it does in str
        known = self._runs or any(isinstance(part, Sourced) for part in listed)
        return join(self, listed) if known else text

    def lower(self) -> str:
        return _recased(self, str.lower)

    def upper(self) -> str:
        return _recased(self, str.upper)

    def title(self) -> str:
        return _recased(self, str.title)

    def capitalize(self) -> str:
        return _recased(self, str.capitalize)


def sourced(text: str, path: str) -> Sourced:
    """`text` as the whole string of the field at `path`, counted from its first character."""
    return Sourced(text, ((0, len(text), path, 0, True),) if text else ())


def as_sourced(text: str) -> Sourced:
    """`text` with whatever is known of it, for its span-keeping methods."""
    return text if isinstance(text, Sourced) else Sourced(text)


def plain(text: str) -> str:
    """The same characters as an ordinary `str`."""
    return str.__str__(text)


def spans_of(text: str) -> tuple[Span, ...]:
    """The known runs of `text`, sorted and without overlap; none for an ordinary string."""
    if not isinstance(text, Sourced):
        return ()
    return tuple(
        Span(char_start=start, char_end=end, path=path, path_char=char, exact=exact)
        for start, end, path, char, exact in text._runs
    )


def concat(parts: Iterable[str]) -> str:
    """All parts in a row, in time linear in the number of parts and their runs."""
    texts: list[str] = []
    runs: list[Run] = []
    offset = 0
    for part in parts:
        if isinstance(part, Sourced):
            for run in part._runs:
                _append(runs, run, offset)
        texts.append(part)
        offset += len(part)
    text = "".join(texts)
    return Sourced(text, runs) if runs else text


def join(separator: str, parts: Iterable[str]) -> str:
    """`separator.join(parts)`, keeping the spans of both."""
    row: list[str] = []
    for part in parts:
        row += (separator, part)
    return concat(row[1:])


def covered(text: str, origins: Iterable[object]) -> str:
    """`text` computed from `origins` in a way that cannot be followed: one inexact run, or none.

    It names the first field of the first origin that has one.
    """
    for origin in origins:
        if text and isinstance(origin, Sourced) and origin._runs:
            _, _, path, char, _ = origin._runs[0]
            return Sourced(text, ((0, len(text), path, char, False),))
    return text


def substituted(text: str, pattern: re.Pattern[str], new: Callable[[str], str]) -> str:
    """`text` with each match of `pattern` rewritten; new characters point at the match's first one."""
    parts: list[str] = []
    last = 0
    for found in pattern.finditer(plain(text)):
        start = found.start()
        parts += (text[last:start], spread(text[start : start + 1], new(found[0])))
        last = found.end()
    return concat([*parts, text[last:]]) if parts else text


def spread(char: str, text: str) -> str:
    """`text` written for the one character `char`: each of its characters points at that one."""
    if not isinstance(char, Sourced) or not char._runs:
        return text
    _, _, path, path_char, exact = char._runs[0]
    return Sourced(text, [(at, at + 1, path, path_char, exact) for at in range(len(text))])


def stretched(text: str, result: str, widths: Sequence[int]) -> str:
    """`result`, in which the i-th character of `text` became the next `widths[i]` characters."""
    parts: list[str] = []
    at = 0
    for char, width in zip(text, widths, strict=True):
        parts.append(spread(char, result[at : at + width]))
        at += width
    return checked(concat(parts), result)


def checked(text: str, wanted: str) -> str:
    """`text` if it reads `wanted`, else `wanted`, attributed as a whole: no span is worth a wrong text."""
    return text if text == wanted else covered(plain(wanted), [text])


def _append(runs: list[Run], run: Run, offset: int) -> None:
    start, end, path, char, exact = run
    if runs and runs[-1][1] == start + offset:
        first, last, path_before, char_before, exact_before = runs[-1]
        counted = last - first if exact else 0
        if (path_before, exact_before, char_before + counted) == (path, exact, char):
            runs[-1] = (first, end + offset, path, char_before, exact)
            return
    runs.append((start + offset, end + offset, path, char, exact))


def _cut(source: Sourced, text: str, start: int, stop: int) -> str:
    runs: list[Run] = []
    for at in range(bisect_right(source._runs, start, key=_run_end), len(source._runs)):
        run_start, run_end, path, char, exact = source._runs[at]
        if run_start >= stop:
            break
        first, last = max(run_start, start), min(run_end, stop)
        runs.append((first - start, last - start, path, char + first - run_start if exact else char, exact))
    return Sourced(text, runs) if runs else text


def _one(key: SupportsIndex, length: int) -> slice:
    at = key.__index__()
    at += length if at < 0 else 0
    return slice(at, at + 1)


def _pieces(source: Sourced, texts: list[str], separator: str | None) -> list[str]:
    pieces: list[str] = []
    at = 0
    for text in texts:
        if separator is None:
            at = source.find(text, at)
        pieces.append(source[at : at + len(text)])
        at += len(text) + len(separator or "")
    return pieces


def _same_runs(source: Sourced, text: str) -> str:
    return Sourced(text, source._runs) if source._runs else text


def _recased(source: Sourced, change: Callable[[str], str]) -> str:
    text = change(plain(source))
    if len(text) == len(source):  # no case mapping drops a character, so this means one for one
        return _same_runs(source, text)
    return stretched(source, text, [len(change(char)) for char in plain(source)])
