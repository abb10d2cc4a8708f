"""The episode loop: who is blamed, what is counted, what the policy sees."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from harness.episodes.episode import run_episode
from harness.errors import RollpoolError
from harness.inference.model_client import Served
from harness.simulators.contract import Episode, Score
from harness.stopwatch import Stopwatch
from harness.wire import ConnectionLost, RemoteError
from tests.fakes.models import FakeModel
from tests.fakes.pointsim import FAULT_STEP, REST, STEP_LIMIT, PointSim


def episode_of(task: str, seed: int = 4, config: str = "clean") -> Episode:
    cell = ("plane", task, f"bench_demo_plane_{config}")
    sealing = "reach_goal" if task == "raise_in_seal" else task
    return Episode(*cell, seed, **PointSim().seal("plane", sealing, cell[2], seed))


def test_the_expert_succeeds_and_the_result_says_so() -> None:
    result = run_episode(PointSim(), FakeModel(), episode_of("reach_goal"))

    assert (result["outcome"], result["success"], result["hard_success"]) == ("success", True, True)
    assert result["error"] is None and result["video"] is None
    assert 0 < result["steps"] < STEP_LIMIT
    assert result["sim_s"] == pytest.approx(result["steps"] / 20)
    assert 0 <= result["policy_s"] <= result["wall_s"]
    assert result["versions"]["simulator"] == "pointsim 1"
    assert len(result["state_hash"]) == 64


def test_success_ends_the_episode_within_a_chunk() -> None:
    sim, model = PointSim(), FakeModel(chunk=STEP_LIMIT)
    result = run_episode(sim, model, episode_of("reach_goal"))
    assert len(model.asked) == 1 and result["steps"] < STEP_LIMIT


def test_the_step_limit_fails_it_even_in_the_middle_of_a_chunk() -> None:
    model = FakeModel(chunk=7)  # 40 steps are five chunks and five actions
    result = run_episode(PointSim(), model, episode_of("never_succeed"))
    assert (result["outcome"], result["success"], result["hard_success"]) == ("fail", False, False)
    assert result["steps"] == STEP_LIMIT and len(model.asked) == 6


def test_a_collision_costs_the_hard_success_alone() -> None:
    result = run_episode(PointSim(), FakeModel(), episode_of("reach_goal", seed=3, config="d6"))
    assert result["success"] is True and result["hard_success"] is False
    assert result["collision_count"] > 0 and result["collision_names"] == ["post"]


def test_an_unknown_hard_success_stays_unknown_whatever_the_outcome() -> None:
    class Unsure(PointSim):
        def score(self) -> Score:
            return replace(super().score(), hard_success=None, collision_count=None)

    result = run_episode(Unsure(), FakeModel(), episode_of("reach_goal"))
    assert result["success"] is True and result["hard_success"] is None
    result = run_episode(Unsure(), FakeModel(), episode_of("never_succeed"))
    assert result["success"] is False and result["hard_success"] is None


class Odd(PointSim):
    """Says at the end what it is told to."""

    def __init__(self, says: Mapping[str, Any]) -> None:
        super().__init__()
        self.says = says

    def score(self) -> Score:
        fields = ("hard_success", "collision_count", "collision_names")
        return replace(super().score(), **{k: v for k, v in self.says.items() if k in fields})

    def sim_time(self) -> float:
        return self.says.get("sim_s", super().sim_time())

    def versions(self) -> Mapping[str, str]:
        return self.says.get("versions", super().versions())


def test_a_result_holds_plain_values_whatever_types_the_simulator_has() -> None:
    says = {
        "hard_success": np.bool_(True), "collision_count": np.int64(2), "collision_names": [7],
        "sim_s": np.float32(1.5), "versions": {"cuda": 12},
    }  # fmt: skip
    result = run_episode(Odd(says), FakeModel(), episode_of("reach_goal"))
    plain = {**says, "hard_success": True, "collision_names": ["7"], "versions": {"cuda": "12"}}
    assert json.loads(json.dumps(result)) == result
    assert {key: result[key] for key in says} == plain and result["hard_success"] is True


@pytest.mark.parametrize(
    "says", [{"sim_s": float("nan")}, {"sim_s": "soon"}, {"collision_count": 2.0}]
)
def test_what_no_row_could_hold_is_the_simulators_error(says: dict[str, Any]) -> None:
    result = run_episode(Odd(says), FakeModel(), episode_of("reach_goal"))
    assert result["outcome"] == "error" and result["error"]["kind"] == "simulator"


def test_the_policy_sees_only_what_it_needs_and_its_last_action() -> None:
    model = FakeModel(
        lambda step, observation, last: np.tile(REST, (3, 1)),
        needs=["images"],
        cameras=["countertop", "left_wrist"],
    )
    run_episode(PointSim(), model, episode_of("reach_goal"))

    steps = [asked[0] for asked in model.asked]
    assert steps == list(range(0, STEP_LIMIT, 3))
    for step, observation, last_action, expert in model.asked:
        assert set(observation.images) == {"countertop", "left_wrist"}
        assert expert is None
        assert (last_action is None) == (step == 0)
    np.testing.assert_array_equal(model.asked[1][2], REST)


def test_nothing_is_rendered_for_a_policy_without_images() -> None:
    model = FakeModel(cameras=["countertop"])  # it lists a camera, but needs the expert alone
    run_episode(PointSim(), model, episode_of("reach_goal"))
    assert all(not asked[1].images and asked[3] is not None for asked in model.asked)


def test_the_same_episode_gives_the_same_result_after_any_other() -> None:
    def hash_after(*before: Episode) -> str:
        sim, model = PointSim(), FakeModel()
        for episode in (*before, episode_of("reach_goal", seed=9, config="d6")):
            result = run_episode(sim, model, episode)
        return result["state_hash"]

    alone = hash_after()
    assert alone == hash_after(episode_of("reach_goal", seed=1), episode_of("raise_in_step"))


@pytest.mark.parametrize(
    ("task", "steps"), [("raise_in_reset", 0), ("raise_in_step", FAULT_STEP - 1)]
)
def test_a_simulator_that_raises_is_an_error_with_its_traceback(task: str, steps: int) -> None:
    result = run_episode(PointSim(), FakeModel(), episode_of(task))
    assert result["outcome"] == "error" and result["success"] is None
    assert result["error"]["kind"] == "simulator"
    assert "pointsim was asked to raise" in result["error"]["message"]
    assert "pointsim.py" in result["error"]["traceback"]
    assert result["steps"] == steps


def _raises(error: Exception) -> FakeModel:
    def act(*_: object) -> np.ndarray:
        raise error

    return FakeModel(act)


@pytest.mark.parametrize(
    ("model", "kind", "message"),
    [
        (_raises(RemoteError("infer", "policy", "boom", "Traceback ...")), "policy", "boom"),
        (_raises(RemoteError("infer", "protocol", "no session")), "protocol", "no session"),
        (_raises(ConnectionLost("infer", "the peer is gone", "look")), "protocol", "gone"),
        (_raises(TimeoutError("nothing")), "protocol", "nothing"),
        (FakeModel(lambda *_: np.full((3, 20), np.nan)), "policy", "not finite"),
        (FakeModel(lambda *_: np.zeros((3, 7))), "policy", "shape (3, 7)"),
        (FakeModel(lambda *_: np.zeros((0, 20))), "policy", "shape (0, 20)"),
        (FakeModel(lambda *_: np.zeros(20)), "policy", "shape (20,)"),
        (FakeModel(lambda *_: np.full((3, 20), 1e300)), "policy", "not finite"),
        (FakeModel(lambda *_: np.full((3, 20), "up")), "policy", "no numbers"),
    ],
)
def test_policy_and_connection_are_blamed_for_their_own(
    model: FakeModel, kind: str, message: str
) -> None:
    result = run_episode(PointSim(), model, episode_of("reach_goal"))
    assert (result["outcome"], result["success"]) == ("error", None)
    assert result["error"]["kind"] == kind and message in result["error"]["message"]


def test_a_policy_traceback_is_the_servers() -> None:
    model = _raises(RemoteError("infer", "policy", "boom", "Traceback of the server"))
    result = run_episode(PointSim(), model, episode_of("reach_goal"))
    assert result["error"]["traceback"] == "Traceback of the server"


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit])
def test_a_request_to_stop_passes_through(stop: type[BaseException]) -> None:
    def act(*_: object) -> np.ndarray:
        raise stop

    with pytest.raises(stop):
        run_episode(PointSim(), FakeModel(act), episode_of("reach_goal"))


def test_what_does_not_fit_together_is_refused_before_anything_runs() -> None:
    blind = PointSim(cameras=False)
    with pytest.raises(RollpoolError, match="needs the cameras"):
        model = FakeModel(needs=["images"], cameras=["countertop"])
        run_episode(blind, model, episode_of("reach_goal"))
    with pytest.raises(RollpoolError, match="acts by 'qpos'"):
        run_episode(blind, FakeModel(action_kind="qpos"), episode_of("reach_goal"))


def test_progress_is_reported_at_every_chunk() -> None:
    seen: list[tuple[str, int]] = []
    run_episode(
        PointSim(),
        FakeModel(chunk=8),
        episode_of("never_succeed"),
        progress=lambda phase, step: seen.append((phase, step)),
    )
    assert seen[0] == ("reset", 0) and seen[-1] == ("video", STEP_LIMIT)
    for phase in ("observe", "infer", "step"):
        assert {step for name, step in seen if name == phase} >= set(range(0, STEP_LIMIT, 8))


def test_waiting_for_the_policy_is_a_phase_in_its_reset_too() -> None:
    seen: list[str] = []

    class Watched(FakeModel):
        def reset(self, episode: Episode) -> None:
            assert seen == ["reset", "infer"]
            super().reset(episode)

    model = Watched()
    run_episode(
        PointSim(), model, episode_of("reach_goal"), progress=lambda phase, _: seen.append(phase)
    )
    assert len(model.resets) == 1


def test_progress_is_reported_within_a_long_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter(np.arange(0.0, 1e6, 0.2))
    monkeypatch.setattr("harness.episodes.episode.time.monotonic", lambda: float(next(ticks)))
    seen: list[int] = []
    run_episode(
        PointSim(),
        FakeModel(chunk=STEP_LIMIT),
        episode_of("never_succeed"),
        progress=lambda phase, step: seen.append(step) if phase == "step" else None,
    )
    assert len(seen) > 5, "silent while the clock moved by 0.2 s an action"


def test_a_simulator_that_ends_the_episode_itself_fails_it_there() -> None:
    result = run_episode(PointSim(), FakeModel(), episode_of("end_in_step"))
    assert (result["outcome"], result["steps"], result["error"]) == ("fail", FAULT_STEP, None)


def test_another_scene_than_the_sealed_one_is_an_error_that_names_each_part() -> None:
    model, episode = FakeModel(), episode_of("changed_scene")
    result = run_episode(PointSim(), model, episode)
    assert (result["outcome"], result["error"]["kind"]) == ("error", "simulator")
    assert "world: sealed another, found unit square 1" in result["error"]["message"]
    assert not model.asked, "not one action of an episode that was not asked for"

    lost = replace(episode, fingerprint={"world": "unit square 1", "assets": "ab12"})
    message = run_episode(PointSim(), model, lost)["error"]["message"]
    assert "assets: sealed ab12, found none" in message and "world" not in message

    unsealed = replace(episode, fingerprint={})
    assert run_episode(PointSim(), model, unsealed)["outcome"] == "success"


def test_a_native_policy_acts_by_the_simulators_own_kind() -> None:
    model = FakeModel(action_kind="native")
    model.hello["action_dim"] = None
    assert run_episode(PointSim(), model, episode_of("reach_goal"))["outcome"] == "success"


def test_a_kind_of_another_size_is_refused_before_anything_runs() -> None:
    model = FakeModel()
    model.hello["action_dim"] = 7
    with pytest.raises(RollpoolError, match="'ee6d' has 7 numbers, the simulator's 20"):
        run_episode(PointSim(), model, episode_of("reach_goal"))


@pytest.mark.parametrize("shape", [(0, 20), (6, 20), (5, 19), (20,)])
def test_an_expert_that_breaks_the_contract_is_the_simulators_fault(shape: tuple[int]) -> None:
    class Lazy(PointSim):
        def expert_chunk(self, length: int) -> np.ndarray:
            return np.zeros(shape, np.float32)

    error = run_episode(Lazy(), FakeModel(chunk=5), episode_of("reach_goal"))["error"]
    assert error["kind"] == "simulator" and "expert_chunk(5)" in error["message"]


class Clock:
    """Moves by what each thing is said to take."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def slow(self, thing: object, **seconds: float) -> None:
        for name, took in seconds.items():
            setattr(thing, name, self._slow(getattr(thing, name), took))

    def _slow(self, call: Callable[..., Any], took: float) -> Callable[..., Any]:
        def slowed(*arguments: Any) -> Any:
            self.now += took
            return call(*arguments)

        return slowed


