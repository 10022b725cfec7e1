"""All that mitmproxy asks of this proxy, in one addon: which file answers which of its hooks.

mitmproxy goes through all its addons at every hook, twice for those of an exchange, and before the first byte
of an answer; so there is one. It decides nothing itself.
"""

from __future__ import annotations

from mitmproxy.http import HTTPFlow

from proxy.access import Gate
from proxy.addon import LocalityAddon
from proxy.layers import Layers
from proxy.silence import Silence
from proxy.sockets import Sockets


class Hooks:
    """Names of attributes are mitmproxy's names of hooks (mitmproxy 12 addons)."""

    def __init__(self, sockets: Sockets, gate: Gate, exchanges: LocalityAddon, silence: Silence) -> None:
        self._gate, self._exchanges, self._silence = gate, exchanges, silence
        layers = Layers()
        self.next_layer = layers.next_layer
        self.tls_start_server = layers.tls_start_server
        self.client_connected = sockets.client_connected
        self.client_half_closed = sockets.client_half_closed
        self.server_connected = sockets.server_connected
        self.request = exchanges.request
        self.responseheaders = exchanges.responseheaders
        self.response = exchanges.response
        self.error = exchanges.error

    def requestheaders(self, flow: HTTPFlow) -> None:
        """A request comes: it is counted, let in or refused, and recorded."""
        self._silence.requestheaders(flow)
        self._gate.requestheaders(flow)
        self._exchanges.requestheaders(flow)
