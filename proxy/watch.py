"""Decides when the upstream is asked about itself: never on a request's path, and only where it may have
changed.

Asked are: all it says, at the start, when it first answers, and when it was started anew; its counters, at
the start, at the end, and now and then while there is traffic. What is asked, and kept, is `proxy.probe`'s.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import sys

from proxy.probe import METRICS, age, probe, unreachable
from proxy.recorder import Recorder

ASK_AGAIN_SECONDS = 5.0
"""Between questions to an upstream that is not up: a large model takes minutes to load."""

LOOK_SECONDS = 30.0
"""Between looks at the counters of one that is up, as long as there is traffic."""


PAUSE_SECONDS = 1.0
"""At least between two looks: exchanges may break off many times a second, and each look is kept."""


class Watch:
    """Keeps what one upstream says of itself, over the life of a proxy."""

    def __init__(self, url: str, recorder: Recorder, *, trust: ssl.SSLContext | None = None) -> None:
        self.url, self.recorder, self.trust = url, recorder, trust
        self._age: bytes | None = None
        self._up = False
        self._ended = 0  # exchanges, and how many of them the newest look came after
        self._looked_at = 0
        self._surprise = asyncio.Event()

    def passed(self, *, broken: bool) -> None:
        """An exchange has ended; `broken`: not by the client's will."""
        self._ended += 1
        if broken == self._up:  # as it was not thought to be
            self._surprise.set()

    async def introduce(self) -> None:
        """Ask everything once; a word to the user where it does not answer."""
        if reason := await self._ask_all():
            print(
                f"locality: {self.url} does not answer ({reason});"
                " requests will get 502 until it does. Is the server up, and is this its address?",
                file=sys.stderr,
            )

    async def go_on(self) -> None:
        """Watch until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                patience = LOOK_SECONDS if self._up else ASK_AGAIN_SECONDS
                await asyncio.wait_for(self._surprise.wait(), patience)
            self._surprise.clear()
            if not self._up:
                await self._ask_all(again=True)
            elif self._looked_at < self._ended:
                await self._look()
            await asyncio.sleep(PAUSE_SECONDS)

    async def conclude(self) -> None:
        """The counters after the last exchange."""
        if self._looked_at < self._ended:
            await self._look()

    async def _ask_all(self, *, again: bool = False) -> str | None:
        facts = await asyncio.to_thread(probe, self.url, trust=self.trust)
        reason = unreachable(facts)
        if not again or reason is None:
            self.recorder.put(facts)
        self._up, self._age = reason is None, age(facts)
        return reason

    async def _look(self) -> None:
        ended = self._ended
        facts = await asyncio.to_thread(probe, self.url, (METRICS,), trust=self.trust)
        self.recorder.put(facts)
        self._looked_at = ended  # not before: a look that is cut short by the end is taken again
        self._up = unreachable(facts) is None
        if self._up and age(facts) != self._age:
            await self._ask_all()
