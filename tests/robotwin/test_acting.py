"""Actions, observations, pictures and scores."""

from __future__ import annotations

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.simulators.robotwin.adapter import RoboTwin
from harness.simulators.robotwin.observing import ee6d_from_ee, ee_from_ee6d
from tests.robotwin.conftest import CLASSIC, CUP, HAMMER, ROBOPRO, sealed

OFFICE = "bench_demo_office_clean"


def test_the_native_kind_is_first_and_the_layout_of_proprio(
    classic: RoboTwin, robopro: RoboTwin
) -> None:
    assert {kind: space.dim for kind, space in classic.action_kinds.items()} == {
        "qpos": 14, "ee": 16, "ee6d": 20,
    }  # fmt: skip
    assert next(iter(robopro.action_kinds)) == "ee6d"
    robopro.reset(sealed(robopro, CUP, 40000))
    observation = robopro.observe(())
    assert observation.proprio.dtype == np.float32
    assert np.array_equal(observation.proprio, observation.state["ee6d"])
    assert observation.state["qpos"].shape == (14,)


def test_ee6d_and_ee_are_one_pose_in_two_layouts() -> None:
    chance = np.random.default_rng(0)
    for _ in range(50):
        ee = chance.normal(size=16)
        ee[[3, 11]] = np.abs(ee[[3, 11]])
        for arm in (slice(3, 7), slice(11, 15)):
            ee[arm] /= np.linalg.norm(ee[arm])
        assert np.allclose(ee_from_ee6d(ee6d_from_ee(ee)), ee)


def test_the_three_kinds_move_the_same_arm_the_same_way(classic: RoboTwin) -> None:
    """In the stand-in the first joints of an arm are where its hand is."""
    ends = {}
    for kind in classic.action_kinds:
        classic.reset(sealed(classic, HAMMER, 3))
        action = classic.observe(()).state[kind]
        action[0] += 0.05
        action[-1] = 0.3
        for _ in range(3):
            classic.step(action, kind)
        ends[kind] = classic.observe(()).state["ee6d"]
    assert np.allclose(ends["qpos"], ends["ee"], atol=1e-5)
    assert np.allclose(ends["qpos"], ends["ee6d"], atol=1e-5)
    assert ends["qpos"][19] == pytest.approx(0.3)


def test_an_arm_whose_way_is_not_found_stays_and_time_passes(classic: RoboTwin) -> None:
    classic.reset(sealed(classic, HAMMER, 3))
    before = classic.observe(()).state["qpos"]
    action = before.copy()
    action[:3], action[7] = 2.0, before[7] + 0.02
    classic.step(action, "qpos")
    after = classic.observe(()).state["qpos"]
    assert np.array_equal(after[:7], before[:7])
    assert after[7] == pytest.approx(before[7] + 0.02)
    assert classic.sim_time() == pytest.approx(50 / 250)


def test_grippers_are_clipped(classic: RoboTwin) -> None:
    classic.reset(sealed(classic, HAMMER, 3))
    action = classic.observe(()).state["qpos"]
    action[6], action[13] = -0.5, 1.5
    classic.step(action, "qpos")
    assert list(classic.observe(()).state["qpos"][[6, 13]]) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("action", "kind"),
    [(np.zeros(16), "qpos"), (np.zeros(14), "delta_ee"), (np.full(14, np.nan), "qpos")],
)
def test_an_action_of_another_form_is_refused(
    classic: RoboTwin, action: np.ndarray, kind: str
) -> None:
    classic.reset(sealed(classic, HAMMER, 3))
    with pytest.raises(RollpoolError, match=r"qpos \(14\), ee \(16\), ee6d \(20\)"):
        classic.step(action, kind)


def test_pictures_come_with_the_cameras_poses(robopro: RoboTwin) -> None:
    robopro.reset(sealed(robopro, CUP, 40000))
    observation = robopro.observe(["countertop", "left_wrist"])
    assert set(observation.images) == {"countertop", "left_wrist"}
    assert observation.images["countertop"].shape == (24, 32, 3)
    assert observation.images["countertop"].dtype == np.uint8
    assert observation.state["countertop.intrinsic"].shape == (3, 3)
    assert observation.state["countertop.extrinsic"].shape == (3, 4)
    assert "head.intrinsic" not in observation.state
    assert not np.array_equal(
        observation.state["countertop.extrinsic"], observation.state["left_wrist.extrinsic"]
    )


