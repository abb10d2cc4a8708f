"""What goes wrong in a checkout is an error that says what, never a failure of the policy and never
a wait for an answer (RoboTwin 70, 173, 276, 488)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from harness.episodes.episode import run_episode
from harness.errors import RollpoolError
from harness.simulators.contract import Episode
from harness.simulators.robotwin.adapter import RoboTwin
from harness.simulators.robotwin.hermetic import UnstableSeed
from tests.fakes.models import FakeModel
from tests.robotwin.conftest import CUP, ROBOPRO, sealed


def _episode(task: str, seed: int) -> Episode:
    return Episode("robotwin", task, "demo_clean", seed, "do it", {"adapter": 1})


def test_an_unstable_seed_is_not_offered(classic: RoboTwin) -> None:
    assert not classic.solvable(_episode("stack_bowls", 4))
    with pytest.raises(UnstableSeed, match=r"unstable in seed\(4\)"):
        sealed(classic, ("robotwin", "stack_bowls", "demo_clean"), 4)


def test_an_unstable_seed_of_a_bank_is_an_error_that_says_so(classic: RoboTwin) -> None:
    with pytest.raises(UnstableSeed, match="take the seed out of the bank"):
        classic.reset(_episode("stack_bowls", 4))


def test_a_seed_that_the_planner_gives_no_pose_for_is_not_offered(
    classic: RoboTwin, capfd: pytest.CaptureFixture[str]
) -> None:
    assert not classic.solvable(_episode("stack_bowls", 5))
    assert "target_pose cannot be None" in capfd.readouterr().err  # said, not swallowed


def test_a_plan_that_failed_is_no_success(classic: RoboTwin) -> None:
    assert not classic.solvable(_episode("stack_bowls", 14))
    assert classic.solvable(_episode("stack_bowls", 12))


def test_a_loader_that_raises_costs_its_seed(classic: RoboTwin) -> None:
    assert not classic.solvable(_episode("open_laptop", 3))
    with pytest.raises(ValueError, match="could not parse"):
        classic.reset(_episode("open_laptop", 3))
    classic.reset(_episode("open_laptop", 4))


def _still() -> FakeModel:
    """Holds the arms where they are."""
    model = FakeModel(
        lambda step, seen, last: seen.state["qpos"][None], needs=(), action_kind="qpos"
    )
    model.hello["action_dim"] = 14
    return model


def test_an_exception_in_an_action_is_an_error_and_no_fail(classic: RoboTwin) -> None:
    result = run_episode(classic, _still(), _episode("open_laptop", 4))
    assert (result["outcome"], result["success"]) == ("error", None)
    assert result["error"]["kind"] == "simulator"
    assert "PhysX Internal CUDA error" in result["error"]["message"]
    assert "take_action" in result["error"]["traceback"]


def test_an_episode_without_success_fails_at_upstreams_step_limit(classic: RoboTwin) -> None:
    result = run_episode(classic, _still(), _episode("beat_block_hammer", 3))
    assert (result["outcome"], result["steps"]) == ("fail", 40)
    assert result["hard_success"] is None  # nobody measured what was hit


def test_a_scene_that_changed_since_it_was_sealed_is_an_error_that_names_it(
    classic: RoboTwin,
) -> None:
    episode = sealed(classic, ("robotwin", "beat_block_hammer", "demo_clean"), 3)
    other = Episode(
        *(episode.scene, episode.task, episode.task_config, 3, episode.instruction, episode.reset),
        fingerprint={**episode.fingerprint, "scene": "0123456789abcdef"},
    )
    result = run_episode(classic, _still(), other)
    assert result["error"]["kind"] == "simulator"
    assert "scene: sealed 0123456789abcdef, found " in result["error"]["message"]


def test_no_rendering_device_says_what_to_do_and_blames_no_seed(
    classic: RoboTwin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_NO_RENDER_DEVICE", "1")
    with pytest.raises(RollpoolError, match="VK_ICD_FILENAMES"):
        classic.solvable(_episode("beat_block_hammer", 3))


def test_a_machine_out_of_memory_blames_no_seed(classic: RoboTwin) -> None:
    classic.reset(_episode("beat_block_hammer", 3))
    scenes = sys.modules["envs.scene"]
    held = [scenes.Scene() for _ in range(2)]
    classic._running = None  # leaks the third
    with pytest.raises(RuntimeError, match="ErrorOutOfDeviceMemory"):
        classic.solvable(_episode("beat_block_hammer", 3))
    assert held
    scenes.OPEN.clear()


def test_a_prompt_is_an_error_that_repeats_the_question(classic: RoboTwin) -> None:
    with pytest.raises(RollpoolError) as refused:
        classic.reset(_episode("place_fan", 3))
    assert "099_fan is missing, download the assets now?" in str(refused.value)
    assert "download the checkout's assets with its own script" in str(refused.value)
    with pytest.raises(RollpoolError):  # nor does it say that the seed cannot be solved
        classic.solvable(_episode("place_fan", 3))


def test_an_exit_in_the_checkout_ends_nothing(classic: RoboTwin) -> None:
    with pytest.raises(RollpoolError, match=r"called exit\(\).*log"):
        sealed(classic, ("robotwin", "shake_bottle", "demo_clean"), 3)


def test_a_missing_asset_is_named(copied: Path) -> None:
    (copied / "benchmark/assets/objects/021_cup/model_data0.json").unlink()
    sim = RoboTwin(config={k: v.replace(*_moved(copied)) for k, v in ROBOPRO.items()})
    with pytest.raises(RollpoolError, match=r"no file .*021_cup/model_data0.json.*download"):
        sealed(sim, CUP, 40000)


def test_a_task_without_templates_says_which(copied: Path) -> None:
    (copied / "customized_robotwin/description/task_instruction/stack_bowls.json").unlink()
    sim = RoboTwin(config={"root": str(copied / "customized_robotwin")})
    with pytest.raises(RollpoolError, match="an instruction of stack_bowls: no unseen template"):
        sealed(sim, ("robotwin", "stack_bowls", "demo_clean"), 3)


def test_an_episode_of_another_adapter_version_is_refused(classic: RoboTwin) -> None:
    with pytest.raises(RollpoolError, match="seal the population again"):
        classic.reset(Episode("robotwin", "beat_block_hammer", "demo_clean", 3, "", {"adapter": 0}))


def _moved(copied: Path) -> tuple[str, str]:
    return str(Path(ROBOPRO["root"]).parent), str(copied)
