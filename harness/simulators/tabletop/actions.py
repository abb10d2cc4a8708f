"""The actions of two arms: how they are laid out, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import sapien

from harness.errors import RollpoolError
from harness.rotations import rot6d_from_matrix

SIDES = ("left", "right")
#: Numbers per arm and action kind; the last one is always the gripper.
ACTION_WIDTHS: Mapping[str, int] = MappingProxyType({"ee6d": 10, "qpos": 8, "ee": 8})


def ee6d(tcp: sapien.Pose, grip: float) -> np.ndarray:
    """``(10,)``: one arm's share of an ``ee6d`` action."""
    matrix = tcp.to_transformation_matrix()
    return np.concatenate([matrix[:3, 3], rot6d_from_matrix(matrix[:3, :3]), [grip]])


def check_action(action: np.ndarray, kind: str) -> np.ndarray:
    """The action as float64, or a refusal that says what is wrong with it."""
    asked = f"action of kind {kind!r}"
    if kind not in ACTION_WIDTHS:
        raise RollpoolError(asked, "no such kind", f"use one of: {', '.join(ACTION_WIDTHS)}")
    values, shape = np.asarray(action, dtype=np.float64), (2 * ACTION_WIDTHS[kind],)
    if values.shape != shape:
        raise RollpoolError(asked, f"shape {values.shape}", f"give an array of shape {shape}")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values)).tolist()
        raise RollpoolError(asked, f"not finite at positions {bad}", "repair the policy's output")
    _refuse_degenerate(asked, values, kind)
    return values


def _refuse_degenerate(asked: str, values: np.ndarray, kind: str) -> None:
    """A rotation that spans nothing would turn into NaN joints."""
    for side, share in zip(SIDES, np.split(values, 2), strict=True):
        if kind == "ee" and np.linalg.norm(share[3:7]) < 1e-6:
            raise RollpoolError(asked, f"a zero quaternion ({side})", "give a unit wxyz quaternion")
        if kind == "ee6d":
            x, y = share[3:9].reshape(3, 2).T
            if (x @ x) * (y @ y) - (x @ y) ** 2 < 1e-12:  # the area that they span, squared
                raise RollpoolError(asked, f"a rot6d that spans no plane ({side})", "repair it")
