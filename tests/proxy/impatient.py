"""The program, with a proxy that waits half a second for its first request. Run it with `python -m`."""

from __future__ import annotations

import proxy.silence
from analyzer.cli import main

if __name__ == "__main__":
    proxy.silence.SILENCE_SECONDS = 0.5
    main()