def test_a_camera_that_is_not_there_is_named_with_those_that_are(classic: RoboTwin) -> None:
    classic.reset(sealed(classic, HAMMER, 3))
    with pytest.raises(RollpoolError, match="there is head, left_wrist, right_wrist, demo"):
        classic.observe(["countertop"])
    head = classic.observe(["head"]).images["head"]
    assert np.array_equal(classic.frame("demo"), head)


def test_a_policy_never_gets_another_cameras_picture(robopro: RoboTwin) -> None:
    """A scene whose configuration turned a camera off has none, also where a video makes do."""
    robopro.reset(sealed(robopro, CUP, 40000))
    robopro._now.env.cameras.names.remove("countertop_camera")
    with pytest.raises(RollpoolError, match="this scene has head_camera, left_camera"):
        robopro.observe(["countertop"])
    assert robopro.frame("countertop").shape == (24, 32, 3)


def test_videos_prefer_cameras_in_robopros_order(robopro: RoboTwin) -> None:
    robopro.reset(sealed(robopro, CUP, 40000))
    pictures = robopro.observe(["countertop", "demo", "head"]).images
    assert np.array_equal(robopro.frame("demo"), pictures["demo"])
    env = robopro._now.env
    for gone, then in (("demo_camera", "countertop"), ("countertop_camera", "head")):
        env.cameras.names.remove(gone)
        env.cameras.pictures.pop(gone)
        robopro._now.pictures._rendered = None
        expected = robopro.observe([then]).images[then]
        assert np.array_equal(robopro.frame("demo"), expected), gone


def test_states_alone_render_nothing() -> None:
    sim = RoboTwin(render=False, config=CLASSIC)
    assert sim.cameras == ()
    sim.reset(sealed(sim, HAMMER, 3))
    env = sim._now.env
    env.get_obs = None  # would be called
    assert sim.observe(()).proprio.shape == (14,)
    with pytest.raises(RollpoolError, match="states alone"):
        sim.frame("head")
    sim.close()


def _reach(sim: RoboTwin, through: np.ndarray | None = None) -> bool:
    env = sim._now.env
    arm = 0 if env.arm == "left" else 7
    action = sim.observe(()).state["qpos"]
    ways = [through, env.target_obj.pose.p] if through is not None else [env.target_obj.pose.p]
    for place in ways:
        action[arm : arm + 3] = place
        for _ in range(3):
            sim.step(action, "qpos")
    action[arm + 6] = 0
    return [sim.step(action, "qpos") for _ in range(3)][-1]


def test_success_without_a_collision_is_hard(robopro: RoboTwin) -> None:
    robopro.reset(sealed(robopro, CUP, 40000))
    assert _reach(robopro)
    score = robopro.score()
    assert (score.success, score.hard_success, score.collision_count) == (True, True, 0)
    assert robopro.sim_time() > 0


def test_success_with_a_collision_is_not(robopro: RoboTwin) -> None:
    robopro.reset(sealed(robopro, ("study", "put_cup_in_box", "bench_demo_study_d6"), 40000))
    clutter = next(a for a in robopro._now.env.scene.get_all_actors() if "clutter" in a.name)
    assert _reach(robopro, clutter.pose.p)
    score = robopro.score()
    assert (score.success, score.hard_success) == (True, False)
    assert clutter.name in score.collision_names
    assert score.collision_count == len(score.collision_names)


def test_a_task_that_names_no_targets_has_an_unknown_hard_success(robopro: RoboTwin) -> None:
    episode = sealed(robopro, ("office", "open_drawer", OFFICE), 40000)
    assert episode.reset["collisions"] is False
    robopro.reset(episode)
    assert _reach(robopro)
    assert robopro.score().hard_success is None
    assert robopro.score().collision_count is None


def test_the_native_kind_can_be_chosen() -> None:
    sim = RoboTwin(config={**ROBOPRO, "native": "qpos"})
    sim.reset(sealed(sim, CUP, 40000))
    assert sim.observe(()).proprio.shape == (14,)
    sim.close()
