"""Files appear whole or not at all; a log never glues or loses a line it accepted."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RollpoolError
from harness.foundations.atomic import AppendLog, publish_name, publish_once, write_atomic


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_write_atomic_replaces_and_leaves_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "value"
    write_atomic(file, b"one")
    write_atomic(file, b"two")
    assert file.read_bytes() == b"two"
    assert names(tmp_path) == ["value"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "value"
    write_atomic(file, b"one")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(RollpoolError, match="No space left on device"):
        write_atomic(file, b"two")
    assert file.read_bytes() == b"one"
    assert names(tmp_path) == ["value"]


def test_short_writes_are_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    write_atomic(tmp_path / "value", b"0123456789")
    assert (tmp_path / "value").read_bytes() == b"0123456789"


def test_publish_once_has_one_winner_among_many(tmp_path: Path) -> None:
    file, start, won = tmp_path / "run.json", threading.Barrier(8), []

    def starter(number: int) -> None:
        start.wait()
        if publish_once(file, str(number).encode()):
            won.append(number)

    threads = [threading.Thread(target=starter, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [file.read_bytes()] == [str(n).encode() for n in won]
    assert names(tmp_path) == ["run.json"]


def test_publish_once_knows_its_own_link_when_the_answer_was_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.link

    def lost_answer(source: Path, target: Path) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", lost_answer)
    assert publish_once(tmp_path / "run.json", b"mine")


def test_a_name_is_published_beside_nothing_and_leaves_what_has_it(tmp_path: Path) -> None:
    publish_name(tmp_path / "limit400")
    assert names(tmp_path) == ["limit400"]
    assert (tmp_path / "limit400").read_bytes() == b""
    (tmp_path / "limit500").write_bytes(b"somebody's")
    publish_name(tmp_path / "limit500")
    assert (tmp_path / "limit500").read_bytes() == b"somebody's"
    with pytest.raises(RollpoolError, match="No such file or directory"):
        publish_name(tmp_path / "none" / "limit400")


def test_a_log_creates_its_file_with_the_first_line(tmp_path: Path) -> None:
    with AppendLog(tmp_path / "worker") as log:
        assert not (tmp_path / "worker").exists()
        log.append("one")
        log.append("two")
    assert (tmp_path / "worker" / "_metrics.jsonl").read_bytes() == b"one\ntwo\n"


def test_a_log_leaves_a_file_that_exists_alone(tmp_path: Path) -> None:
    (tmp_path / "_metrics.jsonl").write_bytes(b"theirs")
    with AppendLog(tmp_path) as log:
        log.append("mine")
    assert (tmp_path / "_metrics.jsonl").read_bytes() == b"theirs"
    assert (tmp_path / "_metrics.1.jsonl").read_bytes() == b"mine\n"


def test_a_line_holds_no_newline(tmp_path: Path) -> None:
    with AppendLog(tmp_path) as log, pytest.raises(ValueError, match="newline"):
        log.append("one\ntwo")


def test_a_line_is_on_disk_when_it_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, synced = tmp_path / "_metrics.jsonl", list[str]()
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(file.read_text()))
    with AppendLog(tmp_path) as log:
        log.append("one")
        assert synced[-1] == "one\n"
        log.append("two")
        assert synced[-1] == "one\ntwo\n"


class FaultyDisk:
    """``os.write`` and ``os.fsync`` that go wrong as told: one fault a write, in order.

    ``k >= 0``: only k bytes are written; ``-1``: no space; ``-2``: the fsync fails.
    """

    def __init__(self, faults: list[int | None]) -> None:
        self.faults, self.fsync_fails = faults, False
        self.write_for_real, self.fsync_for_real = os.write, os.fsync

    def write(self, fd: int, data: bytes) -> int:
        fault = self.faults.pop(0) if self.faults else None
        self.fsync_fails = fault == -2
        if fault == -1:
            raise OSError(errno.ENOSPC, "No space left on device")
        kept = data if fault in (None, -2) else data[:fault]
        return self.write_for_real(fd, kept)

    def fsync(self, fd: int) -> None:
        if self.fsync_fails:
            self.fsync_fails = False
            raise OSError(errno.EIO, "Input/output error")
        self.fsync_for_real(fd)


faults = st.lists(st.one_of(st.none(), st.integers(min_value=-2, max_value=6)), max_size=24)


@given(faults)
def test_what_a_log_accepted_is_there_whole_whatever_the_disk_does(
    plan: list[int | None],
) -> None:
    lines = [f"line-{n}" for n in range(12)]
    disk = FaultyDisk(plan)
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", disk.write)
        patch.setattr(os, "fsync", disk.fsync)
        accepted = []
        with AppendLog(Path(name)) as log:
            for line in lines:
                try:
                    log.append(line)
                except RollpoolError:
                    continue
                accepted.append(line)
        whole: list[str] = []
        for file in Path(name).iterdir():
            *complete, torn = file.read_text().split("\n")
            whole += complete
            assert torn == "" or any(line.startswith(torn) for line in lines)
    assert set(accepted) <= set(whole)
    assert set(whole) <= set(lines), "two lines were glued together"


def test_a_full_disk_is_refused_in_plain_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AppendLog(tmp_path)
    disk = FaultyDisk([-1, -1])
    monkeypatch.setattr(os, "write", disk.write)
    with pytest.raises(RollpoolError, match=r"_metrics\.1\.jsonl: No space left on device"):
        log.append("one")
    log.append("two")
    assert (tmp_path / "_metrics.2.jsonl").read_bytes() == b"two\n"
    log.close()
