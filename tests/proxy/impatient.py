"""The program with another patience for a first request: `python -m tests.proxy.impatient SECONDS ...`."""

from __future__ import annotations

import sys

import proxy.silence
from analyzer.cli import main

if __name__ == "__main__":
    proxy.silence.SILENCE_SECONDS = float(sys.argv[1])
    main(sys.argv[2:], prog_name="locality")
