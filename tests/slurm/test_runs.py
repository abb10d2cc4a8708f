"""Runs over a SLURM cluster that nothing disturbs: what users do, what each node is given."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.foundations.records import Row
from tests.slurm.conftest import BLOCK, Pool
from tests.waiting import DEADLINE_S, wait_for

pytestmark = pytest.mark.slow

#: What may differ between two runs of one population: who did it, when, and how long it took.
_OF_THE_RUN = {
    "run", "worker", "host", "started", "finished", "wall_s", "policy_s", "profile", "video",
}  # fmt: skip


#: The expert, who waits at the gate whatever the simulator is.
PATIENT = """
import os
from pathlib import Path

from tests.fakes.gate import Gate

class Patient(Expert):
    def infer(self, observation):
        Gate(Path(os.environ["POINTSIM_GATE"])).wait(1)
        return super().infer(observation)

def get_model(usr_args):
    return Patient()
"""


def _facts(rows: list[Row]) -> list[dict[str, Any]]:
    facts = [
        {name: value for name, value in row.__dict__.items() if name not in _OF_THE_RUN}
        for row in rows
    ]
    return sorted(facts, key=lambda fact: (fact["scene"], fact["task"], fact["seed"]))


def test_the_block_on_four_nodes_gives_the_tables_of_one_machine(pool: Pool) -> None:
    env = {
        "SIMULATOR": "tabletop",
        "ROBOTWIN_PY": f"{pool.env['ROLLPOOL_ENVS']}/tabletop/bin/python",
        "SEEDS_ROOT": "desk",
        "EVAL_TEST_NUM": "2",
        "EVAL_DOCTOR": "1",
        "POLICY_NAME": "patient",
    }
    for task in ("put_cup_in_box", "press_bell"):
        bank = pool.outside(f"desk/{task}/bench_demo_study_clean.txt")
        bank.parent.mkdir(parents=True)
        bank.write_text("40000 40001 40002")
    pool.outside("desk.txt").write_text("study put_cup_in_box\nstudy press_bell\n")
    shutil.copytree(pool.outside("policy/expert"), pool.outside("policy/patient"))
    with pool.outside("policy/patient/deploy_policy.py").open("a") as policy:
        policy.write(PATIENT)
    pool.gate.close(passing=0)
    script = pool.start(
        "mkdir -p runs/desk_pool/eval_result && cp desk.txt runs/desk_pool/queue.txt && "
        + BLOCK.format(run="desk_pool", nodes=4, gpus=0)
        + " && rollpool run desk_one --queue desk.txt --workers 2"
        " && for run in pool one; do python organize_results.py desk_$run report_$run; done",
        **env,
    )
    wait_for(lambda: len(pool.held("desk_pool")) == 4, "each node has an episode", script)
    pool.gate.open()
    out, _ = script.communicate(timeout=DEADLINE_S)
    one, four = pool.rows("desk_one"), pool.rows("desk_pool")
    assert len(one) == 4, out
    assert _facts(four) == _facts(one)
    assert {row.host for row in four} == set(pool.cluster.nodes)
    assert script.returncode == 0, out
    tables = [pool.outside(f"runs/report_{run}/results.txt").read_text() for run in ("pool", "one")]
    assert tables[0].replace("_pool", "_one") == tables[1]


def test_two_gpus_a_node_give_two_pinned_workers(pool: Pool) -> None:
    pool.gate.close()
    pool.make("pins", "never_succeed")
    block = pool.start(BLOCK.format(run="pins", nodes=2, gpus=2))
    seen: set[tuple[str, ...]] = set()
    names = ("SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES", "MUJOCO_EGL_DEVICE_ID", "EVAL_THREADS")

    def simulators() -> int:
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"harness.episodes.simulator_client" in (process / "cmdline").read_bytes():
                    text = (process / "environ").read_text()
                    environ = dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)
                    if environ.get("STUDY_RUN") == "pins" and "MUJOCO_EGL_DEVICE_ID" in environ:
                        seen.add(tuple(environ[name] for name in names))
        return len(seen)

    wait_for(lambda: simulators() >= 4, "four simulators", block)
    pool.gate.open()
    out, _ = block.communicate(timeout=DEADLINE_S)
    assert block.returncode == 0, out
    assert seen == {(node, gpu, gpu, "1") for node in ("n1", "n2") for gpu in ("0", "1")}
    for node in ("n1", "n2"):
        assert f"node {node}: GPU 0, 1, 1 CPUs, 2 workers" in out
        assert f"{node} GPU 0 ended, exit code 0" in out
        assert f"{node} GPU 1 ended, exit code 0" in out


def test_nodes_without_a_gpu_render_nothing_and_split_their_cpus(pool: Pool) -> None:
    pool.make("bare", "reach_goal")
    code, out = pool.shell(
        "source env.sh; unset EVAL_VIDEO; STUDY_RUN=bare WORKERS_PER_GPU=2 "
        "srun --nodes=2 --ntasks-per-node=1 --cpus-per-task=4 bash scripts/slurm_eval_node.sh"
    )
    assert code == 0, out
    assert "node n1: no GPU, 4 CPUs, 2 workers" in out
    assert "n2 without a GPU, worker 1 ended, exit code 0" in out
    assert {row.video for row in pool.rows("bare")} == {None}


def test_tasks_that_would_share_gpus_are_refused(pool: Pool) -> None:
    pool.make("shared", "reach_goal", seeds=range(1, 3))
    code, out = pool.shell(
        "source env.sh; STUDY_RUN=shared srun --nodes=1 --ntasks-per-node=2 --gres=gpu:2 "
        "--kill-on-bad-exit=0 bash scripts/slurm_eval_node.sh"
    )
    assert code == 2
    assert "node n1: several tasks share its GPUs; start one task a node" in out
    assert len(pool.outcomes("shared")) == 4


def test_submit_prepares_waits_and_is_over_at_once_the_second_time(pool: Pool) -> None:
    queue = pool.queue("reach_goal", "reach_even")
    command = f"source env.sh; rollpool submit sub --queue {queue} --nodes 3 --gres gpu:1"
    code, out = pool.shell(command)
    assert code == 0, out
    assert "run sub: 24 of 24 episodes done" in out
    code, out = pool.shell(command + " 2>&1 | tee /dev/stderr | grep -c ^node")
    assert out.endswith("\n0\n"), out


def test_a_run_without_a_queue_is_refused_on_every_node(pool: Pool) -> None:
    code, out = pool.shell(BLOCK.format(run="nosuch", nodes=2, gpus=1))
    assert code == 2
    assert out.count("queue.txt: No such file or directory; write one with `rollpool queue") == 2, (
        out
    )


def test_jobs_of_an_array_join_late(pool: Pool) -> None:
    pool.gate.close()
    pool.make("late", "never_succeed")
    first = pool.start(BLOCK.format(run="late", nodes=1, gpus=1))
    wait_for(lambda: pool.held("late"), "the first node is in an episode", first)
    code, out = pool.shell(
        "source env.sh; rollpool submit late --mode array --nodes 3 --gres gpu:1"
    )
    assert code == 0 and "Submitted batch job" in out, out
    wait_for(lambda: len(pool.held("late")) > 1, "another one joins", first)
    pool.gate.open()
    out, _ = first.communicate(timeout=DEADLINE_S)
    assert first.returncode == 0, out
    assert len(pool.rows("late")) == 12
    assert len({row.host for row in pool.rows("late")}) > 1
