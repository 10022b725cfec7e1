"""A file that is written is the old one or the new one, and never a half."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from analyzer.whole_file import write_whole
from tests.captures import Sent, usage, write_capture
from tests.conftest import locality


def test_a_new_file_has_the_users_mode_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "r.json", "new é\n")
    finally:
        os.umask(before)
    assert (tmp_path / "r.json").read_text(encoding="utf-8") == "new é\n"
    assert (tmp_path / "r.json").stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [tmp_path / "r.json"]


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    file.write_text("old", encoding="utf-8")
    with pytest.raises(UnicodeEncodeError):
        write_whole(file, "x" * 100_000 + "\ud800")
    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_keeps_its_mode_and_a_link_its_target(tmp_path: Path) -> None:
    file, link = tmp_path / "r.json", tmp_path / "link"
    file.write_text("old", encoding="utf-8")
    file.chmod(0o600)
    link.symlink_to(file)
    write_whole(link, "new")
    assert link.is_symlink() and file.read_text(encoding="utf-8") == "new"
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_into(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_whole(pipe, "through")
    reader.join(10)
    assert read == ["through"] and pipe.is_fifo()


def test_a_report_into_a_folder_that_is_not_there_is_a_sentence(
    tmp_path: Path, sample_tokenizer: Path
) -> None:
    body = {"model": "tiny", "messages": [{"role": "user", "content": "One?"}]}
    capture = write_capture(tmp_path / "c.sqlite", [Sent(body=body, usage=usage(10))])
    arguments = ("--tokenizer", str(sample_tokenizer), "-o", str(tmp_path / "none" / "r.txt"))
    made = locality("report", str(capture), *arguments)
    assert made.returncode == 1 and f"No such file or directory: '{arguments[-1]}'" in made.stderr
