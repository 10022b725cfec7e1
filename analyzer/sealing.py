"""The writer of a sealed capture: takes what the proxy has seen, and lets only what holds no text reach disk.

What was said is kept in memory, in a capture of the policy `secrets`, for as long as the proxy runs: a later
prompt is compared with earlier ones. In which process that is, off the way of requests, is for
`analyzer.sealing_process`.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from analyzer.find_tokenizer import find_tokenizer
from analyzer.pipeline import Options, make_reader
from analyzer.seal import SEALED_KINDS, ExchangeSealer, basis_part, names_of
from analyzer.sealed_facts import bare_facts
from analyzer.servers import ServerProfile, read_profile, read_settings
from analyzer.settings import ServerSettings
from analyzer.tokens import start_loading
from store.db import Capture
from store.errors import CaptureError
from store.records import Exchange, RequestSeen, ResponseSeen, RunSeen, ServerFact
from store.sealed import Part


@dataclass(order=True, slots=True)
class _Waiting:
    """An exchange whose prompts are not sealed yet."""

    started_at_ns: int
    exchange_id: int
    key: str = field(compare=False)


class SealedSink:
    """Where the proxy's records go (`proxy.recorder.Sink`); at the end `seal_rest`, `write`, `forget`.
    `target` is the capture that it writes to.

    `key` is that of the fingerprints. Raises TokenizerError where the tokenizer cannot be used, CaptureError
    where the capture holds something.
    """

    def __init__(self, target: Capture, options: Options, key: bytes) -> None:
        if target.counts().exchanges:
            raise CaptureError(
                "a sealed capture cannot be added to: the text to compare new prompts with is gone; choose"
                " another path"
            )
        assert options.tokenizer is not None
        start_loading(find_tokenizer(options.tokenizer, ServerProfile())).result()
        self.target = target
        self._options = options
        self._key = key
        self._shadow = Capture.in_memory()
        self._shadow_ids: dict[int, int] = {}
        self._open: set[str] = set()
        self._waiting: list[_Waiting] = []
        self._last: _Waiting | None = None
        self._in_order = True
        self._sealer: ExchangeSealer | None = None
        self._known: tuple[ServerProfile, ServerSettings] | None = None
        self._unwritten: list[Part] = []
        self._instead_of: Sequence[str] = ()

    def save_request(self, seen: RequestSeen) -> None:
        """Write the row of an exchange, and keep the request in memory."""
        # First: where it is busy, the same record comes again, and nothing has happened yet.
        exchange_id = self.target.save_request(seen)
        self._shadow_ids[exchange_id] = self._shadow.save_request(seen)
        self._open.add(seen.key)
        waiting = _Waiting(seen.started_at_ns, exchange_id, seen.key)
        insort(self._waiting, waiting)
        if self._last is not None and waiting < self._last:
            self._in_order = False

    def save_response(self, seen: ResponseSeen) -> None:
        """Finish the row of an exchange, and seal what is finished up to the first that is not."""
        self.target.save_response(seen)
        self._open.discard(seen.key)
        self._shadow.save_response(seen)
        while self._waiting and self._waiting[0].key not in self._open:
            self._seal_next()
        with suppress(TimeoutError):  # these parts are written with the next ones, or at the end
            self.write()

    def save_facts(self, facts: Sequence[ServerFact]) -> None:
        """Keep what the server said of itself."""
        self.target.save_facts(bare_facts(facts))
        self._shadow.save_facts(facts)

    def learn(self, secret: str) -> None:
        """Keep a secret out of what is remembered, too."""
        self._shadow.learn(secret)

    def save_run(self, seen: RunSeen) -> None:
        """Write that a run of the proxy began or ended."""
        self.target.save_run(seen)

    def seal_rest(self) -> int:
        """Seal what never ended; all of it once more where that tells more. Returns how many failed."""
        if not self._in_order or (self._known is not None and self._known != self._read_facts()):
            # In the order of their start, and with what the server said only later.
            self._sealer, self._unwritten, self._instead_of = None, [], SEALED_KINDS
            self._waiting = sorted(
                _Waiting(self.exchange(exchange_id).started_at_ns, exchange_id, "")
                for exchange_id in self._shadow_ids
            )
        return sum(not self._sealed_next() for _ in range(len(self._waiting)))

    def write(self) -> None:
        """Write what was sealed and could not be written yet. Raises TimeoutError where it still cannot."""
        if self._unwritten:
            self.target.save_sealed(self._unwritten, instead_of=self._instead_of)
            self._unwritten, self._instead_of = [], ()

    def forget(self) -> None:
        """Let go of all text."""
        self._shadow.close()

    def exchange(self, exchange_id: int) -> Exchange:
        """An exchange with all that was said in it, by its id in the sealed capture (`seal.Source`)."""
        return replace(self._shadow.exchange(self._shadow_ids[exchange_id]), id=exchange_id)

    def secret_kinds(self) -> Collection[str]:
        """The kinds of secrets that were found (`seal.Source`)."""
        return self._shadow.secret_kinds()

    def _seal_next(self) -> None:
        self._last = self._waiting.pop(0)
        exchange_id = self._last.exchange_id
        self._unwritten += self._made().seal(self.exchange(exchange_id))

    def _sealed_next(self) -> bool:
        try:
            self._seal_next()
        except Exception:  # its words may quote, and the others are to be sealed all the same
            return False
        return True

    def _made(self) -> ExchangeSealer:
        """The sealer, made once the server has said what it is: before the first exchange, if ever."""
        if self._sealer is None:
            self._known = self._read_facts()
            reader, _ = make_reader(self._options, *self._known)
            self._sealer = ExchangeSealer(reader, self, names_of(*self._known), self._key)
            self._unwritten.append(basis_part(self._known[0], reader.tokenizer, self._key))
        return self._sealer

    def _read_facts(self) -> tuple[ServerProfile, ServerSettings]:
        facts = self._shadow.facts()
        return read_profile(facts), read_settings(facts, self._options.serve_command)
