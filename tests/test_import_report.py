"""What a report says of an import whose file tells less than a proxy would have.

What is read of each format is held in `test_import.py`.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import locality


def test_an_answer_that_the_file_does_not_hold_is_not_blamed_on_a_killed_proxy(tmp_path: Path) -> None:
    bodies, capture = tmp_path / "bodies.jsonl", tmp_path / "made.sqlite"
    bodies.write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "One?"}]}) + "\n")
    assert locality("import", str(bodies), "--format", "jsonl", "-o", str(capture)).returncode == 0
    report = json.loads(locality("report", str(capture), "--format", "json").stdout)
    assert report["capture"]["unfinished"] == 1
    assert report["problems"][0] == "incomplete: 1 exchange without an answer in the file that was imported"
