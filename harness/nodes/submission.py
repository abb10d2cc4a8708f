"""What ``rollpool submit`` hands to SLURM, as text.

Promises: ``text`` depends on its arguments alone, and what it returns is what is run: a command
line for bash, or a script for ``sbatch``. Every mode survives the death of a node (``--no-kill``)
and of a worker (``--kill-on-bad-exit=0``), and none takes ``srun``'s word for success: the run is
asked what is still missing.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import EXIT_LATER, RollpoolError

#: A blocking step; a batch job; one job a node, each starting when it can; a batch job that begins
#: again before its time is over, until nothing is left.
MODES = ("srun", "sbatch", "array", "requeue")

#: Before the time limit, for workers to give their work back. SLURM looks at limits every 30 s.
_WARNING_S = 120

_STEP_OPTIONS = ("--ntasks-per-node=1", "--no-kill", "--kill-on-bad-exit=0")
#: Whatever a site or the job's submission says (SLURM_EXPORT_ENV, --export=NONE): a step that is
#: handed on nothing knows neither its run nor its settings.
_EXPORT = "--export=ALL"
#: What srun does not take over from the job it runs in.
_NOT_INHERITED = ("cpus-per-task",)
#: Ask for all of the nodes they name, which no job of an array's one node can have.
_NOT_OF_ARRAYS = ("nodelist",)

_ONCE = """\
code=0
{step} || code=$?
{check} || exit $((code ? code : 1))
"""

_AGAIN = """\
again=0 code=0
# What has been finished: episodes and pieces of preparing, each with a name.
finished() {{ find {run} -name '*.jsonl' -o -name '*.done' | wc -l; }}
# The time is nearly over: TERM to the workers, not to this script, and begin again.
trap 'again=1; scancel --quiet --signal=TERM "$SLURM_JOB_ID"' USR1
before=$(finished)
{step} &
step=$!
wait "$step" || code=$?
# A signal ends a wait before the step has ended.
if ((again)); then code=0 && wait "$step" || code=$?; fi
{check} && exit
if ((again || code == {later})); then
  # The first time staging may have taken it all; a second time nothing would ever change.
  if [[ "${{SLURM_RESTART_COUNT:-0}}" == 0 || "$(finished)" != "$before" ]]; then
    exec scontrol requeue "$SLURM_JOB_ID"
  fi
  echo "not requeued: no episode ends within the time limit; ask for a longer --time" >&2
fi
exit $((code ? code : 1))
"""


@dataclass(frozen=True)
class Submission:
    """One run on one pool.

    ``variables``: what the user set, by name; ``options``: SLURM's long options without dashes,
    in order, the number of nodes among them; ``root``: the installation; ``logs``: where SLURM
    writes what a batch job prints.
    """

    run: str
    variables: Mapping[str, str]
    options: Sequence[tuple[str, str]]
    nodes: int
    root: Path
    logs: Path


def text(submission: Submission, mode: str) -> str:
    """The command line or the script of a mode of ``MODES``. Raises ``RollpoolError``."""
    wrong = [name for name, _ in submission.options if name in _NOT_OF_ARRAYS]
    if mode == "array" and wrong:
        raise RollpoolError(
            f"--{wrong[0]} of a job array", "each of its jobs would want all of these nodes",
            "name a --partition, or leave nodes out with --slurm=--exclude=NODES",
        )  # fmt: skip
    if mode == "srun":
        return _command(submission)
    return _script(submission, mode)


def _command(submission: Submission) -> str:
    names = " ".join(_assignments(submission))
    options = [f"--job-name={submission.run}", _EXPORT, *_options(submission, submission.nodes)]
    step = " ".join(shlex.quote(option) for option in [*options, *_STEP_OPTIONS])
    return f"{names} \\\n  srun {step} \\\n  bash {_payload(submission)}\n"


def _script(submission: Submission, mode: str) -> str:
    array = mode == "array"
    options = [
        f"--job-name={submission.run}",
        *_options(submission, 1 if array else submission.nodes),
    ]
    options += ["--ntasks-per-node=1", "--no-kill"]
    options += [f"--array=1-{submission.nodes}"] if array else []
    if mode == "requeue":
        options += ["--requeue", f"--signal=B:USR1@{_WARNING_S}"]
    options += [f"--output={submission.logs}/slurm-{'%A_%a' if array else '%j'}.out"]
    options += ["--open-mode=append"]
    exports = [f"export {assignment}" for assignment in _assignments(submission)]
    body = (_AGAIN if mode == "requeue" else _ONCE).format(
        step=_step(submission),
        check=f"{shlex.quote(str(submission.root / 'scripts' / 'rollpool'))} status --check",
        later=EXIT_LATER,
        run=shlex.quote(str(submission.logs.parent)),
    )
    head = ["#!/usr/bin/env bash", *(f"#SBATCH {shlex.quote(option)}" for option in options)]
    return "\n".join([*head, *exports, body])


def _step(submission: Submission) -> str:
    repeated = [
        shlex.quote(f"--{name}={value}")
        for name, value in submission.options
        if name in _NOT_INHERITED
    ]
    options = [*_STEP_OPTIONS, _EXPORT, *repeated]
    return " ".join(["srun", *options, "bash", _payload(submission)])


def _options(submission: Submission, nodes: int) -> list[str]:
    given = [f"--{name}={value}" if value else f"--{name}" for name, value in submission.options]
    return [f"--nodes={nodes}", *given]


def _assignments(submission: Submission) -> list[str]:
    return [f"{name}={shlex.quote(value)}" for name, value in submission.variables.items()]


def _payload(submission: Submission) -> str:
    return shlex.quote(str(submission.root / "scripts" / "slurm_eval_node.sh"))
