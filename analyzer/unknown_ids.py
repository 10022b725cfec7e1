"""Token ids for sampled tokens that nobody knows: they take room, and no prompt can hit them.

It knows no cache; an engine that compares contents asks here for what it is to compare.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzer.core import TokenIds


class UnknownIds:
    """Gives each unknown token an id of its own, below 0, where no vocabulary has any."""

    def __init__(self) -> None:
        self._next = -1

    def fill(self, generated: Sequence[int] | int) -> TokenIds:
        """The ids of an answer: the known ones, and new ones for a mere count or where an id is negative."""
        if isinstance(generated, int):
            ids = np.full(generated, -1, dtype=np.int32)
        else:
            ids = np.array(generated, dtype=np.int32)
        unknown = ids < 0
        count = int(np.count_nonzero(unknown))
        ids[unknown] = np.arange(self._next, self._next - count, -1, dtype=np.int32)
        self._next -= count
        return ids
