"""Puts this proxy's connections and exchanges into mitmproxy's layers; its addon tells mitmproxy to use them.

It knows nothing of what is recorded.
"""

from __future__ import annotations

from mitmproxy.proxy import events, layer, tunnel
from mitmproxy.proxy.layers import http
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import (
    ErrorCode,
    RequestData,
    RequestEndOfMessage,
    RequestProtocolError,
    ResponseProtocolError,
)
from mitmproxy.proxy.layers.http._hooks import HttpRequestHook
from mitmproxy.proxy.layers.tls import ServerTLSLayer
from mitmproxy.tls import TlsData

from proxy.client_side import ClientConnection
from proxy.upstream_side import Interim, UpstreamConnection


def install() -> None:
    """Have mitmproxy make our connections to the upstream: 12.3 has no hook (layers/http/__init__.py)."""
    http.Http1Client = UpstreamConnection  # type: ignore[attr-defined]


class ExchangeLayer(http.HttpStream):
    """One exchange: hands interim answers on, and reads an upload to its end where the upstream refuses."""

    refusal: ResponseProtocolError | None = None

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        return self._hand_on(event) if isinstance(event, Interim) else super()._handle_event(event)

    def _hand_on(self, event: Interim) -> layer.CommandGenerator[None]:
        yield http.SendHttp(event, self.context.client)

    def start_request_stream(self) -> layer.CommandGenerator[None]:
        """Connect to the upstream and begin to send."""
        yield from super().start_request_stream()
        if self.refusal:
            self.client_state = self.state_read_what_nobody_takes

    def handle_protocol_error(
        self, event: RequestProtocolError | ResponseProtocolError
    ) -> layer.CommandGenerator[None]:
        """End an exchange, but not before a client has sent all of what the upstream refuses to take."""
        if (
            self.client_state == self.state_wait_for_request_headers
            and event.code is ErrorCode.CONNECT_FAILED
        ):
            assert isinstance(event, ResponseProtocolError)
            self.refusal = event
        else:
            yield from super().handle_protocol_error(event)

    def state_read_what_nobody_takes(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Read an upload for the record, then answer: a client that is still sending might not look."""
        assert self.refusal
        if isinstance(event, RequestData):
            if callable(self.flow.request.stream):
                self.flow.request.stream(event.data)
        elif isinstance(event, RequestEndOfMessage):
            self.client_state = self.state_done
            yield HttpRequestHook(self.flow)
            yield from super().handle_protocol_error(self.refusal)


class ReverseLayer(http.HttpLayer):
    """All exchanges of one client's connection."""

    def _handle_event(self, event: events.Event) -> layer.CommandGenerator[None]:
        # No generator of its own: each that an event passes through costs.
        if isinstance(event, events.Start):
            self.connections[self.context.client] = ClientConnection(self.context.fork())
        return super()._handle_event(event)  # type: ignore[no-any-return]

    def make_stream(self, stream_id: int) -> layer.CommandGenerator[None]:
        """Begin an exchange."""
        self.streams[stream_id] = ExchangeLayer(self.context.fork(), stream_id)
        yield from self.event_to_child(self.streams[stream_id], events.Start())


class Layers:
    """Chooses the layers: HTTP/1.1 in the clear to clients, HTTP/1.1 to the upstream."""

    def next_layer(self, nextlayer: layer.NextLayer) -> None:
        """Take what a client sends for HTTP, whatever it is."""
        stack = tunnel.LayerStack()
        if nextlayer.context.client.proxy_mode.scheme == "https":  # type: ignore[attr-defined]
            stack /= ServerTLSLayer(nextlayer.context)
        stack /= ReverseLayer(nextlayer.context, http.HTTPMode.transparent)
        nextlayer.layer = stack[0]

    def tls_start_server(self, data: TlsData) -> None:
        """Ask an https upstream for HTTP/1.1, so that one that speaks another says so at once."""
        data.conn.alpn_offers = (b"http/1.1",)
