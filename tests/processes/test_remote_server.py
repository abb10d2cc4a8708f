"""Which of several servers a simulator plays on, and where it goes when that is lost."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.errors import RollpoolError
from harness.inference.model_server import ModelServer
from harness.paths import RunPaths
from harness.runs import servers
from harness.workers.remote_server import Choice, RemoteServer
from tests.model_server.serving import client, serving
from tests.waiting import wait_for

DEADLINE_S = 20.0
IDENTITY = {"policy": "test", "checkpoint": None, "settings_hash": "h", "code_hash": "c"}


class Still:
    def infer(self, seen: Any) -> np.ndarray:
        return np.zeros((1, 20))


class Keeping(Still):
    """Keeps one episode's state in itself."""

    def reset(self) -> None: ...


class Pool:
    """Servers of one run, and a worker that looks for them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._stack = stack
        (folder / "r").mkdir()
        self.run: Any = SimpleNamespace(
            id="run", paths=RunPaths(folder / "r"), token="secret", identity=IDENTITY,
            settings={"MODEL_SERVER_HOST": "127.0.0.1", "STALL_TIMEOUT": 1.0, "SIMS_PER_WORKER": 2},
        )  # fmt: skip

    def serve(self, name: str, run: str = "run", model: Any = None, code: str = "c") -> ModelServer:
        settings = {"run": run, "server": name, **IDENTITY, "code_hash": code}
        server = self._stack.enter_context(serving(model or Still(), **settings))
        servers.publish(self.run.paths, name, "model", server.host, server.port, run)
        return server

    def links(
        self, count: int, clock: Callable[[], float] = time.monotonic,
        deadline_s: float = DEADLINE_S,
    ) -> list[RemoteServer]:  # fmt: skip
        choice = Choice(self.run, "worker", clock)
        return [RemoteServer(self.run, choice, deadline_s) for _ in range(count)]


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with ExitStack() as stack:
        yield Pool(tmp_path, stack)


def found(link: RemoteServer) -> str:
    """The name of the server that it has come to."""

    def come() -> bool:
        link.start(None)  # type: ignore[arg-type]
        return link.alive()

    wait_for(lambda: link.alive() or come(), "it finds a server")
    name: str = link.address()["expect"]["server"]
    return name


def test_simulators_spread_over_the_servers(pool: Pool) -> None:
    pool.serve("a"), pool.serve("b")
    assert sorted(found(link) for link in pool.links(4)) == ["a", "a", "b", "b"]


def test_the_least_loaded_is_taken_and_another_runs_never(pool: Pool) -> None:
    busy = pool.serve("busy")
    pool.serve("free"), pool.serve("foreign", run="another")
    models = [client(busy) for _ in range(3)]
    assert {found(link) for link in pool.links(2)} == {"free"}
    for model in models:
        model.close()


@pytest.mark.parametrize("how", ["stalled", "broken"])
def test_one_that_hangs_is_left_for_another_by_all(pool: Pool, how: str) -> None:
    pool.serve("a"), pool.serve("b")
    one, other = pool.links(2)
    lost, kept = found(one), found(other)
    assert lost != kept
    getattr(one, how)()
    assert found(one) == kept, "though the other serves nobody now"


def test_the_only_one_is_tried_again(pool: Pool) -> None:
    pool.serve("a")
    (link,) = pool.links(1)
    for _ in range(2):
        assert found(link) == "a"
        link.stalled()


def waiting(link: RemoteServer, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Until it has said them."""

    def said() -> bool:
        link.start(None)  # type: ignore[arg-type]
        return words in capsys.readouterr().err

    wait_for(said, f"it says {words}")


def test_who_waits_says_why_and_says_so_again_where_that_changes(
    pool: Pool, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = itertools.count(step=0.5)
    (link,) = pool.links(1, lambda: next(clock), deadline_s=1e9)
    waiting(link, "none is published", capsys)
    pool.serve("a", code="older")
    waiting(link, "its code_hash is 'older', not 'c'", capsys)
    assert not link.alive()


def test_where_none_answers_it_says_so(pool: Pool, capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    (link,) = pool.links(1, lambda: now[0])
    link.start(None)  # type: ignore[arg-type]
    now[0] = DEADLINE_S / 2
    waiting(link, "none is published", capsys)
    now[0] = DEADLINE_S
    with pytest.raises(RollpoolError, match=r"none answers for 20 s \(none is published\)"):
        link.start(None)  # type: ignore[arg-type]


def test_a_policy_that_keeps_one_episode_s_state_is_refused_to_several_simulators(
    pool: Pool,
) -> None:
    pool.serve("one", model=Keeping())
    (link, _) = pool.links(2)
    with pytest.raises(RollpoolError, match=r"SIMS_PER_WORKER=2: .* keeps one episode's state"):
        found(link)
