"""Bodies of a gigabyte in a few kilobytes: passed on as they are, kept in part, in bounded memory."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import brotli
import pytest
import zstandard

from store import deltas, timings
from store.db import Capture
from store.encodings import KEPT_BYTES, MAX_BYTES
from tests.conftest import ROOT, environment, eventually
from tests.proxy.setup import CHAT, Setup, started
from tests.upstream.faults import FAULTS
from tests.upstream.wire import Connection, Received

GIGABYTE = 1 << 30
PIECE = b'{"a": "' + b"0" * ((1 << 20) - 7)
MAY_GROW = 450 << 20
"""The pieces up to the limit of 64 MiB, joined, and what is kept of them while it is searched."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read off /proc")


def _zlib(wbits: int) -> bytes:
    packer = zlib.compressobj(9, wbits=wbits)
    return b"".join(packer.compress(PIECE) for _ in range(GIGABYTE >> 20)) + packer.flush()


def _zstd() -> bytes:
    packer = zstandard.ZstdCompressor(level=1).compressobj()
    return b"".join(packer.compress(PIECE) for _ in range(GIGABYTE >> 20)) + packer.flush()


def _br() -> bytes:
    packer = brotli.Compressor(quality=3)
    packed: bytes = b"".join(packer.process(PIECE) for _ in range(GIGABYTE >> 20)) + packer.finish()
    return packed


@functools.cache
def _gzip() -> bytes:
    return _zlib(31)


BOMBS: dict[str, Callable[[], bytes]] = {
    "gzip": _gzip,
    "deflate": lambda: _zlib(15),
    "br": _br,
    "zstd": _zstd,
    "gzip, gzip": lambda: zlib.compress(_gzip(), 9, wbits=31),
    "gzip, zstd": lambda: zstandard.compress(_gzip()),
    "": _gzip,  # without a header, which hides nothing
}


def peak(setup: Setup) -> int:
    """The most memory that the proxy and the processes it started have ever held, in bytes."""
    proxy = setup.proxy.process.pid
    started = Path(f"/proc/{proxy}/task/{proxy}/children").read_text().split()
    held = [
        re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()) for pid in (proxy, *started)
    ]
    return sum(int(found[1]) * 1024 for found in held if found is not None)


def finished(setup: Setup) -> bool:
    with Capture.open(str(setup.capture)) as capture:
        return capture.counts().exchanges > setup.seen and capture.counts().open == 0


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Setup, int]]:
    """A proxy that has recorded something, and its memory then."""
    with started(tmp_path_factory.mktemp("bombs")) as setup:
        setup.ask("fine")
        setup.recorded()
        yield setup, peak(setup)


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_passes_both_ways_and_stays_small_in_the_proxy(
    measured: tuple[Setup, int], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = BOMBS[name]()
    assert len(bomb) < 3 << 20
    headers = {"content-encoding": name} if name else {}

    def answer(connection: Connection, _: Received) -> None:
        connection.body(bomb, **headers)

    monkeypatch.setitem(FAULTS, "bomb", answer)
    setup, before = measured
    setup.begin()
    connection = setup.connect()
    connection.request("POST", CHAT, bomb, {"x-fault": "bomb", **headers})
    assert connection.getresponse().read() == bomb
    assert setup.received[-1].body == bomb
    assert eventually(partial(finished, setup), 90)  # searching what is kept takes its time on a busy machine
    (exchange,) = setup.recorded()
    print(f"grown by {(peak(setup) - before) >> 20} MiB")
    assert peak(setup) - before < MAY_GROW
    for body in (exchange.request, exchange.response):
        assert len(body.content) == KEPT_BYTES
        assert body.content.startswith(PIECE)
        assert body.problem is not None
        assert (
            f"decodes to more than {MAX_BYTES} bytes: only the first {KEPT_BYTES} are stored" in body.problem
        )
        assert body.wire_length == len(bomb)


LIMITED = """
import resource, sys
from analyzer.cli import main
resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
main(sys.argv[1:])
"""


def test_a_capture_with_a_bomb_in_it_is_read_in_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = _gzip()
    with started(tmp_path) as setup:
        connection = setup.connect()
        connection.request("POST", CHAT, bomb, {"x-fault": "fine", "content-encoding": "gzip"})
        connection.getresponse().read()
        assert eventually(partial(finished, setup), 90)
    for command in ("report", "verify"):
        done = subprocess.run(
            [sys.executable, "-c", LIMITED, command, str(setup.capture)],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment(),
            check=False,
        )
        assert "MemoryError" not in done.stderr
        assert "Traceback" not in done.stderr
        assert done.returncode in (0, 1, 3)


@pytest.mark.parametrize("claimed", [True, False])
def test_a_file_that_was_made_to_fill_the_memory_is_refused(claimed: bool) -> None:
    packer = zstandard.ZstdCompressor(level=1).compressobj(size=GIGABYTE if claimed else -1)
    evil = b"".join(packer.compress(bytes(1 << 20)) for _ in range(GIGABYTE >> 20)) + packer.flush()
    with pytest.raises(ValueError, match=r"longer than|cannot be decompressed"):
        deltas.decompress(evil, None, length=100 if claimed else 1 << 40)
    with pytest.raises(ValueError, match=r"longer than|cannot be decompressed"):
        timings.unpack(evil)
