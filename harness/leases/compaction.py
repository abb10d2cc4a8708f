"""Fewer files for leases that have done their service: a name a range instead of two a claim.

Promises: safe while workers run (see LEASES.md, "Compaction"); rows are never touched; repeated or
interrupted anywhere, nothing is lost, since rows alone decide what is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.leases.standing import Standing


def compact(
    standings: Sequence[Standing], news: Callable[[], object],
    say: Callable[[str], None] = lambda text: None,
) -> int:  # fmt: skip
    """Compact every shard of which all that was claimed is over; returns how many names went.

    Args:
        news: takes in what people have decided by now.
    """
    removed = 0
    for standing in standings:
        book = standing.book
        # First the names, then what gives them their meaning: a claim that is listed may have been
        # made by somebody who had just heard of a decision.
        found = {shard: book.refresh(shard) for shard in sorted(book.touched())}
        news()
        standing.load()
        over = standing.recorded_over
        here = sum(book.compact(shard, names, over) for shard, names in found.items())
        if here:
            say(f"{standing.book.cell_dir}: {here} names fewer")
        removed += here
    return removed
