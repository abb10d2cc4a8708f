"""The drivers of several runs, as far as they go without a cluster: what they would submit."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from .conftest import Shell

ENVS = Path(sys.prefix).parent


def submitted(out: str) -> list[dict[str, str]]:
    """The variables of each submission that a dry run has printed."""
    found: list[dict[str, str]] = []
    for part in out.split("== ")[1:]:
        _, _, command = part.partition("\n")
        words = [word for word in shlex.split(command) if word.strip()]
        found.append(dict(word.split("=", 1) for word in words[: words.index("srun")]))
    return found


def test_values_reach_the_job_whole(shell: Shell, root: Path, tmp_path: Path) -> None:
    keep = "one,two three\nfour=4,FIVE"
    done = shell(
        'bash "$1/orchestrators/parallel_models.sh" --dry-run duel "$2" "$3"', root,
        f"a:CKPT_NAME=big,GIANT_KEEP={keep},GIANT_BACKBONES=o/a,o/b", "b:CKPT_NAME=small",
        ROLLPOOL_ENVS=ENVS, RUNS_ROOT=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second, *pool = submitted(done.stdout)
    assert [first, second] == pool
    assert first["STUDY_RUN"] == "duel_a" and first["CKPT_NAME"] == "big"
    assert first["GIANT_KEEP"] == keep and first["GIANT_BACKBONES"] == "o/a,o/b"
    assert second["CKPT_NAME"] == "small" and "GIANT_KEEP" not in second


@pytest.mark.parametrize("model", ["b", "b:expert", ":POLICY_NAME=expert", "b:policy=expert"])
def test_what_is_no_model_is_refused_before_another_one_is_begun(
    shell: Shell, root: Path, tmp_path: Path, model: str
) -> None:
    done = shell(
        'bash "$1/orchestrators/parallel_models.sh" --dry-run duel "$2" "$3"', root,
        "a:POLICY_NAME=expert", model, ROLLPOOL_ENVS=ENVS, RUNS_ROOT=tmp_path,
    )  # fmt: skip
    assert done.returncode == 2 and f"model {model}: no LABEL:VARIABLE=VALUE" in done.stderr
    assert not done.stdout
