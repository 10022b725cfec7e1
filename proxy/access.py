"""Who may use the proxy: programs of this machine, or whoever has the token. Everybody else is refused here.

It records nothing. A token goes no further than here: it is taken out of a request before that is recorded
or passed on.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import os
import re
import secrets
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from mitmproxy.http import Headers, HTTPFlow, Request, Response

VARIABLE = "LOCALITY_TOKEN"
HEADER = "x-locality-token"
IN_PATH = "/t/"
MAX_REFUSED_BYTES = 16 << 20
"""A longer upload is not waited for before it is refused."""

_HOLDERS = (HEADER.encode(), b"authorization", b"x-api-key")
_EVERY_ADDRESS = re.compile(r"^http://(?:0\.0\.0\.0|\[::\])(?=:)")
_BEARER = re.compile(rb"(?i)^bearer\s+")
_MODE = 0o600
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
_WAYS = f"as the API key, as the header {HEADER}, or in the base URL, as {IN_PATH}TOKEN/v1"
_NO_TOKEN = f"this proxy asks for its token: give it {_WAYS}"
_WEB_PAGE = (
    "a web page may not use this proxy, since any page could; start it with --token-file, and the page may"
    " send the token"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What lets a client in. `token` None: whoever reaches the proxy, but for web pages.

    `made` says that the token was made for this run, and nobody knows it yet.
    """

    token: str | None = None
    made: bool = False

    def told(self, url: str) -> str | None:
        """The one line that tells a new token, None where it is known or there is none."""
        if not self.made:
            return None
        reachable = _EVERY_ADDRESS.sub("http://HOST", url)  # what is listened on is nowhere to go to
        base = f"{reachable}{IN_PATH}{self.token}/v1"
        return f"token: {self.token} (told this once). Clients give it {_WAYS}: {base}"

    def refusal(self, request: Request) -> Response | None:
        """Return the answer to who may not; else None, and no token in the request any more."""
        if self.token is not None:
            return None if self._take_token(request) else _refused(401, _NO_TOKEN)
        if any(map(_of_a_web_page, request.headers.get_all("origin"))):
            return _refused(403, _WEB_PAGE)
        return None

    def _take_token(self, request: Request) -> bool:
        """Remove the token from every place it may stand in; returns whether it was in any."""
        fields = request.headers.fields
        others = [field for field in fields if not self._holds_token(*field)]
        request.headers = Headers(field for field in others if field[0].lower() != HEADER.encode())
        given, slash, rest = request.path.removeprefix(IN_PATH).partition("/")
        in_path = request.path.startswith(IN_PATH) and self._is_token(
            given.encode("utf-8", "surrogateescape")
        )
        if in_path:
            request.path = slash + rest or "/"
        return in_path or len(others) < len(fields)

    def _holds_token(self, name: bytes, value: bytes) -> bool:
        return name.lower() in _HOLDERS and self._is_token(_BEARER.sub(b"", value))

    def _is_token(self, value: bytes) -> bool:
        assert self.token is not None
        return hmac.compare_digest(value, self.token.encode())


ANYBODY_HERE = Access()
"""Whoever reaches a proxy that listens on loopback."""


class Gate:
    """The addon before all others: refuses what may not pass, and everything where it fails itself."""

    def __init__(self, access: Access) -> None:
        self.access = access

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Answer in the upstream's place, or let it on."""
        try:
            flow.response = self.access.refusal(flow.request)
        except Exception:  # mitmproxy would log it, and let the request on
            flow.response = _refused(403, "the proxy could not tell whether this may pass")
        if flow.response is not None and _is_long(flow.request):
            flow.kill()


def access_for(
    host: str, *, allow_remote: bool, token_file: Path | None, environment: Mapping[str, str]
) -> Access:
    """What lets clients in to a proxy that is to listen on `host`.

    Raises ValueError where other machines could come in and nobody allowed it, or for a token that is none;
    OSError for a file that cannot be used.
    """
    if not allow_remote and not is_loopback(host):
        raise ValueError(
            f"--listen {host}: other machines reach this address; add --allow-remote to let those in that"
            " have a token, or listen on 127.0.0.1"
        )
    if token_file is not None:
        return Access(token=_kept(token_file))
    if VARIABLE in environment:
        return Access(token=_checked(environment[VARIABLE], f"the variable {VARIABLE}"))
    return Access(token=secrets.token_urlsafe(32), made=True) if allow_remote else ANYBODY_HERE


def is_loopback(host: str) -> bool:
    """Whether no other machine reaches any of a host's addresses. Raises ValueError where it has none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ValueError(
            f"--listen {host}: no address of this machine ({error.strerror or error})"
        ) from error
    return all(ipaddress.ip_address(str(item[4][0]).partition("%")[0]).is_loopback for item in found)


def _kept(file: Path) -> str:
    """The token in a file; one that is not there yet is made, mode 0600, with a new token."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _MODE)
    except FileExistsError:
        return _checked(file.read_text(encoding="ascii", errors="replace").strip(), str(file))
    token = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(token + "\n")
    return token


def _checked(token: str, where: str) -> str:
    if not _TOKEN.fullmatch(token):
        raise ValueError(
            f"{where} holds no token: 16 to 200 letters, digits, - and _, such as `openssl rand -hex 32`"
        )
    return token


def _of_a_web_page(origin: str) -> bool:
    """Whether a browser says that a page of another machine asks; pages of this one are its user's own."""
    if origin == "null":  # a page in a sandbox, or one that hides where it is from
        return True
    parts = urlsplit(origin)
    if parts.scheme not in ("http", "https"):
        return False  # of an editor or a desktop program, which no page can claim to be
    host = parts.hostname or ""
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host != "localhost" and not host.endswith(".localhost")


def _is_long(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    return "transfer-encoding" in request.headers or (length.isdigit() and int(length) > MAX_REFUSED_BYTES)


def _refused(status: int, message: str) -> Response:
    """An answer in the shape that clients of OpenAI's and of Anthropic's API both read."""
    kind = "authentication_error" if status == 401 else "permission_error"
    body = {"type": "error", "error": {"type": kind, "message": message, "code": status}}
    return Response.make(
        status, json.dumps(body), {"content-type": "application/json", "connection": "close"}
    )
