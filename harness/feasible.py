"""Seeds that the simulator's expert solves: how a bank is made, and what runs without one.

A scene that cannot be solved says nothing about a policy, so RoboTwin-like benchmarks skip it. That
search belongs before a run: while a run scores, what is found would depend on who was first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.population import Cell

#: Whether the expert solves each of these seeds (``SimulatorProcess.check``).
Check = Callable[[Cell, Sequence[int]], Sequence[bool]]

#: Where RoboTwin's own scan begins (its ``seed`` 0).
FIRST_SEED = 100_000
#: Seeds tried for each one wanted, before a cell is given up.
MAX_TRIES = 4


def find(check: Check, cell: Cell, first: int, count: int) -> tuple[list[int], int]:
    """Up to ``count`` solvable seeds from ``first`` upwards, and how many were tried.

    Fewer are found where the expert solves less than one in ``MAX_TRIES``.
    """
    found: list[int] = []
    tried = 0
    while len(found) < count and tried < MAX_TRIES * count:
        block = range(first + tried, first + tried + count - len(found))
        verdicts = check(cell, block)
        found += [seed for seed, solved in zip(block, verdicts, strict=True) if solved]
        tried += len(block)
    return found, tried
