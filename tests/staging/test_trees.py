"""Trees: signatures follow content wherever it lies; links that leave a tree are followed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import RollpoolError
from harness.foundations.trees import copy_tree, digests, read_tree

NAMES = st.text("abc/", min_size=1, max_size=8).filter(
    lambda name: all(name.split("/")) and not name.startswith("/")
)


@given(files=st.dictionaries(NAMES, st.binary(max_size=20), max_size=6))
def test_a_copy_equals_its_source(
    files: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    source, target = folder / "source", folder / "target"
    source.mkdir()
    for name, data in files.items():
        place = source / name
        if any(p.is_file() for p in place.parents) or place.is_dir():
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
    tree = read_tree(source)
    found = copy_tree(tree, target, {})
    copy = read_tree(target)
    assert copy.signature() == tree.signature()
    assert digests(copy) == digests(tree) == found


def test_whatever_changes_in_a_source_changes_its_signature(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    (tmp_path / "link").symlink_to("a")
    seen = {read_tree(tmp_path).signature(), read_tree(tmp_path).signature()}
    assert len(seen) == 1
    (tmp_path / "a").chmod(0o755)
    seen.add(read_tree(tmp_path).signature())
    os.utime(tmp_path / "a", ns=(1, 1))
    seen.add(read_tree(tmp_path).signature())
    (tmp_path / "b").touch()
    seen.add(read_tree(tmp_path).signature())
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    seen.add(read_tree(tmp_path).signature())
    seen.add(read_tree(tmp_path).signature("another variant"))
    assert len(seen) == 6


def test_python_s_caches_do_not_count_and_are_copied(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "__pycache__").mkdir(parents=True)
    (source / "a.py").touch()
    before = read_tree(source).signature()
    (source / "__pycache__" / "a.pyc").touch()
    assert read_tree(source).signature() == before
    copy_tree(read_tree(source), tmp_path / "copy", {})
    assert (tmp_path / "copy" / "__pycache__" / "a.pyc").exists()


def test_links_that_leave_are_followed_and_those_inside_are_kept(tmp_path: Path) -> None:
    (tmp_path / "assets" / "cup").mkdir(parents=True)
    (tmp_path / "assets" / "cup" / "mesh").write_text("cup")
    source = tmp_path / "code"
    source.mkdir()
    (source / "assets").symlink_to(tmp_path / "assets")
    (source / "main").write_text("main")
    (source / "inside").symlink_to(source / "main")
    (source / "dangling").symlink_to("nowhere")
    copy = tmp_path / "copy"
    copy_tree(read_tree(source), copy, {})
    assert (copy / "assets" / "cup" / "mesh").read_text() == "cup"
    assert not (copy / "assets").is_symlink()
    assert os.readlink(copy / "inside") == "main"
    assert os.readlink(copy / "dangling") == "nowhere"
    copy_tree(read_tree(source, keep_links=True), tmp_path / "kept", {})
    assert os.readlink(tmp_path / "kept" / "assets") == str(tmp_path / "assets")


def test_a_link_that_leads_back_is_refused(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    (one / "to").symlink_to(two)
    (two / "to").symlink_to(one)
    with pytest.raises(RollpoolError, match="leads back"):
        read_tree(one)


def test_a_read_only_source_gives_a_copy_that_can_be_removed(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "deep").mkdir(parents=True)
    (source / "deep" / "file").touch(mode=0o444)
    (source / "deep").chmod(0o555)
    copy_tree(read_tree(source), tmp_path / "copy", {})
    assert (tmp_path / "copy" / "deep").stat().st_mode & 0o200
    (source / "deep").chmod(0o755)
