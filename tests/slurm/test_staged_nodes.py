"""Nodes that run from their own disks: cold, warm, together, carried by sbcast, dark in
the middle of it, one too small."""

from __future__ import annotations

import re
import shutil
import sysconfig
import venv
from collections.abc import Iterator

import pytest

from tests.slurm.conftest import BLOCK, Pool
from tests.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def staged(pool: Pool) -> Iterator[dict[str, str]]:
    """Environments that weigh nothing (their packages are this Python's), to be staged."""
    for name in ("toolkit", "tabletop", "model"):
        folder = pool.outside(f"light/{name}")
        if not folder.exists():
            venv.create(folder, with_pip=False, symlinks=True)
            (site,) = folder.glob("lib/python3*/site-packages")
            (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    envs = f"{pool.home}/light"
    yield {
        "DXVLA_STAGE": "1", "ROLLPOOL_ENVS": envs, "PYTHONPATH": pool.home,
        "ROBOTWIN_PY": f"{envs}/tabletop/bin/python", "XVLA_PY": f"{envs}/model/bin/python",
    }  # fmt: skip
    for node in pool.cluster.nodes:  # the disks are small, and others want them, too
        shutil.rmtree(pool.cluster.disk(node) / "dxvla_local", ignore_errors=True)


def started_from(pool: Pool, run: str) -> set[str]:
    """Where the workers' model servers came from: ``local`` or ``shared``."""
    logs = [log.read_text() for log in pool.paths(run).logs.glob("*.model.log")]
    return {"local" if "/tmp/dxvla_local/roots/" in log else "shared" for log in logs}


def test_cold_nodes_then_warm_ones(pool: Pool, staged: dict[str, str]) -> None:
    pool.make("staged", "reach_goal")
    block = BLOCK.format(run="staged", nodes=4, gpus=0)
    code, out = pool.shell(block, EVAL_TEST_NUM="3", **staged)
    assert code == 0, out
    assert out.count("base ready in /tmp/dxvla_local: 0 warm, 3 copied") == 4, out
    assert all(f"stage {node}: base ready in " in out for node in pool.cluster.nodes), out
    assert out.count(f"sealed in {pool.home}/runs/staged/manifests\n") == 4, out
    assert started_from(pool, "staged") == {"local"}
    code, out = pool.shell(block, **staged)
    assert code == 0, out
    assert out.count("base ready in /tmp/dxvla_local: 3 warm, 0 copied") == 4, out
    assert len(pool.outcomes("staged")) == 12 == len(pool.rows("staged"))


def test_two_jobs_at_once_on_a_cold_node(pool: Pool, staged: dict[str, str]) -> None:
    pool.make("twice", "reach_goal")
    env = f"STUDY_RUN=twice srun --nodes=1 --nodelist={pool.cluster.nodes[0]} --exact "
    one = f"{env} --ntasks=1 --cpus-per-task=2 --mem=100 bash scripts/slurm_eval_node.sh"
    code, out = pool.shell(f"{one} & {one} & wait -n && wait -n", **staged)
    assert code == 0, out
    assert out.count(" 0 warm, 3 copied") == out.count(" 3 warm, 0 copied") == 1, out
    assert len(pool.rows("twice")) == 12


def test_one_reader_for_the_whole_pool(pool: Pool, staged: dict[str, str]) -> None:
    weights = pool.outside("checkpoints/net/weights")
    weights.parent.mkdir(parents=True)
    weights.write_bytes(b"w" * 100_000)
    script = "salloc --quiet --nodes=4 --ntasks-per-node=1 bash scripts/stage_fanout.sh net"
    code, out = pool.shell(script, **staged)
    assert code == 0, out
    assert out.count("base ready in /tmp/dxvla_local") == 4, out
    assert out.count("3 copied (0.0 MB") == 4, out
    assert out.count("giants ready in /tmp/dxvla_local: 0 warm, 1 copied (0.0 MB") == 4, out
    pool.make("carried", "reach_goal")
    code, out = pool.shell(BLOCK.format(run="carried", nodes=4, gpus=0), **staged)
    assert code == 0, out
    assert out.count(" 3 warm, 0 copied") == 4, out


def test_a_node_is_powered_off_while_it_stages(pool: Pool, staged: dict[str, str]) -> None:
    """What it had copied is no copy: on its return it stages anew, and nothing is left over."""
    meshes = pool.outside("assets/meshes")
    for number in range(6000):
        file = meshes / str(number // 1000) / f"{number}.obj"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(number.to_bytes(8, "big") * 1000)
    pool.make("dark", "reach_goal")
    local = pool.cluster.disk("n2") / "dxvla_local"
    try:
        block = pool.start(BLOCK.format(run="dark", nodes=2, gpus=0), **staged)
        wait_for(lambda: list(local.glob("assets/*.partial")), "n2 copies the meshes", block)
        pool.cluster.kill_node("n2")
        assert not list(local.glob("assets/*.json"))
        out, _ = block.communicate(timeout=DEADLINE_S)
        assert len(pool.outcomes("dark")) == 12, out
        pool.cluster.mend()
        assert list(local.glob("assets/*.partial"))
        only = BLOCK.format(run="dark", nodes=1, gpus=0).replace("srun ", "srun --nodelist=n2 ")
        code, out = pool.shell(only, **staged)
        assert code == 0, out
        assert re.search(r"base ready in /tmp/dxvla_local: \d warm, [1-4] copied", out), out
        assert not list(local.glob("*/*.partial"))
        (copy,) = (place for place in local.glob("assets/meshes@*") if place.is_dir())
        assert sum(file.is_file() for file in copy.rglob("*")) == 6000
    finally:
        shutil.rmtree(meshes.parent)


def test_a_node_whose_disk_is_too_small(pool: Pool, staged: dict[str, str]) -> None:
    full = pool.cluster.nodes[1]
    pool.shell(f"srun --nodelist={full} fallocate -l 230m /tmp/full")
    pool.make("small", "reach_goal")
    try:
        code, out = pool.shell(BLOCK.format(run="small", nodes=4, gpus=0), **staged)
    finally:
        (pool.cluster.disk(full) / "full").unlink()
    assert code == 2, out
    assert "stage to /tmp/dxvla_local" in out and "needed (env toolkit" in out, out
    assert len(pool.rows("small")) == 12, "the others did its share"
    _, out = pool.shell("source env.sh; rollpool status small")
    assert "Nodes that take no work:\n  n2: staging: stage to /tmp/dxvla_local: " in out, out
