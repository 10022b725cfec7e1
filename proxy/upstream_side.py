"""The connection to the upstream: sends no field of the client's hop, and reads past interim answers.

It does not know the client; what an interim answer becomes there is for `proxy.client_side`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mitmproxy.http import Response
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, RequestHeaders, ResponseProtocolError

from proxy.hops import for_the_next_hop
from proxy.http1 import MAX_HEAD_BYTES, Connection

_INTERIM = re.compile(rb"HTTP/1\.[01] 1\d\d[ \r\n].*?\r?\n\r?\n", re.DOTALL)
_LINE_END = re.compile(rb"\r?\n")
# A frame's type is its fourth byte, and a server's first frame is SETTINGS (RFC 9113 3.4, 4.1, 6.5).
_SETTINGS = re.compile(rb"...\x04", re.DOTALL)


@dataclass
class Interim(HttpEvent):
    """An answer before the answer, such as 103 (RFC 9110 15.2)."""

    response: Response


class UpstreamConnection(Connection, _http1.Http1Client):
    """A connection to the upstream, over which requests of one client go."""

    def send_other(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Send a part of a request that is no piece of its body."""
        if isinstance(event, RequestHeaders):
            request = for_the_next_hop(event.request)
            event = RequestHeaders(event.stream_id, request, event.end_stream)
        yield from super().send_other(event)

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Read the answer's head; what comes before it is handed on (RFC 9110 15.2), but for 100.

        mitmproxy takes the first head for the answer. A 100 is not the client's: mitmproxy has sent its own.
        """
        if isinstance(event, events.DataReceived) and self.request and self.stream_id is not None:
            begin = self.begin_of_head()
            if begin[:1] not in b"H":
                yield from self._refuse(f"the upstream does not speak HTTP/1.1 ({self._spoken()})")
                return
            read = 0
            while found := _INTERIM.match(begin, read):
                read = found.end()
                try:
                    response = http1.read_response_head(_LINE_END.split(found[0])[:-2])
                except ValueError as error:
                    yield from self._refuse(f"the upstream's interim answer cannot be read ({error})")
                    return
                if response.status_code == 101:
                    yield from self._refuse("the upstream switched to another protocol, unasked")
                    return
                if response.status_code != 100:
                    yield ReceiveHttp(Interim(self.stream_id, response))
            self.buf.maybe_extract_at_most(read)
        yield from super().read_headers(event)
        if self.stream_id is not None and self.head_has_no_end():
            yield from self._refuse(
                f"the head of the upstream's answer is longer than {MAX_HEAD_BYTES} bytes"
            )

    def _spoken(self) -> str:
        begin = bytes(self.buf)[:20]
        return "but HTTP/2" if _SETTINGS.match(begin) else f"it says {begin!r}"

    def _refuse(self, why: str) -> layer.CommandGenerator[None]:
        assert self.stream_id is not None
        yield commands.CloseConnection(self.conn)
        yield ReceiveHttp(ResponseProtocolError(self.stream_id, why, ErrorCode.GENERIC_SERVER_ERROR))
