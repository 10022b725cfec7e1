"""The one way in: every string and body is decoded and redacted here before `db` may write it.

It opens no file; new fingerprints wait in the vault until the caller has written them.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass

from store import encodings, heads
from store.records import Body, Chunk, Headers, RequestSeen, ResponseSeen, ServerFact
from store.redact import Redactor
from store.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanHead:
    """A request line without its credentials."""

    method: str
    path: str
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanMessage:
    """One side of an exchange without its secrets: its headers as JSON, and its body."""

    headers: bytes
    body: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedWith:
    """What else is kept of an exchange's end: the moments of its chunks, and a message."""

    chunks: tuple[Chunk, ...]
    error: str | None


class Door:
    """Redacts by the policy `secrets`, learning credentials from headers and queries as they pass."""

    def __init__(self, vault: Vault) -> None:
        self.vault = vault
        self._redactor = Redactor(vault)

    def learn(self, secret: str) -> None:
        """Look for a secret in everything from now on, whatever it looks like."""
        self._redactor.learn(secret)

    def request(self, seen: RequestSeen) -> tuple[CleanHead, CleanMessage]:
        """Return a request without its secrets; what its head gives away is searched for in its body."""
        headers = heads.headers(self._redactor, seen.headers)
        query = heads.query(self._redactor, seen.query)
        head = CleanHead(method=self.text(seen.method), path=self.text(seen.path), query=_storable(query))
        return head, self._message(headers, seen)

    def response(self, seen: ResponseSeen) -> CleanMessage:
        """Return a response without its secrets."""
        return self._message(heads.headers(self._redactor, seen.headers), seen)

    def ended(self, seen: ResponseSeen) -> EndedWith:
        """Return the end of an exchange without its secrets."""
        return EndedWith(chunks=seen.chunks, error=None if seen.error is None else self.text(seen.error))

    def fact(self, fact: ServerFact) -> bytes:
        """Return a fact's body without its secrets."""
        return self._redactor.body(fact.body)[0]

    def text(self, text: str) -> str:
        """Return a path or a message without its secrets."""
        return _storable(self._redactor.text(text))

    def _message(self, clean: Headers, seen: RequestSeen | ResponseSeen) -> CleanMessage:
        codings = [value for name, value in seen.headers if name.lower() == "content-encoding"]
        content, problem = encodings.decode(seen.body, ", ".join(codings))
        if seen.wire_length is not None:
            problem = f"of {seen.wire_length} bytes only the first {len(seen.body)} were kept on the way"
        content, replaced = self._redactor.body(content)
        secrets: Counter[str] = Counter()
        for (kind, _), count in replaced.items():
            secrets[kind] += count
        body = Body(
            content=content,
            wire_length=len(seen.body) if seen.wire_length is None else seen.wire_length,
            # A digest of the whole would let a short secret in a known text be guessed and confirmed.
            wire_sha256="" if secrets or seen.wire_length else hashlib.sha256(seen.body).hexdigest(),
            problem=problem,
            secrets=dict(secrets),
            secret_paths=replaced,
        )
        return CleanMessage(headers=json.dumps(clean, separators=(",", ":")).encode(), body=body)


def _storable(text: str) -> str:
    # Bytes that were not UTF-8 arrive as lone surrogates, which no database takes.
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
