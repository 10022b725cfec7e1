"""Notices that no request comes, and says once what it was given to say of that.

It looks at no request: that one came is all it knows.
"""

from __future__ import annotations

import asyncio
import sys

from mitmproxy.http import HTTPFlow

SILENCE_SECONDS = 60.0
"""How long an agent may take to its first request before somebody wonders where it goes."""


class Silence:
    """Counts requests as they come, recorded or not."""

    def __init__(self) -> None:
        self.requests = 0

    def requestheaders(self, flow: HTTPFlow) -> None:
        """A request has come."""
        self.requests += 1

    async def hint(self, said: str) -> None:
        """Say it, unless a request comes in time."""
        await asyncio.sleep(SILENCE_SECONDS)
        if not self.requests:
            print(said, file=sys.stderr, flush=True)
