"""The report as one page that needs nothing else: no network, no script, no file beside it.

It shows what the report for people in a terminal shows, with a bar a turn; words are the helpers' own. The
layout is in `report.html.jinja`, into which every text goes escaped and on one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analyzer.finding_groups import finding_groups
from analyzer.finding_words import label, rate_line
from analyzer.report import Report, Summary, Turn
from analyzer.reports._findings import MOST_SHOWN, cost, details, left, none
from analyzer.reports._opening import LEGEND, notes, opening
from analyzer.reports._pool_sweep import sweep_rows, sweep_story
from analyzer.reports._rows import Cells, rows_of
from analyzer.wording import known, one_line

TEMPLATE = "report.html.jinja"
BAR_WIDTH = 150

_SEALED = "sealed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A prompt's tokens as lengths: kept, lost to blocks of the parent that cannot be used, and new.

    Tokens that are lost count as far as this prompt is long. `hit` is where the server's own hit ends.
    """

    kept: float
    lost: float
    new: float
    hit: float | None
    meaning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: its cells, where its count comes from and how it stands, and its bar."""

    cells: Cells
    source: str
    bar: Bar | None
    doubtful: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One of the numbers at the head."""

    value: str
    meaning: str


class HtmlReport:
    """One page for a browser, with nothing beside it: to read, to print, to hand on."""

    name = "html"

    def format(self, report: Report, *, width: int | None, color: bool) -> str:
        """The page; width and color are a terminal's."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("analyzer", "reports"),
            autoescape=True,
            finalize=lambda value: one_line(known(value)),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        groups = finding_groups(report.turns)
        page: str = environment.get_template(TEMPLATE).render(
            report=report,
            opening=list(opening(report)),
            figures=list(_figures(report.summary)),
            groups=[(label(group.finding), cost(group), details(group)) for group in groups[:MOST_SHOWN]],
            rate=rate_line(report.summary.prefill_rate),
            left=list(left(report, groups)) if groups else [none(report)],
            rows=list(_rows(report.turns)),
            bar_width=BAR_WIDTH,
            legend=LEGEND.split(" · "),
            notes=list(notes(report)),
            sweep=_sweep(report),
            privacy=_privacy(report),
        )
        return page


def _figures(summary: Summary) -> Iterator[Figure]:
    yield Figure(value=f"{known(summary.reusable_prefix_pct)} %", meaning="of the prompt tokens reusable")
    yield Figure(value=_grouped(summary.recomputed_tokens), meaning="tokens computed again")
    yield Figure(value=_grouped(summary.invalidated_blocks), meaning="blocks lost")
    yield Figure(
        value=f"{summary.rendering_exact} / {summary.rendered}",
        meaning="renderings exact, by the server's own count",
    )
    yield Figure(
        value=f"{summary.cache_exact} / {summary.cache_reported}", meaning="reported hits predicted exactly"
    )


def _grouped(number: int | None) -> str:
    return known(None) if number is None else f"{number:,}"


def _rows(turns: Sequence[Turn]) -> Iterator[Row]:
    longest = max((turn.prompt_tokens or 0 for turn in turns), default=0)
    for cells, turn in rows_of(turns):
        yield Row(
            cells=cells,
            source=f"{known(turn.token_source)}, {known(turn.rendering)}",
            bar=_bar(turn, longest),
            doubtful=turn.rendering == "mismatch" or turn.problem is not None,
        )


def _bar(turn: Turn, longest: int) -> Bar | None:
    """None where it is not known how long the prompt is, or what of it was kept."""
    tokens, size = turn.prompt_tokens, turn.block_size
    kept, lost = turn.reusable_tokens, turn.invalidated_blocks
    if turn.parent is None:
        kept = lost = 0
    if not tokens or kept is None or lost is None or size is None:
        return None
    lost_tokens = min(lost * size, tokens - kept)
    new = tokens - kept - lost_tokens
    hit = turn.reported_cached_tokens
    scale = BAR_WIDTH / longest
    return Bar(
        kept=round(kept * scale, 1),
        lost=round(lost_tokens * scale, 1),
        new=round(new * scale, 1),
        hit=None if hit is None else round(min(hit, tokens) * scale, 1),
        meaning=f"{kept} tokens kept, {lost_tokens} lost, {new} new; the server hit {known(hit)}",
    )


def _sweep(report: Report) -> dict[str, object] | None:
    sweep, today = report.pool_sweep, report.server.pool_blocks
    if sweep is None:
        return None
    return {
        "rows": list(sweep_rows(sweep, today)),
        "story": sweep_story(sweep, today),
        "assumed": sweep.assumed,
    }


def _privacy(report: Report) -> str:
    if report.quotes:
        return (
            "This page quotes prompts and answers, in its places, findings and problems: give it to those who"
            " may read them. report --no-text makes one that quotes nothing."
        )
    if report.redaction == _SEALED:
        return "Made from a sealed capture: nothing of a prompt or an answer is quoted."
    return "Nothing of a prompt or an answer is quoted."


REPORT = HtmlReport()
