"""The mitmproxy addon: streams every exchange through and records those of known endpoints.

It understands HTTP and nothing above it, and it writes nothing: records go to the recorder's queue.
mitmproxy logs and swallows what a hook raises, so each hook that records counts its own failures.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from dataclasses import dataclass

from mitmproxy.connection import ConnectionState
from mitmproxy.http import Headers, HTTPFlow, Request, Response

from proxy.http1 import error_body, in_our_words
from proxy.recorder import Recorder
from proxy.tee import Room, Tee
from proxy.watch import Watch
from store.records import ENDPOINTS, Ended, RequestSeen, ResponseSeen
from store.records import Headers as HeaderPairs

WEBSOCKET_HINT = (
    "This proxy records HTTP only. Turn WebSockets off in the client"
    " (Codex: supports_websockets = false in its model provider) and it will use HTTP."
)

SAVE_AFTER_SECONDS = 0.25
"""Before a request without an answer is queued: what writes it would hold up an answer that comes at once."""


@dataclass(slots=True)
class Live:
    """An exchange on its way: what has been seen of it so far. Times are monotonic nanoseconds."""

    key: str
    request: Request
    path: str
    started_at_ns: int
    started_ns: int
    request_tee: Tee
    response_tee: Tee
    request_whole: bool = False
    request_saved: bool = False


def _counted(hook: Callable[[LocalityAddon, HTTPFlow], None]) -> Callable[[LocalityAddon, HTTPFlow], None]:
    """Turn an exception in a hook into a counted loss: mitmproxy would only log it."""

    @functools.wraps(hook)
    def guarded(self: LocalityAddon, flow: HTTPFlow) -> None:
        try:
            hook(self, flow)
        except Exception as error:
            self.recorder.lose(flow.id, f"{hook.__name__}: {type(error).__name__}: {error}")
            _stream(flow)

    return guarded


def _stream(flow: HTTPFlow) -> None:
    """Let what has begun pass as it comes: unless told otherwise, mitmproxy holds a body back whole."""
    if flow.response is not None and not flow.response.stream:
        flow.response.stream = True


class LocalityAddon:
    """Records exchanges of known endpoints; passes everything else through."""

    def __init__(
        self, recorder: Recorder, watch: Watch, *, path_prefix: str = "", host: str | None = None
    ) -> None:
        self.recorder = recorder
        self.watch = watch
        self.path_prefix = path_prefix
        self.host = host
        self.live: dict[str, Live] = {}
        self.room = Room()

    @_counted
    def requestheaders(self, flow: HTTPFlow) -> None:
        """Decide whether to record; every body streams through."""
        if flow.response is not None:  # refused at the gate
            return
        if "websocket" in flow.request.headers.get("upgrade", "").lower():
            flow.response = Response.make(
                426, error_body(426, WEBSOCKET_HINT), {"content-type": "application/json"}
            )
            return
        target, flow.request.stream = flow.request.path, True
        self._address(flow)  # first: whatever goes wrong with a record, the request goes where it should
        if flow.request.method == "POST" and target.partition("?")[0].rstrip("/") in ENDPOINTS:
            flow.request.stream = self._begin(flow, target).request_tee

    def _address(self, flow: HTTPFlow) -> None:
        """Name the upstream to itself: mitmproxy leaves out an IPv6 address's brackets, and the prefix."""
        request = flow.request
        if request.authority:
            request.authority = ""  # of a target that is a whole URL only the path goes on
        if self.path_prefix and request.path != "*":  # OPTIONS: of the server as a whole
            request.path = self.path_prefix + request.path
        if self.host is not None and request.headers.get("Host") != self.host:
            request.headers["Host"] = self.host

    @_counted
    def request(self, flow: HTTPFlow) -> None:
        """The request is complete: queue it soon, so that a killed proxy leaves what it saw."""
        if live := self.live.get(flow.id):
            live.request_whole = True
            asyncio.get_running_loop().call_later(SAVE_AFTER_SECONDS, self.waited, flow)

    @_counted
    def waited(self, flow: HTTPFlow) -> None:
        """The answer is not there yet: queue the request meanwhile."""
        if live := self.live.get(flow.id):
            self._save_request(live)

    @_counted
    def responseheaders(self, flow: HTTPFlow) -> None:
        """Stream every response: an event stream that is held back is an agent that times out."""
        if flow.response is not None:
            live = self.live.get(flow.id)
            flow.response.stream = live.response_tee if live else True

    @_counted
    def response(self, flow: HTTPFlow) -> None:
        """The response came to its end."""
        self._finish(flow, "complete", None)

    @_counted
    def error(self, flow: HTTPFlow) -> None:
        """The exchange broke off: the client went, or the upstream did."""
        client = flow.client_conn
        # One that has only closed its sending side is still there.
        client_gone = client.state is ConnectionState.CLOSED or client.timestamp_end is not None
        message = in_our_words(flow.error.msg) if flow.error else None
        self._finish(flow, "client_gone" if client_gone else "reset", message)

    def stop(self) -> None:
        """Mark what is still in flight as cut off by the proxy's own end."""
        for live in list(self.live.values()):
            try:
                self._save_request(live)
                self._save_end(live, None, "stopped", "the proxy was stopped")
            except Exception as error:
                self.recorder.lose(live.key, f"stop: {type(error).__name__}: {error}")
        self.live.clear()

    def _begin(self, flow: HTTPFlow, target: str) -> Live:
        now = time.monotonic_ns()
        self.recorder.begun()
        live = Live(
            key=flow.id,
            request=flow.request,
            path=target,
            started_at_ns=time.time_ns(),
            started_ns=now,
            request_tee=Tee(now, self.room),
            response_tee=Tee(now, self.room),
        )
        self.live[flow.id] = live
        return live

    def _save_request(self, live: Live) -> None:
        """Queue a request behind those that began before it: a prompt is compared with earlier ones."""
        for other in self.live.values():
            if other.request_whole and other.started_ns < live.started_ns:
                self._put_request(other)
        self._put_request(live)

    def _put_request(self, live: Live) -> None:
        if live.request_saved:
            return
        live.request_saved = True
        path, _, query = live.path.partition("?")
        kept = self._copy(live, live.request_tee, "request")
        self.recorder.put(
            RequestSeen(
                key=live.key,
                started_at_ns=live.started_at_ns,
                method=live.request.method,
                path=path.rstrip("/"),
                query=query,
                headers=_pairs(live.request.headers),
                body=kept,
                wire_length=_if_cut(live.request_tee, kept),
            )
        )

    def _finish(self, flow: HTTPFlow, ended: Ended, message: str | None) -> None:
        live = self.live.pop(flow.id, None)
        if live is None:
            return
        self._save_request(live)  # it may not be whole: an answer, or the end, can come before
        self._save_end(live, flow.response, ended, message)
        self.watch.passed(broken=ended == "reset")

    def _save_end(self, live: Live, response: Response | None, ended: Ended, message: str | None) -> None:
        tee = live.response_tee
        kept = self._copy(live, tee, "answer")
        self.recorder.put(
            ResponseSeen(
                key=live.key,
                status=response.status_code if response else None,
                headers=_pairs(response.headers) if response else (),
                # What the addon answers by itself has not streamed by.
                body=kept or (response.raw_content if response else None) or b"",
                wire_length=_if_cut(tee, kept),
                chunks=tee.chunks,
                ttft_ns=tee.first_ns,
                duration_ns=time.monotonic_ns() - live.started_ns,
                ended=ended,
                error=message,
            )
        )

    def _copy(self, live: Live, tee: Tee, what: str) -> bytes:
        kept = tee.close()
        if tee.failed is not None:
            self.recorder.lose(live.key, f"a part of its {what}: {type(tee.failed).__name__}: {tee.failed}")
        return kept


def _if_cut(tee: Tee, kept: bytes) -> int | None:
    return tee.length if tee.length > len(kept) else None


def _pairs(headers: Headers) -> HeaderPairs:
    """Header fields in wire order, duplicates kept."""
    return tuple((name, value) for name, value in headers.items(multi=True))
