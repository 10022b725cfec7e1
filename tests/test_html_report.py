"""The report as a page: what it shows, that it needs nothing else, and that no text becomes a tag."""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatch
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from analyzer.no_text import without_text
from analyzer.pipeline import Options
from analyzer.report import Report
from analyzer.reports.html_report import BAR_WIDTH, REPORT
from analyzer.reports.text_report import REPORT as TEXT
from analyzer.vocabulary import words
from analyzer.wording import known
from tests.analyzer.rows import finding, later, report, row
from tests.captures import write_capture
from tests.conftest import ROOT, locality
from tests.sealed.made import report_of, sealed_copy
from tests.sealed.test_equality import broken, growing

HOSTILE = (
    "</style></title>\"'><script>alert(1)</script><img src=x onerror=y>{{ 7*7 }}{% raw %}&lt;\n\x1b[2J\u202e"
)
TAGS = words("""
    html head meta title style body header h1 p dl div dt dd main section h2 article h3 span svg rect path
    table caption thead tr th tbody td small ul li footer
    """)
ATTRIBUTES = words("""
    lang charset http-equiv content name class aria-labelledby aria-hidden aria-label id role tabindex scope
    width height x y d viewbox preserveaspectratio
    """)


class Page(HTMLParser):
    """What a browser makes of a page: tags with their attributes, and the text outside of the style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.cells: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.open += [] if tag in ("meta", "rect", "path") else [tag]
        self.cells += [""] if tag in ("td", "th") else []

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th", "small"):
            self.cells[-1] += data
        if "style" not in self.open:
            self.text += data


def page(made: Report) -> Page:
    return Page(REPORT.format(made, width=None, color=False))


def parted(**known: Any) -> Report:
    return report(later(1), later(2, finding()), later(3, **known))


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_capture(tmp_path_factory.mktemp("html") / "c.sqlite", [*growing(1), *broken()])


@pytest.fixture(scope="module")
def real(capture: Path, sample_tokenizer: Path) -> Report:
    return report_of(capture, Options(tokenizer=str(sample_tokenizer), pool_sweep=True))


def squeezed(text: str) -> str:
    return re.sub(r"[\s:]+", "", text)  # a heading has no colon


def test_everything_that_the_text_report_says_is_on_the_page(real: Report) -> None:
    shown = squeezed(page(real).text)
    lines = TEXT.format(real, width=10_000, color=False).split("\n")
    cells = [cell for line in lines for cell in re.split(r"\s{2,}", line) if cell.strip()]
    assert len(cells) > 100
    for cell in cells:
        for part in cell.split(" · "):
            assert squeezed(part.removeprefix("findings, the dearest first (").removesuffix("):")) in shown


def test_a_row_tells_where_its_count_comes_from_and_how_it_stands(real: Report) -> None:
    marked = {re.sub("[=≠~]", "", cell) for cell in page(real).cells}
    for turn in real.turns:
        assert f"{known(turn.prompt_tokens)}{known(turn.token_source)}, {known(turn.rendering)}" in marked


def test_what_is_not_known_is_a_question_mark_and_never_a_nought() -> None:
    made = page(report(row(problem="no body")))
    first = made.cells[made.cells.index("1") :][:7]
    assert first == ["1", "?", "?", "??, ?", "", "", "?"]
    figures = re.findall(r"<dd>(.*?)</dd>", REPORT.format(report(row()), width=None, color=False))
    assert figures[:3] == ["? %", "?", "?"]


def test_a_page_of_nothing_says_so() -> None:
    shown = page(report(problems=("nothing is in here",)))
    assert "nothing is in here" in shown.text and "there is nothing to compare" in shown.text


def bars(made: Report) -> list[list[tuple[str, dict[str, str | None]]]]:
    found: list[list[tuple[str, dict[str, str | None]]]] = []
    for tag, attributes in page(made).tags:
        if tag == "svg" and attributes.get("role") == "img":
            found.append([])
        elif tag in ("rect", "path") and found:
            found[-1].append((str(attributes["class"]), attributes))
    return found


def test_a_bar_is_as_long_as_its_prompt_and_says_in_words_what_it_shows() -> None:
    # turn 2: 1200 tokens of which 400 are reusable, 43 blocks of 16 lost; the longest prompt has 1300
    made = parted()
    _, second, third = bars(made)
    lengths = {name: float(at["width"] or 0) for name, at in second if name != "hit"}
    scale = BAR_WIDTH / 1300
    assert lengths == {
        "kept": pytest.approx(400 * scale, abs=0.06),
        "lost": pytest.approx(43 * 16 * scale, abs=0.06),
        "new": pytest.approx((1200 - 400 - 43 * 16) * scale, abs=0.06),
    }
    assert sum(float(at["width"] or 0) for name, at in third if name != "hit") == pytest.approx(
        BAR_WIDTH, 0.01
    )
    labels = [at["aria-label"] for tag, at in page(made).tags if tag == "svg" and "aria-label" in at]
    assert labels[1] == "400 tokens kept, 688 lost, 112 new; the server hit 512"


def test_a_prompt_shorter_than_what_it_lost_has_no_longer_bar() -> None:
    (_, bar) = bars(report(later(1), later(2, finding(), invalidated_blocks=900)))
    assert sum(float(at["width"] or 0) for name, at in bar if name != "hit") <= BAR_WIDTH + 0.1


def test_no_text_becomes_a_tag_an_attribute_or_a_line_of_the_style() -> None:
    hostile = finding(
        cause=None, kind=HOSTILE, path=HOSTILE, before=HOSTILE, after=f"x{HOSTILE}", evidence=HOSTILE,
        advice=HOSTILE,
    )  # fmt: skip
    made = report(
        later(1, problem=HOSTILE, model=HOSTILE),
        later(2, hostile, token_source=HOSTILE),
        problems=(HOSTILE,),
        version=HOSTILE,
        model=HOSTILE,
        assumed=(HOSTILE,),
    )
    plain = parted()
    text = REPORT.format(made, width=None, color=False)
    shown = Page(text)
    assert {tag for tag, _ in shown.tags} <= TAGS
    assert {name for _, attributes in shown.tags for name in attributes} <= ATTRIBUTES
    assert shown.open == []
    assert "<script>alert(1)</script>" in shown.text and "{{ 7*7 }}" in shown.text
    assert "\x1b" not in text and "\u202e" not in text
    style = re.compile(r"<style>.*?</style>", re.DOTALL)
    assert style.findall(text) == style.findall(REPORT.format(plain, width=None, color=False))


def test_the_page_refers_to_nothing_outside_of_it(real: Report) -> None:
    text = REPORT.format(without_text(real), width=None, color=False)
    assert not re.search(
        r"https?:|//|src=|href=|@import|url\(|<script|<link|<iframe|<img|\bon\w+=|xmlns", text
    )
    policy = {
        "http-equiv": "Content-Security-Policy",
        "content": "default-src 'none'; style-src 'unsafe-inline'",
    }
    assert ("meta", policy) in Page(text).tags
    assert {tag for tag, _ in Page(text).tags} <= TAGS


def test_tables_have_headings_for_rows_and_columns(real: Report) -> None:
    tags = page(real).tags
    assert all(at.get("scope") in ("col", "row") for tag, at in tags if tag == "th")
    rows = sum(tag == "tr" for tag, _ in tags)
    assert rows == len(real.turns) + len(real.pool_sweep.sizes if real.pool_sweep else ()) + 2
    assert sum(at.get("scope") == "row" for tag, at in tags if tag == "th") == rows - 2


def test_the_page_says_whether_it_quotes_prompts(
    real: Report, capture: Path, sample_tokenizer: Path, tmp_path: Path
) -> None:
    assert "quotes prompts and answers" in page(real).text
    assert "Nothing of a prompt or an answer is quoted." in page(without_text(real)).text
    copied = sealed_copy(capture, tmp_path / "s.sqlite", Options(tokenizer=str(sample_tokenizer)))
    sealed = page(report_of(copied, Options())).text
    assert "sealed capture: nothing of a prompt or an answer is quoted" in sealed
    assert "withheld: the capture is sealed" in sealed


def test_the_command_writes_the_page(capture: Path, sample_tokenizer: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    arguments = ("--tokenizer", str(sample_tokenizer), "--format", "html", "-o", str(output))
    assert locality("report", str(capture), *arguments).returncode == 0
    assert output.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert "html" in locality("list", "reports").stdout


def test_every_file_that_is_no_module_is_installed_with_its_package() -> None:
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    others = [
        path
        for room in ("analyzer", "proxy", "store")
        for path in (ROOT / room).rglob("*")
        if path.is_file() and path.suffix not in (".py", ".pyc")
    ]
    assert others
    for path in others:
        package = ".".join(path.parent.relative_to(ROOT).parts)
        assert any(fnmatch(path.name, pattern) for pattern in told["package-data"].get(package, [])), path
