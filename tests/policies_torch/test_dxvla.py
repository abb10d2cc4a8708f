"""``policy/dxvla``: its loading code on a tiny model of the same interface, and each variable of
the README's table (needs torch)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from harness.errors import RollpoolError
from harness.foundations.settings import resolve
from harness.policies import Policy, PolicyError, Session, load_policy
from tests.policies_torch.dxvla_code import PRETRAINED, TRAINED, write_checkpoint, write_code

FOLDER = Path(__file__).resolve().parents[2] / "policy" / "dxvla"
PROPRIO = np.linspace(0, 1, 20, dtype=np.float32)
Load = Callable[..., Policy]


@pytest.fixture
def environ(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[pytest.MonkeyPatch]:
    """A process that has loaded no model's code, with the tiny one named by GIANT_CODE_DIR."""
    for name in list(os.environ):
        if name.startswith(("XVLA_", "DXVLA_", "DA3_", "GIANT_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIANT_CODE_DIR", str(write_code(tmp_path / "code")))
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = dict(os.environ)
    yield monkeypatch
    for name in [name for name in sys.modules if name.partition(".")[0] == "models"]:
        del sys.modules[name]
    for name in set(os.environ) - set(before):
        del os.environ[name]


@pytest.fixture
def load(environ: pytest.MonkeyPatch, tmp_path: Path) -> Load:
    """The policy as its own deploy_policy.yml describes it, on a new checkpoint."""

    def loaded(knobs: dict[str, Any] | None = None, weights: Any = None, **config: Any) -> Policy:
        checkpoint = tmp_path / "checkpoint"
        if not checkpoint.exists():
            write_checkpoint(checkpoint, weights, **config)
        settings = yaml.safe_load((FOLDER / "deploy_policy.yml").read_text())
        return load_policy(FOLDER, {**settings, "checkpoint": str(checkpoint)}, knobs or {})

    return loaded


def model_of(policy: Any) -> Any:
    """The tiny model inside."""
    while hasattr(policy, "_inner"):
        policy = policy._inner
    return policy._model._model


def seen(**more: Any) -> dict[str, Any]:
    cameras = ("countertop", "left_wrist", "right_wrist")
    picture = np.zeros((24, 32, 3), np.uint8)
    picture[..., 0] = 255  # red
    pose = np.arange(12, dtype=np.float32).reshape(3, 4)
    lens = np.array([[32, 0, 16], [0, 24, 12], [0, 0, 1]], np.float32)
    state = {f"{name}.extrinsic": pose + k for k, name in enumerate(cameras)}
    state |= {f"{name}.intrinsic": lens for name in cameras}
    return {
        "images": dict.fromkeys(cameras, picture),
        "state": state,
        "proprio": PROPRIO,
        "instruction": "go",
        "last_action": None,
        **more,
    }


def ask(policy: Policy, **more: Any) -> np.ndarray:
    return policy.infer(seen(**more), Session.begin("s", {"task": "t", "seed": 1}))


def asked(policy: Policy, **more: Any) -> dict[str, Any]:
    """What ``generate_actions`` was called with."""
    ask(policy, **more)
    return model_of(policy).asked


def test_a_chunk(load: Load) -> None:
    policy = load()
    actions = ask(policy)
    assert actions.shape == (30, 20) and actions.dtype == np.float32
    assert (ask(policy) == actions).all()  # the episode's own noise
    assert actions[:, 9].tolist() == [0] * 30 and actions[:, 19].tolist() == [1] * 30
    inputs = model_of(policy).asked
    assert inputs["image_input"].shape == (1, 3, 3, 8, 8) and inputs["image_mask"].shape == (1, 3)
    assert inputs["input_ids"].tolist() == [[ord("g"), ord("o")]]
    assert inputs["domain_id"].tolist() == [6] and inputs["steps"] == 10
    assert inputs["proprio"].shape == (1, 20)
    assert inputs["language_instruction"] == ["go"]
    assert not torch.is_grad_enabled() or not inputs["proprio"].requires_grad


def test_frozen_da3_weights_are_loaded_again(load: Load) -> None:
    """``from_pretrained`` has wiped what the checkpoint lacks."""
    assert model_of(load()).da3_inline.weight.tolist() == [PRETRAINED] * 4


def test_trained_da3_weights_are_kept(load: Load) -> None:
    model = model_of(load(weights={"da3_inline.weight": torch.full((4,), TRAINED)}))
    assert model.da3_inline.weight.tolist() == [TRAINED] * 4


def test_giant_code_dir(load: Load, environ: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Names the model's code, before DA3_XVLA_ROOT, and sets that for the code to see."""
    environ.setenv("DA3_XVLA_ROOT", str(tmp_path / "nowhere"))
    model = model_of(load())
    file = sys.modules[type(model).__module__].__file__
    assert file == str(tmp_path / "code" / "models" / "modeling_xvla.py")
    assert os.environ["DA3_XVLA_ROOT"] == str(tmp_path / "code")


def test_da3_xvla_root(load: Load, environ: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environ.delenv("GIANT_CODE_DIR")
    environ.setenv("DA3_XVLA_ROOT", str(tmp_path / "code"))
    assert ask(load()).shape == (30, 20)
    environ.setenv("DA3_XVLA_ROOT", str(tmp_path))
    with pytest.raises(RollpoolError, match="no folder models/"):
        load()


def test_another_package_named_models_is_no_models_code(
    load: Load, environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    load()
    environ.setenv("GIANT_CODE_DIR", str(write_code(tmp_path / "other")))
    with pytest.raises(RollpoolError, match="let no other package be named models"):
        load()


def test_xvla_posed_da3(load: Load, environ: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """1: extrinsics and intrinsics go to DA3, in the pixels of the pictures that it sees."""
    inputs = asked(load())
    assert inputs["extrinsics"].shape == (1, 3, 4, 4) and inputs["intrinsics"].shape == (1, 3, 3, 3)
    assert inputs["extrinsics"][0, 1, :3].tolist() == (np.arange(12).reshape(3, 4) + 1).tolist()
    assert inputs["extrinsics"][0, 1, 3].tolist() == [0, 0, 0, 1]
    assert inputs["intrinsics"][0, 0].tolist() == [[8, 0, 4], [0, 8, 4], [0, 0, 1]]
    with pytest.raises(PolicyError, match=r"countertop\.extrinsic"):
        asked(load(), state={})
    environ.setenv("XVLA_POSED_DA3", "0")
    inputs = asked(load(), state={})
    assert inputs["extrinsics"] is None and inputs["intrinsics"] is None


def test_xvla_posed_da3_of_a_model_without_geometry(
    load: Load, environ: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    environ.setenv("GIANT_CODE_DIR", str(write_code(tmp_path / "plain", plain=True)))
    with pytest.raises(RollpoolError, match="takes no camera poses; set XVLA_POSED_DA3=0"):
        load()
    environ.setenv("XVLA_POSED_DA3", "0")
    assert ask(load()).shape == (30, 20)


def test_xvla_rgb_input(load: Load, environ: pytest.MonkeyPatch) -> None:
    assert asked(load())["image_input"][0, 0, :, 0, 0].tolist() == [1, 0, 0]
    environ.setenv("XVLA_RGB_INPUT", "0")
    assert asked(load())["image_input"][0, 0, :, 0, 0].tolist() == [0, 0, 1]


def test_xvla_skip_geometry_reinit(load: Load, environ: pytest.MonkeyPatch) -> None:
    """1 keeps the trained geometry weights; 0 initialises them anew."""
    trained = torch.full((2, 2), TRAINED)
    assert torch.equal(model_of(load()).geometry_fusion.weight, trained)
    environ.setenv("XVLA_SKIP_GEOMETRY_REINIT", "0")
    assert not torch.equal(model_of(load()).geometry_fusion.weight, trained)


def test_code_that_forgets_trained_geometry_is_found_out(load: Load) -> None:
    with pytest.raises(RollpoolError, match=r"geometry_fusion\.\w+: the model has other numbers"):
        load(forgets=True)


def test_xvla_da3_native_input(load: Load, environ: pytest.MonkeyPatch) -> None:
    """1: DA3 looks at its own pictures in their own size, which must be multiples of 14."""
    environ.setenv("XVLA_DA3_NATIVE_INPUT", "1")
    size = {"da3_input_height": 28, "da3_input_width": 42}
    policy = load(geometry_conditioning=size)
    inputs = asked(policy)
    assert inputs["image_input_da3"].shape == (1, 3, 3, 28, 42)
    assert model_of(policy).da3_saw == (28, 42)
    assert inputs["intrinsics"][0, 0].tolist() == [[42, 0, 21], [0, 28, 14], [0, 0, 1]]
    red = (1 - 0.485) / 0.229
    assert inputs["image_input_da3"][0, 0, 0].mean().item() == pytest.approx(red, abs=1e-5)
    environ.setenv("XVLA_DA3_INPUT_H", "30")
    environ.setenv("XVLA_DA3_INPUT_W", "42")
    with pytest.raises(RollpoolError, match="30 x 42; give XVLA_DA3_INPUT_H and _W as multiples"):
        load()
    environ.setenv("XVLA_DA3_NATIVE_INPUT", "0")
    policy = load()
    assert asked(policy)["image_input_da3"].shape == (1, 3, 3, 30, 42)
    assert model_of(policy).da3_saw == (504, 504)


def test_dxvla_geostack_step(load: Load, environ: pytest.MonkeyPatch) -> None:
    """Sets the schedule, which loading leaves at step 0, and DA3-Large is loaded again."""
    with pytest.raises(RollpoolError, match="its geometry would be switched off"):
        load(geostack=True)
    environ.setenv("DXVLA_GEOSTACK_STEP", "20000")
    model = model_of(load())
    assert model.geostack_alpha_schedule.step == 20000
    assert model.da3_for_geostack.weight.tolist() == [PRETRAINED] * 4


def test_dxvla_geostack_step_of_another_model(load: Load, environ: pytest.MonkeyPatch) -> None:
    environ.setenv("DXVLA_GEOSTACK_STEP", "20000")
    with pytest.raises(RollpoolError, match="no GeoStack schedule"):
        load()


def test_dxvla_primary_cam(load: Load, environ: pytest.MonkeyPatch) -> None:
    assert list(load().cameras) == ["countertop", "left_wrist", "right_wrist"]
    environ.setenv("DXVLA_PRIMARY_CAM", "head")
    policy = load()
    assert list(policy.cameras) == ["head", "left_wrist", "right_wrist"]
    with pytest.raises(PolicyError, match="camera 'head'"):
        ask(policy)


@pytest.mark.parametrize("name", ["XVLA_POSED_DA3", "XVLA_RGB_INPUT", "XVLA_DA3_NATIVE_INPUT"])
def test_a_switch_is_0_or_1(load: Load, environ: pytest.MonkeyPatch, name: str) -> None:
    environ.setenv(name, "yes")
    with pytest.raises(RollpoolError, match=f"{name}=yes"):
        load()


def test_no_checkpoint_is_said(load: Load, tmp_path: Path) -> None:
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(RollpoolError, match=r"no config\.json"):
        load()


def knobs(**environ: str) -> dict[str, Any]:
    """What a launch with these variables tells the model server to put around the policy."""
    return resolve({"POLICY_NAME": "dxvla", **environ}, gpus=list)[0].knobs()


LAST = np.full(20, 9, np.float32)


def test_dxvla_action_smooth(load: Load) -> None:
    """0.7 of the last executed action in a chunk's first, by default; 0 leaves it alone."""
    raw = ask(load(), last_action=LAST)
    first = ask(load({**knobs(), "fake_proprio": 0}), last_action=LAST)
    poses = np.r_[0:9, 10:19]
    assert first[0, poses] == pytest.approx(0.7 * 9 + 0.3 * raw[0, poses], rel=1e-5)
    assert (first[0, [9, 19]] == raw[0, [9, 19]]).all() and (first[1:] == raw[1:]).all()
    off = ask(load({**knobs(DXVLA_ACTION_SMOOTH="0"), "fake_proprio": 0}), last_action=LAST)
    assert (off == raw).all()


def test_dxvla_smooth_rot(load: Load) -> None:
    raw = ask(load(), last_action=LAST)
    first = ask(load({**knobs(DXVLA_SMOOTH_ROT="0"), "fake_proprio": 0}), last_action=LAST)
    changed = np.flatnonzero(first[0] != raw[0])
    assert changed.tolist() == [0, 1, 2, 10, 11, 12]


def test_dxvla_exec_actions(load: Load) -> None:
    assert len(ask(load(knobs()))) == 30
    assert len(ask(load(knobs(DXVLA_EXEC_ACTIONS="20")))) == 20


def test_dxvla_fake_proprio(load: Load) -> None:
    """1, the default: the model is told the last commanded action in place of proprio."""
    assert asked(load(knobs()), last_action=LAST)["proprio"][0, 0] == 9
    assert asked(load(knobs()))["proprio"][0, 1] == pytest.approx(PROPRIO[1])
    measured = asked(load(knobs(DXVLA_FAKE_PROPRIO="0")), last_action=LAST)["proprio"]
    assert measured[0, 1] == pytest.approx(PROPRIO[1])


@pytest.mark.parametrize(
    ("name", "default", "sealed"),
    [
        ("DXVLA_SAPIEN_B1", "1", True),
        ("DXVLA_DENOISER", "optix", True),
        ("DXVLA_RT_SPP", "32", True),
        ("DXVLA_PRIMARY_CAM", "countertop", True),
        ("DXVLA_VIDEO_CAM", "countertop_camera", False),
        ("XVLA_POSED_DA3", "1", True),
        ("XVLA_RGB_INPUT", "1", True),
        ("XVLA_SKIP_GEOMETRY_REINIT", "1", True),
    ],
)
def test_defaults_reach_the_processes_and_the_seal(name: str, default: str, sealed: bool) -> None:
    settings, _ = resolve({"POLICY_NAME": "dxvla"}, gpus=list)
    assert settings.exports()[name] == default
    assert (name in settings.sealed()) == sealed
    other, _ = resolve({"POLICY_NAME": "tinyvla"}, gpus=list)
    assert name not in other.exports()
