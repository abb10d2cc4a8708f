"""What SLURM is handed: a pure function against golden files, and what flags make of it.

After a change that is meant: ``python -m tests.cli.test_submit`` renews the files.
"""

from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.foundations.variables import VARIABLES, Variable
from harness.nodes.submission import MODES, Submission, text
from harness.paths import CODE
from tests.cli.conftest import Rollpool

GOLDEN = Path(__file__).parent / "golden"
SUBMISSION = Submission(
    run="demo_clean",
    variables={
        "STUDY_RUN": "demo_clean",
        "CKPT_NAME": "da3-xvla-k320-ckpt90k",
        "BENCH_CONFIG": "clean",
        "SEEDS_ROOT": "/data/seed banks/k320",
        "EVAL_TEST_NUM": "5",
    },
    options=[
        ("partition", "gb10"),
        ("nodelist", "trt-gb10-[3-6]"),
        ("gres", "gpu:1"),
        ("cpus-per-task", "18"),
        ("time", "600"),
        ("exclusive", ""),
    ],
    nodes=4,
    root=Path("/opt/rollpool"),
    logs=Path("/data/runs/demo_clean/logs"),
)


def of_mode(mode: str) -> str:
    options = [o for o in SUBMISSION.options if mode != "array" or o[0] != "nodelist"]
    return text(replace(SUBMISSION, options=options), mode)


@pytest.mark.parametrize("mode", MODES)
def test_the_text_is_the_golden_one(mode: str) -> None:
    assert of_mode(mode) == (GOLDEN / f"{mode}.txt").read_text()


@pytest.mark.parametrize("mode", MODES)
def test_bash_reads_it(mode: str) -> None:
    done = subprocess.run(["bash", "-n"], input=of_mode(mode), text=True, check=False)
    assert done.returncode == 0


def test_an_array_has_no_node_list() -> None:
    with pytest.raises(RollpoolError, match="each of its jobs would want all of these nodes"):
        text(SUBMISSION, "array")


def test_a_dry_run_prints_what_the_user_chose_and_touches_nothing(
    rollpool: Rollpool,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVAL_RETRIES", "1")
    monkeypatch.setenv("ROLLPOOL_ENVS", "/group/envs")
    monkeypatch.setenv("XVLA_PY", "/group/envs/model/bin/python")
    done = rollpool(
        "submit", "night", "--config", "d6", "--test-num", "2", "--nodes", "3", "--dry-run",
        "--gres", "gpu:2", "--slurm=--exclude=n1",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert not (home / "runs").exists()
    for words in (
        f"EVAL_ROOT={home} ", "STUDY_RUN=night ", "BENCH_CONFIG=d6 ", "EVAL_TEST_NUM=2 ",
        "EVAL_RETRIES=1 ", f"SEEDS_ROOT={home}/bank ", "--nodes=3 --gres=gpu:2 --exclude=n1 ",
        f"bash {CODE}/scripts/slurm_eval_node.sh\n",
    ):  # fmt: skip
        assert words in done.out
    # A job may not inherit the environment, and finds no toolkit without this.
    assert "ROLLPOOL_ENVS=/group/envs " in done.out and "XVLA_PY" not in done.out
    assert "LEASE_TTL" not in done.out


def example(variable: Variable) -> str:
    """A value that a user may give, with what a shell would take apart where there can be some."""
    if variable.choices:
        return variable.choices[-1]
    path = "/some where/it's"
    return {"flag": "0", "int": "1", "float": "1.0", "path": path, "name or path": path,
            "text": "one,two 'three'", "mapping": '{"a,b":"c d"}'}[variable.type]  # fmt: skip


@pytest.mark.parametrize("mode", ["srun", "sbatch"])
@pytest.mark.parametrize("name", sorted({*VARIABLES} - {"STUDY_RUN", "EVAL_ROOT", "EVAL_PROFILE"}))
def test_whatever_a_user_gives_is_the_jobs(
    rollpool: Rollpool, monkeypatch: pytest.MonkeyPatch, name: str, mode: str
) -> None:
    value = example(VARIABLES[name])
    monkeypatch.setenv(name, value)
    done = rollpool("submit", "night", "--dry-run", "--mode", mode)
    assert done.code == 0, done.err
    assert f"{name}={value}" in shlex.split(done.out, comments=True)


@pytest.mark.parametrize("word", ["exclusive", "--=4", "-w=n1"])
def test_what_is_no_option_is_refused(rollpool: Rollpool, word: str) -> None:
    done = rollpool("submit", "night", "--dry-run", f"--slurm={word}")
    assert done.code == 2 and "not a long option" in done.err


def test_without_slurm_nothing_is_prepared(
    rollpool: Rollpool,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(home))
    done = rollpool("submit", "night", "--mode", "sbatch", "--queue", "queue.txt")
    assert done.code == 2 and "no sbatch on this host" in done.err
    assert not (home / "runs").exists()


if __name__ == "__main__":
    for each in MODES:
        (GOLDEN / f"{each}.txt").write_text(of_mode(each))
