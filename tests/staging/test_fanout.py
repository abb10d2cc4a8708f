"""Archives that SLURM carries: the source is read once, and never trusted less than itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.foundations import trees
from harness.nodes.fanout import pack
from harness.nodes.staging import Item, Job, stage

from .conftest import Node


@pytest.fixture
def item(node: Node) -> Item:
    source = node.source("cups", red="r" * 3000, blue="b")
    (source / "deep").mkdir()
    (source / "deep" / "tool").write_text("#!/bin/sh\n")
    (source / "deep" / "tool").chmod(0o755)
    (source / "link").symlink_to("red")
    return Item("assets", "cups", source)


def carried(node: Node, item: Item) -> Path:
    """As ``sbcast`` leaves it on the node."""
    job = Job(node.store, item)
    (archive,) = pack({job.archive: job.tree}, node.store.incoming)
    return archive


def test_staging_from_an_archive_reads_nothing_of_the_source(
    node: Node, item: Item, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = carried(node, item)
    monkeypatch.setattr(trees, "sha256", lambda *arguments: pytest.fail("the source was read"))
    (ready,) = stage(node.store, [item])
    assert ready.copied == 0
    assert (ready.path / "link").read_text() == "r" * 3000
    assert os.access(ready.path / "deep" / "tool", os.X_OK)
    assert not archive.exists() and list(node.store.incoming.iterdir()) == []


def test_its_content_is_that_of_a_copy(node: Node, item: Item) -> None:
    carried(node, item)
    (brought,) = stage(node.store, [item])
    node.store.remove(brought.path)
    (copied,) = stage(node.store, [item])
    assert copied.copied > 0
    assert (copied.path, copied.content) == (brought.path, brought.content)


def test_an_archive_that_was_cut_off_costs_a_copy(node: Node, item: Item) -> None:
    archive = carried(node, item)
    archive.write_bytes(archive.read_bytes()[:700])
    (ready,) = stage(node.store, [item])
    assert (ready.path / "red").read_text() == "r" * 3000
    assert ready.copied > 0


def test_an_archive_of_an_earlier_source_is_not_used(node: Node, item: Item) -> None:
    carried(node, item)
    (item.source / "red").write_text("x" * 3000)
    (ready,) = stage(node.store, [item])
    assert (ready.path / "red").read_text() == "x" * 3000
