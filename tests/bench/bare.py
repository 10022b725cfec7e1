"""mitmproxy as the proxy assembles it, without anything of ours: what the proxy is measured against.

`python -m tests.bench.bare UPSTREAM both|answers`: which bodies it streams. It prints where it listens.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile

from mitmproxy import options
from mitmproxy.addons import core, disable_h2c, next_layer, proxyserver, tlsconfig
from mitmproxy.http import HTTPFlow
from mitmproxy.master import Master


class Streams:
    """An addon that streams answers, and requests too where it is told to."""

    def __init__(self, *, requests: bool) -> None:
        self.requests = requests

    def requestheaders(self, flow: HTTPFlow) -> None:
        """Stream the request or let mitmproxy gather it."""
        flow.request.stream = self.requests

    def responseheaders(self, flow: HTTPFlow) -> None:
        """Stream the answer."""
        if flow.response is not None:
            flow.response.stream = True


async def main(upstream: str, which: str) -> None:
    """Serve until killed."""
    with tempfile.TemporaryDirectory() as confdir:
        master = Master(options.Options(confdir=confdir))
        master.addons.add(
            core.Core(),
            disable_h2c.DisableH2C(),
            proxyserver.Proxyserver(),
            next_layer.NextLayer(),
            tlsconfig.TlsConfig(),
            Streams(requests=which == "both"),
        )
        master.options.update(
            mode=[f"reverse:{upstream}"], listen_host="127.0.0.1", listen_port=0, connection_strategy="lazy"
        )
        running = asyncio.create_task(master.run())
        while not (addresses := master.addons.get("proxyserver").listen_addrs()):
            await asyncio.sleep(0.01)
        print(f"listening on http://127.0.0.1:{addresses[0][1]}", file=sys.stderr, flush=True)
        await running


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
