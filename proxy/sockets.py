"""Looks after the sockets under mitmproxy's connections: keep-alive, and whether a client is still there.

It reads and sends no data.
"""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

from mitmproxy.addons.proxyserver import Proxyserver
from mitmproxy.connection import Client
from mitmproxy.connection import Connection as AnyConnection
from mitmproxy.proxy.server_hooks import ServerConnectionHookData

from proxy.client_side import HalfClosed

IDLE_SECONDS, BETWEEN_SECONDS, PROBES = 60, 15, 4
"""A peer that vanished without a word is found after two minutes; one that is silent is left alone."""

LOOK_SECONDS = 0.5
"""How long a client that left may take to say so: a round trip, and it has to be closed within a second."""


class Sockets:
    """An addon beside mitmproxy's own proxy server."""

    def __init__(self, servers: Proxyserver) -> None:
        self.servers = servers

    def client_connected(self, client: Client) -> None:
        """Keep a client's connection alive through hours of silence."""
        keep_alive(self._writer(client, client).get_extra_info("socket"))

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """The same for the upstream's."""
        keep_alive(self._writer(data.client, data.server).get_extra_info("socket"))

    async def client_half_closed(self, data: HalfClosed) -> None:
        """See whether a client answers what was sent to it with a reset."""
        writer = self._writer(data.client, data.client)
        sock = writer.get_extra_info("socket")
        until = time.monotonic() + LOOK_SECONDS
        data.gone = False
        while not data.gone and time.monotonic() < until:
            data.gone = writer.is_closing() or sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0
            await asyncio.sleep(0.02)

    def _writer(self, client: Client, connection: AnyConnection) -> Any:
        return self.servers.connections[client.id].transports[connection].writer


def keep_alive(sock: socket.socket) -> None:
    """Turn TCP's own probes on, where the system has them."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {"TCP_KEEPIDLE": IDLE_SECONDS, "TCP_KEEPINTVL": BETWEEN_SECONDS, "TCP_KEEPCNT": PROBES}
    values["TCP_KEEPALIVE"] = IDLE_SECONDS  # macOS's name for the first
    for name, value in values.items():
        if option := getattr(socket, name, None):
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
