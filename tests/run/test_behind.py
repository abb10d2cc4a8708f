"""What goes on behind is one call at a time, and what it raised is raised once."""

from __future__ import annotations

import threading

import pytest

from harness.runs.behind import Behind


def test_a_call_goes_on_while_its_caller_does_and_the_next_waits_for_it() -> None:
    behind, going, said = Behind(), threading.Event(), list[int]()

    def first() -> None:
        assert going.wait(30)
        said.append(1)

    behind.call(first)
    assert not said
    going.set()
    behind.call(lambda: said.append(2))
    behind.settle()
    assert said == [1, 2]


class Killed(BaseException):
    pass


def test_what_a_call_raised_is_raised_by_the_next_or_at_the_end_once() -> None:
    behind, said = Behind(), list[int]()

    def failing() -> None:
        raise Killed

    behind.call(failing)
    with pytest.raises(Killed):
        behind.call(lambda: said.append(1))
    assert not said, "it was never begun"
    behind.call(failing)
    with pytest.raises(Killed):
        behind.settle()
    behind.settle()


def test_a_signal_before_a_call_has_begun_is_all_that_is_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(thread: threading.Thread) -> None:
        raise Killed

    behind = Behind()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(Killed):
            behind.call(lambda: None)
    behind.settle()
