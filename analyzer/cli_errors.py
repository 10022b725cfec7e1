"""What becomes of errors on the command line: one message with what to try, and an exit status.

It knows no command.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

import click

INTERRUPTED = 130


def explained[**P, R](command: Callable[P, R]) -> Callable[P, R]:
    """Turn the errors a user can do something about into one message and exit status 1; Ctrl-C into 130."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            from analyzer.renderers import RenderFailed
            from analyzer.tokens import TokenizerError
            from analyzer.wording import printable
            from store.errors import CaptureError

            try:
                return command(*args, **kwargs)
            except (CaptureError, TokenizerError, RenderFailed, OSError) as error:
                raise click.ClickException(printable(str(error))) from error
        except KeyboardInterrupt:
            click.echo("locality: interrupted", err=True)
            sys.exit(INTERRUPTED)

    return guarded
