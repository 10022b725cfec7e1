"""What every forked proxy has done by its start: its imports, and an authority for TLS that nobody here asks.

Making one takes most of a start. It is imported by the process that forks, and by nobody else.
"""

from __future__ import annotations

import multiprocessing
from types import SimpleNamespace
from typing import Any

from mitmproxy import certs

import analyzer.capturing
import analyzer.cli
import proxy.serve
import store.redact
from proxy import sink_process

MADE = certs.create_ca("tests", "tests", 2048)
WARM = (analyzer.cli, analyzer.capturing, proxy.serve, store.redact.find_in_message("warm"))


def _made(*_: Any, **__: Any) -> Any:
    return MADE


certs.create_ca = _made
# The writer's process is forked as well: an interpreter of its own takes a second to start.
forking = SimpleNamespace(get_context=lambda _: multiprocessing.get_context("forkserver"))
setattr(sink_process, "multiprocessing", forking)  # noqa: B010
