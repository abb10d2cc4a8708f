"""What a checkout offers, and the arguments upstream's evaluation would build."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
import yaml

from harness.errors import RollpoolError
from harness.simulators.robotwin.adapter import RoboTwin
from harness.simulators.robotwin.arguments import arm_dims, task_arguments
from harness.simulators.robotwin.checkout import Checkout
from tests.robotwin.conftest import CLASSIC, CUP, HAMMER, ROBOPRO, sealed


def test_tasks_are_the_files_that_define_a_class_of_their_name(classic: RoboTwin) -> None:
    tasks = ["beat_block_hammer", "open_laptop", "place_fan", "shake_bottle", "stack_bowls"]
    assert list(classic.cells()) == [("robotwin", task) for task in tasks]
    assert "envs" not in sys.modules  # listing imports nothing of the checkout


def test_robopro_has_four_scenes(robopro: RoboTwin) -> None:
    assert list(robopro.cells()) == [
        ("study", "put_cup_in_box"), ("office", "open_drawer"), ("office", "put_mouse_on_pad"),
        ("kitchenl", "move_bottle"), ("kitchens", "put_bowl_in_sink_ks"),
    ]  # fmt: skip


def test_a_scene_has_its_own_configurations_and_those_of_no_scene(robopro: RoboTwin) -> None:
    assert list(robopro.task_configs("study")) == [
        "bench_compositional_full_d6", "bench_demo_study_clean", "bench_demo_study_d6",
        "bench_perturb_study_colloquial_polite_clean",
    ]  # fmt: skip
    assert list(robopro.task_configs("office")) == [
        "bench_compositional_full_d6", "bench_demo_office_clean", "bench_demo_office_d6",
    ]  # fmt: skip


def test_classic_configurations_leave_out_what_begins_with_an_underscore(classic: RoboTwin) -> None:
    assert list(classic.task_configs("robotwin")) == ["demo_clean", "demo_randomized"]


def test_step_limits_come_from_the_file_of_the_dialect(
    classic: RoboTwin, robopro: RoboTwin
) -> None:
    assert classic.step_limit("beat_block_hammer", "demo_clean") == 40
    assert classic.step_limit("shake_bottle", "demo_clean") == 1000  # as upstream, where it is not
    assert robopro.step_limit("move_bottle", "bench_demo_kitchenl_clean") == 120


def test_arguments_are_those_of_upstreams_evaluation() -> None:
    made = task_arguments(Checkout(CLASSIC), "beat_block_hammer", "demo_clean")
    assert (made["head_camera_w"], made["head_camera_h"]) == (32, 24)
    assert made["dual_arm_embodied"] is True
    assert made["left_robot_file"] == made["right_robot_file"]
    assert made["left_embodiment_config"]["arm_joints_name"][0][0] == "fl_joint1"
    assert (made["task_name"], made["task_config"]) == ("beat_block_hammer", "demo_clean")
    assert (made["eval_mode"], made["eval_video_log"], made["render_freq"]) == (True, False, 0)
    assert arm_dims(made) == (6, 6)


def _edited(checkout: Path, **changes: object) -> dict[str, str]:
    file = checkout / "customized_robotwin/task_config/demo_clean.yml"
    file.write_text(yaml.safe_dump({**yaml.safe_load(file.read_text()), **changes}))
    return {"root": str(checkout / "customized_robotwin")}


def test_two_robots_have_a_distance(copied: Path) -> None:
    robots = copied / "customized_robotwin/assets/embodiments"
    shutil.copytree(robots / "aloha-agilex", robots / "piper")
    config = _edited(copied, embodiment=["piper", "aloha-agilex", 0.6])
    made = task_arguments(Checkout(config), "", "demo_clean")
    assert (made["dual_arm_embodied"], made["embodiment_dis"]) == (False, 0.6)
    assert made["left_robot_file"].endswith("piper/")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"embodiment": ["aloha-agilex", "piper"]}, "name 1 (dual-arm), or left, right, dis"),
        ({"embodiment": ["franka"]}, "_embodiment_config.yml has no 'franka'"),
        ({"embodiment": ["piper"]}, "embodiments/piper/config.yml: No such file"),
        ({"camera": {"head_camera_type": "L515"}}, "_camera_config.yml has no 'L515'"),
    ],
)
def test_what_a_configuration_names_and_is_not_there_is_said(
    copied: Path, changes: dict[str, object], says: str
) -> None:
    with pytest.raises(RollpoolError) as refused:
        RoboTwin(config=_edited(copied, **changes))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, "no root is named"),
        ({"root": "/nowhere"}, "no envs/ in it"),
        ({"root": "checkout"}, "write it from / on"),
        ({**CLASSIC, "bench_root": "/nowhere"}, "no bench_envs/ in it"),
        ({**CLASSIC, "profile": "isaac"}, "use classic or robopro"),
        ({**CLASSIC, "profil": "classic"}, "profil: no such key"),
        ({**CLASSIC, "native": "delta_ee"}, "native: delta_ee: no such kind"),
    ],
)
def test_a_wrong_configuration_is_refused(config: dict[str, str], says: str) -> None:
    with pytest.raises(RollpoolError) as refused:
        RoboTwin(config=config)
    assert says in str(refused.value)


def test_the_environment_stands_in_for_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROBOTWIN_ROOT", ROBOPRO["root"])
    assert RoboTwin().versions()["simulator"] == "robotwin classic"
    monkeypatch.setenv("BENCH_ROOT", ROBOPRO["bench_root"])
    monkeypatch.setenv("ROBOTWIN_BENCH_TASK", "bench")
    assert RoboTwin().versions()["simulator"] == "robotwin robopro"


def test_a_cell_that_is_not_there_is_refused_with_what_is(robopro: RoboTwin) -> None:
    with pytest.raises(RollpoolError, match="no such cell in robotwin"):
        robopro.seal("office", "put_cup_in_box", "bench_demo_office_clean", 1)
    with pytest.raises(RollpoolError, match="pick one of: bench_compositional_full_d6"):
        robopro.seal("study", "put_cup_in_box", "bench_demo_office_clean", 1)


def test_a_package_that_this_python_lacks_names_the_interpreter(copied: Path) -> None:
    root = copied / "customized_robotwin"
    (root / "envs/scene.py").write_text("import curobo_of_the_checkout\n")
    sim = RoboTwin(config={"root": str(root)})
    with pytest.raises(RollpoolError, match=r"needs the module 'curobo_of.*SIM_PY"):
        sim.reset(sealed(sim, HAMMER, 1))


def test_a_second_checkout_needs_a_process_of_its_own(robopro: RoboTwin, copied: Path) -> None:
    sealed(robopro, CUP, 40000)
    other = RoboTwin(config={"root": str(copied / "customized_robotwin"), "profile": "classic"})
    with pytest.raises(RollpoolError, match="one checkout a process"):
        sealed(other, HAMMER, 1)
