"""Fewer files for leases that have done their service: a name a range instead of two a claim.

Promises: safe while workers run (see LEASES.md, "Compaction"); rows are never touched; repeated or
interrupted anywhere, nothing is lost, since rows alone decide what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.standing import Standing


def compact(standings: Sequence[Standing], say: Callable[[str], None] = lambda text: None) -> int:
    """Compact every shard of which all that was claimed is over; returns how many names went."""
    removed = 0
    for standing in standings:
        shards = standing.book.touched()
        for shard in sorted(shards):
            standing.book.refresh(shard)
        standing.load()
        here = sum(standing.book.compact(shard, standing.recorded_over) for shard in sorted(shards))
        if here:
            say(f"{standing.book.cell_dir}: {here} names fewer")
        removed += here
    return removed
