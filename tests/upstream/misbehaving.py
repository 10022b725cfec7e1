"""An upstream that breaks in the ways real ones do, on raw sockets, bounded in time and self-stopping.

A request picks its fault by the path `/fault/NAME`, the header `x-fault: NAME`, or a JSON field `x-fault`.
Settings travel the same way: `x-fault-ms`, `x-fault-mb`. Without a name it answers well.
"""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Self

from tests.upstream.faults import FAULTS
from tests.upstream.wire import ClientGoneError, Connection, Received


def named_fault(request: Received) -> str:
    """The fault a request asks for."""
    path = request.path.partition("?")[0]
    if path.startswith("/fault/"):
        return path.removeprefix("/fault/")
    return str(request.option("x-fault") or "fine")


class MisbehavingUpstream:
    """Use as a context manager. `received` holds every request, `sent_at` every write with its time.

    `gone_at` holds the times at which a client was found to have left in the middle of an answer.
    Times are of `time.monotonic`. A client that closes its sending side counts as gone during a pause.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.sent_at: list[tuple[float, bytes]] = []
        self.gone_at: list[float] = []
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for sock in list(self._open):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        self._open.add(sock)
        connection = Connection(sock, self.sent_at)
        try:
            while connection.keep and (request := connection.read_head()):
                self._answer(connection, request)
        except ClientGoneError:
            self.gone_at.append(time.monotonic())
        finally:
            self._open.discard(sock)
            sock.close()

    def _answer(self, connection: Connection, request: Received) -> None:
        slow = "slow_reader" in (request.header("x-fault") or "", request.path.removeprefix("/fault/"))
        pause = float(request.header("x-fault-ms") or 10) / 1000 if slow else 0
        connection.read_body(request, pause=pause)
        self.received.append(request)
        name = named_fault(request)
        if request.method == "HEAD":
            connection.head(Content_Type="application/json", Content_Length="640")
        elif name in FAULTS:
            FAULTS[name](connection, request)
        else:
            known = ", ".join(sorted(FAULTS))
            connection.body(
                f"no fault {name}; there are {known}".encode(), "501 Not Implemented", "text/plain"
            )


@contextlib.contextmanager
def refused_url() -> Iterator[str]:
    """The address of a port that is taken but not listened on: connecting to it is refused."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
