"""The record on disk, and what observers make of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import HIDDEN, SIZE, Heartbeat, Process, WorkerId, started
from harness.leases.names import Claim
from harness.leases.observer import Observer
from harness.paths import RunPaths

TTL = 10.0
ELSEWHERE = Process("another boot", "ns", 1, 1)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Failing(Filesystem):
    broken = False

    def rewrite(self, file: Path, data: bytes) -> None:
        if self.broken:
            raise OSError("No space left on device")
        super().rewrite(file, data)


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(tmp_path)


def test_a_file_that_cannot_be_filled_is_not_created(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.pwrite", lambda descriptor, data, at: len(data) - 1)
    with pytest.raises(OSError, match="the disk is full"):
        Filesystem().create(tmp_path / "file", b"data")
    assert not (tmp_path / "file").exists()


def test_who_is_gone_or_unreadable_costs_next_to_nothing(tmp_path: Path) -> None:
    """A hundred dead workers of other hosts must not slow down who lives."""
    paths, now, read = RunPaths(tmp_path), [0.0], list[str]()

    class Counted(Filesystem):
        def read(self, file: Path) -> bytes:
            read.append(file.stem)
            return super().read(file)

    observer = Observer(paths.workers, ttl=10.0, fs=Counted(), clock=lambda: now[0])
    elsewhere = Process("elsewhere", "ns", 1, 1)
    Heartbeat(paths, "silent-1-aa", ttl=10.0, process=elsewhere)
    Heartbeat(paths, "gone-1-aa", ttl=10.0, process=elsewhere).beat(state="ended")
    (paths.workers / "torn-1-aa.json").write_bytes(b"")
    for _ in range(12):
        observer.look()
        now[0] += 1.0
    assert observer.dead("silent-1-aa")
    read.clear()
    for _ in range(50):
        observer.look()
        now[0] += 1.0
    assert sorted(read) == ["silent-1-aa"] * 10 + ["torn-1-aa"] * 10


def test_claim_names_are_read_back_and_others_are_not() -> None:
    claim = Claim("cell", 2, 256, 259, 3)
    assert Claim.parse("cell", 2, claim.name) == claim
    assert str(claim) == "cell/2/256-259.3"
    assert claim.path(Path("/leases")) == Path("/leases/cell/2/256-259.3")
    for name in ("", "1-2", "1-2.3.done", "-1-2.3", "1-2.3x", ".nfs00000000001"):
        assert Claim.parse("cell", 2, name) is None


def test_worker_ids_are_one_path_component_and_never_the_same() -> None:
    ids = {WorkerId.new() for _ in range(100)}
    assert len(ids) == 100
    assert all("/" not in worker and f"-{os.getpid()}-" in worker for worker in ids)


def test_a_record_keeps_its_size_whatever_it_says(paths: RunPaths) -> None:
    beat = Heartbeat(paths, "w", TTL)
    for instruction in ("push", "ü" * 400, "x" * 10_000):
        beat.beat(episode={"position": 3, "instruction": instruction}, state="running")
        data = paths.heartbeat("w").read_bytes()
        assert len(data) == SIZE
        assert json.loads(data)["episode"]["position"] == 3
    assert json.loads(data)["counter"] == 3


def test_a_step_alone_waits_for_the_next_beat(paths: RunPaths) -> None:
    beat = Heartbeat(paths, "w", TTL)
    beat.beat(step=7)
    assert json.loads(paths.heartbeat("w").read_bytes())["step"] == 0
    beat.tick()
    assert json.loads(paths.heartbeat("w").read_bytes())["step"] == 7


def test_the_thread_beats_and_ends(paths: RunPaths) -> None:
    beat = Heartbeat(paths, "w", 60.0, interval=0.001)
    observer = Observer(paths.workers, TTL, process=ELSEWHERE)
    beat.start()
    while json.loads(paths.heartbeat("w").read_bytes() or b"{}").get("counter", 0) < 3:
        beat.alive()
    beat.end()
    observer.look()
    assert observer.dead("w")
    assert observer.records()["w"]["state"] == "ended"


def test_a_failing_disk_stops_the_owner_in_half_its_ttl(paths: RunPaths) -> None:
    clock, fs = Clock(), Failing()
    beat = Heartbeat(paths, "w", TTL, fs=fs, clock=clock)
    fs.broken = True
    for clock.now in (1.0, 4.0):
        beat.tick()
        beat.check()
    clock.now = TTL / 2 + 0.1
    beat.alive()
    beat.tick()
    with pytest.raises(RollpoolError, match="No space left"):
        beat.check()
    fs.broken = False
    beat.tick()
    beat.check()
    assert beat.lapses == 1  # and whatever it held meanwhile is in doubt


def test_waking_from_a_freeze_is_a_lapse_and_no_failure(paths: RunPaths) -> None:
    clock = Clock()
    beat = Heartbeat(paths, "w", TTL, clock=clock)
    clock.now = 5 * TTL
    assert beat.lapses == 1
    beat.check()
    beat.alive()
    beat.tick()
    assert beat.lapses == 1


def test_half_written_and_vanished_records_have_not_moved(paths: RunPaths) -> None:
    clock = Clock()
    Heartbeat(paths, "w", TTL)
    observer = Observer(paths.workers, TTL, clock=clock, process=ELSEWHERE)
    observer.look()
    file = paths.heartbeat("w")
    file.write_bytes(file.read_bytes()[:100])
    for clock.now in range(1, 6):
        observer.look()
    file.unlink()
    for clock.now in range(6, 10):
        observer.look()
    assert not observer.dead("w")
    clock.now = 10
    observer.look()
    assert observer.dead("w")


def test_an_observer_that_slept_counts_one_interval(paths: RunPaths) -> None:
    clock = Clock()
    Heartbeat(paths, "w", TTL)
    observer = Observer(paths.workers, TTL, clock=clock, process=ELSEWHERE)
    observer.look()
    for clock.now in range(1000, 9001, 1000):
        observer.look()
        assert not observer.dead("w")


def test_the_ttl_of_the_record_counts(paths: RunPaths) -> None:
    clock = Clock()
    Heartbeat(paths, "patient", 3 * TTL, interval=1.0)
    observer = Observer(paths.workers, TTL, clock=clock, process=ELSEWHERE)
    for clock.now in range(30):
        observer.look()
        assert not observer.dead("patient")
    clock.now = 30
    observer.look()
    assert observer.dead("patient")


def test_a_process_is_gone_when_its_pid_is_another_ones_or_a_zombie() -> None:
    assert started(os.getpid()) == Process.this().start_time > 0
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert started(child.pid) > 0
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # dead, and not yet reaped
    assert started(child.pid) == 0
    child.communicate()
    assert started(child.pid) == 0


@pytest.mark.parametrize("error", [PermissionError, FileNotFoundError])  # hidepid=1, 2
def test_a_process_that_its_user_hides_is_not_gone(
    paths: RunPaths, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    def hidden(file: Path) -> str:
        raise error(file)

    Heartbeat(paths, "w", TTL)
    observer = Observer(paths.workers, TTL)
    monkeypatch.setattr(Path, "read_text", hidden)
    observer.look()
    assert not observer.dead("w")
    assert started(os.getpid()) == HIDDEN
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.communicate()
    assert started(child.pid) == 0


def test_a_pid_given_to_another_process_is_gone_and_its_last_word_is_read(paths: RunPaths) -> None:
    beat = Heartbeat(paths, "w", TTL)
    now = [Process.this().start_time]
    observer = Observer(paths.workers, TTL, clock=Clock(), started=lambda pid: now[0])
    observer.look()
    assert not observer.dead("w")
    beat.beat(claim="cell/0/0-0.1", episode={"position": 0})  # seen by no look at the records
    now[0] += 1
    observer.look()
    assert observer.dead("w")
    owner = observer.owner(Claim("cell", 0, 0, 0, 1))
    assert owner and owner["episode"] == {"position": 0}


def test_a_claim_is_abandoned_after_ttl_without_a_name_since_it_last_had_one(
    paths: RunPaths,
) -> None:
    clock, claim = Clock(), Claim("cell", 0, 0, 0, 1)
    beat = Heartbeat(paths, "w", TTL, clock=clock, process=ELSEWHERE)
    observer = Observer(paths.workers, TTL, clock=clock)
    for clock.now in range(30):
        beat.beat(claim=str(claim) if clock.now == 5 else None)
        observer.look()
        assert observer.abandoned(claim) == (clock.now >= 6 + TTL), clock.now


def test_a_beat_that_took_long_to_reach_the_disk_is_a_lapse(paths: RunPaths) -> None:
    clock = Clock()

    class Slow(Filesystem):
        def rewrite(self, file: Path, data: bytes) -> None:
            clock.now += 0.6 * TTL
            super().rewrite(file, data)

    beat = Heartbeat(paths, "w", TTL, fs=Slow(), clock=clock)
    beat.tick()
    assert beat.lapses == 1


def test_a_write_that_hangs_stops_the_owner(paths: RunPaths) -> None:
    clock, begun, go_on = Clock(), threading.Event(), threading.Event()

    class Hanging(Filesystem):
        def rewrite(self, file: Path, data: bytes) -> None:
            begun.set()
            assert go_on.wait(60)

    beat = Heartbeat(paths, "w", TTL, fs=Hanging(), clock=clock)
    beating = threading.Thread(target=beat.tick)
    beating.start()
    assert begun.wait(60)
    beat.check()
    clock.now = 0.6 * TTL
    with pytest.raises(RollpoolError, match="the write hangs"):
        beat.check()
    go_on.set()
    beating.join()


def test_a_record_names_what_each_seat_holds(paths: RunPaths) -> None:
    clock = Clock()
    beat = Heartbeat(paths, "w", TTL, clock=clock, process=ELSEWHERE, seats=3)
    assert len(paths.heartbeat("w").read_bytes()) == 3 * SIZE
    claims = [Claim("cell", 0, n, n, 1) for n in range(3)]
    for seat in (2, 0):
        episode = {"position": seat, "instruction": "x" * 3000}
        beat.beat(seat=seat, claim=str(claims[seat]), episode=episode, state="running")
    beat.beat(seat=2, step=7)
    beat.beat(seat=1, state="idle")
    assert len(paths.heartbeat("w").read_bytes()) == 3 * SIZE
    observer = Observer(paths.workers, TTL, clock=clock)
    observer.look()
    owner = observer.owner(claims[2])
    assert owner and owner["episode"]["position"] == owner["seat"] == 2 and owner["step"] == 7
    owner = observer.owner(claims[0])
    assert owner and owner["episode"]["position"] == owner["seat"] == 0 and owner["step"] == 0
    assert owner["state"] == "running" and observer.owner(claims[1]) is None
    assert beat.holds(str(claims[2])) and not beat.holds(str(claims[1]))
    beat.end()
    observer.look_again()
    assert observer.records()["w"]["state"] == "ended" and observer.abandoned(claims[2])
