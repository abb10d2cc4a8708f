"""Model and simulator on different hosts, either of them listening; strangers are turned away."""

from __future__ import annotations

import json
import subprocess
from collections import Counter

import pytest

from harness.paths import RunPaths
from harness.runs import servers
from tests.waiting import DEADLINE_S, beats, wait_for

from .conftest import TwoNodes

pytestmark = pytest.mark.slow
SEEDS = range(1, 4)


def prepared(nodes: TwoNodes, run: str = "r", **env: str) -> RunPaths:
    queue = nodes.queue("reach_goal", seeds=SEEDS)
    code, _, err = nodes.call("prepare", run, "--queue", str(queue), **env)
    assert code == 0, err
    return RunPaths(nodes.path / "runs" / run)


def complete(nodes: TwoNodes, run: str = "r") -> bool:
    rows = nodes.rows(run)
    done = {(row.scene, row.seed) for row in rows if row.outcome == "success"}
    return len(done) == len(rows) == 2 * len(SEEDS)


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    out, _ = process.communicate(timeout=DEADLINE_S)
    return process.returncode, out


class Standing:
    """Whether the simulator waits: its worker beats, and no step follows."""

    def __init__(self, nodes: TwoNodes) -> None:
        self._workers, self._host = nodes.path / "runs" / "r" / "workers", nodes.hosts.name("b")
        self._at, self._since = -1, 0

    def still(self) -> bool:
        (beat,) = (beat for beat in beats(self._workers) if beat["host"] == self._host)
        if beat["step"] != self._at or not beat["episode"]:
            self._at, self._since = beat["step"], beat["counter"]
        return bool(beat["counter"] - self._since >= 8)  # 1.6 s, four times a chunk


@pytest.mark.parametrize("bind", ["its address", "0.0.0.0"])
def test_the_simulator_on_another_node(nodes: TwoNodes, bind: str) -> None:
    paths, a = prepared(nodes), nodes.hosts.address["a"]
    serving = nodes.on("a", "serve", "r", MODEL_SERVER_BIND=bind if bind[0] == "0" else a)
    code, out = ended(nodes.on("b", "work", "r", MODEL_SERVER_HOST=a))
    assert code == 0, out
    assert complete(nodes)
    assert {row.host for row in nodes.rows("r")} == {nodes.hosts.name("b")}
    code, out = ended(serving)
    assert (code, "nothing is left to run" in out) == (0, True), out
    assert servers.published(paths, "model") == []


def test_reversed_roles_over_the_network(nodes: TwoNodes) -> None:
    paths, b = prepared(nodes), nodes.hosts.address["b"]
    serving = nodes.on("a", "serve", "r", MODEL_AS_CLIENT="1")
    working = [nodes.on("b", "work", "r", SIM_AS_SERVER="1", SIM_SERVER_HOST=b) for _ in range(2)]
    for process in working:
        code, out = ended(process)
        assert code == 0, out
    assert complete(nodes)
    code, out = ended(serving)
    assert code == 0, out
    assert servers.published(paths, "simulator") == []


def test_reversed_roles_at_a_given_port(nodes: TwoNodes) -> None:
    prepared(nodes)
    where = {"SIM_SERVER_HOST": nodes.hosts.address["b"], "SIM_SERVER_PORT": "5599"}
    nodes.on("a", "serve", "r", MODEL_AS_CLIENT="1", **where)
    code, out = ended(nodes.on("b", "work", "r", SIM_AS_SERVER="1", **where))
    assert code == 0, out
    assert complete(nodes)


def test_reversed_roles_in_one_worker(nodes: TwoNodes) -> None:
    prepared(nodes)
    code, out, err = nodes.call("work", "r", SIM_AS_SERVER="1", MODEL_AS_CLIENT="1")
    assert code == 0, out + err
    assert complete(nodes)


