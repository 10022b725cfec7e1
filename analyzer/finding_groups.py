"""Puts findings of many turns together that one remedy fits: same cause, same field but for its index.

It adds up; words are others'. A cause's total over all its fields is `analyzer.cause_totals`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from analyzer.core import Finding
from analyzer.report import Turn

_INDEX = re.compile(r"\[\d+\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingGroup:
    """Findings of one cause in one kind of field. `turn` holds the dearest of them, which is `finding`.

    `path` has `[*]` where the fields differ in an index; `places` is how many fields they are. `tokens`,
    `blocks` and `seconds` are sums of what is known, None where nothing is.
    """

    cause: str | None
    kind: str | None
    path: str | None
    places: int
    expected: bool
    turns: int
    tokens: int | None
    blocks: int | None
    seconds: float | None
    turn: Turn
    finding: Finding

    @property
    def tokens_a_turn(self) -> int | None:
        """What a turn that has it loses to it, on average."""
        return None if self.tokens is None else round(self.tokens / self.turns)

    @property
    def seconds_a_turn(self) -> float | None:
        """The same in time."""
        return None if self.seconds is None else self.seconds / self.turns


def finding_groups(turns: Iterable[Turn]) -> list[FindingGroup]:
    """All findings in groups, the dearest first."""
    members: dict[tuple[str | None, str | None, str | None, bool], list[tuple[Turn, Finding]]]
    members = defaultdict(list)
    for turn in turns:
        for finding in turn.findings:
            members[finding.cause, finding.kind, pattern_of(finding.path), finding.expected].append(
                (turn, finding)
            )
    groups = [_group(found) for found in members.values()]
    return sorted(groups, key=lambda group: (-(group.tokens or 0), -group.turns, group.cause or ""))


def pattern_of(path: str | None) -> str | None:
    """A path without the numbers of its indices."""
    return None if path is None else _INDEX.sub("[*]", path)


def _group(found: list[tuple[Turn, Finding]]) -> FindingGroup:
    turn, dearest = max(found, key=lambda pair: pair[1].tokens or 0)
    findings = [finding for _, finding in found]
    paths = {finding.path for finding in findings}
    return FindingGroup(
        cause=dearest.cause,
        kind=dearest.kind,
        path=dearest.path if len(paths) == 1 else _shared(paths),
        places=len(paths),
        expected=dearest.expected,
        turns=len({(turn.id, turn.prompt_index) for turn, _ in found}),
        tokens=_sum(finding.tokens for finding in findings),
        blocks=_sum(finding.blocks for finding in findings),
        seconds=_sum(finding.seconds for finding in findings),
        turn=turn,
        finding=dearest,
    )


def _shared(paths: set[str | None]) -> str | None:
    """The paths as one, with `[*]` for each index that is not the same in all of them."""
    numbers = [_INDEX.findall(path) for path in paths if path is not None]
    same = [indices[0] if len(set(indices)) == 1 else "[*]" for indices in zip(*numbers, strict=True)]
    left = iter(same)
    return _INDEX.sub(lambda _: next(left), next(path for path in paths if path is not None))


def _sum[N: (int, float)](numbers: Iterable[N | None]) -> N | None:
    known = [number for number in numbers if number is not None]
    return sum(known[1:], known[0]) if known else None
