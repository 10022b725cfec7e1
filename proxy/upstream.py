"""What the user says of the upstream: where it is, how it is named to itself, and whose word proves it.

Nothing here connects to it.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """Where requests go: `origin` is scheme://host:port, `prefix` the path it lives under ('' or '/x').

    `keep_host`: the client's Host goes there too. Of an https upstream, `ca_file` holds the authorities that
    its certificate is checked against (None: the system's), unless `insecure`.
    """

    origin: str
    prefix: str
    keep_host: bool = False
    ca_file: str | None = None
    insecure: bool = False

    @property
    def url(self) -> str:
        """The base under which the server's own paths (`/v1/...`) begin."""
        return self.origin + self.prefix

    @property
    def host(self) -> str:
        """What stands in its Host header: without its scheme's own port (RFC 9110 4.2.3, 7.2)."""
        parts = urlsplit(self.origin)
        return parts.netloc.removesuffix(f":{_PORTS[parts.scheme]}")

    @property
    def is_tls(self) -> bool:
        """Whether it is spoken to over TLS."""
        return self.origin.startswith("https:")

    def trust(self) -> ssl.SSLContext:
        """Whom to believe that it is the upstream. Raises ValueError where `ca_file` has no certificates."""
        try:
            context = ssl.create_default_context(cafile=self.trusted())
        except OSError as error:  # ssl.SSLError among them
            raise ValueError(f"{self.ca_file} holds no certificates: {error.strerror or error}") from error
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def trusted(self) -> str | None:
        """The file of authorities: the user's, or the system's; None where the system has none."""
        return self.ca_file or ssl.get_default_verify_paths().cafile

    @classmethod
    def parse(
        cls, url: str, *, keep_host: bool = False, ca_file: str | None = None, insecure: bool = False
    ) -> Upstream:
        """Read a base URL. A closing `/v1` is left off: agents send it themselves.

        Raises ValueError with the expected form.
        """
        parts = urlsplit(url)
        if "@" in parts.netloc:  # not repeated: it is, or looks like, a password
            raise ValueError("a server's address holds no user and password; agents send keys of their own")
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError(f"{url!r} is not a server address; give one like http://127.0.0.1:8000")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        port = parts.port or _PORTS[parts.scheme]
        upstream = cls(
            origin=f"{parts.scheme}://{host}:{port}",
            prefix=parts.path.rstrip("/").removesuffix("/v1"),
            keep_host=keep_host,
            ca_file=ca_file,
            insecure=insecure,
        )
        if (ca_file or insecure) and not upstream.is_tls:
            raise ValueError("--cacert and --insecure are for an https:// server")
        if ca_file and insecure:
            raise ValueError("--cacert and --insecure exclude each other")
        upstream.trust()
        return upstream
