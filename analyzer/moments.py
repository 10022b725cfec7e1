"""Dates and times in a text: whether two differing places are one clock, read at two moments.

It knows the formats that programs print; it does not guess at what else might be a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

type Grain = Literal["second", "minute", "hour", "day"]

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec".split()  # noqa: SIM905
_DAYS = "mon tue wed thu fri sat sun".split()  # noqa: SIM905
_MONTH = (
    r"(?P<month_name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
_WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:r(?:s(?:day)?)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)\.?"
)
_ZONE = r"(?:[ ]?(?:Z|UTC|GMT|[ECMP][SD]T|[CEW]ES?T|[BIJK]ST|AE[SD]T|[+-]\d\d:?\d\d))?"
_HALF = r"(?:[ ]?(?P<half>[ap])\.?m\b\.?)?"
_SECOND = r"(?P<second>[0-5]\d|60)(?:[.,](?P<part>\d+))?"
_TIME = rf"(?P<hour>[01]?\d|2[0-4])[:h](?P<minute>[0-5]\d)(?::{_SECOND})?h?{_HALF}{_ZONE}"
_STAMP_TIME = rf"(?P<hour>[01]\d|2[0-3])(?P<gap>[:.-])(?P<minute>[0-5]\d)(?:(?P=gap){_SECOND})?{_ZONE}"
_HOUR = r"(?P<hour>[01]?\d|2[0-4])\s?(?:(?P<half>[ap])\.?m\b\.?|h\b|o'clock)"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_DATES = (
    rf"{_YEAR}(?P<sep>[-/.])(?P<month>\d\d?)(?P=sep)(?P<day>\d\d?)",
    r"(?P<a>\d\d?)(?P<sep>[-/])(?P<b>\d\d?)(?P=sep)(?P<year>(?:19|20)\d\d|\d\d)",
    rf"(?P<a>\d\d?)\.(?P<b>\d\d?)\.{_YEAR}",
    rf"(?P<day>\d\d?)(?:st|nd|rd|th)?(?:[\s/-]|\sof\s){_MONTH}(?:,?[\s/-]\s?{_YEAR})?",
    rf"{_MONTH}\s{{1,2}}(?P<day>\d\d?)(?:st|nd|rd|th)?(?:,?\s{_YEAR}(?!:))?",
    rf"{_YEAR}\s?年\s?(?P<month>\d\d?)\s?月\s?(?P<day>\d\d?)\s?日",
)
_BETWEEN = r"(?:[T_:]|\s?[,@|–-]\s?|\s(?:at\s)?|,\sat\s)"
_FORMATS = (
    *(
        rf"(?:{_WEEKDAY},?\s)?{date}{clock}"
        for date in _DATES
        for clock in ("", *(f"{_BETWEEN}{time}" for time in (_TIME, _STAMP_TIME, _HOUR)))
    ),
    # ctime and date(1): the year behind the time
    rf"(?:{_WEEKDAY},?\s)?{_MONTH}\s{{1,2}}(?P<day>\d\d?)\s{_TIME}\s{_YEAR}",
    rf"{_YEAR}(?P<month>0[1-9]|1[0-2])(?P<day>[0-3]\d)"
    r"(?:[T_-]?(?P<hour>[01]\d|2[0-3])(?P<minute>[0-5]\d)(?:(?P<second>[0-5]\d)(?P<part>\d{3})?)?Z?)?",
    rf"(?:{_WEEKDAY},?(?:\sat)?\s)?{_TIME}",
    rf"(?:{_WEEKDAY},?(?:\sat)?\s)?{_HOUR}",
    rf"{_MONTH},?\s{_YEAR}",
    rf"{_YEAR}-(?P<month>0[1-9]|1[0-2])(?!-)",
    rf"{_YEAR}-?W(?P<week>[0-5]\d)(?:-?(?P<weekday_number>[1-7]))?",
    _WEEKDAY,
    r"(?P<epoch>1\d{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?)",
)
_PATTERNS = tuple(re.compile(rf"(?<![\w.]){text}(?!\w)", re.IGNORECASE) for text in _FORMATS)
_HOUR_AT = 5
"""Where the hour stands among a moment's values."""

