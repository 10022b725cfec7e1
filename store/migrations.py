"""Numbered steps that bring a database to the shape of `tables`, each applied once.

A step is never edited or removed after a release: the next change is a new step at the end.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Column, Connection, Integer, MetaData, Table, inspect, select

from store import tables

type Step = Callable[[Connection], None]

# Its own MetaData: the list of applied steps must exist before the first of them runs.
applied = Table("locality_migration", MetaData(), Column("number", Integer, primary_key=True))

STEPS: list[Step] = []


def step(function: Step) -> Step:
    """Append `function` to the steps; its number is its place in the list, counted from 1."""
    STEPS.append(function)
    return function


@step
def _first_tables(connection: Connection) -> None:
    tables.metadata.create_all(connection)


@step
def _sealed_captures(connection: Connection) -> None:
    # The first step makes today's tables, so that a new database has it by now.
    tables.sealed.create(connection, checkfirst=True)


@step
def _runs(connection: Connection) -> None:
    tables.run.create(connection, checkfirst=True)


WITH_RUNS = 3
"""Captures from this step on tell of the runs that wrote them."""

OLDEST_READABLE = 1
"""Captures from this step on read as they are: what came later only added tables."""


def version(connection: Connection) -> int | None:
    """Return the highest step applied to this database, 0 for an empty one, None for a stranger's."""
    names = inspect(connection).get_table_names()
    if applied.name not in names:
        return None if names else 0
    return max(connection.scalars(select(applied.c.number)), default=0)


def migrate(connection: Connection) -> int:
    """Apply every step not yet applied, in the caller's transaction; return how many there were."""
    applied.create(connection, checkfirst=True)
    done = set(connection.scalars(select(applied.c.number)))
    missing = [number for number in range(1, len(STEPS) + 1) if number not in done]
    for number in missing:
        STEPS[number - 1](connection)
        connection.execute(applied.insert().values(number=number))
    return len(missing)
