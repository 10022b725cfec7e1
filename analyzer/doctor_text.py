"""What `doctor` found, for a person and as one object: a line a thing, then where this shell sends an agent.

It finds nothing out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyzer.clients import Client
from analyzer.doctor_checks import Result, lacking
from analyzer.doctor_env import Variable
from analyzer.layout import console_of, labelled, printed
from analyzer.no_traffic import client_rows
from analyzer.wording import known, one_line

SCHEMA = "locality-doctor/1"
_STATES = {"found": "+", "hidden": "hidden", "wrong": "wrong", "unknown": "?"}
"""In capitals where the report needs it."""
_LEADS = {
    "proxy": "the proxy",
    "server": "past the proxy, straight to the server",
    "elsewhere": "elsewhere",
    "unset": "not set",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that was found. `asked` is the address that was asked, `proxy` the one that agents are to use.

    `kind` is the engine it says it is, None where it does not, or nothing was asked.
    """

    asked: str | None
    proxy: str | None
    kind: str | None
    version: str | None
    results: Sequence[Result]
    variables: Sequence[Variable]
    detours: Sequence[str]
    clients: Sequence[Client]

    @property
    def pointed(self) -> bool:
        """Whether this shell sends some agent to the proxy."""
        return any(item.where == "proxy" and not item.problem for item in self.variables)


def as_object(diagnosis: Diagnosis) -> dict[str, Any]:
    """The same as one JSON object."""
    return {
        "schema": SCHEMA,
        "asked": diagnosis.asked,
        "proxy": diagnosis.proxy,
        "engine": diagnosis.kind,
        "version": diagnosis.version,
        "checks": [_row(result) for result in diagnosis.results],
        "variables": [asdict(item) for item in diagnosis.variables],
        "problems": list(diagnosis.detours),
        "clients": [asdict(client) for client in diagnosis.clients],
    }


def _row(result: Result) -> dict[str, Any]:
    check, seen = result.check, result.seen
    return {
        "name": check.name,
        "state": seen.state,
        "told": seen.told,
        "needed": check.needed,
        "good_for": check.good_for,
        "remedy": check.remedy,
    }


def diagnosis_text(diagnosis: Diagnosis, *, width: int | None, color: bool) -> str:
    """All of it as text."""
    console = console_of(width, color=color)
    if diagnosis.results:
        _print_checks(console, diagnosis)
        console.print()
    _print_ways(console, diagnosis)
    return printed(console)


def _print_checks(console: Console, diagnosis: Diagnosis) -> None:
    named = diagnosis.kind or "a server that does not say what it is"
    version = f" {diagnosis.version}" if diagnosis.version else ""
    console.print(one_line(f"{diagnosis.asked}: {named}{version}"), style="bold")
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading, ratio in (("", None), ("what", None), ("seen", 2), ("good for → what reveals it", 5)):
        table.add_column(heading, ratio=ratio, no_wrap=ratio is None, overflow="fold")
    for result in diagnosis.results:
        table.add_row(*(Text(one_line(cell)) for cell in _cells(result)))
    console.print(table)
    console.print(_verdict(diagnosis.results), style="bold")


def _cells(result: Result) -> tuple[str, ...]:
    check, seen = result.check, result.seen
    state = _STATES[seen.state].upper() if check.needed else _STATES[seen.state]
    remedy = "" if seen.state == "found" else f" → {check.remedy}"
    return state, check.title, seen.told, f"{check.good_for}{remedy}"


def _verdict(results: Sequence[Result]) -> str:
    lost = lacking(results)
    unsure = [item.check.title for item in results if item.check.needed and item.seen.state == "unknown"]
    if lost:
        return f"the report lacks: {', '.join(item.check.title for item in lost)}"
    if unsure:
        return f"nothing that the report needs is known to be hidden; not known: {', '.join(unsure)}"
    return "all that the report needs is there"


def _print_ways(console: Console, diagnosis: Diagnosis) -> None:
    to = f", to the proxy at {diagnosis.proxy}" if diagnosis.proxy else ""
    console.print(one_line(f"where this shell sends an agent{to}:"), style="bold")
    console.print(labelled([(item.name, _led(item, diagnosis)) for item in diagnosis.variables]))
    for line in diagnosis.detours:
        console.print(one_line(line))
    if not diagnosis.pointed:
        console.print()
        console.print("where each client reads its base URL:", style="bold")
        console.print(labelled(list(client_rows(diagnosis.clients))))


def _led(item: Variable, diagnosis: Diagnosis) -> str:
    if item.where == "unset":
        return _LEADS[item.where]
    where = (
        _LEADS[item.where] if diagnosis.proxy or item.where != "elsewhere" else "give --proxy URL to compare"
    )
    problem = f"; it {item.problem}" if item.problem else ""
    return f"{known(item.url)}: {where}{problem}"
