"""Digests that say what was evaluated: the checkpoint's and the code's.

Promises: equal content gives equal digests wherever it lies; caches do not matter. Not promised:
that two checkpoints above 256 MiB that differ in the middle of a file alone have other digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from harness.errors import RollpoolError

#: A checkpoint up to this size is read whole; of a larger one the ends of each file.
WHOLE_BYTES = 256 * 2**20
_END_BYTES = 2**20
_BLOCK_BYTES = 2**20
_CACHES = ("__pycache__", ".cache", ".git", ".ipynb_checkpoints")


def checkpoint_digest(path: Path, whole_bytes: int = WHOLE_BYTES) -> str:
    """``sha256:<hex>`` of a file's or directory's content, ``sampled:<hex>`` above the limit.

    Names inside the directory count, the name of ``path`` itself does not.
    """
    files = list(_files(path)) if path.is_dir() else [path]
    if not files:
        raise RollpoolError(f"checkpoint {path}", "an empty directory", "put the weights there")
    names = [file.relative_to(path).as_posix() if path.is_dir() else "" for file in files]
    try:
        sizes = [file.stat().st_size for file in files]
        whole = sum(sizes) <= whole_bytes
        digest = hashlib.sha256()
        for file, name, size in zip(files, names, sizes, strict=True):
            digest.update(f"{name}\0{size}\0".encode())
            for block in _blocks(file, size, whole):
                digest.update(block)
    except OSError as error:
        what = error.strerror or str(error)
        raise RollpoolError(f"checkpoint {path}", what, "make it readable") from error
    return f"{'sha256' if whole else 'sampled'}:{digest.hexdigest()}"


def code_hash(code: Path, policy_dir: Path) -> str:
    """The sha256 of the code and data that can move numbers.

    That is all of ``harness/`` but its notes, ``scripts/*.py``, and the policy's folder but for its
    checkpoints, which have digests of their own.
    """
    parts = {
        "harness": (code / "harness", lambda name: not name.endswith(".md")),
        "scripts": (code / "scripts", lambda name: name.endswith(".py") and "/" not in name),
        "policy": (policy_dir, lambda name: not name.startswith("checkpoints/")),
    }
    digest = hashlib.sha256()
    for part, (folder, counts) in parts.items():
        for file in _files(folder):
            name = file.relative_to(folder).as_posix()
            if counts(name):
                digest.update(f"{part}/{name}\0{file.stat().st_size}\0".encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """Every file below ``folder``, sorted by path, caches left out."""
    for file in sorted(folder.rglob("*")):
        cached = any(part in _CACHES for part in file.relative_to(folder).parts)
        if not cached and file.suffix != ".pyc" and file.is_file():
            yield file


def _blocks(file: Path, size: int, whole: bool) -> Iterator[bytes]:
    with file.open("rb") as stream:
        if whole or size <= 2 * _END_BYTES:
            while block := stream.read(_BLOCK_BYTES):
                yield block
            return
        yield stream.read(_END_BYTES)
        stream.seek(size - _END_BYTES)
        yield stream.read(_END_BYTES)
