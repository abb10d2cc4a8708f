"""``policy/lerobot`` on checkpoints that lerobot itself has just saved, in ``envs/lerobot``."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.errors import RollpoolError
from harness.inference.model_client import ModelClient
from harness.simulators.contract import Episode, Observation
from harness.wire import RemoteError
from harness.workers.server_process import ModelServerProcess
from tests.environments import needs, python_of

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "policy" / "lerobot"
PYTHON = python_of("lerobot")

pytestmark = [
    pytest.mark.slow,
    needs("lerobot"),
]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lerobot")
    script = ROOT / "tests" / "lerobot" / "make_checkpoint.py"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    subprocess.run([str(PYTHON), str(script), str(folder)], check=True, env=offline, timeout=300)
    return folder


@contextmanager
def served(checkpoint: Path, log: Path, **more: Any) -> Iterator[ModelServerProcess]:
    settings = yaml.safe_load((FOLDER / "deploy_policy.yml").read_text())
    settings |= {"checkpoint": str(checkpoint), **more}
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    with ModelServerProcess(PYTHON, FOLDER, settings, {}, "t", log, env=offline) as server:
        server.start(120)
        yield server


def client(server: ModelServerProcess) -> ModelClient:
    return ModelClient(server.host, server.port, "t", "s", 60)


def begin(model: ModelClient, seed: int = 1) -> None:
    model.reset(Episode("s", "t", "c", seed, "go"))


def ask(model: ModelClient, picture: np.ndarray) -> np.ndarray:
    proprio = np.arange(4, dtype=np.float32)
    return model.infer(0, Observation({"top": picture}, proprio, "go"), None, None)[0]


def test_a_policy_of_the_present_gives_lerobots_own_chunk(
    checkpoints: Path, tmp_path: Path
) -> None:
    expected = np.load(checkpoints / "expected.npz")
    with served(checkpoints / "act", tmp_path / "log") as server:
        one, other = client(server), client(server)
        assert one.hello["chunk"] == 4 and one.hello["action_dim"] == 3
        assert one.hello["action_kind"] == "native" and one.hello["cameras"] == ["top"]
        begin(one)
        begin(other)  # shared: it keeps nothing
        for model in (one, other, one):
            actions = ask(model, expected["picture"])
            np.testing.assert_allclose(actions, expected["actions"], rtol=0, atol=1e-4)
        assert 5 < actions.mean() < 15  # in the robot's units, by the checkpoint's statistics
        with pytest.raises(RemoteError, match=r"shape \(3, 64, 64\): the simulator's is"):
            ask(one, np.zeros((48, 64, 3), np.uint8))


def test_a_policy_of_the_past_is_asked_at_every_step(checkpoints: Path, tmp_path: Path) -> None:
    picture = np.load(checkpoints / "expected.npz")["picture"]
    with served(checkpoints / "diffusion", tmp_path / "log") as server:
        one = client(server)
        assert one.hello["chunk"] == 1
        runs = []
        for _ in range(2):
            begin(one)
            runs.append([ask(one, picture) for _ in range(6)])
        assert all(actions.shape == (1, 3) for actions in runs[0])
        assert np.array_equal(runs[0], runs[1])  # the episode's own noise, its own past
        with pytest.raises(RemoteError, match="in use"):
            begin(client(server))


def test_what_the_policy_looks_at_and_nobody_names_is_said(
    checkpoints: Path, tmp_path: Path
) -> None:
    blind = {"observation": {"observation.state": {"array": "proprio"}}}
    with (
        pytest.raises(RollpoolError, match=r"lacks observation\.images\.top"),
        served(checkpoints / "act", tmp_path / "log", **blind),
    ):
        pass


def test_a_checkpoint_of_an_older_lerobot_is_refused(checkpoints: Path, tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.mkdir()
    (old / "config.json").write_text((checkpoints / "act" / "config.json").read_text())
    with (
        pytest.raises(RollpoolError, match=r"saved before lerobot 0\.4"),
        served(old, tmp_path / "log"),
    ):
        pass
