"""A node that computes something else is kept out; who is right is not a matter of luck."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from harness.nodes import known_episode
from harness.nodes.known_episode import Played, compare, cpu_features, played
from harness.nodes.node_words import leave
from harness.simulators.contract import Episode

EPISODE = Episode("s", "t", "c", 1, "go", {}, "m" * 64, 0)


def on(node: str, *states: str, alike: str = "k" * 64) -> Played:
    return Played(node, alike, states * 2 if len(states) == 1 else states)


def come(nodes: Path, mine: Played) -> str:
    """The node is examined and leaves word; returns the level of the finding."""
    found = compare(mine, nodes)
    leave(nodes, mine.node, [asdict(found)], asdict(mine))
    return found.level


def test_equal_nodes_agree(tmp_path: Path) -> None:
    assert [come(tmp_path, on(f"n{k}", "aaaa")) for k in range(4)] == ["ok"] * 4
    assert "3 other nodes" in compare(on("n0", "aaaa"), tmp_path).words


def test_a_node_that_differs_is_kept_out_and_named(tmp_path: Path) -> None:
    come(tmp_path, on("n1", "aaaa"))
    come(tmp_path, on("n2", "aaaa"))
    found = compare(on("bad", "bbbb"), tmp_path)
    assert found.level == "failure" and "n1, n2 is aaaa" in found.words
    come(tmp_path, on("bad", "bbbb"))
    found = compare(on("n3", "aaaa"), tmp_path)
    assert found.level == "warning" and found.words == "bad computed another state"


def test_of_two_the_first_stands_until_a_third_speaks(tmp_path: Path) -> None:
    assert come(tmp_path, on("bad", "bbbb")) == "ok"
    assert come(tmp_path, on("n1", "aaaa")) == "failure"
    assert come(tmp_path, on("n2", "aaaa")) == "warning", "two against the one that came first"
    assert come(tmp_path, on("bad", "bbbb")) == "failure"


def test_a_node_that_disagrees_with_itself(tmp_path: Path) -> None:
    found = compare(on("n1", "aaaa", "bbbb"), tmp_path)
    assert found.level == "failure" and "two different states" in found.words


def test_other_machines_are_not_compared(tmp_path: Path) -> None:
    come(tmp_path, on("n1", "aaaa"))
    assert come(tmp_path, on("arm", "bbbb", alike="l" * 64)) == "ok"


def test_what_makes_nodes_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    base = played("n1", {"simulator": "1"}, EPISODE, ["a", "a"])
    assert played("n2", {"simulator": "1"}, EPISODE, ["a", "a"]).alike == base.alike
    assert played("n1", {"simulator": "2"}, EPISODE, ["a", "a"]).alike != base.alike
    monkeypatch.setattr(known_episode, "cpu_features", lambda: "without avx512")
    assert played("n1", {"simulator": "1"}, EPISODE, ["a", "a"]).alike != base.alike


def test_cpu_features_do_not_depend_on_their_order() -> None:
    assert cpu_features("flags\t: b a\n") == cpu_features("flags : a b\nflags : x\n")
    assert cpu_features("Features : a b\n") != cpu_features("Features : a\n")
    assert cpu_features()
