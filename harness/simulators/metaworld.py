"""Meta-World (the 50 tasks of MT50) behind the contract, with its scripted experts.

One scene, ``metaworld``; its tasks are upstream's names (``reach-v3``), its one configuration is
``default``. A seed draws the vector of object and goal positions, which is what upstream calls a
task's variation; that vector is sealed, so an episode needs no random numbers. Upstream's own
``reset(seed=)`` ignores its seed and draws from ``numpy.random`` instead, and an environment
remembers its last episode in places that ``reset`` does not restore; here every episode has an
environment of its own, from a copy of the compiled model.

Action kind ``metaworld`` ``(4,)`` in -1..1: the hand's move along x, y, z in centimetres, and the
effort that closes (> 0) or opens the gripper. Proprio ``(4,)``: the hand's xyz in metres and the
gripper's opening (0 closed, 1 open). ``state["observation"]`` ``(39,)`` is upstream's observation
with the goal in it: what Meta-World's own learners see, the objects' positions included.
"""

from __future__ import annotations

import copy
import ctypes
import hashlib
import os
import pickle
import warnings
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from harness.errors import RollpoolError, one_line
from harness.simulators.contract import (
    DEMO,
    ActionSpace,
    Episode,
    Observation,
    Score,
    Simulator,
    require_camera,
    require_cell,
    taken,
)

SCENE, CONFIG, KIND = "metaworld", "default", "metaworld"
STEP_LIMIT = 500
PICTURE = 256  # pixels, height and width
#: Camera -> upstream's name of it.
CAMERAS = {
    DEMO: "corner3",
    **{name: name for name in ("corner", "corner2", "corner3", "corner4")},
    **{name: name for name in ("topview", "behindGripper", "gripperPOV")},
}
#: Upstream's own number is a failed assertion in the middle of an episode; the loop counts steps.
_NO_LIMIT = 2**31


