"""What was replaced in a capture before it was written: how many secrets of which kind, and where.

It sees placeholders alone; the secrets never reached the capture. Those of heads are counted here, in their
values; those of bodies the store has counted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from analyzer.report import SecretCount
from analyzer.wording import counted
from store.records import Body, Exchange, Headers

_PLACEHOLDER = re.compile(r"<secret:([a-z0-9-]+):\d+>")
_FIELD = re.compile(r"[.\[]")
_SHOWN_PATHS = 3

_BESIDE_THE_PROMPT = frozenset(
    {"client_metadata", "metadata", "prompt_cache_key", "safety_identifier", "user"}
)
"""Fields of a request that are in no prompt: vLLM 0.32 does not know them, or hands them back as they came
(openai/responses/protocol.py:240, 289; anthropic/protocol.py:221)."""

type _Place = tuple[str, str, str, str]


class SecretTally:
    """Adds up exchange by exchange."""

    def __init__(self) -> None:
        self._counts: Counter[_Place] = Counter()

    def add(self, exchange: Exchange) -> None:
        """Count what was replaced in one exchange."""
        for side, headers, body in (
            ("request", exchange.request_headers, exchange.request),
            ("response", exchange.response_headers, exchange.response),
        ):
            self._counts.update((kind, side, "headers", name) for kind, name in _in_headers(headers))
            for (kind, path), count in body.secret_paths.items():
                self._counts[kind, side, "body", path] += count
        for parameter in exchange.query.split("&"):
            name = parameter.partition("=")[0]
            name = "" if _PLACEHOLDER.search(name) else name
            self._counts.update((kind, "request", "query", name) for kind in _kinds(parameter))
        self._counts.update((kind, "request", "path", "") for kind in _kinds(exchange.path))
        self._counts.update((kind, "response", "error", "") for kind in _kinds(exchange.error or ""))

    def counts(self) -> tuple[SecretCount, ...]:
        """The most frequent first."""
        ordered = sorted(self._counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple(
            SecretCount(kind=kind, side=side, part=part, path=path, count=count)
            for (kind, side, part, path), count in ordered
        )


def in_prompt(request: Body) -> bool:
    """Whether any of a request's replaced secrets can have stood in what is rendered."""
    beside = sum(
        count
        for (_, path), count in request.secret_paths.items()
        if _FIELD.split(path, maxsplit=1)[0] in _BESIDE_THE_PROMPT
    )
    return sum(request.secrets.values()) > beside


def _in_headers(headers: Headers) -> Iterator[tuple[str, str]]:
    for name, value in headers:
        for kind in _kinds(value):
            yield kind, name.lower()


def _kinds(text: str) -> Iterator[str]:
    return (match[1] for match in _PLACEHOLDER.finditer(text))


def secret_lines(counts: tuple[SecretCount, ...]) -> Iterator[str]:
    """A line for all heads together, which no prompt is made of, and one for each kind in bodies."""
    in_heads = sum(item.count for item in counts if item.part != "body")
    bodies = [item for item in counts if item.part == "body"]
    if not counts:
        return
    yield (
        f"secrets replaced before anything was written: {sum(item.count for item in bodies)} in bodies,"
        f" {in_heads} in headers and URLs"
    )
    for kind in dict.fromkeys(item.kind for item in bodies):
        places = [item for item in bodies if item.kind == kind]
        shown = [f"{item.side} {item.path or 'body'} ×{item.count}" for item in places[:_SHOWN_PATHS]]
        more = len(places) - len(shown)
        rest = f" and {counted(more, 'more place')}" if more else ""
        yield f"  {kind}: {', '.join(shown)}{rest}"
