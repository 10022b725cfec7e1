"""Placeholders for secrets: equal for equal secrets in a capture, whichever process wrote them.

It keeps a slow salted fingerprint of each secret for the capture, and the secret itself in memory only.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

SALT_BYTES = 16
# Letters and digits that change places so often, and differently, in so long a value were drawn by a machine:
# there are too many of those to guess, however fast. Slow hashes of a thousand keys
# would hold up the writer for a minute.
_LONG, _MANY = 32, 6
_DIGIT_EDGE = re.compile(rb"(?=([A-Za-z][0-9]|[0-9][A-Za-z]))")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """A secret as the capture knows it: its number, its kind, and a digest of 32 bytes."""

    number: int
    kind: str
    digest: bytes

    @property
    def placeholder(self) -> str:
        """Return the text that stands for the secret."""
        return f"<secret:{self.kind}:{self.number}>"


class Vault:
    """Gives out placeholders; `unsaved` are the fingerprints the caller has yet to write."""

    def __init__(self, salt: bytes, known: Iterable[Fingerprint] = ()) -> None:
        self._salt = salt
        self._by_digest = {fingerprint.digest: fingerprint for fingerprint in known}
        self._by_value: dict[str, Fingerprint] = {}
        self._last = max((item.number for item in self._by_digest.values()), default=0)
        self.unsaved: list[Fingerprint] = []

    def identify(self, value: str, kind: str) -> Fingerprint:
        """Return what stands for a secret; `kind` counts only when it is seen for the first time."""
        fingerprint = self._by_value.get(value)
        if fingerprint is None:
            fingerprint = self._by_value[value] = self._fingerprint(value, kind)
        return fingerprint

    def _fingerprint(self, value: str, kind: str) -> Fingerprint:
        digest = self._digest(value.encode("utf-8", "surrogatepass"))
        found = self._by_digest.get(digest)
        if found is None:
            self._last += 1
            found = Fingerprint(number=self._last, kind=kind, digest=digest)
            self._by_digest[digest] = found
            self.unsaved.append(found)
        return found

    def _digest(self, secret: bytes) -> bytes:
        if len(secret) >= _LONG and len(set(_DIGIT_EDGE.findall(secret))) >= _MANY:
            return hashlib.blake2b(secret, key=self._salt, digest_size=32, person=b"locality").digest()
        # Slow on purpose: a short password must not be guessable from the capture file.
        return hashlib.scrypt(secret, salt=self._salt, n=1 << 14, r=8, p=1, dklen=32)
