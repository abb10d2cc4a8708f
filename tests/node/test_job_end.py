"""When a worker begins no further episode."""

from __future__ import annotations

from harness.foundations.job_end import MARGIN_S, JobEnd


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_without_an_end_or_a_measure_there_is_no_verdict() -> None:
    endless = JobEnd(None)
    endless.measured(1e9)
    assert endless.verdict() is None and not endless.limited
    unknown = JobEnd(1.0)
    assert unknown.verdict() is None and unknown.limited


def test_the_verdict_comes_when_an_episode_does_not_fit_any_more() -> None:
    clock = Clock()
    end = JobEnd(100.0, clock)
    end.measured(30.0)
    clock.now += 70.0 - MARGIN_S
    assert end.verdict() is None
    clock.now += 0.1
    assert end.verdict() == "the job ends in 35 s, and an episode takes up to 30 s"
    clock.now += 1000
    assert end.verdict() == "the job ends in 0 s, and an episode takes up to 30 s"


def test_a_rare_slow_episode_does_not_count() -> None:
    end = JobEnd(100.0)
    for seconds in [*range(1, 10), 5000]:
        end.measured(float(seconds))
    assert end.expected_s == 9.0
    end.measured(5000.0)
    assert end.expected_s == 5000.0
