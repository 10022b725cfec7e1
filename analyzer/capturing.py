"""Runs a capture from start to counts: what the commands `proxy` and `run` do.

The only place where the analyzer's command line starts the proxy.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from analyzer.pipeline import Options
from analyzer.reporting import print_summary
from proxy.serve import Counts, Session, Upstream, serve
from proxy.sessions import CommandSession, until_signal
from store.db import Capture


def run_proxy(upstream: Upstream, listen: tuple[str, int], target: str, redaction: str) -> int:
    """Serve until a signal comes. Returns the exit status: 1 where a record was lost."""
    counts = _capture(upstream, listen, target, redaction, until_signal)
    return 1 if counts.lost else 0


def run_command(
    upstream: Upstream, target: str, redaction: str, command: Sequence[str], options: Options
) -> int:
    """Run a command behind the proxy, then print the summary of its capture; returns the command's status."""
    session = CommandSession(command)
    _capture(upstream, ("127.0.0.1", 0), target, redaction, session)
    print_summary(target, options)
    return session.status


def _capture(
    upstream: Upstream, listen: tuple[str, int], target: str, redaction: str, session: Session
) -> Counts:
    """One run of the proxy; refuses to start where the capture cannot be written."""
    with Capture.create_or_open(target, redaction=redaction) as capture:
        counts = serve(upstream, capture, listen=listen, session=session)
    print(f"{target}: {counts.recorded} exchanges recorded, {counts.lost} lost", file=sys.stderr)
    return counts
