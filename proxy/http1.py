"""What both of mitmproxy's HTTP/1 connections do otherwise here: errors in JSON, trailers passed on.

It puts replacements into mitmproxy's modules (`install`) where mitmproxy 12.3 offers no hook
(proxy/layers/http/_http1.py); what either side has of its own is in `proxy.client_side` and
`proxy.upstream_side`. It knows nothing of what is recorded.
"""

from __future__ import annotations

import json
import re

import h11
from h11._readers import ChunkedReader
from h11._receivebuffer import ReceiveBuffer
from mitmproxy.http import Headers, Response
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events, layer
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import HttpEvent, ReceiveHttp
from mitmproxy.proxy.layers.http._events import (
    RequestData,
    RequestEndOfMessage,
    RequestTrailers,
    ResponseData,
    ResponseEndOfMessage,
    ResponseTrailers,
)

# Of an option's name or of mitmproxy itself: advice for a program that the user does not run.
_HINT = re.compile(r"(?:^|(?<=\. )|(?<=\.))[^.]*\b(?:mitmproxy|option)\b[^.]*\.?\s*")
_ADVICE = {
    "Certificate verify failed": (
        "; --cacert FILE names the authority that signed it, --insecure goes without any"
    ),
    "Connect call failed": "; is the server up that --upstream of this proxy names?",
}
_LAST_CHUNK = b"0\r\n"

MAX_HEAD_BYTES = 2**20
"""Of a head, of the trailers, or of a line between chunks: nobody sends more, but to fill the memory."""

_TRAILERS: dict[type, type[RequestTrailers | ResponseTrailers]] = {
    RequestEndOfMessage: RequestTrailers,
    ResponseEndOfMessage: ResponseTrailers,
}
_PIECES = frozenset({RequestData, ResponseData})
_make_body_reader = _http1.make_body_reader


def install() -> None:
    """Put the replacements in place, for every proxy of this process."""
    _http1.make_error_response = error_response
    _http1.make_body_reader = body_reader


def in_our_words(message: str) -> str:
    """Return an error's text with this program's advice, and without that about mitmproxy's options."""
    told = _HINT.sub("", message).strip() or "the proxy could not pass this on"
    advice = next((advice for sign, advice in _ADVICE.items() if sign in told), None)
    return told.rstrip(".") + advice if advice else told


def error_body(status_code: int, message: str) -> str:
    """Return an error in the shape of OpenAI's API."""
    return json.dumps({"error": {"message": message, "type": "proxy_error", "code": status_code}})


def error_response(status_code: int, message: str = "") -> bytes:
    """Return an HTTP response, head and body, that tells of an error."""
    headers = Headers(connection="close", content_type="application/json")
    response: bytes = http1.assemble_response(
        Response.make(status_code, error_body(status_code, in_our_words(message)), headers)
    )
    return response


class _ChunkedBody(ChunkedReader):
    """Reads a chunked body and keeps its trailers for `Connection`: mitmproxy would hang on them."""

    trailers: Headers | None = None

    def __call__(self, buffer: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        event = super().__call__(buffer)
        if event is None and len(buffer) > MAX_HEAD_BYTES:
            raise h11.RemoteProtocolError("a line between chunks, or the trailers, have no end")
        if not isinstance(event, h11.EndOfMessage) or not event.headers:
            return event
        self.trailers = Headers(event.headers.raw_items())
        return h11.EndOfMessage()


def body_reader(expected_size: int | None) -> _http1.TBodyReader:
    """Return what takes a body off the wire; `expected_size` in bytes, -1 until the end, None chunked."""
    return _ChunkedBody() if expected_size is None else _make_body_reader(expected_size)


class Connection(_http1.Http1Connection):
    """One side's connection: passes on the trailers of a chunked body."""

    trailers_to_send: Headers | None = None

    def begin_of_head(self) -> bytes:
        """What has come of a head. Empty lines before it do not count (RFC 9112 2.2).

        After one, mitmproxy would wait for more to come, though the head is there.
        """
        come = bytes(self.buf)
        head = come.lstrip(b"\r\n")
        if len(head) < len(come):
            self.buf.maybe_extract_at_most(len(come) - len(head))
        return head

    def head_has_no_end(self) -> bool:
        """Whether a head is not complete and already longer than any is."""
        return self.state == self.read_headers and len(self.buf) > MAX_HEAD_BYTES

    def read_body(self, event: events.Event) -> layer.CommandGenerator[None]:
        """Read on in a body; its trailers come before its end."""
        reader = self.body_reader
        read = super().read_body(event)
        if not isinstance(reader, _ChunkedBody):
            return read
        return self._with_trailers(self.with_a_word(read, event), reader)

    def with_a_word(
        self, read: layer.CommandGenerator[None], _: events.Event
    ) -> layer.CommandGenerator[None]:
        """Tell the other end why its chunks are not taken, where it can be told."""
        return read

    def _with_trailers(
        self, read: layer.CommandGenerator[None], reader: _ChunkedBody
    ) -> layer.CommandGenerator[None]:
        for command in read:
            if reader.trailers and isinstance(command, ReceiveHttp) and type(command.event) in _TRAILERS:
                kind = _TRAILERS[type(command.event)]
                yield ReceiveHttp(kind(command.event.stream_id, reader.trailers))
            yield command

    def send(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Send a part of a message."""
        # Pieces of bodies are many, and each generator that they pass through costs.
        return super().send(event) if type(event) in _PIECES else self.send_other(event)

    def send_other(self, event: HttpEvent) -> layer.CommandGenerator[None]:
        """Send what is no piece of a body; trailers stand between the last chunk and the end."""
        if isinstance(event, RequestTrailers | ResponseTrailers):
            self.trailers_to_send = event.trailers
            return
        for command in super().send(event):
            if (
                self.trailers_to_send
                and isinstance(command, commands.SendData)
                and command.data == _LAST_CHUNK + b"\r\n"
            ):
                command.data = _LAST_CHUNK + bytes(self.trailers_to_send) + b"\r\n"
                self.trailers_to_send = None
            yield command
