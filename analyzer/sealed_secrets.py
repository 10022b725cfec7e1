"""How many secrets were replaced in a sealed capture's exchanges before they were sealed, and where.

Of a place only what is the endpoint's own is told. No secret is looked for here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Any

from analyzer.report import SecretCount
from analyzer.secret_counts import SecretTally, ordered
from analyzer.typed import typed
from analyzer.vocabulary import Keys
from store.db import Capture
from store.records import Exchange

SECRETS = "secrets"
"""The kind of sealed part that counts them, for an exchange in which there was one."""

_HEADERS = frozenset(
    ("authorization", "proxy-authorization", "cookie", "set-cookie", "api-key", "x-api-key", "user-agent")
)


def secrets_of(exchange: Exchange, kinds: Collection[str], keys: Keys) -> list[list[Any]]:
    """The counts of one exchange. Only `kinds` are told: a client may write what looks like a placeholder."""
    tally = SecretTally()
    tally.add(exchange)
    return [
        [item.kind, item.side, item.part, _shown(item, keys), item.count]
        for item in tally.counts()
        if item.kind in kinds
    ]


def read_secrets(capture: Capture, *, complete: bool) -> tuple[SecretCount, ...] | None:
    """All counts; None where the capture does not tell, or not of every exchange (`complete`).

    Raises ValueError or TypeError where one is damaged.
    """
    if not complete:
        return None
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for part in capture.sealed(SECRETS):
        for kind, side, where, path, count in json.loads(part.content):
            told = {"kind": kind, "side": side, "part": where, "path": path, "count": count}
            item = typed(SecretCount, told)
            counts[item.kind, item.side, item.part, item.path] += item.count
    return ordered(counts)


def _shown(item: SecretCount, keys: Keys) -> str:
    if item.part == "body":
        return keys.path(item.path) or ""
    return item.path if item.path in _HEADERS or not item.path else keys.shown(item.path)
