"""One worker's two processes together: whatever either does, the next episode finds both well."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.foundations.settings import resolve
from harness.paths import Root
from harness.runs.run import Run
from harness.simulators.contract import Episode
from harness.workers import children
from harness.workers.rig import POLL_S, Rig
from tests.processes.conftest import POINTSIM, episode

MakeRig = Callable[..., Rig]

#: Without `needs`, which a policy may leave out.
CONFIG = "action_kind: ee6d\naction_dim: 20\nchunk: 8\n"
POLICY = """
import os
import time
import numpy as np

class Model:
    cameras = ["countertop"]

    def reset(self, session):
        if session.seed == 1:
            time.sleep(600)

    def infer(self, observation, session):
        if session.seed == 2:
            time.sleep(600)
        if session.seed == 5:
            os.kill(os.getpid(), 9)
        return np.zeros((8, 20), np.float32)

def get_model(usr_args):
    return Model()
"""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    folder = tmp_path / "policy" / "slow"
    folder.mkdir(parents=True)
    (folder / "deploy_policy.yml").write_text(CONFIG)
    (folder / "deploy_policy.py").write_text(POLICY)
    return Root(tmp_path)


@pytest.fixture
def make_rig(root: Root) -> Iterator[MakeRig]:
    made: list[Rig] = []

    def make(clock: Callable[[], float] | None = None, **settings: str) -> Rig:
        given = {
            "STUDY_RUN": "r", "POLICY_NAME": "slow", "SIMULATOR": POINTSIM, "BENCH_CONFIG": "clean",
            "ROBOTWIN_PY": sys.executable, "XVLA_PY": sys.executable, "EVAL_VIDEO": "none",
            **settings,
        }  # fmt: skip
        run = Run(
            root, root.run("r"), resolve(given, root=root, gpus=list)[0], "id",
            {"policy": "slow", "checkpoint": {}, "settings_hash": "0", "code_hash": "0"},
            root.policy_dir("slow"), None, "token",
        )  # fmt: skip
        made.append(Rig(run, "worker", **({"clock": clock} if clock else {})))
        return made[-1]

    yield make
    for rig in made:
        rig.close()


def nothing(steps: int) -> None:
    """No reason to abandon."""


@contextlib.contextmanager
def impatient(rig: Rig) -> Iterator[None]:
    """What begins meanwhile may stand still for a second; what goes well has all its time."""
    with pytest.MonkeyPatch.context() as patch:
        for seat in rig._seats:
            patch.setattr(seat, "_settings", seat._settings.having(STALL_TIMEOUT=1.0))
        yield


@pytest.mark.parametrize("seed", [1, 2])
def test_a_policy_that_hangs_costs_one_episode(make_rig: MakeRig, seed: int) -> None:
    rig = make_rig()
    with impatient(rig):
        error = rig.play(episode("never_succeed", seed), 1, None, nothing)["error"]
    assert error["kind"] == "stall" and "phase 'infer'" in error["message"]
    assert not rig.standing(0)
    assert rig.play(episode("never_succeed", 3), 1, None, nothing)["outcome"] == "fail"


def test_after_a_fault_of_the_connection_the_server_is_another(
    make_rig: MakeRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig()
    assert rig.play(episode("never_succeed", 3), 1, None, nothing)["outcome"] == "fail"
    link = rig._seats[0].link
    address = link.address()
    assert address["answer_s"] > rig._run.settings["STALL_TIMEOUT"], "the stall comes first"
    monkeypatch.setattr(link, "address", lambda: {**address, "token": "another"})
    error = rig.play(episode("never_succeed", 3), 1, None, nothing)["error"]
    assert error["kind"] == "protocol" and not rig.standing(0)
    monkeypatch.undo()
    assert rig.play(episode("never_succeed", 3), 1, None, nothing)["outcome"] == "fail"


def test_a_suspended_job_is_nobodys_stall(make_rig: MakeRig) -> None:
    seconds = itertools.count(0.0, 1e-3)
    suspended = 0.0

    def suspend(steps: int) -> None:
        nonlocal suspended
        suspended = 7200.0

    rig = make_rig(lambda: next(seconds) + suspended)
    result = rig.play(episode("never_succeed", 3), 1, None, suspend)
    assert result["outcome"] == "fail", result["error"]


def together(rig: Rig, *episodes: Episode) -> list[dict[str, Any]]:
    """The results of episodes that are played at once, each in a seat."""
    seats = range(len(episodes))
    while not all(rig.prepare(seat) for seat in seats):
        rig.wait(POLL_S)
    for seat, each in enumerate(episodes):
        rig.begin(seat, each, 1, None)
    ended: dict[int, dict[str, Any]] = {}
    while len(ended) < len(episodes):
        ended |= rig.wait(POLL_S)
    return [ended[seat] for seat in seats]


def kinds(results: list[dict[str, Any]]) -> list[str]:
    return [r["error"]["kind"] if r["error"] else r["outcome"] for r in results]


def test_a_simulators_death_is_its_own_alone(make_rig: MakeRig) -> None:
    rig = make_rig(SIMS_PER_WORKER="3")
    tasks = ("never_succeed", "crash_in_step", "never_succeed")
    results = together(rig, *(episode(task, 3) for task in tasks))
    assert kinds(results) == ["fail", "crash", "fail"]
    assert [rig.standing(seat) for seat in range(3)] == [True, False, True]
    assert kinds(together(rig, *[episode("never_succeed", 4)] * 3)) == ["fail"] * 3


def test_a_servers_death_costs_the_episodes_that_are_played_on_it(make_rig: MakeRig) -> None:
    rig = make_rig(SIMS_PER_WORKER="3")
    results = together(rig, *(episode("never_succeed", seed) for seed in (3, 5, 4)))
    assert results[1]["error"]["kind"] == "crash" and "SIGKILL" in results[1]["error"]["message"]
    assert set(kinds(results)) <= {"crash", "fail"}  # one may have been over already
    assert not any(rig.standing(seat) for seat in range(3))
    assert kinds(together(rig, *[episode("never_succeed", 4)] * 3)) == ["fail"] * 3


def test_who_waits_behind_a_policy_that_hangs_stalls_too(make_rig: MakeRig) -> None:
    rig = make_rig(SIMS_PER_WORKER="3")
    with impatient(rig):
        assert kinds(together(rig, *[episode("never_succeed", 2)] * 3)) == ["stall"] * 3
    assert kinds(together(rig, *[episode("never_succeed", 4)] * 3)) == ["fail"] * 3


def test_a_simulator_that_has_started_is_noticed_while_its_seat_has_nothing_to_do(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(SIMS_PER_WORKER="2")
    rig.play(episode("never_succeed", 3), 1, None, nothing)
    for _ in range(400):
        if rig.versions(1):
            break
        rig.wait(POLL_S)
    assert rig.versions(1) and rig._seats[1].descriptor is None, "it would be selected for ever"


def test_a_policy_that_keeps_one_episodes_state_is_refused_to_several(
    make_rig: MakeRig, root: Root
) -> None:
    file = root.policy_dir("slow") / "deploy_policy.py"
    file.write_text(file.read_text().replace("infer(self, observation, session)", "infer(self, o)"))
    rig = make_rig(SIMS_PER_WORKER="2")
    with pytest.raises(RollpoolError, match=r"SIMS_PER_WORKER=2: .*one episode's state"):
        rig.prepare(0)


def test_a_server_is_not_started_again_before_what_was_played_on_it_has_ended(
    make_rig: MakeRig,
) -> None:
    rig = make_rig(SIMS_PER_WORKER="2")
    while not all(rig.prepare(seat) for seat in range(2)):
        rig.wait(POLL_S)
    rig.begin(0, episode("never_succeed", 2), 1, None)
    process: Any = rig._seats[0].link
    process._process._proc.kill()
    assert process._process.ends(60.0)
    assert not rig.prepare(1) and not rig._seats[0].link.alive()
    ended: dict[int, dict[str, Any]] = {}
    while not ended:
        ended = rig.wait(POLL_S)
    assert "SIGKILL" in ended[0]["error"]["message"]
    while not rig.prepare(1):
        rig.wait(POLL_S)


@pytest.mark.parametrize("waits", [True, False])
def test_a_simulator_that_dies_as_it_starts_is_said_and_not_started_for_ever(
    make_rig: MakeRig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    monkeypatch.setenv("DIES_WITH", str(tmp_path / "now"))
    rig = make_rig(SIMULATOR="tests.processes.test_rig:dies")
    assert not rig.prepare(0)
    (tmp_path / "now").touch()
    sim = rig._seats[0]._sim
    assert sim is not None and children.wait_exited(sim.proc, 60.0)
    if waits:
        rig.wait(POLL_S)  # says nothing: it may have died of the signal that ends the worker
    with pytest.raises(RollpoolError, match="it dies as it starts"):
        rig.prepare(0)


def dies(**options: object) -> None:
    """A simulator that takes its time to start, and then cannot."""
    while not Path(os.environ["DIES_WITH"]).exists():
        time.sleep(0.01)
    raise RuntimeError("it dies as it starts")
