"""The policies of the repository, and the five steps of policy/README.md, followed literally."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.errors import RollpoolError
from harness.inference.model_client import ModelClient
from harness.policies import Policy, PolicyError, Session, load_policy
from harness.policies.wrappers import KNOBS
from harness.simulators.contract import Episode, Observation
from policy.bc.deploy_policy import Clone

ROOT = Path(__file__).resolve().parents[2]
PROPRIO = np.linspace(0, 1, 20, dtype=np.float32)


def load(name: str, knobs: dict[str, Any] | None = None, **usr_args: Any) -> Policy:
    """The policy as its own deploy_policy.yml describes it."""
    values = yaml.safe_load((ROOT / "policy" / name / "deploy_policy.yml").read_text())
    assert values["policy_name"] == name
    own = {key: values.pop(key) for key in KNOBS if key in values}
    return load_policy(ROOT / "policy" / name, {**values, **usr_args}, {**own, **(knobs or {})})


def seen(**more: Any) -> dict[str, Any]:
    return {"proprio": PROPRIO, "last_action": None, "expert": None, "images": {}, **more}


def session(seed: int = 1, task: str = "t") -> Session:
    return Session.begin("s", {"task": task, "task_config": "clean", "seed": seed})


def test_expert_gives_the_simulators_chunk() -> None:
    expert = load("expert")
    assert list(expert.needs) == ["expert"] and list(expert.cameras) == []
    for dim in (20, 4):  # whatever the simulator's own actions are
        chunk = np.random.default_rng(0).random((7, dim), np.float32)
        assert (expert.infer(seen(expert=chunk), session()) == chunk).all()
    with pytest.raises(PolicyError, match="carries none"):
        expert.infer(seen(), session())


def test_random_is_seeded_and_bounded() -> None:
    policy = load("random")
    assert list(policy.needs) == []
    one, again = session(1), session(1)
    chunks = [policy.infer(seen(), one) for _ in range(20)]
    assert all((policy.infer(seen(), again) == chunk).all() for chunk in chunks)
    assert (policy.infer(seen(), session(2)) != chunks[0]).any()
    every = np.concatenate(chunks)
    assert every.shape == (600, 20)
    xyz, rotations = [0, 1, 2, 10, 11, 12], [*range(3, 9), *range(13, 19)]
    assert np.abs(every[:, xyz] - PROPRIO[xyz]).max() == pytest.approx(0.1, abs=1e-6)
    assert (every[:, rotations] == PROPRIO[rotations]).all()
    assert every[:, [9, 19]].min() >= 0 and every[:, [9, 19]].max() <= 1
    with pytest.raises(PolicyError, match="ee6d"):
        policy.infer(seen(proprio=np.zeros(14, np.float32)), session())


def test_a_recording_plays_back_bit_for_bit(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    recorded: dict[int, list[np.ndarray]] = {}
    recorder = load("random", {"record": str(file), "exec_actions": 20})
    runs = {seed: session(seed) for seed in (1, 2)}
    for _ in range(3):  # two episodes at once, their chunks interleaved in the file
        for seed, run in runs.items():
            recorded.setdefault(seed, []).append(recorder.infer(seen(), run))
    replay = load("replay", recording=str(file))
    for seed, chunks in recorded.items():
        run = session(seed)
        for chunk in chunks:
            assert (replay.infer(seen(), run) == chunk).all()
        with pytest.raises(PolicyError, match="ends after 3 chunks"):
            replay.infer(seen(), run)
    with pytest.raises(PolicyError, match="no such episode"):
        replay.infer(seen(), session(task="another"))


def test_the_last_recorded_attempt_is_played(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    recorder = load("random", {"record": str(file)})
    first = session()
    for _ in range(2):
        recorder.infer(seen(), first)
    last = recorder.infer(seen(proprio=PROPRIO / 2), session())
    replay, run = load("replay", checkpoint=str(file)), session()
    assert (replay.infer(seen(), run) == last).all()
    with pytest.raises(PolicyError, match="ends after 1 chunks"):
        replay.infer(seen(), run)


def test_arrays_are_played_in_chunks(tmp_path: Path) -> None:
    file = tmp_path / "r.npz"
    actions = np.random.default_rng(0).random((50, 20), np.float32)
    np.savez(file, allow_pickle=False, **{"t/clean/1": actions})
    replay, run = load("replay", recording=str(file)), session()
    chunks = [replay.infer(seen(), run) for _ in range(2)]
    assert [len(chunk) for chunk in chunks] == [30, 20]
    assert (np.concatenate(chunks) == actions).all()


@pytest.mark.parametrize("text", ['{"task": "t"}', "nonsense", '{"chunk": 1}'])
def test_a_recording_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(text)
    with pytest.raises(RollpoolError, match="get_model of policy replay"):
        load("replay", recording=str(file))


def test_chunks_out_of_order_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    entry = {"task": "t", "task_config": "c", "seed": 1, "chunk": 1, "actions": [[0.0]]}
    file.write_text(json.dumps(entry))
    with pytest.raises(RollpoolError, match="out of order"):
        load("replay", recording=str(file))


def readme_block(step: int) -> str:
    text = (ROOT / "policy" / "README.md").read_text()
    part = text.split(f"**{step}. ", 1)[1].split(f"**{step + 1}. ")[0]
    match = re.search(r"```\w+\n(.*?)```", part, re.DOTALL)
    assert match is not None
    return match.group(1)


def shell(tree: Path, step: int) -> None:
    subprocess.run(["bash", "-euc", readme_block(step)], cwd=tree, check=True, timeout=60)


@pytest.mark.e2e
def test_the_five_steps_of_the_readme(tmp_path: Path) -> None:
    tree = tmp_path / "a checkout"
    (tree / "scripts").mkdir(parents=True)
    shutil.copytree(ROOT / "policy" / "template", tree / "policy" / "template")
    shutil.copy(ROOT / "scripts" / "policy_model_server.py", tree / "scripts")
    (tree / "harness").symlink_to(ROOT / "harness")

    shell(tree, 1)
    shell(tree, 2)
    (tree / "policy" / "mine" / "deploy_policy.py").write_text(readme_block(3))
    command = readme_block(4).replace("5577", "0")  # whatever port is free here
    server = subprocess.Popen(
        ["bash", "-euc", f"exec {command}"],
        cwd=tree,
        env={**os.environ, "XVLA_PY": sys.executable},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("serving mine on 127.0.0.1:")
        model = ModelClient("127.0.0.1", int(line.rsplit(":", 1)[1]), "", "s", 60)
        assert model.hello["cameras"] == ["countertop"]
        model.reset(Episode("study", "t", "c", 1, "go"))
        picture = np.zeros((48, 64, 3), np.uint8)
        actions, _ = model.infer(0, Observation({"countertop": picture}, PROPRIO, "go"), None, None)
        assert actions.shape == (30, 20) and (actions[:, 0] == 0).all()
        assert 0 < abs(actions[0, 2] - PROPRIO[2]) < 0.01
        model.close()
    finally:
        server.kill()
        server.communicate(timeout=60)


def test_bc_answers_several_at_once_each_by_its_own_instruction() -> None:
    rng = np.random.default_rng(0)
    shapes = {"mean": 24, "scale": 24, "w0": (24, 8), "b0": 8, "w1": (8, 8), "b1": 8, "w2": (8, 4)}
    skills = {
        text: {name: rng.random(shape) for name, shape in {**shapes, "b2": 4}.items()}
        for text in ("reach", "push")
    }
    clone = Clone(skills)
    asked = [("reach", 0), ("push", 1), ("reach", 2)]
    observations = [
        seen(instruction=text, state={"observation": np.random.default_rng(k).random(39)})
        for text, k in asked
    ]
    batch = clone.infer_batch(observations, [session()] * 3)
    for alone, together in zip(observations, batch, strict=True):
        np.testing.assert_allclose(clone.infer(alone), together, rtol=1e-5)
    with pytest.raises(PolicyError, match="pull"):
        clone.infer_batch([*observations, seen(instruction="pull")], [session()] * 4)
