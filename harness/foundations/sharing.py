"""Runs that a group works on together.

A run directory whose group may write to it is shared, whoever made it so (``chmod g+ws``, or a
set-group-id ``runs/`` and a umask of 002). In it everything a process makes is for the group too,
whatever that user's umask; elsewhere the umask is left as it is.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

PRIVATE, FOR_THE_GROUP = 0o600, 0o640


def is_shared(directory: Path) -> bool:
    """Whether the group may write to it; False where it does not exist."""
    try:
        return bool(os.stat(directory).st_mode & stat.S_IWGRP)
    except OSError:
        return False


def join(directory: Path) -> None:
    """From now on this process makes files for the group, if ``directory`` is shared."""
    if is_shared(directory):
        umask = os.umask(0o022)
        os.umask(umask & ~stat.S_IRWXG)


def secret_mode(directory: Path) -> int:
    """The mode of a secret that all who work in ``directory`` have to read."""
    return FOR_THE_GROUP if is_shared(directory) else PRIVATE
