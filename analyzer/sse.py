"""An incremental reader of server-sent events, as the WHATWG HTML standard (section 9.2.6) frames them.

It works on bytes and knows nothing of JSON: a character or an event may be cut anywhere by the network.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# Only these end a line in an event stream; str.splitlines would also break on U+2028 inside JSON.
_LINE_END = re.compile(rb"\r\n|\n|\r")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSentEvent:
    """One dispatched event: its `event:` name ('' where none was given) and its joined `data:` lines."""

    name: str
    data: str


class SSEDecoder:
    """Feed bytes with `decode`, end with `flush`; both return the events completed by then.

    An event without its closing blank line is given by `flush`: servers do end a stream that way, and
    what was sent must not be lost (the standard would drop it).
    """

    def __init__(self) -> None:
        self._buffer = b""
        self._name = ""
        self._data: list[str] = []
        self._at_start = True

    def decode(self, piece: bytes) -> list[ServerSentEvent]:
        """Take more bytes of the stream."""
        self._buffer += piece
        if self._at_start and len(self._buffer) >= len(_BOM):
            self._buffer = self._buffer.removeprefix(_BOM)
            self._at_start = False
        # A closing CR may be half of a CRLF whose other half is still on its way.
        complete = self._buffer[:-1] if self._buffer.endswith(b"\r") else self._buffer
        *lines, rest = _LINE_END.split(complete)
        self._buffer = rest + self._buffer[len(complete) :]
        return self._take(lines)

    def flush(self) -> list[ServerSentEvent]:
        """The stream is over: whatever is still open ends here."""
        tail = _LINE_END.split(self._buffer.removeprefix(_BOM) if self._at_start else self._buffer)
        self._buffer = b""
        return self._take([*tail, b""])

    def _take(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        for line in lines:
            if line:
                self._field(line)
            elif self._data or self._name:
                events.append(ServerSentEvent(name=self._name, data="\n".join(self._data)))
                self._name, self._data = "", []
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        text = value.removeprefix(b" ").decode("utf-8", errors="replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"event":
            self._name = text


def read_events(body: bytes) -> list[ServerSentEvent]:
    """All events of a complete (or cut-off) stream."""
    decoder = SSEDecoder()
    return decoder.decode(body) + decoder.flush()
