"""The real filesystem's own answers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.leases.filesystem import Filesystem


def test_a_missing_directory_is_looked_up_again_through_its_parent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on an NFS client that remembers a missing name until it lists the directory it is in."""
    leases = tmp_path / "leases"
    (leases / "cell").mkdir(parents=True)
    real, missing = os.listdir, {leases}

    def listdir(path: Path) -> list[str]:
        if path in missing:
            raise FileNotFoundError(path)
        missing.difference_update(path / name for name in real(path))
        return real(path)

    monkeypatch.setattr(os, "listdir", listdir)
    assert Filesystem().names(leases) == ["cell"]
    assert Filesystem().names(tmp_path / "nothing" / "at all") == []