def test_a_server_that_dies_is_replaced_by_another(nodes: TwoNodes) -> None:
    nodes.gate.close()
    prepared(nodes)
    a = nodes.hosts.address["a"]
    first = nodes.on("a", "serve", "r", MODEL_SERVER_BIND=a)
    working = nodes.on("b", "work", "r", MODEL_SERVER_HOST=a)
    wait_for(lambda: nodes.held("r"), "it is in an episode", first, working)
    first.kill()
    nodes.on("a", "serve", "r", MODEL_SERVER_BIND=a)
    nodes.gate.open()
    code, out = ended(working)
    assert code == 0, out
    good = {(row.scene, row.seed) for row in nodes.rows("r") if row.outcome == "success"}
    assert len(good) == 2 * len(SEEDS)
    assert all(row.error["kind"] == "protocol" for row in nodes.rows("r") if row.error)


@pytest.mark.parametrize("stall_s", ["60", "1"])
@pytest.mark.parametrize("reversed_roles", [False, True])
def test_a_cable_that_was_pulled_for_a_while(
    nodes: TwoNodes, reversed_roles: bool, stall_s: str
) -> None:
    """Shorter than STALL_TIMEOUT it costs nothing; longer, an attempt."""
    env = {"POINTSIM_STEP_S": "0.05", "STALL_TIMEOUT": stall_s, "EVAL_RETRIES": "9"}
    prepared(nodes, **env)
    if reversed_roles:
        nodes.on("a", "serve", "r", MODEL_AS_CLIENT="1", **env)
        env |= {"SIM_AS_SERVER": "1", "SIM_SERVER_HOST": nodes.hosts.address["b"]}
    else:
        nodes.on("a", "serve", "r", MODEL_SERVER_BIND=nodes.hosts.address["a"], **env)
        env |= {"MODEL_SERVER_HOST": nodes.hosts.address["a"]}
    nodes.gate.close()
    working = nodes.on("b", "work", "r", **env)
    wait_for(lambda: nodes.held("r"), "it is in an episode", working)
    nodes.hosts.cut()
    nodes.gate.open()
    if stall_s == "1":
        wait_for(lambda: any(row.error for row in nodes.rows("r")), "it gives up", working)
    else:
        wait_for(Standing(nodes).still, "it waits", working)
    nodes.hosts.heal()
    code, out = ended(working)
    assert code == 0, out
    rows = nodes.rows("r")
    good = Counter((row.scene, row.seed) for row in rows if row.outcome == "success")
    assert len(good) == 2 * len(SEEDS) and set(good.values()) == {1}
    kinds = {row.error["kind"] for row in rows if row.error}
    assert kinds <= ({"stall", "protocol"} if stall_s == "1" else set())


def test_another_run_s_server_on_a_reused_port_is_refused(nodes: TwoNodes) -> None:
    mine, other = prepared(nodes), prepared(nodes, "other")
    a = nodes.hosts.address["a"]
    serving = nodes.on("a", "serve", "other", MODEL_SERVER_BIND=a)
    wait_for(lambda: servers.published(other, "model"), "it serves", serving)
    (theirs,) = servers.published(other, "model")
    mine.servers.mkdir()
    stale = {**theirs.__dict__, "name": "gone-1-00", "run": "mine"}
    (mine.servers / "gone-1-00.json").write_text(json.dumps(stale))
    working = nodes.on("b", "work", "r", MODEL_SERVER_HOST=a)
    with pytest.raises(subprocess.TimeoutExpired):
        working.communicate(timeout=8)
    assert nodes.rows("r") == [], "it waits for a server of its own run"
    nodes.on("a", "serve", "r", MODEL_SERVER_BIND=a)
    code, out = ended(working)
    assert code == 0, out
    assert f"for a model server of run 'r' on {a} (" in out
    assert complete(nodes)


def test_a_server_is_on_loopback_unless_asked(nodes: TwoNodes) -> None:
    paths = prepared(nodes)
    serving = nodes.on("a", "serve", "r")
    wait_for(lambda: servers.published(paths, "model"), "it serves", serving)
    (server,) = servers.published(paths, "model")
    assert server.host == "127.0.0.1"
