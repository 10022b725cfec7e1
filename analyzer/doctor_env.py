"""Where this shell's variables send an agent: to the proxy, past it, or elsewhere.

It reads no client's own files: what stands there is not known here (`analyzer.clients` says where to look).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import SplitResult, urlsplit

type Where = Literal["proxy", "server", "elsewhere", "unset"]

BASE_URLS = {
    "OPENAI_BASE_URL": "/v1",
    "OPENAI_API_BASE": "/v1",
    "ANTHROPIC_BASE_URL": "",
    "LOCALITY_PROXY_URL": "",
}
"""Variables that `locality run` sets, with what follows the proxy's address in each."""

_DETOURS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One variable: its address without credentials, where that leads, and what is wrong with it, if so."""

    name: str
    url: str | None
    where: Where
    problem: str | None = None


def read_variables(
    environ: Mapping[str, str], *, proxy: str | None, server: str | None
) -> tuple[Variable, ...]:
    """The base URLs of this environment, held against the proxy's address and the server's, if known."""
    return tuple(_variable(name, environ.get(name), proxy, server) for name in BASE_URLS)


def detours(environ: Mapping[str, str], proxy: str | None) -> tuple[str, ...]:
    """Sentences on HTTP proxies that clients would take to reach the address."""
    host = urlsplit(proxy).hostname if proxy else None
    spared = _either(environ, "NO_PROXY").replace(" ", "").split(",")
    if "*" in spared or (host or "127.0.0.1") in spared:
        return ()
    set_ = [name for name in _DETOURS if _either(environ, name)]
    if not set_:
        return ()
    target = host or "127.0.0.1"
    return (f"{', '.join(set_)} set: clients may ask for {target} there; add {target} to NO_PROXY",)


def _either(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.lower()) or ""


def _variable(name: str, value: str | None, proxy: str | None, server: str | None) -> Variable:
    if not value:
        return Variable(name=name, url=None, where="unset")
    parts = urlsplit(value)
    where: Where = "elsewhere"
    if proxy is not None and _address(parts) == _address(urlsplit(proxy)):
        where = "proxy"
    elif server is not None and _address(parts) == _address(urlsplit(server)):
        where = "server"
    return Variable(name=name, url=shown(parts), where=where, problem=_problem(name, parts))


def shown(parts: SplitResult) -> str:
    """An address without what may be a credential."""
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}{parts.path}"


def _address(parts: SplitResult) -> tuple[str | None, int | None]:
    try:
        port = parts.port
    except ValueError:
        port = None
    host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname
    return host, port or _PORTS.get(parts.scheme)


def _problem(name: str, parts: SplitResult) -> str | None:
    if parts.scheme not in _PORTS or not parts.hostname:
        return "no http(s) address"
    ends_so = parts.path.rstrip("/").endswith("/v1")
    wanted = BASE_URLS[name]
    if wanted and not ends_so:
        return f"does not end in {wanted}"
    if not wanted and ends_so:
        return "ends in /v1, which clients add themselves"
    return None
