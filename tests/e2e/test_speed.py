"""What makes a run fast changes nothing of what it finds."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Home
from tests.environments import needs, python_of

#: Each off by default, and none of them sealed with a run.
ALL = {
    "SIMS_PER_WORKER": "2",
    "SIM_RECYCLE_EPISODES": "2",
    "EVAL_MINIBATCH": "3",
    "MODEL_MAX_WAIT_MS": "5",
}


@needs("tabletop")
@pytest.mark.slow
def test_a_real_simulator_ends_in_the_same_states_with_all_of_it(home: Home) -> None:
    home.env |= {"SIMULATOR": "tabletop", "ROBOTWIN_PY": str(python_of("tabletop"))}
    queue = home.path / "desk.txt"
    queue.write_text("study put_cup_in_box\nstudy press_bell\n")
    for task in ("put_cup_in_box", "press_bell"):
        bank = home.path / "bank" / task / "bench_demo_study_clean.txt"
        bank.parent.mkdir(parents=True)
        bank.write_text("40000 40001 40002 40003")
    for run, features in (("plain", {}), ("fast", ALL)):
        code, _, err = home.call("run", run, "--queue", str(queue), **features)
        assert code == 0, err
    assert len(home.rows("fast")) == 8
    assert home.outcomes("fast") == home.outcomes("plain")
    logs = list((home.path / "runs" / "fast" / "logs").glob("*.sim?.log"))
    assert len(logs) == 2
