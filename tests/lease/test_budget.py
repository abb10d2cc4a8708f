"""Decisions from rows: independent of order and repetition."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.foundations.records import Row
from harness.leases.budget import Budget, Streak
from harness.leases.decisions import RESET, RETRY, Decisions, decide
from tests.lease.scripted import manifest, row

BANK = manifest("a", 9)


def made(
    attempt: int, outcome: str, kind: str = "crash", worker: str = "h1-1", shared: bool = False
) -> Row:
    plain = row(BANK, 0, attempt, worker, outcome, kind)
    return (
        replace(plain, error={**plain.error, "shared": True}) if shared and plain.error else plain
    )


def budget(*rows: Row, retries: int = 2) -> Budget:
    filled = Budget(retries=retries, lost_retries=4)
    for each in rows:
        filled.add(each)
    return filled


ROWS = st.builds(
    made,
    st.integers(1, 8),
    st.sampled_from(["error"] * 9 + ["fail"]),
    st.sampled_from(["crash", "lost", "timeout"]),
    st.sampled_from(["h1-1", "h1-2", "h2-3"]),
    st.booleans(),
)


@given(st.lists(ROWS, max_size=12), st.sampled_from([0, 1, 2]))
def test_the_last_try_is_the_one_whose_error_sets_the_episode_aside(
    rows: list[Row], retries: int
) -> None:
    attempt = 1 + max((row.attempt for row in rows), default=0)
    before = budget(*rows, retries=retries)
    after = [
        budget(*rows, made(attempt, "error", kind), retries=retries) for kind in ("crash", "lost")
    ]
    if before.failed(BANK.hash, 0) and not before.over(BANK.hash, 0):
        over = any(each.over(BANK.hash, 0) for each in after)
        assert before.last_try(BANK.hash, 0) == over
    elif not before.failed(BANK.hash, 0):
        assert not before.last_try(BANK.hash, 0)


@given(st.lists(ROWS, max_size=12), st.randoms(use_true_random=False))
def test_order_and_repetition_change_nothing(rows: list[Row], chance: random.Random) -> None:
    shuffled = rows + chance.sample(rows, len(rows) // 2)
    chance.shuffle(shuffled)
    for question in ("settled", "attempts", "quarantined", "over", "failed", "error_hosts"):
        asked = [getattr(budget(*some), question)(BANK.hash, 0) for some in (rows, shuffled)]
        assert asked[0] == asked[1], question


def test_three_errors_set_an_episode_aside_with_its_reasons() -> None:
    errors = [made(1, "error"), made(2, "error", "timeout", "h2-1"), made(3, "error")]
    assert budget(*errors[:2]).quarantined(BANK.hash, 0) is None
    reason = budget(*errors).quarantined(BANK.hash, 0)
    assert reason == "3 errors (crash x2, timeout x1) on h1, h2; the last: as scripted"


def test_no_episode_is_set_aside_for_what_may_be_anothers_error() -> None:
    shared, alone = made(1, "error", shared=True), made(2, "error")
    once = budget(shared, retries=0)
    assert once.quarantined(BANK.hash, 0) is None and once.last_try(BANK.hash, 0)
    for second in (alone, made(2, "error", shared=True)):
        assert budget(shared, second, retries=0).quarantined(BANK.hash, 0)
    assert budget(alone, retries=0).quarantined(BANK.hash, 0)


def test_an_outcome_settles_whatever_went_wrong() -> None:
    errors = [made(attempt, "error") for attempt in range(1, 9)]
    settled = budget(*errors, made(2, "fail"))
    assert settled.settled(BANK.hash, 0)
    assert settled.quarantined(BANK.hash, 0) is None
    assert settled.over(BANK.hash, 0)


def test_deaths_have_a_budget_of_their_own() -> None:
    deaths = [made(attempt, "error", "lost") for attempt in range(1, 6)]
    assert budget(*deaths[:4]).quarantined(BANK.hash, 0) is None
    assert budget(*deaths).quarantined(BANK.hash, 0)
    assert budget(*deaths).error_hosts(BANK.hash, 0) == set()


def test_one_attempt_spends_once_and_the_owners_word_goes_before_its_death() -> None:
    late = budget(made(1, "error", "lost", "h2-1"), made(1, "error", "timeout"))
    assert late.error_hosts(BANK.hash, 0) == {"h1"}
    assert late.has(BANK.hash, 0, 1)
    assert not late.has(BANK.hash, 0, 2)
    tried = [made(n, "error", kind, f"h{n}-1") for n in (1, 2, 3) for kind in ("crash", "lost")]
    assert "crash x3" in str(budget(*tried).quarantined(BANK.hash, 0))
    assert budget(made(1, "fail")).has(BANK.hash, 0, 2)  # an outcome needs no word of a death


def test_what_people_decided_is_of_attempts(tmp_path: Path) -> None:
    decisions = Decisions(tmp_path)
    decide(tmp_path, RESET, {(BANK.hash, 0): 3}, "me")
    decide(tmp_path, RETRY, {(BANK.hash, 0): 4}, "me")
    decisions.refresh()
    told = Budget(retries=2, lost_retries=4, decisions=decisions)
    told.add(made(4, "error"))
    assert told.error_hosts(BANK.hash, 0) == set()  # forgiven: its host may try again
    assert [told.has(BANK.hash, 0, attempt) for attempt in (3, 4, 5)] == [True, True, False]
    for late in (made(5, "fail"), made(2, "fail")):  # of after the reset, then of before
        told.add(late)
    assert told.settled(BANK.hash, 0)


def test_a_worker_that_fails_everywhere_is_told_so() -> None:
    streak, verdicts = Streak(episodes=3, tasks=2), []
    for task, position, outcome in (
        ("a", 0, "error"), ("a", 0, "error"), ("a", 1, "error"), ("a", 2, "error"),
        ("b", 0, "error"), ("c", 0, "fail"), ("d", 0, "error"),
    ):  # fmt: skip
        failed = row(BANK, position, 1, "h1-1", outcome, "crash")
        streak.add(replace(failed, task=task, manifest=task))
        verdicts.append(streak.verdict)
    reason = "4 episodes of 2 tasks in a row ended in error (crash)"
    assert verdicts == [None, None, None, None, reason, None, None]


def test_what_the_policy_raises_is_no_workers_fault() -> None:
    streak = Streak(episodes=1, tasks=1)
    streak.add(row(BANK, 0, 1, "h1-1", "error", "policy"))
    assert streak.verdict is None


def test_two_hosts_that_failed_in_one_attempt_have_both_had_their_try() -> None:
    both = budget(made(1, "error"), made(1, "error", worker="h2-1"))
    assert both.error_hosts(BANK.hash, 0) == {"h1", "h2"}
    assert both.quarantined(BANK.hash, 0) is None
