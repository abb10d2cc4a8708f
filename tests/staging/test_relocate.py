"""An environment that was copied to another path runs there, without its old place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.nodes.relocate import environment_of, relocate, swap_sapien
from harness.nodes.stage_plan import _environment
from harness.nodes.staging import stage

from .conftest import Node


def run(*argv: str | Path) -> str:
    done = subprocess.run(
        [str(a) for a in argv], env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def test_a_staged_environment_runs_without_its_source(node: Node, environment: Path) -> None:
    (ready,) = stage(node.store, [_environment("small", environment, None)])
    shutil.rmtree(environment)
    python = ready.path / "bin" / "python"
    assert run(python, "-c", "import greeting; greeting.main()") == str(ready.path)
    assert run(ready.path / "bin" / "greet") == str(ready.path)
    where = run(python, "-c", "import further; print(further.__file__)")
    assert where == str(ready.path / "extra" / "further.py")
    script = f'. "{ready.path}/bin/activate"; echo "$VIRTUAL_ENV"'
    assert run("bash", "-c", script) == str(ready.path)
    assert str(environment) not in (ready.path / "pyvenv.cfg").read_text()


@pytest.mark.parametrize("room", [True, False])
def test_a_conda_environment_runs_without_its_source(node: Node, conda: Path, room: bool) -> None:
    node.folder /= "a" if room else "a_folder_whose_name_alone_is_longer_than_all_of_the_source"
    node.folder.mkdir()
    (ready,) = stage(node.open(), [_environment("sim", conda, None)])
    assert (len(str(ready.path)) <= len(str(conda))) == room
    conda.rename(conda.with_name("gone"))
    prefix = run(ready.path / "bin" / "python", "-c", "import sys; print(sys.prefix)")
    assert prefix == run(ready.path / "bin" / "greet") == str(ready.path)
    assert (ready.path / "etc/settings.sh").read_text() == f"export DATA={ready.path}/share\n"
    binary, path = (ready.path / "lib/libsettings.so").read_bytes(), ready.path if room else conda
    assert binary.startswith(f"\x7fELF\0{path}/share:{path}/etc\0".encode())
    assert binary.endswith(b"\0end")
    assert len(binary) == len(f"\x7fELF\0{conda}/share:{conda}/etc\0end")


def test_a_path_that_merely_begins_alike_is_left_alone(tmp_path: Path, environment: Path) -> None:
    alike = environment / "bin" / "alike"
    alike.write_text(f"#!{environment}2/bin/python\n{environment}/x\n")
    relocate(environment, environment, tmp_path / "new")
    assert alike.read_text() == f"#!{environment}2/bin/python\n{tmp_path}/new/x\n"


def test_the_source_of_linked_files_is_never_written(tmp_path: Path, environment: Path) -> None:
    greet = environment / "bin" / "greet"
    (tmp_path / "linked").hardlink_to(greet)
    before = (tmp_path / "linked").read_text()
    relocate(environment, environment, tmp_path / "new")
    assert (tmp_path / "linked").read_text() == before != greet.read_text()


def test_a_base_python_that_is_missing_is_named(node: Node, environment: Path) -> None:
    (environment / "bin" / "python").unlink()
    (environment / "bin" / "python").symlink_to("/nowhere/python3")
    with pytest.raises(RollpoolError, match=r"base Python .* must be on every node"):
        stage(node.store, [_environment("small", environment, None)])
    assert node.store.copies() == []


def test_only_environments_are_staged(environment: Path) -> None:
    assert environment_of(environment / "bin" / "python") == environment
    assert environment_of(Path("/usr/bin/python3")) is None


def package(folder: Path, version: str) -> Path:
    """Something that imports as SAPIEN of this version."""
    (folder / "sapien").mkdir(parents=True)
    (folder / "sapien" / "__init__.py").write_text(f"__version__ = {version!r}\n")
    (folder / f"sapien-{version}.dist-info").mkdir()
    (folder / f"sapien-{version}.dist-info" / "METADATA").write_text(f"Version: {version}\n")
    return folder


@pytest.fixture
def simulator(environment: Path) -> Path:
    (site,) = environment.glob("lib/python3*/site-packages")
    package(site, "3.0.3")
    return environment


def test_sapien_is_swapped_in_the_copy_alone(node: Node, simulator: Path, tmp_path: Path) -> None:
    b1 = package(tmp_path / "b1", "3.0.0b1")
    (swapped,) = stage(node.store, [_environment("tabletop", simulator, b1)])
    ask = ("-c", "import sapien; print(sapien.__version__)")
    assert run(swapped.path / "bin" / "python", *ask) == "3.0.0b1"
    assert run(simulator / "bin" / "python", *ask) == "3.0.3"
    assert not list(swapped.path.glob("lib/*/site-packages/sapien-3.0.3*"))
    (warm,) = stage(node.store, [_environment("tabletop", simulator, b1)])
    assert warm.seconds is None
    (plain,) = stage(node.store, [_environment("tabletop", simulator, None)])
    assert run(plain.path / "bin" / "python", *ask) == "3.0.3"


def test_another_sapien_in_its_place_is_refused(simulator: Path, tmp_path: Path) -> None:
    with pytest.raises(RollpoolError, match=r"holds 3\.0\.1"):
        swap_sapien(simulator, package(tmp_path / "wrong", "3.0.1"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(RollpoolError, match=r"setup\.sh sapien_b1"):
        swap_sapien(simulator, tmp_path / "empty")