def profiled(
    monkeypatch: pytest.MonkeyPatch, sim: PointSim, model: FakeModel, clock: Clock, task: str
) -> dict[str, Any]:
    clock.slow(sim, reset=3.0, observe=0.5, step=0.25, expert_chunk=0.125, state_hash=2.0)
    clock.slow(model, reset=1.0, infer=0.75)
    monkeypatch.setattr("harness.episodes.episode.Stopwatch", lambda: Stopwatch(clock))
    return run_episode(sim, model, episode_of(task))


class Queued(FakeModel):
    """Says that of its 0.75 s a quarter was the policy's, and an eighth a wait for others."""

    def infer(self, *asked: Any) -> tuple[np.ndarray, Served]:
        return super().infer(*asked)[0], Served(0.25, 0.125)


def test_the_profile_says_where_the_time_went(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, model = Clock(), Queued(chunk=8)
    result = profiled(monkeypatch, PointSim(), model, clock, "never_succeed")
    assert result["profile"] == {
        "reset": 4.0, "render": 2.5, "expert": 0.625, "simulate": 0.25 * STEP_LIMIT, "score": 2.0,
        "infer": 1.25, "wait": 0.625, "wire": 1.875,
    }  # fmt: skip
    assert sum(result["profile"].values()) == clock.now
    assert result["policy_s"] == 3.75


def test_an_episode_in_error_has_the_profile_of_how_far_it_came(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock()
    result = profiled(monkeypatch, PointSim(), Queued(), clock, "raise_in_step")
    assert result["profile"]["simulate"] == 0.25 * FAULT_STEP
    assert sum(result["profile"].values()) == clock.now
