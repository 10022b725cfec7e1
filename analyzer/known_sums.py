"""Sums and shares of numbers of which some are not known, as all totals make them.

What a total means is told where it is made.
"""

from __future__ import annotations

from collections.abc import Iterable


def known_sum[N: (int, float)](numbers: Iterable[N | None]) -> N | None:
    """The sum of what is known; None, not 0, where nothing is."""
    known = [number for number in numbers if number is not None]
    return sum(known[1:], known[0]) if known else None


def percent(part: int | None, whole: int | None) -> float | None:
    """A share to a tenth of a per cent; None where one of both is not known, or the whole is nothing."""
    return None if part is None or not whole else round(100 * part / whole, 1)