class MetaWorld(Simulator):
    """The adapter. ``render=False`` needs no graphics library and offers no camera.

    Raises:
        RollpoolError: pictures are wanted and cannot be rendered here.
    """

    name = "metaworld"
    action_kinds: Mapping[str, ActionSpace] = {KIND: ActionSpace(4, -1.0, 1.0)}
    control_hz = 80.0

    def __init__(self, render: bool = True) -> None:
        if render:
            _choose_graphics()
        mujoco = _import_mujoco()
        from metaworld.env_dict import ALL_V3_ENVIRONMENTS
        from metaworld.policies import ENV_POLICY_MAP

        # Experts ask for more than the hand can do, which the environment clips, and say so.
        warnings.filterwarnings("ignore", message="Constant.s. may be too high")
        self._mujoco = mujoco
        self._classes, self._experts = ALL_V3_ENVIRONMENTS, ENV_POLICY_MAP
        self._models: dict[str, Any] = {}
        self._env: Any = None
        self._renderer: Any = None
        if render:
            self._try_rendering()
        self.cameras: Sequence[str] = tuple(CAMERAS) if render else ()

    def cells(self) -> Sequence[tuple[str, str]]:
        return [(SCENE, task) for task in sorted(self._experts)]

    def task_configs(self, scene: str) -> Sequence[str]:
        return [CONFIG]

    def step_limit(self, task: str, task_config: str) -> int:
        return STEP_LIMIT

    def seal(self, scene: str, task: str, task_config: str, seed: int) -> Mapping[str, Any]:
        require_cell(self, scene, task, task_config)
        return {
            "instruction": task.rpartition("-v")[0].replace("-", " "),
            "reset": {"vector": self._draw(task, seed)},
            "fingerprint": self.fingerprint(),
        }

    def fingerprint(self) -> Mapping[str, str]:
        return {name: version(name) for name in ("metaworld", "mujoco")}

    def reset(self, episode: Episode) -> None:
        from metaworld.types import Task

        self.close()
        vector = np.array(episode.reset["vector"], np.float64)
        env = self._fresh(episode.task)
        variation = {
            "env_cls": type(env).__base__,
            "rand_vec": vector,
            "partially_observable": False,
        }
        env.set_task(Task(episode.task, pickle.dumps(variation)))
        self._instruction = episode.instruction
        self._expert = self._experts[episode.task]()
        self._env, self._success, self._steps = env, False, 0
        self._seen, _ = env.reset()

    def observe(self, cameras: Collection[str]) -> Observation:
        return Observation(
            images={name: self.frame(name) for name in cameras},
            proprio=self._seen[:4].astype(np.float32),
            instruction=self._instruction,
            state={"observation": self._seen.astype(np.float32)},
        )

    def step(self, action: np.ndarray, kind: str) -> bool:
        move = taken(self, action, kind).astype(np.float32)
        self._seen, _, _, _, info = self._env.step(move)
        self._steps += 1
        self._success = self._success or bool(info["success"])
        return self._success

    def expert_chunk(self, length: int) -> np.ndarray:
        """One action: upstream's experts know the present observation and nothing else."""
        action = np.asarray(self._expert.get_action(self._seen), np.float32)
        return np.clip(action, -1, 1)[None]

    def score(self) -> Score:
        return Score(self._success, None, None)

    def frame(self, camera: str) -> np.ndarray:
        require_camera(self, camera)
        if self._renderer is None:
            self._renderer = self._mujoco.Renderer(self._env.model, PICTURE, PICTURE)
        self._renderer.update_scene(self._env.data, camera=CAMERAS[camera])
        picture: np.ndarray = self._renderer.render()
        # Upstream's corner cameras hang upside down.
        return picture[::-1, ::-1].copy() if CAMERAS[camera].startswith("corner") else picture

    def sim_time(self) -> float:
        return self._steps / self.control_hz

    def state_hash(self) -> str:
        """Of the integrator's whole state, and of what environments move in their models."""
        mujoco, model, data = self._mujoco, self._env.model, self._env.data
        kind = mujoco.mjtState.mjSTATE_INTEGRATION
        state = np.empty(mujoco.mj_stateSize(model, kind))
        mujoco.mj_getState(model, data, state, kind)
        moved = (model.body_pos, model.body_quat, model.site_pos, self._env._target_pos)
        digest = hashlib.sha256(state.tobytes())
        for array in moved:
            digest.update(np.ascontiguousarray(array, np.float64).tobytes())
        return digest.hexdigest()

    def versions(self) -> Mapping[str, str]:
        graphics = os.environ.get("MUJOCO_GL", "default") if self.cameras else "none"
        names = self.fingerprint()
        return {
            "simulator": f"metaworld {names['metaworld']}",
            "physics": f"mujoco {names['mujoco']}",
            "renderer": graphics,
        }

    def close(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
        self._renderer = self._env = None

    def _draw(self, task: str, seed: int) -> list[float]:
        """The object and goal positions of a seed. A task rejects some of those it draws, and the
        last one drawn counts, because upstream's ``reset`` resets twice."""
        env, rng, drawn = self._fresh(task), np.random.default_rng(seed), []
        space = env._random_reset_space

        def draw() -> np.ndarray:
            vector = rng.uniform(space.low, space.high)
            drawn.append(vector.tolist())
            return vector  # which the environment may write into

        env._get_state_rand_vec, env._set_task_called = draw, True
        env.reset()
        return [float(number) for number in drawn[-1]]

    def _fresh(self, task: str) -> Any:
        """A new environment of ``task`` that shares nothing with an earlier one."""
        upstream, mujoco = self._classes[task], self._mujoco
        if task not in self._models:
            self._models[task] = upstream().model
        compiled = self._models[task]

        class OfACopy(upstream):  # type: ignore[misc, valid-type]
            max_path_length = _NO_LIMIT

            def _initialize_simulation(self) -> tuple[Any, Any]:
                model = copy.copy(compiled)
                return model, mujoco.MjData(model)

        return OfACopy()

    def _try_rendering(self) -> None:
        try:
            model = self._mujoco.MjModel.from_xml_string("<mujoco/>")
            self._mujoco.Renderer(model, 16, 16).close()
        except Exception as error:  # PyOpenGL and MuJoCo each have errors of their own
            raise _no_pictures(one_line(error)) from error


def _choose_graphics() -> None:
    """EGL, which needs no display, unless the user chose (``MUJOCO_GL``)."""
    if "MUJOCO_GL" in os.environ:
        return
    try:
        ctypes.CDLL("libEGL.so.1")
    except OSError as error:
        raise _no_pictures(str(error)) from error
    os.environ["MUJOCO_GL"] = "egl"


def _import_mujoco() -> Any:
    """MuJoCo, which loads the graphics library of ``MUJOCO_GL`` as it is imported."""
    try:
        import mujoco
    except ModuleNotFoundError as error:
        raise RollpoolError(
            "simulator metaworld", f"no module {error.name!r}",
            "run bash scripts/setup.sh metaworld, or set SIM_PY to a Python that has it",
        ) from error  # fmt: skip
    except (ImportError, AttributeError) as error:  # PyOpenGL, where the library is not there
        raise _no_pictures(f"MUJOCO_GL={os.environ.get('MUJOCO_GL')}: {error}") from error
    return mujoco


def _no_pictures(found: str) -> RollpoolError:
    return RollpoolError(
        "pictures of Meta-World", found,
        "run bash scripts/setup.sh egl, or set EVAL_VIDEO=none for a policy that looks at"
        " no pictures",
    )  # fmt: skip
