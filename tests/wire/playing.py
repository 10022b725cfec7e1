"""Plays random sessions through a real proxy, and tells where its ends and its capture differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from store.db import Capture
from store.records import Exchange
from tests.conftest import proxy
from tests.wire import rules
from tests.wire.client import Client
from tests.wire.generate import MOST, Session
from tests.wire.scripts import NUMBER, Script
from tests.wire.upstream import ScriptedUpstream


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """One rule that one exchange did not keep. Its session can be played again alone."""

    script: Script
    rule: str
    how: str

    def __str__(self) -> str:
        what = "recorded" if self.script.recorded else "not recorded"
        return (
            f"seed {self.script.number // MOST}, exchange {self.script.number} ({self.script.kind},"
            f" {self.script.method.decode()}, {what}): {self.rule}: {self.how[:300]}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What became of all sessions: the rules broken, the exchanges played, the proxy's last words."""

    broken: list[Broken]
    exchanges: int
    status: int
    said: str


def play(sessions: Sequence[Session], folder: Path) -> Played:
    """Play them through a proxy of their own."""
    capture = folder / "wire.sqlite"
    with ScriptedUpstream() as upstream, proxy(upstream.url, capture) as listening:
        client = Client(listening.url, upstream)
        client.play_all(sessions)
        status = listening.stop()
        records = _records(capture)
        broken = list(_judged(sessions, client, upstream, records))
        return Played(broken=broken, exchanges=len(client.got), status=status, said=listening.said)


def _records(capture: Path) -> dict[int, list[Exchange]]:
    found: dict[int, list[Exchange]] = {}
    name = NUMBER.decode().lower()
    with Capture.open(str(capture)) as opened:
        for exchange in opened.exchanges():
            number = next(value for key, value in exchange.request_headers if key.lower() == name)
            found.setdefault(int(number), []).append(exchange)
    return found


def _judged(
    sessions: Sequence[Session],
    client: Client,
    upstream: ScriptedUpstream,
    records: dict[int, list[Exchange]],
) -> Iterator[Broken]:
    host = urlsplit(upstream.url).netloc.encode()
    for script in (script for session in sessions for script in session.scripts):
        got = client.got.get(script.number)
        if got is None:  # an exchange before it on this connection is judged already
            continue
        differences = [
            *rules.request_differences(script, upstream.got.get(script.number), host),
            *rules.answer_differences(script, got),
            *rules.leaving_differences(
                script, client.left_at.get(script.number), upstream.left_at.get(script.number)
            ),
            *rules.record_differences(script, got, records.get(script.number, [])),
        ]
        if script.number in upstream.again:
            differences.append(("request", "came twice"))
        for rule, how in differences:
            yield Broken(script=script, rule=rule, how=how)
