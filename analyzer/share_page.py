"""A sealed report's page as it is with nothing in it that a client said: what of its words is our own.

What may stay is listed from the code: labels, counts, what the server said, paths in the endpoints' words.
"""

from __future__ import annotations

import re
from dataclasses import replace

from analyzer.core import Divergence, Finding
from analyzer.registry import plugins
from analyzer.report import Report, SecretCount, Turn
from analyzer.sealed_rows import EVIDENCE
from analyzer.structure_words import OWN
from store.records import ENDPOINTS

_MARKS = re.compile(r"[.\[\]]+")
_STANDS_FOR_A_KEY = re.compile(r"<[0-9a-f]{16}>")


def page_of(report: Report) -> str:
    """The report as one page for a browser."""
    page: str = plugins("reports")["html"].format(report, width=None, color=False)
    return page


def own_page(report: Report) -> str:
    """The same page without all that a client may have said."""
    secrets = None if report.secrets is None else tuple(map(_secret, report.secrets))
    return page_of(replace(report, turns=tuple(map(_turn, report.turns)), secrets=secrets, problems=()))


def _turn(turn: Turn) -> Turn:
    return replace(
        turn,
        model=None,
        path=turn.path if turn.path in ENDPOINTS else "",
        problem=turn.reason,
        divergence=None if turn.divergence is None else _divergence(turn.divergence),
        findings=tuple(map(_finding, turn.findings)),
    )


def _divergence(divergence: Divergence) -> Divergence:
    return replace(divergence, path=_own(divergence.path), before=None, after=None)


def _finding(finding: Finding) -> Finding:
    known = finding.cause if finding.cause in plugins("causes") else None
    return replace(
        finding,
        cause=known,
        path=_own(finding.path),
        before=None,
        after=None,
        evidence=EVIDENCE if finding.evidence else finding.evidence,
        advice=None,
    )


def _secret(item: SecretCount) -> SecretCount:
    return replace(item, path=_own(item.path) or "")


def _own(path: str | None) -> str | None:
    steps = _MARKS.split(path or "")
    own = all(
        step in OWN or not step or step.isdigit() or _STANDS_FOR_A_KEY.fullmatch(step) for step in steps
    )
    return path if own or path == "template" else None
