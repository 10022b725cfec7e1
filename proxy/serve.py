"""Runs the proxy: mitmproxy's reverse mode in this process, from the first accept to the last record.

The only file that assembles mitmproxy; what an exchange is, and how it is kept, is for the other files.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import sys
import tempfile
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from mitmproxy import options
from mitmproxy.addons import proxyserver, tlsconfig
from mitmproxy.master import Master

from proxy import http1, layers
from proxy.access import ANYBODY_HERE, Access, Gate
from proxy.addon import LocalityAddon
from proxy.hooks import Hooks
from proxy.recorder import Recorder, Sink
from proxy.sessions import on_signal
from proxy.silence import Silence
from proxy.sockets import Sockets
from proxy.upstream import Upstream
from proxy.watch import Watch
from store.tally import Tally

GRACE_SECONDS = 5.0
"""How long exchanges in flight may still finish after the proxy was told to stop."""

NEVER_SECONDS = 100 * 366 * 86_400
"""For mitmproxy's limit on silence: a large prompt may take longer to its first token than any limit."""

UNCHECKED = (
    "the certificate of {} is not checked. Whoever stands in between can read and change prompts,"
    " answers and API keys."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one run of the proxy kept and lost, in exchanges, and whether it lost what the upstream said.

    `requests` is how many came, to whatever path.
    """

    recorded: int
    lost: int
    lost_facts: bool = False
    requests: int = 0


class _Console(logging.Handler):
    """Collects mitmproxy's errors while it starts; afterwards they concern single connections."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: deque[str] = deque(maxlen=10)  # a proxy runs for weeks

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


type Session = Callable[[str], Awaitable[None]]
"""What the proxy serves: called with its base URL once connections are accepted; its end is the proxy's."""


type Hint = Callable[[str], str]
"""What to say, once, where no request comes to a proxy at this URL."""


def serve(
    upstream: Upstream,
    sink: Sink,
    *,
    listen: tuple[str, int],
    session: Session,
    access: Access = ANYBODY_HERE,
    tally: Tally | None = None,
    hint: Hint | None = None,
) -> Counts:
    """Serve until `session` ends; returns what was kept and lost.

    `listen` is (host, port); port 0 takes a free one. `access` says who may use it, `tally` counts the
    exchanges as they begin. Raises OSError when the address cannot be bound.
    """
    # Until the very end: connections that are still open then make asyncio complain on stderr.
    with _errors_collected() as errors:
        recorder = Recorder(sink, tally)
        proxy = _Proxy(upstream, recorder, listen, session, errors, access=access)
        return asyncio.run(proxy.run(hint))


class _Proxy:
    def __init__(
        self,
        upstream: Upstream,
        recorder: Recorder,
        listen: tuple[str, int],
        session: Session,
        errors: Sequence[str],
        *,
        access: Access,
    ) -> None:
        self.upstream = upstream
        self.listen = listen
        self.session = session
        self.errors = errors
        self.gate = Gate(access)
        self.silence = Silence()
        self.hurried = asyncio.Event()
        self.recorder = recorder
        self.watch = Watch(upstream.url, self.recorder, trust=upstream.trust())
        self.addon = LocalityAddon(
            self.recorder,
            self.watch,
            path_prefix=upstream.prefix,
            host=None if upstream.keep_host else upstream.host,
        )

    async def run(self, hint: Hint | None) -> Counts:
        """The whole life of the proxy, in order."""
        if self.upstream.insecure:
            print(f"locality: WARNING: {UNCHECKED.format(self.upstream.url)}", file=sys.stderr)
        await self.watch.introduce()
        # A directory of its own: mitmproxy writes a certificate authority where it is pointed.
        with tempfile.TemporaryDirectory(prefix="locality-") as confdir, contextlib.ExitStack() as to_the_end:
            master = self._assemble(confdir)
            running = asyncio.create_task(master.run())
            aside = [asyncio.create_task(self.watch.go_on())]
            try:
                url = await self._listening(master, running)
                if hint is not None:
                    aside.append(asyncio.create_task(self.silence.hint(hint(url))))
                # What is here now stays: to look through all of it for garbage takes a tenth of a second.
                gc.collect()
                gc.freeze()
                await self.session(url)
                to_the_end.enter_context(on_signal(self._hurry))
                await self._drain()
                _cancel(aside)
                await self.watch.conclude()
            finally:
                _cancel(aside)
                master.shutdown()
                try:
                    await running
                finally:
                    self.addon.stop()
                    await asyncio.to_thread(self.recorder.close)
        recorder = self.recorder
        return Counts(
            recorded=recorder.recorded,
            lost=recorder.lost,
            lost_facts=recorder.lost_facts,
            requests=self.silence.requests,
        )

    def _assemble(self, confdir: str) -> Master:
        http1.install()
        layers.install()
        host, port = self.listen
        master = Master(options.Options(confdir=confdir))
        # mitmproxy would go through all addons once more for its user interfaces, and there are none.
        master.addons.handle_lifecycle = master.addons.trigger_event  # type: ignore[method-assign]
        servers = proxyserver.Proxyserver()
        master.addons.add(servers, Hooks(Sockets(servers), self.gate, self.addon, self.silence))
        if self.upstream.is_tls:
            master.addons.add(tlsconfig.TlsConfig())
        master.options.update(
            mode=[f"reverse:{self.upstream.origin}"],
            listen_host=host,
            listen_port=port,
            # Eager would answer a refused upstream by closing the client's connection without a word.
            connection_strategy="lazy",
            tcp_timeout=NEVER_SECONDS,
            keep_host_header=self.upstream.keep_host,
            ssl_insecure=self.upstream.insecure,
            ssl_verify_upstream_trusted_ca=self.upstream.trusted(),
        )
        return master

    async def _listening(self, master: Master, running: asyncio.Task[None]) -> str:
        servers = master.addons.get("proxyserver")
        while not (addresses := servers.listen_addrs()):
            if self.errors or running.done():
                told = self.errors[0] if self.errors else "it ended"
                reason = told.partition("\n")[0].rpartition(" with ")[2]
                host, port = self.listen
                raise OSError(f"cannot listen on {host}:{port}: {reason}; choose another with --listen")
            await asyncio.sleep(0.01)
        host, port = addresses[0][:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def _drain(self) -> None:
        deadline = time.monotonic() + GRACE_SECONDS
        while self.addon.live and time.monotonic() < deadline and not self.hurried.is_set():
            await asyncio.sleep(0.02)

    def _hurry(self) -> None:
        """A signal after the one that ended the session: the next ends the grace, one more the writing."""
        if self.hurried.is_set():
            self.recorder.give_up()
        self.hurried.set()


def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()


@contextlib.contextmanager
def _errors_collected() -> Iterator[deque[str]]:
    console = _Console()
    root = logging.getLogger()
    root.addHandler(console)
    try:
        yield console.messages
    finally:
        root.removeHandler(console)
