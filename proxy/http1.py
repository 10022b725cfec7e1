"""What mitmproxy's HTTP/1 layer does otherwise than a proxy in front of an API should.

It puts its replacements into mitmproxy's modules (`install`), since mitmproxy offers no hook there, and
knows nothing of what is recorded.
"""

from __future__ import annotations

import json
import re

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.http import Headers, Response
from mitmproxy.net.http import http1
from mitmproxy.proxy import events, layer
from mitmproxy.proxy.layers import http
from mitmproxy.proxy.layers.http import _http1

# Of an option's name or of mitmproxy itself: advice for a program that the user does not run.
_HINT = re.compile(r"(?:^|(?<=\. )|(?<=\.))[^.]*\b(?:mitmproxy|option)\b[^.]*\.?\s*")
# 101 is an answer: it ends HTTP on the connection.
_INTERIM = re.compile(rb"HTTP/1\.[01] 1(?!01)\d\d[ \r\n].*?\r?\n\r?\n", re.DOTALL)
_make_body_reader = _http1.make_body_reader


def install() -> None:
    """Put the replacements in place, for every proxy of this process."""
    http.Http1Client = UpstreamConnection  # type: ignore[attr-defined]
    _http1.make_error_response = error_response
    _http1.make_body_reader = body_reader


def without_hints(message: str) -> str:
    """Return an error's text without advice about mitmproxy's own options."""
    return _HINT.sub("", message).strip() or "the proxy could not pass this on"


def error_response(status_code: int, message: str = "") -> bytes:
    """Return an HTTP response, head and body, with an error in the shape of OpenAI's API."""
    error = {"message": without_hints(message), "type": "proxy_error", "code": status_code}
    headers = Headers(connection="close", content_type="application/json")
    response: bytes = http1.assemble_response(
        Response.make(status_code, json.dumps({"error": error}), headers)
    )
    return response


class UpstreamConnection(_http1.Http1Client):
    """A connection to the upstream that passes over interim responses (100, 103), asked for or not.

    RFC 9110 15.2 has a client read past them to the answer; mitmproxy takes the first for the answer.
    """

    def read_headers(self, event: events.ConnectionEvent) -> layer.CommandGenerator[None]:
        """Read the answer's head, without those before it."""
        if isinstance(event, events.DataReceived) and self.request:
            while interim := _INTERIM.match(bytes(self.buf)):
                self.buf.maybe_extract_at_most(interim.end())
        yield from super().read_headers(event)


class _TrailerlessReader(ChunkedReader):
    """Reads a chunked body and drops its trailers (RFC 9110 6.5.1 allows it): mitmproxy would hang."""

    def __call__(self, buffer: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        event = super().__call__(buffer)
        return h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event


def body_reader(expected_size: int | None) -> _http1.TBodyReader:
    """Return what takes a body off the wire; `expected_size` in bytes, -1 until the end, None chunked."""
    return _TrailerlessReader() if expected_size is None else _make_body_reader(expected_size)