_REACH = 48
"""No format is longer on either side of a place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A date or time that stands in a text at [start, end), in one of the known formats.

    `values` are the ways to read it, each from the year down; a part that is not printed is 0 in all.
    """

    start: int
    end: int
    format: int
    fields: frozenset[str]
    values: tuple[tuple[float, ...], ...]

    @property
    def grain(self) -> Grain:
        """The finest thing that is printed."""
        if self.fields & {"second", "epoch"}:
            return "second"
        if "minute" in self.fields:
            return "minute"
        return "hour" if "hour" in self.fields else "day"


def ticked(before: str, after: str, at_before: int, at_after: int) -> tuple[Moment, Moment] | None:
    """The two readings of one clock that hold these places of two texts, the later one in `after`."""
    later = list(_moments(after, at_after))
    for one in _moments(before, at_before):
        for other in later:
            same = one.format == other.format and one.fields == other.fields
            aligned = at_before - one.start == at_after - other.start
            if same and aligned and _is_later(one, other):
                return one, other
    return None


def _moments(text: str, at: int) -> Iterator[Moment]:
    """The moments that hold a place of the text, the longest first."""
    first = max(0, at - _REACH)
    window = text[first : at + _REACH]
    found = [
        _moment(match, number, first)
        for number, pattern in enumerate(_PATTERNS)
        for match in pattern.finditer(window)
        if match.start() <= at - first <= match.end()
    ]
    yield from sorted(
        (moment for moment in found if moment is not None), key=lambda each: each.start - each.end
    )


def _moment(match: re.Match[str], number: int, offset: int) -> Moment | None:
    given = {name: value for name, value in match.groupdict().items() if value is not None}
    values = tuple(_values(given))
    if not values:
        return None
    return Moment(
        start=offset + match.start(),
        end=offset + match.end(),
        format=number,
        fields=frozenset(given) - {"half", "part", "sep", "gap"},
        values=values,
    )


def _values(given: dict[str, str]) -> Iterator[tuple[float, ...]]:
    if "epoch" in given:
        yield (_seconds(given["epoch"]),)
        return
    year = float(given.get("year", 0))
    month = _named(given, "month_name", _MONTHS) or float(given.get("month", 0))
    days = [(month, float(given.get("day", 0)))]
    if "a" in given:  # 05/06: either the day or the month comes first
        a, b = float(given["a"]), float(given["b"])
        days = [(first, second) for first, second in ((a, b), (b, a)) if first <= 12]
    clock = _hour(given), float(given.get("minute", 0)), float(given.get("second", 0))
    part = float("0." + given.get("part", "0"))
    week = float(given.get("week", 0)), float(given.get("weekday_number", 0))
    for month, day in days:
        if month <= 12 and day <= 31 and (day or "day" not in given):
            yield year, month, *week, day, *clock, part, _named(given, "weekday", _DAYS)


def _seconds(digits: str) -> float:
    whole = digits.partition(".")[0]
    return float(digits) if "." in digits else int(whole) / 10 ** (len(whole) - 10)


def _named(given: dict[str, str], group: str, names: list[str]) -> float:
    return names.index(given[group][:3].lower()) + 1 if group in given else 0


def _hour(given: dict[str, str]) -> float:
    hour, half = float(given.get("hour", 0)), given.get("half", "").lower()
    return hour % 12 + (12 if half == "p" else 0) if half else hour


def _is_later(one: Moment, other: Moment) -> bool:
    if "epoch" in one.fields:
        return 0 < other.values[0][0] - one.values[0][0] < 366 * 86400
    dated = bool(one.fields & {"year", "month", "month_name", "day", "a"})
    return any(_follows(first, second, dated=dated) for first in one.values for second in other.values)


def _follows(first: tuple[float, ...], second: tuple[float, ...], *, dated: bool) -> bool:
    *day_before, _ = first
    *day_after, _ = second
    if day_before == day_after:
        return first[-1] != second[-1]  # a weekday alone, of which any follows any
    if day_after > day_before:
        return True
    # A time without its date starts again at midnight, a date without its year at New Year.
    if not dated:
        return first[_HOUR_AT] - second[_HOUR_AT] > 10 or first[-1] != second[-1]
    return not first[0] and first[1] == 12 and second[1] == 1
