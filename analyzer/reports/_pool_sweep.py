"""What other sizes of the pool would hit, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analyzer.report import PoolSweep
from analyzer.wording import UNKNOWN, counted, known


def print_sweep(console: Console, sweep: PoolSweep, today: int | None) -> None:
    """A row a size, then what a larger pool and better prompts would each give at most."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("pool blocks", "hit tokens", "hit rate"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("")
    for cells in sweep_rows(sweep, today):
        table.add_row(*cells)
    console.print(table)
    console.print(Text(sweep_story(sweep, today)))
    for assumption in sweep.assumed:
        console.print(Text(f"pool sizes assume: {assumption}"))


def sweep_rows(sweep: PoolSweep, today: int | None) -> Iterator[tuple[str, str, str, str]]:
    """Blocks, tokens, rate and meaning of each size."""
    for size in sweep.sizes:
        told = {
            "today": size.pool_blocks == today,
            "too small for the largest request": size.pool_blocks < sweep.smallest_pool_blocks,
            "the largest request just fits": size.pool_blocks == sweep.smallest_pool_blocks,
            "a larger pool gains nothing": size.pool_blocks == sweep.saturated_pool_blocks,
        }
        meaning = "; ".join(words for words, applies in told.items() if applies)
        rate = f"{known(size.hit_pct)} %"
        yield str(size.pool_blocks), known(size.hit_tokens), rate, meaning


def sweep_object(sweep: PoolSweep | None) -> dict[str, Any]:
    """The sizes, and beside them what they are to be seen against; null where nobody asked."""
    if sweep is None:
        return {"pool_sweep": None, "pool_sweep_against": None}
    sizes = [
        {"pool_blocks": size.pool_blocks, "hit_pct": size.hit_pct, "hit_tokens": size.hit_tokens}
        for size in sweep.sizes
    ]
    against = {
        "prompt_tokens": sweep.prompt_tokens,
        "smallest_pool_blocks": sweep.smallest_pool_blocks,
        "saturated_pool_blocks": sweep.saturated_pool_blocks,
        "unlimited": {"hit_pct": sweep.unlimited_hit_pct, "hit_tokens": sweep.unlimited_hit_tokens},
        "append": {"hit_pct": sweep.append_hit_pct, "hit_tokens": sweep.append_hit_tokens},
        "assumed": list(sweep.assumed),
    }
    return {"pool_sweep": sizes, "pool_sweep_against": against}


def sweep_story(sweep: PoolSweep, today: int | None) -> str:
    """What a larger pool and better prompts would each give at most."""
    now = next((size.hit_pct for size in sweep.sizes if size.pool_blocks == today), None)
    larger = _points(now, sweep.unlimited_hit_pct)
    better = _points(sweep.unlimited_hit_pct, sweep.append_hit_pct)
    return (
        f"hit rate, of {counted(sweep.prompt_tokens, 'prompt token')}: {known(now)} % today · "
        f"{known(sweep.unlimited_hit_pct)} % in a pool without limit ({larger} by a larger pool, at most) · "
        f"{known(sweep.append_hit_pct)} % in one if every turn kept all of its parent's prompt "
        f"({better} by better prompts, at most)"
    )


def _points(before: float | None, after: float | None) -> str:
    return UNKNOWN if before is None or after is None else f"+{after - before:.1f} points"
