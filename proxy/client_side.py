"""The connection to a client: what reaches it, and when it counts as gone.

It knows nothing of the upstream and nothing of what is recorded.
"""

from __future__ import annotations

from dataclasses import dataclass

from h2.errors import ErrorCodes
from hyperframe.frame import GoAwayFrame, SettingsFrame
from mitmproxy.connection import Client, ConnectionState
from mitmproxy.http import Request, Response
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import HttpEvent
from mitmproxy.proxy.layers.http._events import ResponseHeaders

from proxy.hops import for_the_next_hop
from proxy.http1 import MAX_HEAD_BYTES, Connection, error_response
from proxy.upstream_side import Interim

LINGER_SECONDS = 10.0
"""How long a client that was answered before its upload was complete may take to read the answer."""

_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\n"
_FIRST = bytes(range(0x21, 0x7F))
"""What a request can begin with: a method is a token (RFC 9110 5.6.2)."""
_HANDSHAKE = b"\x16\x03"  # the first record of TLS (RFC 8446 5.1)
_TLS = "this is TLS, and the proxy listens without it: let the client's base URL begin with http://"
_NO_HTTP = "this is no request of HTTP/1.1"
_LONG = f"a request's line and headers take at most {MAX_HEAD_BYTES} bytes here"
_CHUNKS = "the request's body is not in chunks, as its Transfer-Encoding says it is (RFC 9112 7.1)"
_HTTP2_REFUSAL = (
    SettingsFrame(0).serialize()
    + GoAwayFrame(
        0,
        error_code=ErrorCodes.HTTP_1_1_REQUIRED,
        additional_data=b"This proxy speaks HTTP/1.1 only: turn HTTP/2 off in the client.",
    ).serialize()
)


@dataclass
class HalfClosed:
    """A client that has closed its sending side, or left: a look at its socket tells."""

    client: Client
    gone: bool = True


@dataclass
class ClientHalfClosedHook(commands.StartHook):
    """Asks the addons which it is, after something was sent to the client."""

    data: HalfClosed


class ClientConnection(Connection, _http1.Http1Server):
    """A connection from a client."""

    half_closed = False

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Read a request's head; one of HTTP/2 is refused in HTTP/2's own words (RFC 9113 3.4, 7)."""
        if not isinstance(event, events.DataReceived):
            yield from super().read_headers(event)
            return
        begin = self.begin_of_head()
        if begin.startswith(_HTTP2_PREFACE):
            yield from self._refuse(_HTTP2_REFUSAL)
        elif begin and begin[0] not in _FIRST:  # no line may ever end what is no HTTP
            yield from self._refuse(error_response(400, _TLS if begin.startswith(_HANDSHAKE) else _NO_HTTP))
        else:
            yield from super().read_headers(event)
            if self.head_has_no_end():
                yield from self._refuse(error_response(431, _LONG))

    def with_a_word(
        self, read: layer.CommandGenerator[None], event: events.Event
    ) -> layer.CommandGenerator[None]:
        """Answer 400 to chunks that are none; mitmproxy would close without a word."""
        for command in read:
            refused = isinstance(command, commands.CloseConnection) and not self.response
            if refused and isinstance(event, events.DataReceived):
                yield from self._refuse(error_response(400, _CHUNKS))
            else:
                yield command

    def wait(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Wait for the answer; a client that only closed its sending side still gets it.

        TCP tells the two apart only where something is sent: a client that left resets the connection. An
        interim answer is what can be sent before the answer, to all but HTTP/1.0 (RFC 9110 15.2).
        """
        closed = isinstance(event, events.ConnectionClosed) and self.conn.state is ConnectionState.CAN_WRITE
        if closed and not self.response and self.request and self.request.http_version == "HTTP/1.1":
            yield commands.SendData(self.conn, _CONTINUE)
            assert isinstance(self.conn, Client)
            yield ClientHalfClosedHook(data := HalfClosed(self.conn))
            if not data.gone:
                self.half_closed = True
                return
        yield from super().wait(event)

    def send_other(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Send a part of an answer that is no piece of its body."""
        if isinstance(event, Interim):
            if self.request and self.request.http_version == "HTTP/1.1" and not self.response:
                head = http1.assemble_response_head(for_the_next_hop(event.response))
                yield commands.SendData(self.conn, head)
            return
        if isinstance(event, ResponseHeaders) and self.request:
            response = self._answer_to(self.request, event.response)
            event = ResponseHeaders(event.stream_id, response, event.end_stream)
        for command in super().send_other(event):
            # Closed with bytes unread, TCP resets, and the answer is lost on its way (RFC 9112 9.6).
            if isinstance(command, commands.CloseConnection) and not self.request_done:
                yield from self._linger()
            else:
                yield command

    def _answer_to(self, request: Request, response: Response) -> Response:
        """An answer's head for this connection; HTTP/1.0 knows no chunks and stays open where it is told."""
        passed_on = for_the_next_hop(response)
        if passed_on.status_code == 304:  # without a body (RFC 9112 6.1); mitmproxy would send a last chunk
            passed_on.headers.pop("transfer-encoding", None)
        old = request.http_version == "HTTP/1.0"
        if old and "chunked" in passed_on.headers.get("transfer-encoding", "").lower():
            del passed_on.headers["transfer-encoding"]
        ends = (
            self.half_closed
            or http1.connection_close(request.http_version, request.headers)
            or http1.expected_http_body_size(request, passed_on) == -1
        )
        if ends or old:
            passed_on.headers.add("Connection", "close" if ends else "keep-alive")
        return passed_on

    def _refuse(self, answer: bytes) -> layer.CommandGenerator[None]:
        yield commands.SendData(self.conn, answer)
        yield from self._linger()

    def _linger(self) -> layer.CommandGenerator[None]:
        """End what is sent, and read on for a while, so that the client can read the answer."""
        yield commands.CloseTcpConnection(self.conn, half_close=True)
        self.state = self.drain
        yield commands.RequestWakeup(LINGER_SECONDS)

    def drain(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Throw away what still comes, until the client closes or time is up."""
        self.buf.maybe_extract_at_most(len(self.buf))
        if not isinstance(event, events.DataReceived):
            yield commands.CloseConnection(self.conn)
            self.state = self.done
