"""The client of the overhead benchmark: bare sockets, and no work between reading and the clock."""

from __future__ import annotations

import select
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.bench.source import END, EVENT_BYTES

_MARK = b'"at": '


@dataclass(frozen=True, slots=True)
class Took:
    """One streamed answer, in seconds: until its first event, until its end, and each event's way."""

    first: float
    whole: float
    delays: tuple[float, ...]


class Stream:
    """A kept connection to one way to the upstream."""

    def __init__(self, url: str, path: str = "/v1/chat/completions") -> None:
        parts = urlsplit(url)
        self.sock = socket.create_connection((parts.hostname or "", parts.port or 0), timeout=60)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, body: bytes, events: int, spin: int = 0) -> None:
        """Send a request for so many events, each after `spin` microseconds of the upstream's work."""
        head = f"POST {self.path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        head += f"X-Events: {events} {spin}\r\nContent-Length: {len(body)}\r\n\r\n"
        self.sock.sendall(head.encode() + body)

    def take(self, body: bytes, events: int, spin: int = 0) -> Took:
        """Ask, and read the answer to its end."""
        begin = time.monotonic_ns()
        self.ask(body, events, spin)
        arrivals: list[tuple[int, int]] = []
        data = bytearray()
        while not data.endswith(END):
            piece = self.sock.recv(1 << 18)
            if not piece:
                raise ConnectionError("the answer broke off")
            data += piece
            if _MARK in data:
                arrivals.append((time.monotonic_ns(), len(data)))
        return _took(begin, bytes(data), arrivals)


def _took(begin: int, data: bytes, arrivals: list[tuple[int, int]]) -> Took:
    delays, at, arrived = [], data.find(_MARK), iter(arrivals)
    now, until = next(arrived)
    while at >= 0:
        while at + EVENT_BYTES - 40 > until:
            now, until = next(arrived)
        sent = int(data[at + len(_MARK) : at + len(_MARK) + 20])
        delays.append((now - sent) / 1e9)
        at = data.find(_MARK, at + EVENT_BYTES - 40)
    return Took((arrivals[0][0] - begin) / 1e9, (arrivals[-1][0] - begin) / 1e9, tuple(delays))


def seconds_of_all(url: str, body: bytes, *, streams: int, events: int) -> float:
    """How long so many streams at once take to their last end."""
    opened = [Stream(url) for _ in range(streams)]
    poller = select.epoll()
    tails = {one.sock.fileno(): (one.sock, bytearray()) for one in opened}
    try:
        begin = time.perf_counter()
        for one in opened:
            one.ask(body, events)
            poller.register(one.sock.fileno(), select.EPOLLIN)
        while tails:
            for number, _ in poller.poll(60):
                sock, tail = tails[number]
                tail += sock.recv(1 << 18)
                del tail[: -len(END)]
                if tail == END:
                    poller.unregister(number)
                    del tails[number]
        return time.perf_counter() - begin
    finally:
        poller.close()
        for one in opened:
            one.sock.close()


def cpu_seconds(pid: int) -> float:
    """Processor time that a process has used, all its threads, finer than clock ticks."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
