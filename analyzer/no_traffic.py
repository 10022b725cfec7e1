"""What to say where no request came through the proxy: where each client reads its base URL.

Whether any came is not found out here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from analyzer.clients import CLIENTS, Client
from analyzer.wording import counted


def client_rows(clients: Sequence[Client]) -> Iterator[tuple[str, str]]:
    """A client's name, and where it reads its base URL."""
    for client in clients:
        yield client.name, client.reads


def waiting_hint(url: str, seconds: float) -> str:
    """For a proxy that listens at `url` and was not asked for anything in that time."""
    see = f"`locality doctor --proxy {url}`"
    return _with_clients(f"no request has come in {seconds:.0f} s; is the agent pointed at {url}? See {see}.")


def nothing_recorded(requests: int) -> str:
    """For a command that has ended, and nothing was recorded of it."""
    if requests:
        return (
            f"locality: {counted(requests, 'request')} reached the proxy, none of them a POST to an endpoint"
            " that is recorded: /v1/chat/completions, /v1/completions, /v1/messages, /v1/responses"
        )
    return _with_clients("no request reached the proxy. See `locality doctor`.")


def _with_clients(said: str) -> str:
    rows = (f"  {name}: {reads}" for name, reads in client_rows(CLIENTS))
    return "\n".join([f"locality: {said} Where each client reads its base URL:", *rows])
