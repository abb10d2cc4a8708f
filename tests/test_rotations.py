"""The layouts, with numbers one can check by hand, and round trips over all rotations."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from harness import rotations

#: A quarter turn about z: x -> y, y -> -x.
QUARTER_Z = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])

components = st.floats(-1, 1, allow_nan=False)
quaternions = (
    st.tuples(components, components, components, components)
    .map(np.array)
    .filter(lambda q: np.linalg.norm(q) > 1e-3)
)


def test_interleaved_reads_the_first_two_columns_row_by_row() -> None:
    assert rotations.rot6d_from_matrix(QUARTER_Z).tolist() == [0, -1, 1, 0, 0, 0]


def test_contiguous_is_column_after_column() -> None:
    interleaved = np.array([0, -1, 1, 0, 0, 0])
    contiguous = rotations.contiguous_from_interleaved(interleaved)
    assert contiguous.tolist() == [0, 1, 0, -1, 0, 0]
    assert rotations.interleaved_from_contiguous(contiguous).tolist() == interleaved.tolist()


def test_quaternion_is_w_first() -> None:
    half = np.sqrt(0.5)
    np.testing.assert_allclose(rotations.quaternion_from_matrix(QUARTER_Z), [half, 0, 0, half])
    np.testing.assert_allclose(
        rotations.matrix_from_quaternion(np.array([half, 0, 0, half])), QUARTER_Z, atol=1e-15
    )


def test_rot6d_need_not_be_orthonormal() -> None:
    skewed = np.array([[2.0, 1.0], [0.0, 3.0], [0.0, 0.0]]).reshape(6)
    np.testing.assert_allclose(rotations.matrix_from_rot6d(skewed), np.eye(3), atol=1e-15)


@given(quaternions)
def test_round_trips(wxyz: np.ndarray) -> None:
    matrix = rotations.matrix_from_quaternion(wxyz)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(3), atol=1e-12)
    quaternion = rotations.quaternion_from_matrix(matrix)
    assert quaternion[0] >= 0
    for again in (
        rotations.matrix_from_quaternion(quaternion),
        rotations.matrix_from_rot6d(rotations.rot6d_from_matrix(matrix)),
        rotations.matrix_from_quaternion(
            rotations.quaternion_from_rotation_vector(rotations.rotation_vector(-quaternion))
        ),
    ):
        np.testing.assert_allclose(again, matrix, atol=1e-7)


def test_leading_axes_broadcast() -> None:
    stack = np.stack([np.eye(3), QUARTER_Z])
    quaternion = rotations.quaternion_from_matrix(stack)
    assert quaternion.shape == (2, 4)
    np.testing.assert_allclose(rotations.matrix_from_quaternion(quaternion), stack, atol=1e-12)
    assert rotations.matrix_from_rot6d(rotations.rot6d_from_matrix(stack)).shape == (2, 3, 3)
