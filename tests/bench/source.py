"""An upstream that answers at once, in a process of its own: events on request, each with its time inside.

`X-Events: COUNT SPIN` asks for so many events, each after SPIN microseconds of work on the processor.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time

EVENT_BYTES = 250
END = b"0\r\n\r\n"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
NOTHING = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def event() -> bytes:
    """One event in a chunk of its own: the moment (monotonic: one clock for all processes), and words."""
    text = b'data: {"at": %020d, "choices": [{"delta": {"content": " tide' % time.monotonic_ns()
    text = text.ljust(EVENT_BYTES - 7, b".") + b'"}}]}\n\n'
    return b"%x\r\n%s\r\n" % (len(text), text)


def serve(sock: socket.socket) -> None:
    """Answer one connection's requests."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with sock, contextlib.suppress(OSError):
        data = b""
        while True:
            while b"\r\n\r\n" not in data:
                if not (piece := sock.recv(1 << 18)):
                    return
                data += piece
            head, _, rest = data.partition(b"\r\n\r\n")
            lowered = head.lower()
            _body(sock, lowered, rest)
            data = b""
            asked = _field(lowered, b"x-events")
            if asked is None:
                sock.sendall(NOTHING)
            else:
                _events(sock, *map(int, asked.split()))


def _field(head: bytes, name: bytes) -> bytes | None:
    _, found, rest = head.partition(b"\r\n" + name + b":")
    return rest.partition(b"\r\n")[0].strip() if found else None


def _body(sock: socket.socket, head: bytes, rest: bytes) -> None:
    left = int(_field(head, b"content-length") or 0) - len(rest)
    while left > 0:
        left -= len(sock.recv(1 << 18)) or left


def _events(sock: socket.socket, count: int, spin: int) -> None:
    sock.sendall(HEAD + event())
    for _ in range(count - 1):
        until = time.monotonic_ns() + 1000 * spin
        while time.monotonic_ns() < until:
            pass
        sock.sendall(event())
    sock.sendall(END)


def main() -> None:
    """Serve until killed."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    print(f"listening on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
    while True:
        sock, _ = listener.accept()
        threading.Thread(target=serve, args=(sock,), daemon=True).start()


if __name__ == "__main__":
    main()
