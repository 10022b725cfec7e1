"""`locality share -o x.html` gives a page that is proved as a capture is, or gives none."""

from __future__ import annotations

import html
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from analyzer import sealed_rows
from analyzer.core import Divergence
from analyzer.pipeline import Options
from analyzer.reports.html_report import HtmlReport
from analyzer.share_page import own_page, page_of
from analyzer.share_search import TextSearch
from tests.captures import Sent, usage, write_capture
from tests.sealed.made import report_of, sealed_copy
from tests.sealed.test_equality import broken, growing
from tests.sealed.test_share import removed, shared

SECRET = "the quay & the <crane> stand where the tide turns at \u00e9tale"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    text = [{"role": "system", "content": SECRET}, {"role": "user", "content": "Who sings at 9:05?"}]
    own = [Sent(body={"model": "tiny", "messages": text[: 1 + turn]}, usage=usage(40, 0)) for turn in (0, 1)]
    sent = [*own, *list(growing(1))[:12], *list(broken())[:8]]
    return write_capture(tmp_path_factory.mktemp("original") / "c.sqlite", sent)


def test_the_page_is_proved_and_is_the_report_of_a_sealed_copy(
    original: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    output = tmp_path / "shared.html"
    status, said, complaints = shared(original, sample_tokenizer, output)
    assert (status, complaints) == (0, "")
    assert "0 values differ" in said and "original searched for, 0 found" in said
    assert "with one in every field, 0 found" in said and ", 0 guessed" in said
    assert "what leaves this machine" in said and "model tiny" in said
    assert output.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [output]
    page = output.read_text(encoding="utf-8")
    assert page.count("<tr") - 1 >= 22 and "volatile.clock" in page
    assert "sealed capture: nothing of a prompt or an answer is quoted" in page


def test_a_prompt_about_pages_and_reports_can_be_shared(sample_tokenizer: Path, tmp_path: Path) -> None:
    """What the page says in its own words a prompt may have said, too."""
    capture = tmp_path / "c.sqlite"
    options = Options(tokenizer=str(sample_tokenizer))
    messages = [{"role": "user", "content": "Mend this page."}]
    write_capture(capture, [Sent(body={"model": "tiny", "messages": messages}, usage=usage(9))])
    copied = report_of(sealed_copy(capture, tmp_path / "s.sqlite", options), Options())
    capture.unlink()
    messages += [{"role": "assistant", "content": own_page(copied)}, {"role": "user", "content": "Thanks."}]
    bodies = [{"model": "tiny", "messages": messages[:count]} for count in (1, 3)]
    write_capture(capture, [Sent(body=body, usage=usage(9)) for body in bodies])
    assert shared(capture, sample_tokenizer, tmp_path / "s.html")[::2] == (0, "")


@pytest.mark.parametrize(
    "spelt",
    [
        lambda text: text,
        html.escape,
        lambda text: "".join(f"&#{ord(char)};" for char in text),
        lambda text: text.encode().hex(),
    ],
    ids=["raw", "escaped", "entities", "hex"],
)
def test_text_in_the_page_alone_removes_it(
    spelt: Callable[[str], str],
    original: Path,
    sample_tokenizer: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = HtmlReport.format

    def leaking(self: HtmlReport, report: Any, **given: Any) -> str:
        leak = spelt(SECRET) if any(turn.findings or turn.model for turn in report.turns) else ""
        # what is our own is asked of a report without findings' texts, and must not excuse it
        excused = all(turn.model is None for turn in report.turns)
        return whole(self, report, **given).replace("</main>", f"{'' if excused else leak}</main>")

    monkeypatch.setattr(HtmlReport, "format", leaking)
    removed(original, sample_tokenizer, tmp_path / "s.html", "strings of the original stand in the copy")


def test_both_sides_that_are_kept_remove_the_page(
    original: Path, sample_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept(divergence: Divergence, keys: object) -> Divergence:
        return divergence

    monkeypatch.setattr(sealed_rows, "divergence_without_text", kept)
    removed(original, sample_tokenizer, tmp_path / "s.html", "strings of the original stand in the copy")


def test_sentences_that_are_kept_let_a_canary_through(
    original: Path, sample_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sealed_rows, "withheld", lambda sentence: sentence)
    monkeypatch.setattr(sealed_rows.Names, "shown", lambda self, kind, name: name)
    removed(original, sample_tokenizer, tmp_path / "s.html", "a planted canary came through")


def test_a_number_that_differs_removes_the_page(
    original: Path, sample_tokenizer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = sealed_rows.RowSealer.row

    def shortened(self: sealed_rows.RowSealer, placed: Any) -> dict[str, Any]:
        row = whole(self, placed)
        if row["tokens"]:
            row["tokens"] = [*row["tokens"][:-1], (row["tokens"][-1][0], row["tokens"][-1][1] - 1)]
        return row

    monkeypatch.setattr(sealed_rows.RowSealer, "row", shortened)
    removed(original, sample_tokenizer, tmp_path / "s.html", "a number is not the original's: ")


def test_a_clients_key_and_name_are_no_words_of_our_own(
    original: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    report = report_of(original, Options(tokenizer=str(sample_tokenizer)))
    search = TextSearch([page_of(report).encode()], [own_page(report).encode()])
    assert list(search.found([SECRET.encode()])) == []  # it is in no finding
    told = [finding.evidence or "" for turn in report.turns for finding in turn.findings]
    quoted = [text for text in told if '"' in text]
    assert quoted and len(list(search.found(map(str.encode, quoted)))) == len(quoted)
