"""The program with one part of its proxy broken: `python -m tests.proxy.sabotage PART COMMAND ...`."""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable
from typing import Any

HOOKS = ("requestheaders", "request", "responseheaders", "response", "error")


def in_hook(name: str) -> None:
    """Let a hook of the addon raise, within whatever guards it: what a decorator wraps is in its closure."""
    from proxy.addon import LocalityAddon

    guarded = getattr(LocalityAddon, name)
    hook = guarded.__wrapped__
    (cell,) = (cell for cell in guarded.__closure__ if cell.cell_contents is hook)
    cell.cell_contents = functools.wraps(hook)(_raising)


def in_tee() -> None:
    """Let keeping a copy raise."""
    from proxy.tee import Tee

    setattr(Tee, "_keep", _raising)  # noqa: B010


def in_queue() -> None:
    """Let handing over a record raise."""
    import queue

    setattr(queue.Queue, "put_nowait", _raising)  # noqa: B010


def in_writer() -> None:
    """Let the writer's thread end at its third record, as if something had killed it."""
    from proxy.recorder import Recorder

    give_back, seen = Recorder._give_back, []

    def dying(self: Recorder, size: int) -> None:
        give_back(self, size)
        if threading.current_thread().name == "locality-writer":
            seen.append(size)
            if len(seen) == 3:
                raise SystemExit

    Recorder._give_back = dying  # type: ignore[method-assign]


def in_sink() -> None:
    """Let writing raise what is no Exception."""
    from proxy.sink_process import SinkProcess

    def raising(*_: Any) -> None:
        raise KeyboardInterrupt

    setattr(SinkProcess, "save_response", raising)  # noqa: B010


def patient() -> None:
    """Break nothing, but wait for what is in flight for much longer than any of it takes."""
    from proxy import serve

    serve.GRACE_SECONDS = 60.0


def _raising(*_: Any) -> None:
    raise RuntimeError("sabotaged")


PARTS: dict[str, Callable[[], None]] = {
    **{name: functools.partial(in_hook, name) for name in HOOKS},
    "tee": in_tee,
    "queue": in_queue,
    "writer": in_writer,
    "sink": in_sink,
}

if __name__ == "__main__":
    {**PARTS, "nothing": patient}[sys.argv[1]]()
    from analyzer.cli import main

    main(sys.argv[2:], prog_name="locality")
