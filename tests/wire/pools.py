"""What random exchanges are put together from: methods, targets, fields, statuses, and no answers at all."""

from __future__ import annotations

METHODS = (
    b"GET",
    b"HEAD",
    b"POST",
    b"PUT",
    b"PATCH",
    b"DELETE",
    b"OPTIONS",
    b"PROPFIND",
    b"M-SEARCH",
    b"get",
)
# fmt: off
TARGETS = (
    b"/", b"/v1/models", b"/v1/messages/count_tokens", b"/api/hello", b"/api/event_logging/batch",
    b"/tokenize", b"/v1/chat/completionsx", b"/v1//chat/completions", b"/a/../b/./c", b"/%2e%2e/%2F%00",
    b"/caf\xc3\xa9", b"/\xff", b"/a;b=c/d", b"/" + b"x" * 3000, b"//double", b"/~tilde/'quote'",
    b"/v1/embeddings", b"/HEALTH",
)
QUERIES = (
    b"", b"", b"", b"?", b"?beta=true", b"?a=1&a=2&=&b", b"?q=%20+%C3%A9", b"?x=y?z=/", b"?%zz", b"?a[]=[]",
)
NAMES = (
    b"X-A", b"x-a", b"X-oDD-cAsE", b"Accept", b"X_under", b"x.dot", b"~tilde!", b"Cookie", b"Authorization",
    b"User-Agent", b"x-stainless-arch", b"Via", b"Forwarded", b"Range", b"If-None-Match", b"x-api-key",
    b"Cache-Control", b"Server", b"Set-Cookie", b"Date", b"WWW-Authenticate", b"traceparent",
)
VALUES = (
    b"1", b"", b"two words", b"a,b , c", b'"quoted, \\" value"', b"caf\xe9", b"\xc3\xa9\xff\x80",
    b"tab\tinside",
    b"two  spaces", b"=?utf-8?q?x?=", b"k=v; Path=/", b"long " * 1199 + b"long", b":", b"<script>",
)
FOLDABLE = (b"two words", b"a,b , c")
"""Values that may be written on two lines (obs-fold, RFC 9112 5.2)."""

STATUSES = (
    200, 200, 200, 200, 201, 204, 206, 304, 307, 400, 401, 404, 413, 418, 429, 499, 500, 502, 503, 529, 599,
)
# fmt: on
REASONS = (b"OK", b"OK", b"Not So", b"I'm a teapot", b"caf\xe9")
TYPES = (b"application/json", b"text/event-stream; charset=utf-8", b"text/html", b"application/octet-stream")
HOPS = (
    ((b"Connection", b"keep-alive"),),
    ((b"Connection", b"X-Hop, keep-alive"), (b"X-Hop", b"1"), (b"Keep-Alive", b"timeout=5")),
    ((b"TE", b"trailers"), (b"connection", b"te")),
    ((b"Proxy-Connection", b"keep-alive"), (b"Keep-Alive", b"max=3")),
    ((b"Upgrade", b"foo/2"), (b"Connection", b"upgrade")),
)
"""Fields of one connection, with what names them."""

INTERIMS = (
    b"HTTP/1.1 103 Early Hints\r\nlink: </style.css>\r\n\r\n",
    b"HTTP/1.1 102 Processing\r\n\r\n",
)
GARBAGE = (
    b"\x15\x03\x01\x00\x02\x02\x46\r\n\r\n",
    b"220 ready\r\n\r\n",
    b"HTTP/1.1 abc\r\n\r\n",
    b"\r\n" * 9,
)
