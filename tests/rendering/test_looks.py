"""The palette, and the primitives that wear it. Needs no renderer."""

from __future__ import annotations

import numpy as np
import pytest

from harness.errors import RollpoolError

pytest.importorskip("sapien", reason="materials are tested in the simulator's environment")

from harness.simulators.tabletop import looks, shapes


def test_every_name_of_the_palette_is_a_colour_and_a_known_pattern():
    for name, finish in looks.PALETTE.items():
        linear = looks._linear(finish.colour)
        assert all(0.0 <= part <= 1.0 for part in linear), name
        assert looks.PLAIN <= finish.pattern <= looks.PLANKS, name


def test_every_look_names_materials_of_the_palette():
    assert set(looks.LOOKS) == {"study", "office", "kitchenl", "kitchens"}
    for look in looks.LOOKS.values():
        assert {look.wall, look.floor} <= set(looks.PALETTE)
        assert look.key.direction[2] < 0, "the key light comes from above"


def test_an_unknown_material_is_refused_with_the_names_there_are():
    with pytest.raises(RollpoolError, match=r"material 'gold'.*brass"):
        looks.material("gold")


@pytest.mark.parametrize(
    ("profile", "volume"),
    [
        (shapes._cylinder(0.1, 0.2), np.pi * 0.01 * 0.4),
        (shapes._capsule(0.1), 4 / 3 * np.pi * 0.001),
        (shapes._capsule(0.1, 0.2), 4 / 3 * np.pi * 0.001 + np.pi * 0.01 * 0.4),
    ],
)
def test_a_turned_mesh_is_closed_and_faces_outwards(profile, volume):
    vertices, triangles, normals = shapes._turned(profile)
    a, b, c = (vertices[triangles[:, k]].astype(float) for k in range(3))
    # The divergence theorem: only a closed mesh with outward triangles has this signed volume.
    assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6 == pytest.approx(volume, rel=0.08)
    facing = np.einsum("ij,ij->i", np.cross(b - a, c - a), normals[triangles].sum(axis=1))
    assert (facing > 0).all()
    assert np.allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-6)
    assert len(triangles) <= 400
