"""Proves a sealed copy against its original: same numbers, no text, no canary, no word guessed.

Each step yields a sentence for what does not hold, and says on stdout how much it has tried.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from analyzer.pipeline import Options
from analyzer.report import Report
from analyzer.seal import seal_capture
from analyzer.sealed_equality import differences
from analyzer.share_attack import confirmed, fingerprints_in, guessed
from analyzer.share_canaries import canary_exchanges
from analyzer.share_search import TextSearch, forms
from analyzer.share_texts import words_of
from analyzer.share_words import allowed_words
from store.db import Capture
from store.sealed import POLICY

_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """A copy and its original.

    `searched` are all bytes of the copy, as they lie in the file and undone of the store's own compression;
    `texts` all strings of the original; `options` what both were rendered with. `content` makes of a sealed
    capture what the copy's file is of its own, which is a page where `as_page`.
    """

    original: Report
    copied: Report
    sealed: Capture
    searched: tuple[bytes, ...]
    texts: frozenset[str]
    key: bytes
    options: Options
    content: Callable[[Capture], bytes]
    as_page: bool

    def failures(self) -> Iterator[str]:
        """What does not hold."""
        yield from self._numbers()
        yield from self._text()
        yield from self._canaries()
        yield from self._guesses()

    def _numbers(self) -> Iterator[str]:
        found = differences(self.original, self.copied)
        print(f"numbers: {len(self.original.turns)} rows compared, {len(found)} values differ")
        yield from (f"a number is not the original's: {item}" for item in found[:_SHOWN])

    def _text(self) -> Iterator[str]:
        search = TextSearch(self.searched, allowed_words(self.sealed, self.copied, as_page=self.as_page))
        found = sum(1 for _ in search.found(text.encode("utf-8", "surrogatepass") for text in self.texts))
        print(f"text: {len(self.texts):,} strings of the original searched for, {found} found")
        if found:
            yield f"{found} strings of the original stand in the copy, whole or in part"

    def _canaries(self) -> Iterator[str]:
        canary = f"canary{secrets.token_hex(8)}"
        with Capture.in_memory() as planted, Capture.in_memory(POLICY) as sealed:
            count = 0
            for request, response in canary_exchanges(canary):
                planted.save_request(request)
                planted.save_response(response)
                count += 1
            seal_capture(planted, sealed, self.options, self.key)
            written = (self.content(sealed), *sealed.stored())
        found = sum(canary.encode() in form.lower() for data in written for form in forms(data))
        print(f"canaries: {count} exchanges sealed with one in every field, {found} found")
        if found:
            yield "a planted canary came through the sealing"

    def _guesses(self) -> Iterator[str]:
        words = words_of(self.texts)
        fingerprints = fingerprints_in(self.searched)
        settings = self.sealed.settings()
        public = [settings["salt"].encode(), bytes.fromhex(settings["salt"])]
        found = sum(1 for _ in guessed(words, fingerprints, public))
        print(
            f"fingerprints: {len(fingerprints):,} attacked with {len(words):,} words and strings of the"
            f" original, {found} guessed"
        )
        if found:
            yield f"{found} words of the original were guessed from the fingerprints"
        if fingerprints and not confirmed(words, fingerprints, self.key):
            yield "the attack finds nothing even with the key, so that it proves nothing"
