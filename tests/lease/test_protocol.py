"""The whole protocol, real code on a disk in memory, through seeded random histories.

The same cluster is driven by hypothesis in test_machine.py, which shrinks what it finds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from harness.leases.decisions import RESET, RETRY, SKIP
from tests.lease.worker import INTERVAL, TTL, Worker, clean
from tests.lease.world import World


def calm_history(world: World, seed: int) -> None:
    """Workers come at any time and take turns in any order; everybody may sleep at once."""
    chance = random.Random(seed)
    for _ in range(chance.randint(20, 250)):
        roll = chance.random()
        if not world.workers or (roll < 0.05 and working(world.workers) < 4):
            world.start(chance.choice(("h1", "h2")), chance.choice((1, 1, 2, 3, 0)))
        elif roll < 0.25:
            world.advance()
        elif roll < 0.28:
            world.everyone_sleeps(chance.choice((TTL / 3, 3 * TTL)))
        elif roll < 0.285:
            world.start("h1", program=clean)
        else:
            worker = chance.choice(world.workers)
            for _ in range(chance.randint(1, 6)):
                world.step(worker)
    world.settle_down()


def working(workers: Sequence[Worker]) -> int:
    return sum(worker.program is not clean for worker in workers)


def disturbed_history(world: World, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(20, 250)):
        roll = chance.random()
        living = [worker for worker in world.workers if worker.living]
        if not living or (roll < 0.05 and working(living) < 4):
            world.start(chance.choice(("h1", "h2")), chance.choice((1, 1, 2, 3, 0)))
        elif roll < 0.25:
            world.advance()
        elif roll < 0.28:
            world.everyone_sleeps(chance.choice((TTL / 3, 3 * TTL)))
        elif roll < 0.35:
            disturb(world, chance.choice(living), chance)
        else:
            worker = chance.choice(living)
            for _ in range(chance.randint(1, 6)):
                world.step(worker)
    world.settle_down()


def waiting_history(world: World, seed: int) -> None:
    """One waits for what others hold; nobody dies, but all may sleep at once."""
    chance = random.Random(seed)
    holders = [world.start("h1") for _ in range(8)]
    for holder in holders:
        for _ in range(100):
            if holder.at == "run":
                break
            world.step(holder)
    waiting = world.start("h2")
    for _ in range(chance.randint(40, 120)):
        if chance.random() < 0.1:
            world.everyone_sleeps(chance.choice((TTL / 3, 3 * TTL)))
        else:
            world.advance()
        for _ in range(chance.randint(1, 8)):
            world.step(waiting)
    world.settle_down()


def late_history(world: World, seed: int) -> None:
    """A worker freezes between its last check and its row, and writes it when all is over."""
    late = world.start("h1")
    for _ in range(1 + seed):
        world.step(late)
        while late.living and late.at != "record":
            world.step(late)
    world.freeze(late)
    other = world.start("h2")
    for count in range(5000):
        if not other.living:
            break
        world.step(other)
        world.advance(INTERVAL if count % 4 == 0 else 0.0)
    assert not other.living
    world.settle_down()


KINDS = (
    "kill", "freeze", "freeze", "thaw", "thaw", "lose", "hide", "remove", "decide", "clean",
)  # fmt: skip


def disturb(world: World, worker: Worker, chance: random.Random) -> None:
    what = chance.choice(KINDS)
    if what == "kill":
        world.kill(worker)
    elif what == "freeze":
        world.freeze(worker)
        for _ in range(chance.choice((3, 15))):
            world.advance(INTERVAL)
    elif what == "thaw":
        worker.frozen = False
    elif what == "lose":
        world.lose_answer(worker, chance.choice(("error", "exists")))
    elif what == "decide":
        bank = chance.choice(world.manifests)
        do = chance.choice((RETRY, SKIP, RESET, RESET))
        world.decide(do, bank, chance.randrange(bank.selected))
    elif what == "clean":
        world.start("h2", program=clean)
    elif chance.random() < 0.3:
        world.hide(chance) if what == "hide" else world.remove_leases()


def many(fast: int, slow: int) -> pytest.MarkDecorator:
    seeds = [*range(fast), *(pytest.param(s, marks=pytest.mark.slow) for s in range(fast, slow))]
    return pytest.mark.parametrize("seed", seeds)


@many(25, 300)
def test_calm(seed: int) -> None:
    world = World(scripted_errors={2: 1, 5: 9} if seed % 2 else {})
    try:
        calm_history(world, seed)
        assert world.disturbances == 0
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(5))
def test_what_others_hold_is_waited_for(seed: int) -> None:
    world = World()
    try:
        waiting_history(world, seed)
        assert world.disturbances == 0
    finally:
        world.close()


@many(50, 1700)
def test_disturbed(seed: int) -> None:
    world = World(scripted_errors={2: 1, 5: 9} if seed % 2 else {})
    try:
        disturbed_history(world, seed)
    finally:
        world.close()


@many(15, 300)
@pytest.mark.parametrize("history", [calm_history, disturbed_history])
def test_workers_of_several_seats(history: Callable[[World, int], None], seed: int) -> None:
    errors = {2: 1, 5: 9} if seed % 2 else {}
    world = World((8, 5), scripted_errors=errors, seats=(2, 1, 3))
    try:
        history(world, seed)
        assert history is disturbed_history or world.disturbances == 0
    finally:
        world.close()


@pytest.mark.parametrize("seed", range(3))
def test_a_row_that_comes_too_late_changes_no_table(seed: int) -> None:
    world = World(scripted_errors=dict.fromkeys(range(6), 1))
    try:
        late_history(world, seed)
        outcomes = [r.outcome for r in world.rows if r.task == "task_a" and r.position == seed]
        assert outcomes == ["error", world.expected(seed), "error"]  # lost, another's, its own
    finally:
        world.close()
