"""An upstream whose answer to the proxy's own questions comes a byte at a time, without an end."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from proxy import probe


def _drip(listener: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection, _ = listener.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                connection.sendall(b"x")
                time.sleep(0.1)


def test_a_server_that_drips_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=_drip, args=(listener,), daemon=True).start()
        began = time.monotonic()
        (fact,) = probe.probe(f"http://127.0.0.1:{listener.getsockname()[1]}", ("/version",))
    assert time.monotonic() - began < 2 * probe.WHOLE_ANSWER_SECONDS
    assert b"longer than 5 s" in fact.body
