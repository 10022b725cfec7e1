"""A report without any text of a prompt: what is left are places, lengths, kinds and labels.

What a client chose is text too: the keys of its schemas and arguments, inside paths. Sentences that may
quote (an error of the server, a template's complaint, advice) are left out whole: nobody can tell by looking
at them which of their words were sent.
"""

from __future__ import annotations

import re
from dataclasses import replace

from analyzer.core import Divergence, Finding
from analyzer.notes import TEMPLATE_ERROR, TEMPLATE_FAILED
from analyzer.report import Note, Report, SecretCount, Turn
from analyzer.vocabulary import WITHHELD, Keys

_KIND = re.compile(r"[a-z_]+(?:\.[a-z_]+)*")


def without_text(report: Report) -> Report:
    """The same report, and nothing in it that was sent to the server as part of a prompt."""
    keys = Keys()
    return replace(
        report,
        turns=tuple(_turn(turn, report, keys) for turn in report.turns),
        problems=tuple(_sayable(problem, report) for problem in report.problems),
        secrets=None if report.secrets is None else tuple(_secret(item, keys) for item in report.secrets),
        quotes=False,
    )


def _turn(turn: Turn, report: Report, keys: Keys) -> Turn:
    return replace(
        turn,
        # A model's name is no prompt, but a client may write anything there: the server's own word is safe.
        model=turn.model if turn.model in (None, report.server.model) else WITHHELD,
        problem=_problem(turn, report),
        divergence=None if turn.divergence is None else divergence_without_text(turn.divergence, keys),
        findings=tuple(finding_without_text(finding, keys) for finding in turn.findings),
        notes=tuple(_note(note) for note in turn.notes),
    )


def _secret(item: SecretCount, keys: Keys) -> SecretCount:
    return replace(item, path=keys.path(item.path) or "") if item.part == "body" else item


def _problem(turn: Turn, report: Report) -> str | None:
    if turn.problem is None or turn.problem == turn.reason:
        return turn.problem
    quoting = turn.problem if turn.reason is None else turn.problem.removesuffix(f"; {turn.reason}")
    return "; ".join(part for part in (_sayable(quoting, report), turn.reason) if part)


def _note(note: Note) -> Note:
    """A note is the program's own sentence, but for the template's complaint."""
    return replace(note, text=withheld(note.text)) if note.label == TEMPLATE_ERROR else note


def divergence_without_text(divergence: Divergence, keys: Keys) -> Divergence:
    """The same place, its path in the endpoint's words."""
    return replace(divergence, path=keys.path(divergence.path), before=None, after=None)


def finding_without_text(finding: Finding, keys: Keys) -> Finding:
    """The same finding without what it quotes or may quote."""
    return replace(
        finding,
        kind=finding.kind if finding.kind and _KIND.fullmatch(finding.kind) else None,
        path=keys.path(finding.path),
        before=None,
        after=None,
        evidence=None,
        advice=None,
    )


def _sayable(sentence: str, report: Report) -> str:
    own = sentence == report.missing or sentence in report.completeness.sentences
    return sentence if own else withheld(sentence)


def withheld(sentence: str) -> str:
    """What is said in the place of a sentence that may quote; that a template failed may be said."""
    kind = f"{TEMPLATE_FAILED}; " if sentence.startswith(TEMPLATE_FAILED) else ""
    return f"{kind}{WITHHELD}: {len(sentence)} characters that may quote the prompt"
