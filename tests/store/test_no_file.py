"""Paths of captures at which no file can be."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from store.db import Capture, CaptureError


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.sqlite"
    os.mkfifo(pipe)
    for path in (str(pipe), os.devnull):
        with pytest.raises(CaptureError, match="give another path"):
            Capture.create_or_open(path, redaction="secrets")
        with pytest.raises(CaptureError, match="give another path"):
            Capture.open(path)
