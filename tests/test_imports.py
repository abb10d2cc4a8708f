"""Imports point one way, and foreign code needs nothing but the standard library and numpy.

The layers are those of ``harness/DESIGN.md``, lowest first. A new module must be placed in one.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import numpy
import pytest

ROOT = Path(__file__).resolve().parents[1]

LAYERS = {
    "foundations": "canonical errors paths rotations stopwatch foundations"
    " simulators.contract simulators.registry",
    "run": "runs leases nodes.node_words",
    "episode": "wire policies fronts simulators inference episodes",
    "worker": "workers nodes",
    "reports": "reports commands cli",
}

#: What each layer may import beside itself.
BELOW = {
    "foundations": (),
    "run": ("foundations",),
    "episode": ("foundations",),
    "worker": ("foundations", "run", "episode"),
    "reports": ("foundations", "run", "episode", "worker"),
}

#: Runs in a user's simulator or model Python. Adapters and policies import what they are for.
FOREIGN = "canonical errors rotations stopwatch " + LAYERS["episode"] + " simulators.contract"


def modules() -> dict[str, Path]:
    """Dotted name below ``harness`` -> file."""
    found = {}
    for file in sorted((ROOT / "harness").rglob("*.py")):
        parts = file.relative_to(ROOT / "harness").with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        if name:
            found[name] = file
    return found


MODULES = modules()
ADAPTERS = " ".join(
    name for name in MODULES
    if name.startswith("simulators.") and name not in ("simulators.contract", "simulators.registry")
)  # fmt: skip


def within(name: str, names: str) -> str | None:
    """The longest of ``names`` that is ``name`` or a package it lies in."""
    parents = [n for n in names.split() if name == n or name.startswith(f"{n}.")]
    return max(parents, key=len, default=None)


def layer(name: str) -> str | None:
    fits = {which: within(name, names) for which, names in LAYERS.items()}
    placed = {which: fit for which, fit in fits.items() if fit}
    return max(placed, key=lambda which: len(placed[which]), default=None)


def imports(file: Path, runtime_only: bool = False) -> Iterator[tuple[int, str]]:
    """``(line, module of harness)`` of every import, those inside functions included."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if runtime_only and isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            skipped.update(inner for part in node.body for inner in ast.walk(part))
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            head, _, rest = name.partition(".")
            if head == "harness" and rest:
                module = next((m for m in (rest, rest.rpartition(".")[0]) if m in MODULES), None)
                if module:
                    yield node.lineno, module


@pytest.mark.parametrize("name", MODULES)
def test_a_module_stands_in_one_layer_and_imports_downwards(name: str) -> None:
    own = layer(name)
    assert own, f"place harness/{name} in a layer of DESIGN.md and of this test"
    for line, other in imports(MODULES[name], runtime_only=True):
        theirs = layer(other)
        assert theirs == own or theirs in BELOW[own], (
            f"{MODULES[name]}:{line}: {own} imports {other} of {theirs}"
        )


def test_no_modules_import_each_other() -> None:
    graph = {
        name: {other for _, other in imports(file, runtime_only=True) if other != name}
        for name, file in MODULES.items()
    }
    tuple(TopologicalSorter(graph).static_order())


def test_policies_import_the_published_contract_alone() -> None:
    published = "policies policies.contract policies.mapping policies.ee6d wire.calls"
    published += " errors rotations"
    served = (f for f in (ROOT / "policy").rglob("*.py") if "training" not in f.parts)
    for file in sorted(served):
        for line, other in imports(file):
            assert other in published.split(), f"{file}:{line}: imports harness.{other}"


@pytest.mark.parametrize("name", [name for name in MODULES if within(name, ADAPTERS)])
def test_an_adapter_imports_the_contract_alone(name: str) -> None:
    own = re.split("[._]", name)[1]  # "simulators.mine", and "simulators.mine_parts" beside it
    for line, other in imports(MODULES[name]):
        published = other in ("errors", "rotations", "simulators.contract")
        assert published or other.startswith(f"simulators.{own}"), (
            f"{MODULES[name]}:{line}: imports harness.{other}"
        )


#: What imports the packages that it is for, beside adapters.
OWN_PACKAGES = f"{ADAPTERS} fronts.openpi"
FOREIGN_MODULES = [n for n in MODULES if within(n, FOREIGN) and not within(n, OWN_PACKAGES)]

#: Imports each module named, in an interpreter that has the standard library and numpy alone.
IMPORT_ALONE = """
import importlib, importlib.abc, sys

class Refuse(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "harness"}:
            raise ModuleNotFoundError(f"{name} is neither standard library, numpy nor harness")

root, numpy, *names = sys.argv[1:]
sys.path += [root, numpy]
import numpy
sys.meta_path.insert(0, Refuse())
for name in names:
    importlib.import_module(name)
"""


def test_foreign_code_needs_the_standard_library_and_numpy_alone() -> None:

    arguments = [str(ROOT), str(Path(numpy.__file__).parents[1])]
    arguments += [f"harness.{name}" for name in FOREIGN_MODULES]
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT_ALONE, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", FOREIGN_MODULES)
def test_foreign_code_imports_foreign_code(name: str) -> None:
    for line, other in imports(MODULES[name], runtime_only=True):
        assert within(other, FOREIGN), f"{MODULES[name]}:{line}: imports harness.{other}"


def test_the_refusal_refuses(tmp_path: Path) -> None:
    (tmp_path / "pleasant.py").touch()
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", IMPORT_ALONE, str(tmp_path),
         str(Path(sys.modules["pytest"].__file__ or "").parents[1]), "pleasant"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "pleasant is neither standard library, numpy nor harness" in done.stderr
