"""Staging: cold, warm, interrupted, changed, damaged, at once, on a disk that is too small."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.nodes import staging, store_folder
from harness.nodes.node_store import Store
from harness.nodes.staging import Item, Staged, stage
from harness.nodes.store_folder import choose_folder, file_system

from .conftest import Node

SPAWN = multiprocessing.get_context("fork")


def names(node: Node) -> set[str]:
    return {copy.name.partition("@")[0] for copy in node.store.copies()}


def test_cold_then_warm(node: Node) -> None:
    item = Item("assets", "cups", node.source("cups", red="r", blue="b"))
    (cold,) = stage(node.store, [item])
    assert (cold.path / "red").read_text() == "r"
    assert cold.seconds is not None and cold.copied == 2
    (warm,) = stage(node.store, [item])
    assert (warm.path, warm.content, warm.seconds) == (cold.path, cold.content, None)
    assert "assets cups: warm, 0.0 MB in 2 files" in node.said


def test_a_changed_source_is_noticed_and_the_rest_is_linked(node: Node) -> None:
    source = node.source("cups", red="r", blue="b" * 5000)
    (old,) = stage(node.store, [Item("assets", "cups", source)])
    kept = (old.path / "blue").stat().st_ino
    (source / "red").write_text("darker")
    (new,) = stage(node.store, [Item("assets", "cups", source)])
    assert (new.path / "red").read_text() == "darker"
    assert new.content != old.content and new.copied == len("darker")
    assert (new.path / "blue").stat().st_ino == kept
    assert not old.path.exists(), "nobody uses the old copy"


def test_a_user_keeps_the_copy_it_began_with(node: Node) -> None:
    source = node.source("cups", red="r")
    (old,) = stage(node.store, [Item("assets", "cups", source)])
    user = node.user(old.path)
    (source / "red").write_text("darker")
    stage(node.store, [Item("assets", "cups", source)])
    assert (old.path / "red").read_text() == "r"
    os.close(user)
    node._locks.remove(user)
    stage(node.store, [Item("assets", "cups", source)])
    assert not old.path.exists()
    assert not list(node.store.roots.iterdir()) and not list(node.store.users.iterdir())


def test_two_installations_do_not_evict_each_other(node: Node) -> None:
    a = Item("env", "model", node.source("a", file="a"))
    b = Item("env", "model", node.source("b", file="b"))
    stage(node.store, [a])
    stage(node.store, [b])
    (again,) = stage(node.store, [a])
    assert again.seconds is None


def _die_in_finish(copy: Path, place: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stage_in_a_process(path: Path, item: Item, pipe: Any = None) -> None:
    store = Store(path, cap_gb=1, say=lambda line: None)
    with store.locked(30):
        (ready,) = stage(store, [item])
    if pipe is not None:
        pipe.send(ready.seconds is None)


def test_a_half_staged_node_is_never_used(node: Node) -> None:
    source = node.source("cups", red="r")
    fatal = Item("assets", "cups", source, finish=_die_in_finish)
    process = SPAWN.Process(target=_stage_in_a_process, args=(node.store.path, fatal))
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert node.store.copies() == []
    assert len(list(node.store.path.glob("assets/*.partial"))) == 1
    (ready,) = stage(node.store, [Item("assets", "cups", source)])
    assert ready.seconds is not None
    assert sorted(node.store.path.glob("assets/*")) == [
        ready.path, ready.path.with_name(f"{ready.path.name}.json")
    ]  # fmt: skip


def test_a_copy_without_its_marker_is_made_anew(node: Node) -> None:
    item = Item("assets", "cups", node.source("cups", red="r"))
    (first,) = stage(node.store, [item])
    first.path.with_name(f"{first.path.name}.json").unlink()
    (first.path / "red").write_text("torn")
    (again,) = stage(node.store, [item])
    assert again.seconds is not None
    assert (again.path / "red").read_text() == "r"


def test_a_damaged_copy_is_made_anew(node: Node) -> None:
    item = Item("assets", "cups", node.source("cups", red="r", blue="b"))
    (first,) = stage(node.store, [item])
    (first.path / "blue").unlink()  # what cleans /tmp takes single old files
    (again,) = stage(node.store, [item])
    assert again.seconds is not None
    assert (again.path / "blue").exists()


def test_after_a_reboot_the_content_is_read_again(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Item("assets", "cups", node.source("cups", red="r", blue="b"))
    (first,) = stage(node.store, [item])
    monkeypatch.setattr(staging, "_boot", lambda: "another boot")
    (again,) = stage(node.store, [item])
    assert again.seconds is None
    info = (first.path / "red").stat()
    (first.path / "red").write_text("\0")  # what a power cut leaves: right size and time
    os.utime(first.path / "red", ns=(info.st_atime_ns, info.st_mtime_ns))
    monkeypatch.setattr(staging, "_boot", lambda: "a third boot")
    (third,) = stage(node.store, [item])
    assert third.seconds is not None
    assert (third.path / "red").read_text() == "r"


def test_two_at_once_on_a_cold_node_copy_once(node: Node) -> None:
    item = node.weights("giant", 3_000_000)
    pipes = [SPAWN.Pipe() for _ in range(3)]
    workers = [
        SPAWN.Process(target=_stage_in_a_process, args=(node.store.path, item, there))
        for _, there in pipes
    ]
    for worker in workers:
        worker.start()
    warm = [here.recv() for here, _ in pipes if here.poll(60)]
    for worker in workers:
        worker.join(30)
        assert worker.exitcode == 0
    assert sorted(warm) == [False, True, True]


def test_the_lock_has_a_deadline(node: Node) -> None:
    other = node.open()
    refused = pytest.raises(RollpoolError, match="another job holds its lock")
    with node.store.locked(), refused, other.locked(0.05):
        pass
    assert any("waiting" in line for line in node.said)


def test_a_disk_too_small_is_said_before_copying(node: Node) -> None:
    item = Item("assets", "cups", node.source("cups", red="r"))
    reserve = node.store.free() + 10**12
    with pytest.raises(RollpoolError, match=r"GB free, .* needed \(assets cups 0.00"):
        stage(node.store, [item], reserve=reserve)
    assert not (node.store.path / "assets").exists()


def test_a_source_that_changes_meanwhile_is_refused(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = node.source("cups", red="r")

    def copy_and_change(*arguments: Any) -> dict[str, str]:
        (source / "new").touch()
        return found(*arguments)

    found = staging.copy_tree
    monkeypatch.setattr(staging, "copy_tree", copy_and_change)
    with pytest.raises(RollpoolError, match="changed while it was copied"):
        stage(node.store, [Item("assets", "cups", source)])
    assert node.store.copies() == []


def used(node: Node, order: list[str]) -> dict[str, Staged]:
    """Weights of 1000 bytes, staged in this order."""
    ready = {}
    for when, name in enumerate(order):
        (ready[name],) = stage(node.store, [node.weights(name)])
        marker = ready[name].path.with_name(f"{ready[name].path.name}.json")
        os.utime(marker, (when, when))
    return ready


def test_weights_go_least_recently_used_first(node: Node) -> None:
    used(node, ["a", "b", "c"])
    node.store = node.open(cap_gb=3500 / 1e9)
    stage(node.store, [node.weights("d")])
    assert names(node) == {"b", "c", "d"}


def test_weights_that_are_named_stay_longest_and_the_others_go(node: Node) -> None:
    used(node, ["a", "b", "c"])
    node.store = node.open(keep=("a",))
    stage(node.store, [node.weights("d")])
    assert names(node) == {"a", "d"}
    node.store = node.open(cap_gb=2500 / 1e9, keep=("a", "d"))
    stage(node.store, [node.weights("e")])
    assert names(node) == {"d", "e"}


def test_weights_in_use_never_go(node: Node) -> None:
    ready = used(node, ["a", "b"])
    node.user(ready["a"].path)
    node.store = node.open(cap_gb=2500 / 1e9)
    stage(node.store, [node.weights("c")])
    assert names(node) == {"a", "c"}
    node.store = node.open(cap_gb=1500 / 1e9)
    with pytest.raises(RollpoolError, match=r"with what is in use, the cap is"):
        stage(node.store, [node.weights("d")])
    assert "a" in names(node)


def test_a_short_disk_is_freed_of_old_weights_first(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    used(node, ["a", "b", "c"])
    free = {"bytes": 0}
    remove = Store.remove

    def counted(store: Store, copy: Path) -> int:
        size = remove(store, copy)
        free["bytes"] += size
        return size

    monkeypatch.setattr(Store, "remove", counted)
    monkeypatch.setattr(Store, "free", lambda store: free["bytes"])
    stage(node.store, [node.weights("d", 1500)], reserve=100)
    assert names(node) == {"c", "d"}


def test_a_user_without_a_lock_is_refused(node: Node) -> None:
    lock = node.folder / "nobody"
    lock.touch()
    with pytest.raises(RollpoolError, match="nobody holds a lock"):
        node.store.admit(lock)


def test_a_store_on_a_shared_file_system_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 254:0 / / rw - ext4 /dev/vda rw\n"
        f"40 22 0:45 / {tmp_path}/a\\040b rw,relatime shared:7 - nfs4 server:/x rw\n"
        f"41 40 0:46 / {tmp_path}/a\\040b/local rw - tmpfs none rw\n"
    )
    shared = tmp_path / "a b"
    assert file_system(tmp_path, mounts) == "ext4"
    assert file_system(shared / "c", mounts) == "nfs4"
    assert file_system(shared / "local" / "c", mounts) == "tmpfs"
    monkeypatch.setattr(store_folder, "file_system", lambda folder: "nfs4")
    with pytest.raises(RollpoolError, match="of several machines"):
        choose_folder(shared)


def test_somebody_else_s_folder_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tmp_path / "local"
    wanted.mkdir(mode=0o755)
    assert choose_folder(wanted) == wanted
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    wanted.chmod(0o775)
    assert choose_folder(wanted) == wanted, "its group shares it"
    wanted.chmod(0o755)
    monkeypatch.setattr("getpass.getuser", lambda: "ann")
    with pytest.raises(RollpoolError, match="belongs to somebody else"):
        choose_folder(wanted)  # its own, made now, is of the real user
    wanted.chmod(0o777)
    with pytest.raises(RollpoolError, match="anybody may write"):
        choose_folder(wanted)
