"""Which header fields belong to one connection only and are not passed on (RFC 9110 7.6.1).

It reads and writes nothing; all other fields keep their order, case and duplicates, each on one line.
"""

from __future__ import annotations

import copy

from mitmproxy.http import Headers, Message

# Transfer-Encoding is not among them: a body that came in chunks goes on in chunks.
_OF_ONE_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authorization", b"proxy-connection", b"te", b"upgrade"}
)
# A Connection field may name any other; without these a message would be read otherwise than it was meant.
_NEVER_DROPPED = frozenset({b"content-length", b"host", b"transfer-encoding"})
_SPACED = bytes.maketrans(b"\r\n\0", b"   ")


def for_the_next_hop[M: Message](message: M) -> M:
    """Return the head of a message as the next hop gets it."""
    fields = message.headers.fields
    named = {
        token.strip().lower()
        for name, value in fields
        if name.lower() == b"connection"
        for token in value.split(b",")
    }
    dropped = _OF_ONE_HOP | (named - _NEVER_DROPPED)
    # A value folded onto a second line goes on in one (RFC 9112 5.2); a CR or NUL alone, which others may
    # take for a line's end, as a space (RFC 9110 5.5).
    kept = [
        (name, value.replace(b"\r\n", b"").translate(_SPACED))
        for name, value in fields
        if name.lower() not in dropped
    ]
    # Message.copy() goes through its whole state, which takes longer than all the rest of passing it on.
    passed_on = copy.copy(message)
    passed_on.data = copy.copy(message.data)
    passed_on.headers = Headers(kept)
    return passed_on
