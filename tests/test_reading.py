"""What a person reads: findings by what they cost, both sides, and nothing that a terminal would act on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.cells import cell_len

from analyzer.core import Finding
from analyzer.report import Report, Turn
from analyzer.reports.text_report import REPORT
from analyzer.wording import differing, duration, quoted
from tests.analyzer.rows import finding, later, report, row

GOLDEN = Path(__file__).parent / "golden" / "reports"


def stripped(message: int, tokens: int = 55) -> Finding:
    return finding(
        cause="template.think_strip",
        expected=True,
        path=f"messages[{message}].reasoning_content",
        char=0,
        token=1000,
        tokens=tokens,
        blocks=3,
        before="<think>I counted them.</think>There are two.<|end|>",
        after="There are two.<|end|>",
        evidence="the chat template no longer prints the reasoning of an earlier answer",
        advice="by design of the template; if it has a switch that keeps reasoning, set it",
    )


def unclaimed() -> Finding:
    return finding(
        cause=None,
        path="tools[1].function.description",
        tokens=None,
        blocks=None,
        before="\x1b[31mred\n漢字 text",
        after="",
        evidence="the prompts differ in a way that no known cause has",
        advice="compare both",
    )


def session(turns: int) -> Iterator[Turn]:
    """Every fourth turn has another clock, every sixth loses reasoning."""
    for number in range(1, turns + 1):
        clock = [finding()] if number % 4 == 0 else []
        reasoning = [stripped(2 * number - 3)] if number % 6 == 0 else []
        yield later(number, *clock, *reasoning)


def mixed() -> Report:
    return report(*session(12), row(id=13, problem="the body is not JSON"), later(14, unclaimed()))


def text(told: Report, width: int | None = None, *, color: bool = False) -> str:
    return REPORT.format(told, width=width, color=color)


def findings(told: Report, width: int | None = None) -> str:
    return text(told, width).partition("findings")[2]


@pytest.mark.parametrize("width", [40, 60, 120])
def test_a_report_reads_as_it_was_found_good_by_eye(width: int) -> None:
    assert text(mixed(), width) == (GOLDEN / f"mixed-{width}.txt").read_text(encoding="utf-8")


def test_the_dearest_finding_comes_first_with_all_that_one_wants_of_it() -> None:
    first, second, third = re.findall(r"^\d\. .*", findings(mixed()), flags=re.MULTILINE)
    assert first == "1. volatile.clock (waste): 3 turns, 129 blocks, 2100 tokens, 525 ms"
    assert second == "2. template.think_strip (expected): 2 turns, 6 blocks, 110 tokens, 28 ms"
    assert third == "3. no known cause (waste): 1 turn; what it costs alone is not known"
    assert "fix this and keep 700 more tokens (175 ms) per turn" in findings(mixed())
    assert "it costs 55 tokens (14 ms) per" in findings(mixed())  # nothing to fix in what is wanted


def test_fields_that_differ_in_an_index_are_one_finding() -> None:
    told = findings(report(later(1), later(2, stripped(3)), later(3, stripped(5, tokens=90))))
    assert told.count("template.think_strip") == 1
    assert "messages[*].reasoning_content (2 places)" in told
    assert "messages[5].reasoning_content char 0 in exchange 3" in told  # the dearer one


def test_an_index_that_is_the_same_in_all_stays() -> None:
    paths = ("messages[1].content[0].text", "messages[1].content[2].text")
    told = findings(report(later(1), *(later(2 + at, finding(path=path)) for at, path in enumerate(paths))))
    assert "messages[1].content[*].text (2 places)" in told


def test_one_cause_in_two_kinds_of_field_is_two_findings() -> None:
    told = findings(
        report(later(1), later(2, finding(), finding(path="tools[0].function.description", tokens=20)))
    )
    assert told.count("volatile.clock (waste)") == 2


def test_no_time_is_told_where_the_capture_shows_no_rate() -> None:
    told = findings(report(later(1), later(2, finding())))
    assert "only 2 of the 6 turns" in told
    assert "700 tokens, ? s" in told


def test_the_absence_of_findings_is_said_and_why() -> None:
    assert "no findings: every turn begins with all that was sent" in text(report(later(1), later(2)))
    assert "no findings: there is nothing to compare" in text(report(later(1)))
    bare = later(2, append=False, divergence=None)
    assert "1 turn left the parent's prompt, and why is not known" in text(report(later(1), bare))


def test_colour_only_repeats_what_is_written() -> None:
    coloured = text(mixed(), 100, color=True)
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured).split() == text(mixed(), 100).split()


@pytest.mark.parametrize("width", [40, 47, 60, 71, 72, 80])
def test_nothing_but_the_opening_runs_over_the_width(width: int) -> None:
    lines = text(mixed(), width).split("\n")[3:]
    assert max(map(cell_len, lines)) <= width
    assert "volatile.clock" in "\n".join(lines)


def test_what_a_prompt_holds_is_shown_and_not_obeyed() -> None:
    sent = finding(
        before=":warning: [bold]x[/bold] \x1b[31m\r\n\u2028 \ud800", after="y", evidence="a\x1b[0mb\nc"
    )
    told = text(report(later(1), later(2, sent)))
    assert ":warning: [bold]x[/bold] \\x1b[31m\\r\\n\\u2028 \\ud800" in told
    assert "\x1b" not in told
    assert "a [0mb c" in told


def test_long_runs_of_appends_are_one_row_in_a_long_report() -> None:
    turns = [later(number, *([finding()] if number in (400, 700) else [])) for number in range(1, 1001)]
    told = text(report(*turns))
    rows = told.partition("reuse: share")[0].split("\n")[4:]
    assert len(rows) < 15
    assert "398 turns that append: nothing lost" in told
    assert "400" in told and "differs from 399" in told
    assert told.rstrip().endswith("keep 700 more tokens (175 ms) per turn")


def test_a_short_report_has_a_row_for_every_turn() -> None:
    rows = text(report(*(later(number) for number in range(1, 51)))).count(" append")
    assert rows == 49


def test_only_the_dearest_dozen_is_told_in_full() -> None:
    many = [finding(path=f"field_{name}", tokens=100 - at) for at, name in enumerate("abcdefghijklmn")]
    told = findings(report(later(1), later(2, *many)))
    assert "12. " in told and "13. " not in told
    assert "2 more findings, 175 tokens in all: see --format json" in told


@pytest.mark.parametrize(
    ("before", "after", "sides"),
    [
        (
            "09:00:47\n\nYou are a coding agent",
            "09:01:34\n\nYou are a coding agent",
            ("09:00:47", "09:01:34"),
        ),
        ("a line more\nand then the rest", "and then the rest", ("a line more\n", "")),
        ("and then the rest", "a line more\nand then the rest", ("", "a line more\n")),
        ("nothing in common", "whatever there is", ("nothing in common", "whatever there is")),
        ("short tail", "brief tail", ("short tail", "brief tail")),
    ],
)
def test_of_two_texts_only_what_differs_is_shown(before: str, after: str, sides: tuple[str, str]) -> None:
    assert differing(before, after) == sides


def test_a_quote_is_never_longer_than_it_may_be() -> None:
    assert quoted("abcdef", 6) == '"abcdef"'
    assert quoted("abcdefg", 6) == '"abcde…"'
    assert len(quoted("\x00" * 50, 10)) == 12


def test_times_have_as_many_digits_as_mean_something() -> None:
    told = [duration(seconds) for seconds in (None, 0.0042, 0.5251, 3.14, 12.6, 119, 300)]
    assert told == ["? s", "4 ms", "525 ms", "3.1 s", "13 s", "119 s", "5.0 min"]
