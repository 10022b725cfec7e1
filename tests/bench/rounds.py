"""Measures several things in turns, so that a busy moment of the machine falls on all of them."""

from __future__ import annotations

import contextlib
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the benchmark's table: what was measured, the number, what it is to be, what it means."""

    name: str
    value: str
    target: str = ""
    meaning: str = ""


def seconds_of(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def medians(works: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median of what each of `works` measures, one after the other, `rounds` times."""
    found: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            found[name].append(work())
    return {name: statistics.median(values) for name, values in found.items()}


def print_table(lines: list[Line]) -> None:
    """The table, columns aligned."""
    name, value, target = (
        max(len(getattr(line, field)) for line in lines) for field in ("name", "value", "target")
    )
    for line in lines:
        print(f"{line.name:<{name}}  {line.value:>{value}}  {line.target:<{target}}  {line.meaning}".rstrip())


def machine() -> str:
    """What the figures were taken on."""
    return (
        f"{len(os.sched_getaffinity(0))} cores (load {os.getloadavg()[0]:.1f}), {_processor()}, Python"
        f" {platform.python_version()}, fastokens {version('fastokens')}, mitmproxy {version('mitmproxy')}"
    )


def _processor() -> str:
    """The processor's name where Linux tells it, else its kind."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()
