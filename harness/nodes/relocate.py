"""Python environments that work at another path.

What makes an environment find its packages is where its interpreter lies: ``bin/python`` (a link
to the base Python, which stays where it is) beside ``pyvenv.cfg``, whose ``home`` names the base
and is kept. What breaks in a copy are texts that hold the old path: the first lines of console
scripts, the ``activate`` scripts, ``.pth`` files. ``relocate`` rewrites those. A conda environment
carries its base with it, and its ``conda-meta`` lists the files that hold the path: texts are
rewritten, and binaries where the new path is not longer than the old one. Not promised: other paths
compiled into binaries; they go on naming the source.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection
from pathlib import Path

from harness.errors import RollpoolError

B1_VERSION = "3.0.0b1"
_TEXT_LIMIT = 2**20
_IMPORT_DEADLINE_S = 120.0


def environment_of(python: Path) -> Path | None:
    """The environment whose interpreter this is; None for a system's Python, which stays put."""
    folder = python.parent.parent
    made = (folder / "pyvenv.cfg").is_file() or (folder / "conda-meta").is_dir()
    return folder if made else None


def relocate(environment: Path, old: Path, new: Path) -> None:
    """Make the texts of ``environment`` (a copy of ``old``) say ``new``.

    Files are replaced, never written in place: an unchanged one may be a link to another copy.

    Raises:
        RollpoolError: its base Python is not on this machine.
    """
    candidates = [f for f in (environment / "bin").iterdir() if f.is_file() and not f.is_symlink()]
    for site in site_packages(environment):
        candidates += site.glob("*.pth")
    texts, binaries = _conda_files(environment)
    olds = (old, old.resolve())
    for file in dict.fromkeys([*candidates, *texts, environment / "pyvenv.cfg"]):
        if file.is_file() and file.stat().st_size <= _TEXT_LIMIT:
            _replace_text(file, olds, new)
    for file in binaries:
        if file.is_file():
            _replace_padded(file, olds, new)
    ask(environment, "import sys; print(sys.prefix)", "start its interpreter")


def swap_sapien(environment: Path, package: Path) -> None:
    """Put SAPIEN 3.0.0b1, unpacked in ``package``, in place of the environment's own.

    Raises:
        RollpoolError: no such package, or it cannot be imported there.
    """
    parts = [part for part in package.iterdir() if part.name.startswith("sapien")]
    if not any(part.name == "sapien" for part in parts):
        raise RollpoolError(
            f"SAPIEN {B1_VERSION}", f"not in {package}", "run: bash scripts/setup.sh sapien_b1"
        )
    (site, *_) = site_packages(environment)
    for own in site.glob("sapien*"):
        shutil.rmtree(own)
    for part in parts:
        shutil.copytree(part, site / part.name)
    found = ask(environment, "import sapien; print(sapien.__version__)", f"import {B1_VERSION}")
    if found != B1_VERSION:
        raise RollpoolError(
            f"SAPIEN {B1_VERSION}",
            f"{package} holds {found}",
            "run: bash scripts/setup.sh sapien_b1",
        )


def site_packages(environment: Path) -> list[Path]:
    """Where its packages lie."""
    return sorted(environment.glob("lib/python3*/site-packages"))


def ask(environment: Path, code: str, what: str) -> str:
    """The last line that ``code`` prints in the environment. Raises ``RollpoolError``."""
    python = environment / "bin" / "python"
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    try:
        done = subprocess.run(
            [str(python), "-c", code], env=clean, capture_output=True, text=True, check=False,
            timeout=_IMPORT_DEADLINE_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RollpoolError(
            f"environment {environment.name}: {what}", str(error),
            "its base Python (`home` in pyvenv.cfg) must be on every node at the same path",
        ) from error  # fmt: skip
    if done.returncode:
        words = " | ".join(done.stderr.strip().splitlines()[-3:]) or f"ended with {done.returncode}"
        raise RollpoolError(
            f"environment {environment.name}: {what}", words, "see whether it works where it is"
        )
    return (done.stdout.strip().splitlines() or [""])[-1]


def _conda_files(environment: Path) -> tuple[list[Path], list[Path]]:
    """The texts and the binaries into which conda wrote the environment's path."""
    found: dict[str, list[Path]] = {"text": [], "binary": []}
    for record in sorted((environment / "conda-meta").glob("*.json")):
        for entry in json.loads(record.read_bytes()).get("paths_data", {}).get("paths", ()):
            if "prefix_placeholder" in entry:
                found[entry.get("file_mode", "text")].append(environment / entry["_path"])
    return found["text"], found["binary"]


def _replace_text(file: Path, olds: Collection[Path], new: Path) -> None:
    data = fresh = file.read_bytes()
    if b"\0" in data:
        return
    for old in olds:
        whole = rb"(?<![\w.-])" + re.escape(str(old).encode()) + rb"(?![\w.-])"
        fresh = re.sub(whole, lambda _: str(new).encode(), fresh)
    _put(file, data, fresh)


def _replace_padded(file: Path, olds: Collection[Path], new: Path) -> None:
    """In a binary a text keeps its length, filled up with the zeros that end it."""
    data = fresh = file.read_bytes()
    for old in olds:
        before, after = str(old).encode(), str(new).encode()
        if len(after) <= len(before):
            for text in set(re.findall(re.escape(before) + rb"(?![\w.-])[^\0]*\0", fresh)):
                fresh = fresh.replace(text, text.replace(before, after).ljust(len(text), b"\0"))
    _put(file, data, fresh)


def _put(file: Path, data: bytes, fresh: bytes) -> None:
    if fresh != data:
        aside = file.with_name(f".{file.name}.new")
        aside.write_bytes(fresh)
        shutil.copymode(file, aside)
        os.replace(aside, file)
