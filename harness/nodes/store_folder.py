"""The folder that a node's copies may lie in: a disk of its own, that no stranger writes to.

Promises: it is never on a filesystem of several machines, since locks of one mean nothing to
another; what anybody may write to is never run from.
"""

from __future__ import annotations

import getpass
import os
import re
import stat
from pathlib import Path

from harness.errors import RollpoolError

#: File systems of several machines, by the names that the kernel has for them.
_SHARED = re.compile(r"nfs4?|lustre|gpfs|beegfs|ceph|cifs|smb3|glusterfs|panfs|wekafs|fuse\.sshfs")


def choose_folder(wanted: Path) -> Path:
    """``wanted``, or where somebody else made it and does not share it, ``<wanted>-<user>``. Raises
    ``RollpoolError``."""
    for folder in (wanted, wanted.with_name(f"{wanted.name}-{getpass.getuser()}")):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            info = os.lstat(folder)
        except OSError as error:
            raise RollpoolError(
                f"DXVLA_LOCAL={folder}", error.strerror or str(error), "name another folder"
            ) from error
        _refuse_shared(folder)
        if _ours(info):
            return folder
    raise RollpoolError(
        f"DXVLA_LOCAL={wanted}", "it belongs to somebody else, or anybody may write to it",
        "set DXVLA_LOCAL to a folder of your own on the node's own disk",
    )  # fmt: skip


def file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that ``folder`` is on, as the kernel calls it."""
    place, found, deepest = folder.resolve(), "", -1
    for line in mounts.read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        point = Path(fields.split()[4].encode().decode("unicode_escape"))
        if place.is_relative_to(point) and len(point.parts) >= deepest:
            found, deepest = rest.split()[0], len(point.parts)
    return found


def _ours(info: os.stat_result) -> bool:
    """Whether it is a folder of this user's, or of a group of theirs that may write to it."""
    groups = {os.getegid(), *os.getgroups()}
    shared = bool(info.st_mode & stat.S_IWGRP) and info.st_gid in groups
    everybodys = bool(info.st_mode & stat.S_IWOTH)
    own = info.st_uid == os.geteuid() or shared
    return stat.S_ISDIR(info.st_mode) and own and not everybodys


def _refuse_shared(folder: Path) -> None:
    """Locks of one machine mean nothing to another."""
    if _SHARED.fullmatch(kind := file_system(folder)):
        raise RollpoolError(
            f"DXVLA_LOCAL={folder}", f"it is on a file system of several machines ({kind})",
            "set it to a folder on the node's own disk; DXVLA_STAGE=0 runs without staging",
        )  # fmt: skip
