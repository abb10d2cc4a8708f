"""A user's own policy module, unchanged, asked for chunks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.episodes.episode import run_episode
from harness.errors import RollpoolError
from harness.paths import CODE
from harness.policies import load_policy
from harness.policies.contract import PolicyError, Session
from harness.simulators.robotwin.adapter import RoboTwin
from tests.fakes.models import FakeModel
from tests.robotwin.conftest import CLASSIC, HAMMER, sealed

FOLDER = CODE / "policy" / "robotwin_module"
SETTINGS = yaml.safe_load((FOLDER / "deploy_policy.yml").read_text())


@pytest.fixture(autouse=True)
def unimported() -> Iterator[None]:
    yield
    for name in list(sys.modules):
        if name.partition(".")[0] in ("StandIn", "Odd"):
            del sys.modules[name]


def _load(root: Path | str, module: str, **more: Any) -> Any:
    settings = {**SETTINGS, "policy_root": str(root), "module": module, **more}
    return load_policy(FOLDER, settings, {})


def _session() -> Session:
    return Session.begin("s", {"task": "t", "instruction": "hit the block", "reset": {}})


def _seen(value: float) -> dict[str, Any]:
    picture = np.zeros((4, 5, 3), np.uint8)
    state = {"qpos": np.full(14, value, np.float32), "ee": np.zeros(16, np.float32)}
    return {"images": {"head": picture}, "proprio": state["qpos"], "state": state,
            "instruction": "hit the block", "last_action": None, "expert": None}  # fmt: skip


def test_what_it_does_until_it_looks_again_is_a_chunk() -> None:
    """The stand-in's policy takes two actions, and looks after each of them."""
    policy = _load(Path(CLASSIC["root"]) / "policy", "StandIn", usr_args={"step": 0.5})
    assert policy.exclusive
    session = _session()
    policy.reset(session)
    firsts = []
    for value in (0.0, 1.0, 2.0):
        (action,) = policy.infer(_seen(value), session)
        firsts.append(float(action[0]))
    assert firsts == [0.5, 1.0, 2.5]  # two actions of the first look's chunk, then it looks
    policy.reset(_session())
    assert sys.modules["StandIn"] is not None


def test_it_plays_an_episode_of_the_checkout_it_belongs_to(classic: RoboTwin) -> None:
    policy, session = _load(Path(CLASSIC["root"]) / "policy", "StandIn"), _session()
    policy.reset(session)

    def act(step: int, seen: Any, last: Any) -> np.ndarray:
        fields = {"images": seen.images, "proprio": seen.proprio, "state": seen.state}
        return policy.infer({**fields, "instruction": seen.instruction}, session)

    model = FakeModel(act, needs=("images",), cameras=["head"], action_kind="qpos")
    model.hello["action_dim"] = 14
    result = run_episode(classic, model, sealed(classic, HAMMER, 3))
    assert (result["outcome"], result["steps"]) == ("fail", 40), result["error"]


ODD = """
import threading
def get_model(usr_args): return usr_args
def reset_model(model): pass
def eval(TASK_ENV, model, observation):
    if model["do"] == "raise":
        raise ValueError("out of joints")
    if model["do"] == "hang":
        threading.Event().wait(30)
    if model["do"] == "ee":
        TASK_ENV.take_action([0.0] * 16, action_type="ee")
"""


@pytest.mark.parametrize(
    ("what", "error", "says"),
    [
        ("raise", ValueError, "out of joints"),
        ("ee", PolicyError, "it acts by 'ee', deploy_policy.yml says 'qpos'"),
        ("hang", PolicyError, "no action and no look within 0.3 s"),
        ("nothing", PolicyError, "eval returned without an action"),
    ],
)
def test_what_goes_wrong_in_it_is_raised(
    tmp_path: Path, what: str, error: type[Exception], says: str
) -> None:
    (tmp_path / "Odd").mkdir()
    (tmp_path / "Odd/__init__.py").write_text(ODD)
    policy, session = _load(tmp_path, "Odd", usr_args={"do": what}, deadline_s=0.3), _session()
    policy.reset(session)
    with pytest.raises(error, match=says):
        policy.infer(_seen(0.0), session)


def test_a_module_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RollpoolError, match="set policy_root"):
        _load(tmp_path, "Nowhere")
