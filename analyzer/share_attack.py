"""Tries to find out which words stand behind the fingerprints of a sealed capture, with the words at hand.

An attacker has no key: he hashes each word in every usual way, with whatever the file itself holds for a key.
With the right key the same attack must succeed, or it would prove nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import zlib
from collections.abc import Callable, Iterable, Iterator

from analyzer.structure import FINGERPRINT_BYTES

_FINGERPRINT = re.compile(rb"[0-9a-f]{16}")
_HASHES = ("md5", "sha1", "sha256", "sha512", "sha3_256", "blake2b", "blake2s")

type Hash = Callable[[bytes], bytes]


def fingerprints_in(searched: Iterable[bytes]) -> set[bytes]:
    """All that may be a fingerprint in some bytes."""
    return {bytes.fromhex(found.decode()) for data in searched for found in _FINGERPRINT.findall(data)}


def guessed(words: Iterable[str], fingerprints: set[bytes], public: Iterable[bytes]) -> Iterator[str]:
    """The words that an attacker finds; `public` is what the file holds that might serve as a key."""
    ways = list(_ways(public))
    for word in words:
        data = word.encode("utf-8", "surrogatepass")
        if any(way(data)[:FINGERPRINT_BYTES] in fingerprints for way in ways):
            yield word


def confirmed(words: Iterable[str], fingerprints: set[bytes], key: bytes) -> bool:
    """Whether the attack finds a word where it is given the key."""
    way = _blake2b(key)
    return any(way(word.encode("utf-8", "surrogatepass")) in fingerprints for word in words)


def _ways(public: Iterable[bytes]) -> Iterator[Hash]:
    yield lambda data: zlib.crc32(data).to_bytes(FINGERPRINT_BYTES, "big")
    for key in (b"", *public):
        yield _blake2b(key[:64])
        for name in _HASHES:
            yield lambda data, name=name, key=key: hashlib.new(name, key + data).digest()  # type: ignore[misc]
            if key:
                yield lambda data, name=name, key=key: hmac.digest(key, data, name)  # type: ignore[misc]


def _blake2b(key: bytes) -> Hash:
    return lambda data: hashlib.blake2b(data, key=key, digest_size=FINGERPRINT_BYTES).digest()
