"""What a proxy may serve: until a signal comes, or until a command has ended.

A session is a coroutine function that gets the proxy's base URL. It knows nothing of HTTP.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence

NOT_STARTED = 127
"""The shell's status for a command that cannot be started."""


@contextlib.contextmanager
def on_signal(call: Callable[[], object]) -> Iterator[None]:
    """Let SIGTERM and SIGINT call something instead of ending the process."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, call)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)


async def until_signal(url: str, told: Callable[[str], str | None] = lambda url: None) -> None:
    """Say where the proxy listens, and wait to be told to stop. `told` gives a line that tells a secret."""
    if secret := told(url):
        print(secret, file=sys.__stderr__, flush=True)  # the one line that is not redacted
    stopping = asyncio.Event()
    with on_signal(stopping.set):
        print(f"listening on {url}", file=sys.stderr, flush=True)
        await stopping.wait()


class CommandSession:
    """Runs one command with its base URLs pointed at the proxy; `status` is its exit status afterwards.

    A command that a signal ended has the shell's status for it, 128 + the signal's number.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.command = command
        self.status = NOT_STARTED

    async def __call__(self, url: str) -> None:
        """Start the command and wait for its end. One that cannot be started has the shell's status, 127."""
        try:
            child = await asyncio.create_subprocess_exec(*self.command, env=os.environ | pointed_at(url))
        except OSError as error:
            print(f"locality: cannot start {self.command[0]}: {error.strerror}", file=sys.stderr)
            return
        loop = asyncio.get_running_loop()
        # A Ctrl-C reaches the command from the terminal itself; only it knows whether to end.
        loop.add_signal_handler(signal.SIGINT, lambda: None)
        loop.add_signal_handler(signal.SIGTERM, child.terminate)
        try:
            code = await child.wait()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            loop.remove_signal_handler(signal.SIGTERM)
        self.status = code if code >= 0 else 128 - code


def pointed_at(url: str) -> dict[str, str]:
    """The environment variables that coding agents read their server's address from."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",
        "ANTHROPIC_BASE_URL": url,
        "LOCALITY_PROXY_URL": url,
    }
