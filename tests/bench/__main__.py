"""`make bench`: what issues and README say about speed and size, measured here and now, in ratios."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from samples.tokenizer import make_tokenizer_folder
from tests.bench.agents import agents
from tests.bench.caching import caching
from tests.bench.explaining import explaining
from tests.bench.flood import held_up
from tests.bench.overhead import overhead
from tests.bench.rounds import machine, print_table
from tests.bench.sealing import sealing
from tests.bench.sessions import make_capture, rendering, report, report_memory, storage
from tests.bench.watching import watching


def main() -> None:
    """Measure everything and print the table."""
    begin = time.perf_counter()
    print(machine())
    with tempfile.TemporaryDirectory(prefix="locality-bench-") as name:
        folder = Path(name)
        tokenizer = make_tokenizer_folder(folder / "tokenizer")
        bodies = make_capture(folder / "one.sqlite")
        lines = storage(folder / "one.sqlite", bodies)
        lines += report(folder / "one.sqlite", tokenizer)
        lines += rendering(folder / "one.sqlite", tokenizer, bodies)
        lines += explaining(folder, tokenizer)
        lines += watching(folder, tokenizer)
        lines += overhead(folder)
        lines += held_up(folder, rounds=3)
        lines += sealing(folder, tokenizer, folder / "one.sqlite", bodies)
        lines += agents(folder, tokenizer)
        make_capture(folder / "ten.sqlite", sessions=10)
        lines += report_memory(folder / "ten.sqlite", tokenizer)
        lines += caching()
    print_table(lines)
    print(f"medians of interleaved rounds; {time.perf_counter() - begin:.0f} s in all")


if __name__ == "__main__":
    main()
