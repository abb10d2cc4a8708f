"""Digests change with what moves numbers, and with nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.foundations.identity import checkpoint_digest, code_hash

MIB = 2**20


def write(folder: Path, **files: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return folder


def test_a_file_is_its_content_wherever_it_lies(tmp_path: Path) -> None:
    one = write(tmp_path / "a", net=b"weights") / "net"
    other = write(tmp_path / "b", renamed=b"weights") / "renamed"
    assert checkpoint_digest(one) == checkpoint_digest(other)
    assert checkpoint_digest(one) == "sha256:" + hashlib.sha256(b"\x007\x00weights").hexdigest()
    assert checkpoint_digest(one) != checkpoint_digest(write(tmp_path / "c", net=b"w") / "net")


def test_a_directory_is_its_names_and_contents(tmp_path: Path) -> None:
    folder = write(tmp_path / "net", config=b"1", weights=b"22")
    digest = checkpoint_digest(folder)
    (folder / "__pycache__").mkdir()
    write(folder / "__pycache__", code=b"3")
    assert checkpoint_digest(folder) == digest
    assert checkpoint_digest(write(tmp_path / "moved", config=b"12", weights=b"2")) != digest
    (folder / "config").rename(folder / "configuration")
    assert checkpoint_digest(folder) != digest


def test_above_the_limit_the_ends_of_each_file_count(tmp_path: Path) -> None:
    data = bytes(3 * MIB)

    def digest(changed: int) -> str:
        one = data[:changed] + b"x" + data[changed + 1 :]
        return checkpoint_digest(write(tmp_path / "net", weights=one), whole_bytes=MIB)

    first, middle, last = digest(0), digest(3 * MIB // 2), digest(3 * MIB - 1)
    untouched = checkpoint_digest(write(tmp_path / "net", weights=data), whole_bytes=MIB)
    assert untouched.startswith("sampled:")
    assert middle == untouched
    assert len({untouched, first, last}) == 3


def test_a_checkpoint_that_holds_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RollpoolError, match="an empty directory"):
        checkpoint_digest(write(tmp_path / "net"))


def test_the_code_is_what_can_move_numbers(tmp_path: Path) -> None:
    policy = write(tmp_path / "policy", **{"deploy_policy.py": b"1"})
    write(tmp_path / "harness" / "tasks", **{"study.yml": b"1", "study.py": b"1"})
    write(tmp_path / "scripts", **{"policy_model_server.py": b"1"})
    digest = code_hash(tmp_path, policy)

    write(tmp_path / "harness", **{"DESIGN.md": b"a note"})
    write(tmp_path / "harness" / "__pycache__", **{"study.pyc": b"a cache"})
    write(tmp_path / "scripts" / "lib", **{"stage.py": b"a tool"})
    write(policy / "checkpoints", net=b"weights with a digest of their own")
    assert code_hash(tmp_path, policy) == digest

    for name in (
        "harness/tasks/study.yml",
        "harness/tasks/study.py",
        "scripts/policy_model_server.py",
        "policy/deploy_policy.py",
    ):
        (tmp_path / name).write_bytes(b"2")
        changed = code_hash(tmp_path, policy)
        assert changed != digest, name
        digest = changed
