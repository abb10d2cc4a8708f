"""The arms: reach, tracking, the three action kinds, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sapien

from harness.errors import RollpoolError
from harness.rotations import quaternion_from_matrix
from harness.simulators.tabletop import scenes
from harness.simulators.tabletop.actions import ee6d
from harness.simulators.tabletop.arm_body import arm_kinematics
from harness.simulators.tabletop.world import World

DOWN = [0.0, 0.0, 1.0, 0.0]


def empty_world() -> World:
    return World(scenes.load("study"), (), None)


def at_home(world: World) -> dict[str, sapien.Pose]:
    return {side: arm.commanded_tcp() for side, arm in world.robot.arms.items()}


def act(world: World, left: sapien.Pose, right: sapien.Pose, grip: float = 1.0) -> None:
    action = np.concatenate([ee6d(left, grip), ee6d(right, grip)])
    for _ in world.execute(action, "ee6d"):
        pass


def test_hands_start_pointing_down_side_by_side() -> None:
    home = at_home(empty_world())
    np.testing.assert_allclose(home["left"].p, [-0.21, 0.28, 0.92], atol=0.003)
    np.testing.assert_allclose(home["right"].p, home["left"].p * [1, -1, 1], atol=1e-5)
    for pose in home.values():
        np.testing.assert_allclose(np.abs(pose.q), DOWN, atol=1e-3)


@pytest.mark.parametrize("x", [-0.30, -0.10, 0.15])
@pytest.mark.parametrize("y", [-0.10, 0.20, 0.50])
@pytest.mark.parametrize("z", [0.02, 0.25])
def test_reach_of_the_left_arm(x: float, y: float, z: float) -> None:
    """What ``task.py`` promises to whoever writes a task."""
    world, target = empty_world(), sapien.Pose([x, y, 0.75 + z], DOWN)
    arm = world.robot.arms["left"]
    for _ in range(40):
        arm.aim(ee6d(target, 1.0), "ee6d")
    assert np.linalg.norm(arm.commanded_tcp().p - target.p) < 0.001


def test_measured_follows_commanded_within_3_mm() -> None:
    world, worst = empty_world(), 0.0
    home = at_home(world)
    for step in range(60):
        offset = [0.12 * np.sin(step / 6), 0.08 * np.cos(step / 5) - 0.08, -0.08 * np.sin(step / 9)]
        act(world, *(sapien.Pose(pose.p + offset, pose.q) for pose in home.values()))
        for arm in world.robot.arms.values():
            worst = max(worst, float(np.linalg.norm(arm.measured_tcp().p - arm.commanded_tcp().p)))
    assert worst < 0.003


def test_far_target_is_approached_at_a_bounded_speed() -> None:
    world = empty_world()
    home = at_home(world)
    far = sapien.Pose([5.0, 5.0, 5.0], [1, 0, 0, 0])
    before = world.robot.arms["left"].measured_tcp().p
    for _ in range(30):
        act(world, far, home["right"])
        now = world.robot.arms["left"].measured_tcp().p
        assert np.linalg.norm(now - before) < 0.08  # 0.03, and what a turn adds
        before = now
    assert np.isfinite(world.robot.qpos()).all()


def test_ee_and_ee6d_give_the_same_motion() -> None:
    hashes = []
    for kind in ("ee6d", "ee"):
        world = empty_world()
        home = at_home(world)
        for step in range(10):
            shares = []
            for pose in home.values():
                target = sapien.Pose(pose.p + [0.01 * step, 0, -0.005 * step], pose.q)
                share = ee6d(target, 0.5)
                if kind == "ee":
                    matrix = target.to_transformation_matrix()[:3, :3]
                    share = np.concatenate([share[:3], quaternion_from_matrix(matrix), [0.5]])
                shares.append(share)
            for _ in world.execute(np.concatenate(shares), kind):
                pass
        hashes.append(np.round(world.robot.qpos(), 5).tolist())
    assert hashes[0] == hashes[1]


def test_qpos_of_the_command_repeats_an_ee6d_rollout_exactly() -> None:
    first, second = empty_world(), empty_world()
    home = at_home(first)
    for step in range(10):
        act(first, *(sapien.Pose(p.p + [0.01 * step, 0, 0], p.q) for p in home.values()), grip=0.3)
        joints = [np.append(arm.command, arm.grip) for arm in first.robot.arms.values()]
        for _ in second.execute(np.concatenate(joints), "qpos"):
            pass
        assert first.state_hash() == second.state_hash()


def test_proprio_is_the_measured_tcp_in_the_layout_of_ee6d() -> None:
    world = empty_world()
    robot, proprio = world.robot, world.robot.proprio()
    assert proprio.shape == (20,) and proprio.dtype == np.float32
    np.testing.assert_array_equal(proprio[10:13], robot.arms["right"].measured_tcp().p)
    np.testing.assert_allclose(proprio[3:9], [-1, 0, 0, 1, 0, 0], atol=1e-3)
    assert proprio[9] == pytest.approx(1.0, abs=0.02)
    assert robot.qpos().shape == (16,)


def test_inverse_kinematics_inverts_forward() -> None:
    arm, rng = arm_kinematics(), np.random.default_rng(0)
    start = np.array([0.0, 0.13, 0.0, 2.4, 0.0, 0.6, 0.0])
    for _ in range(50):
        hand = arm.forward(start + rng.uniform(-0.2, 0.2, 7))
        found = arm.forward(arm.inverse(hand, start))
        np.testing.assert_allclose(found.p, hand.p, atol=2e-4)
        assert abs(float(found.q @ hand.q)) > 1 - 1e-6


@pytest.mark.parametrize(
    ("action", "kind", "says"),
    [
        (np.zeros(20), "joints", "no such kind"),
        (np.zeros(19), "ee6d", "shape (19,)"),
        (np.full(16, np.nan), "qpos", "not finite at positions"),
        (np.zeros(16), "ee", "zero quaternion"),
        (np.zeros(20), "ee6d", "spans no plane"),
    ],
)
def test_bad_actions_are_refused_before_anything_moves(
    action: np.ndarray, kind: str, says: str
) -> None:
    world = empty_world()
    before = world.state_hash()
    with pytest.raises(RollpoolError, match=says.replace("(", r"\(").replace(")", r"\)")):
        for _ in world.execute(action, kind):
            pass
    assert world.state_hash() == before
