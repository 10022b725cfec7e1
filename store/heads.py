"""Headers, paths and query strings without their credentials: what is not on a list is not kept.

Bodies are `redact`'s business; what is found here is searched for in them.
"""

from __future__ import annotations

import base64
import binascii
import re
from urllib.parse import unquote_plus

from store import patterns
from store.records import Headers
from store.redact import Redactor

HIDDEN = "<hidden>"
"""Stands for the value of a header that is neither listed nor named like a credential."""

# fmt: off
_KEPT = frozenset(
    {
        "accept", "accept-charset", "accept-encoding", "accept-language", "accept-ranges", "age",
        "allow", "alt-svc", "anthropic-beta", "anthropic-version", "cache-control", "connection",
        "content-disposition", "content-encoding", "content-language", "content-length", "content-range",
        "content-type", "date", "etag", "expect", "expires", "host", "keep-alive", "last-modified",
        "openai-beta", "openai-model", "openai-processing-ms", "openai-version", "pragma", "range",
        "request-id", "retry-after", "server", "server-timing", "te", "traceparent", "trailer",
        "transfer-encoding", "upgrade", "user-agent", "vary", "via", "x-accel-buffering", "x-app",
        "x-client-request-id", "x-correlation-id", "x-data-parallel-rank", "x-parent-session-id",
        "x-process-time", "x-request-id", "x-session-affinity", "x-session-id", "x-should-retry",
        "www-authenticate", "proxy-authenticate", "session-id", "thread-id",
    }
)
_KEPT_PREFIXES = ("access-control-", "x-stainless-", "x-ratelimit-", "anthropic-ratelimit-", "x-vllm-")
_KEPT_QUERY = frozenset(
    {
        "after", "alpha", "api-version", "before", "beta", "format", "include", "limit", "model",
        "offset", "order", "page", "stream", "timeout", "version",
    }
)
# fmt: on
_CREDENTIAL = re.compile(
    r"auth(?!ority)|key|token|secret|passw|credential|session|signature|cookie|jwt|(?:^|[-_])sig$", re.I
)
_SCHEME = re.compile(r"(bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256)(\s+)(.+)", re.I | re.S)
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9_.+/=~-]{20,}")


def headers(redactor: Redactor, pairs: Headers) -> Headers:
    """Return the headers with the values of all but the listed names replaced, in the same order."""
    return tuple((name, _value(redactor, name.lower(), value)) for name, value in pairs)


def _value(redactor: Redactor, name: str, value: str) -> str:
    if name in _KEPT or name.startswith(_KEPT_PREFIXES):
        return redactor.text(value)
    if not value or not _CREDENTIAL.search(name):
        return HIDDEN if value else value
    match = _SCHEME.fullmatch(value)
    if match is None:
        if "cookie" in name:
            _learn_cookies(redactor, value, only_first=name == "set-cookie")
            return _credential(redactor, value, "cookie")
        return _credential(redactor, value, "api-key")
    scheme, space, token = match.groups()
    _learn_basic(redactor, scheme, token)
    kind = "basic-auth" if scheme.lower() == "basic" else scheme.lower()
    return scheme + space + _credential(redactor, token, kind)


def _credential(redactor: Redactor, value: str, kind: str) -> str:
    redactor.learn(value)
    found = patterns.find(value)
    whole = len(found) == 1 and (found[0].char_start, found[0].char_end) == (0, len(value))
    return redactor.vault.identify(value, found[0].kind if whole else kind).placeholder


def _learn_cookies(redactor: Redactor, value: str, *, only_first: bool) -> None:
    # After the first, Set-Cookie holds attributes such as Path and Expires.
    for part in value.split(";")[: 1 if only_first else None]:
        cookie = part.partition("=")[2].strip()
        # A cookie without a digit is a preference, and may be a word that every prompt holds.
        if any(map(str.isdigit, cookie)):
            redactor.learn(cookie)


def _learn_basic(redactor: Redactor, scheme: str, token: str) -> None:
    if scheme.lower() != "basic":
        return
    try:
        pair = base64.b64decode(token, validate=True).decode("utf-8")
    except (binascii.Error, UnicodeDecodeError):
        return
    redactor.learn(pair)
    redactor.learn(pair.partition(":")[2])


def query(redactor: Redactor, text: str) -> str:
    """Return a query string (without `?`) with its credentials replaced, otherwise as it was."""
    return "&".join(_parameter(redactor, part) for part in text.split("&")) if text else text


def _parameter(redactor: Redactor, part: str) -> str:
    key, equals, raw = part.partition("=")
    if not equals:
        return redactor.text(part)
    value = unquote_plus(raw)
    if key.lower() in _KEPT_QUERY:
        return part if redactor.text(value) == value else f"{key}={redactor.text(value)}"
    if value and _CREDENTIAL.search(unquote_plus(key)):
        redactor.learn(raw)
        return f"{key}={_credential(redactor, value, 'query-key')}"
    if _RANDOM.fullmatch(value):
        return f"{key}={_credential(redactor, value, 'query-value')}"
    safe = redactor.text(value)
    return part if safe == value else f"{key}={safe}"
