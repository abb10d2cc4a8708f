"""Rotations in the layouts that policies and simulators exchange, with every layout named.

Promises: all functions work on the last axes and broadcast over the leading ones; quaternions are
**wxyz** and come back with ``w >= 0``; rotation matrices act on column vectors. ``rot6d`` is the
first two columns of the matrix: *interleaved* reads them row by row (RoboTwin's order, the
toolkit's own), *contiguous* puts the first column before the second (the order of Zhou et al.).
Any six numbers that span a plane are a valid rot6d: they are orthonormalised.
"""

from __future__ import annotations

import math

import numpy as np


def rot6d_from_matrix(matrix: np.ndarray) -> np.ndarray:
    """``(..., 3, 3)`` -> ``(..., 6)`` interleaved: ``[m00, m01, m10, m11, m20, m21]``."""
    return matrix[..., :, :2].reshape(*matrix.shape[:-2], 6)


def matrix_from_rot6d(rot6d: np.ndarray) -> np.ndarray:
    """``(..., 6)`` interleaved -> ``(..., 3, 3)``, orthonormal (Gram-Schmidt on the columns)."""
    columns = np.asarray(rot6d, dtype=np.float64).reshape(*np.shape(rot6d)[:-1], 3, 2)
    x = _unit(columns[..., 0])
    y = columns[..., 1]
    y = _unit(y - np.sum(x * y, axis=-1, keepdims=True) * x)
    x0, x1, x2 = np.moveaxis(x, -1, 0)
    y0, y1, y2 = np.moveaxis(y, -1, 0)
    z = np.stack([x1 * y2 - x2 * y1, x2 * y0 - x0 * y2, x0 * y1 - x1 * y0], axis=-1)
    return np.stack([x, y, z], axis=-1)


def contiguous_from_interleaved(rot6d: np.ndarray) -> np.ndarray:
    """``(..., 6)`` interleaved -> ``(..., 6)`` contiguous: ``[m00, m10, m20, m01, m11, m21]``."""
    return np.asarray(rot6d)[..., [0, 2, 4, 1, 3, 5]]


def interleaved_from_contiguous(rot6d: np.ndarray) -> np.ndarray:
    """``(..., 6)`` contiguous -> ``(..., 6)`` interleaved; undoes the function above."""
    return np.asarray(rot6d)[..., [0, 3, 1, 4, 2, 5]]


def matrix_from_quaternion(wxyz: np.ndarray) -> np.ndarray:
    """``(..., 4)`` wxyz of any non-zero length -> ``(..., 3, 3)``."""
    w, x, y, z = np.moveaxis(_unit(np.asarray(wxyz, dtype=np.float64)), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def quaternion_from_matrix(matrix: np.ndarray) -> np.ndarray:
    """``(..., 3, 3)`` -> ``(..., 4)`` wxyz with ``w >= 0``; stable for every rotation.

    Row ``i`` of the symmetric matrix ``4 q q^T`` is the quaternion times ``4 q_i``: the row of the
    largest component loses no digits.
    """
    m = np.asarray(matrix, dtype=np.float64)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    wx, wy, wz = (
        m[..., 2, 1] - m[..., 1, 2],
        m[..., 0, 2] - m[..., 2, 0],
        m[..., 1, 0] - m[..., 0, 1],
    )
    xy, xz, yz = (
        m[..., 1, 0] + m[..., 0, 1],
        m[..., 0, 2] + m[..., 2, 0],
        m[..., 2, 1] + m[..., 1, 2],
    )
    outer = np.stack(
        [
            np.stack([1 + xx + yy + zz, wx, wy, wz], axis=-1),
            np.stack([wx, 1 + xx - yy - zz, xy, xz], axis=-1),
            np.stack([wy, xy, 1 - xx + yy - zz, yz], axis=-1),
            np.stack([wz, xz, yz, 1 - xx - yy + zz], axis=-1),
        ],
        axis=-2,
    )
    largest = np.argmax(np.diagonal(outer, axis1=-2, axis2=-1), axis=-1)
    row = np.take_along_axis(outer, largest[..., None, None], axis=-2)[..., 0, :]
    quaternion = _unit(row)
    return np.where(quaternion[..., :1] < 0, -quaternion, quaternion)


def rotation_vector(wxyz: np.ndarray) -> np.ndarray:
    """Unit quaternion ``(4,)`` -> ``(3,)`` axis times angle in radians, angle in [0, pi]."""
    w, *xyz = (float(c) for c in wxyz)
    sine = math.sqrt(sum(c * c for c in xyz))
    if sine < 1e-9:
        return 2.0 * math.copysign(1.0, w) * np.array(xyz)
    angle = 2.0 * math.atan2(sine, w) if w >= 0 else -2.0 * math.atan2(sine, -w)
    return np.array(xyz) * (angle / sine)


def quaternion_from_rotation_vector(vector: np.ndarray) -> np.ndarray:
    """``(3,)`` axis times angle in radians -> ``(4,)`` wxyz."""
    angle = float(np.linalg.norm(vector))
    scale = 0.5 if angle < 1e-9 else math.sin(angle / 2) / angle
    return np.array([math.cos(angle / 2), *(scale * np.asarray(vector))])


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector, axis=-1, keepdims=True)
