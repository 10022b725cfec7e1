"""Random bodies and the encodings they come in: right, stacked, mislabelled, cut short."""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Callable

import brotli
import zstandard

WORDS = (
    "harbour", "lantern", "gull", "tide", "Größe", "潮汐", "⚓", "🚢🌊", "e\u0301", "line\u2028separator",
    "next\u0085line", "data: inside", "[DONE]", "\\n", "\u200d", "\ufeff", "nul\u0000", "a\tb",
)  # fmt: skip

CODINGS: dict[bytes, Callable[[bytes], bytes]] = {
    b"gzip": lambda data: gzip.compress(data, 1, mtime=0),
    b"x-gzip": lambda data: gzip.compress(data, 1, mtime=0),
    b"deflate": lambda data: zlib.compress(data, 1),
    b"br": lambda data: bytes(brotli.compress(data, quality=1)),
    b"zstd": lambda data: zstandard.compress(data, 1),
    b"identity": lambda data: data,
}


def words(rng: random.Random, count: int) -> str:
    """A text of so many random words."""
    return " ".join(rng.choices(WORDS, k=count))


def prompt(rng: random.Random, count: int) -> bytes:
    """The body of a request as agents send it; spacing, escapes and key order differ from one to the next."""
    messages = [{"role": "user", "content": words(rng, count)} for _ in range(rng.randrange(1, 4))]
    document = {"model": "m", "messages": messages, "stream": rng.random() < 0.5}
    pairs = list(document.items())
    rng.shuffle(pairs)
    spaces = rng.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])
    return json.dumps(dict(pairs), ensure_ascii=rng.random() < 0.5, separators=spaces).encode()


def events(rng: random.Random, count: int) -> bytes:
    """An event stream with line ends, comments and fields of every kind, and `[DONE]` at times."""
    end = rng.choice(["\n", "\n", "\r\n", "\r"])
    lines = ["\ufeff"] if rng.random() < 0.1 else []
    for _ in range(count):
        lines += rng.choice([[": comment"], ["event: message"], ["id: 7", "retry: 10"], [], [], []])
        delta = {"choices": [{"index": 0, "delta": {"content": words(rng, 2)}}]}
        lines += [f"data:{rng.choice([' ', ''])}{json.dumps(delta, ensure_ascii=False)}", ""]
    if rng.random() < 0.5:
        lines += ["data: [DONE]", ""]
    return end.join([*lines, ""]).encode()


def encoded(rng: random.Random, data: bytes) -> tuple[list[bytes], bytes]:
    """A body as it is sent, and the values of its Content-Encoding fields."""
    way = rng.random()
    if way < 0.5:
        return [], data
    if way < 0.75:
        name = rng.choice(list(CODINGS))
        return [name], CODINGS[name](data)
    if way < 0.85:
        names = rng.choices(list(CODINGS), k=rng.randrange(2, 4))
        for name in names:
            data = CODINGS[name](data)
        return (names if rng.random() < 0.3 else [b", ".join(names)]), data
    name = rng.choice(list(CODINGS))
    packed = CODINGS[name](data)
    if way < 0.9:
        return [name], packed[: rng.randrange(len(packed) + 1)]
    if way < 0.95:
        return [rng.choice([name, b"x-unheard-of", b"GZIP", b""])], data
    return [], packed


def random_bytes(rng: random.Random, most: int) -> bytes:
    """Bytes that mean nothing; up to a size of which small ones are the more likely."""
    return rng.randbytes(int(most ** rng.random()))
