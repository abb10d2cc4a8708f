"""``rollpool submit RUN``: prepare a run, check it, and hand it to SLURM, or print what would be.

With ``--mode srun`` it waits, and says what is still missing: ``srun`` returns 0 after a node died.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

from harness.commands import prepare
from harness.commands.launch import limits, read_settings, run_name
from harness.commands.status import check
from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.nodes.submission import MODES, Submission, text

if TYPE_CHECKING:
    from harness.foundations.settings import Settings
    from harness.reports.status import Status

#: SLURM's options that have a flag of their own here; any other goes through ``--slurm``.
_OPTIONS = {
    "partition": "where", "nodelist": "which nodes, e.g. 'n[1-4]'", "gres": "e.g. gpu:1",
    "cpus-per-task": "CPUs on each node", "time": "the job's time limit", "account": "who pays",
    "qos": "quality of service",
}  # fmt: skip
#: Said in any case, where a node's own env.sh would not find them.
_SAID_APART = ("STUDY_RUN", "EVAL_ROOT")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    prepare.add_arguments(parser)
    parser.add_argument("--mode", choices=MODES, default="srun", help="default: srun, and wait")
    parser.add_argument("--dry-run", action="store_true", help="print it, touch nothing")
    slurm = parser.add_argument_group("SLURM")
    slurm.add_argument("--nodes", type=_positive, default=1, help="default: 1")
    for name, meaning in _OPTIONS.items():
        slurm.add_argument(f"--{name}", help=meaning, dest=f"slurm_{name}")
    slurm.add_argument(
        "--slurm", action="append", default=[], metavar="--OPTION=VALUE",
        help="any other option of srun and sbatch; may be given more than once",
    )  # fmt: skip


def run(arguments: argparse.Namespace) -> int:
    """srun: 0 when every episode has its result, 1 when something is missing. Else sbatch's."""
    from harness.reports.status_page import missing

    settings = read_settings(arguments)
    script = text(submission(settings, arguments), arguments.mode)
    if arguments.dry_run:
        sys.stdout.write(script)
        return EXIT_OK
    program = "srun" if arguments.mode == "srun" else "sbatch"
    if shutil.which(program) is None:
        raise RollpoolError(
            f"submit {run_name(settings)}", f"no {program} on this host",
            "submit from a login node, or evaluate here: rollpool run",
        )  # fmt: skip
    prepared = prepare.prepare_run(arguments)
    before = _look(prepared.settings)
    if not missing(before):
        return check(before)
    if program == "srun":
        subprocess.run(["bash", "-c", script], check=False)
        return check(_look(prepared.settings))
    prepared.paths.logs.mkdir(exist_ok=True)
    done = subprocess.run(["sbatch"], input=script, text=True, check=False)
    return EXIT_OK if done.returncode == 0 else EXIT_PARTIAL


def submission(settings: Settings, arguments: argparse.Namespace) -> Submission:
    """What the arguments ask for. Raises ``RollpoolError`` for an option that cannot be one."""
    from harness.paths import CODE

    name = run_name(settings)
    options = [
        (option, value)
        for option in _OPTIONS
        if (value := getattr(arguments, f"slurm_{option}")) is not None
    ]
    for word in arguments.slurm:
        option, _, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not option:
            raise RollpoolError(
                f"--slurm {word}", "not a long option", "write --slurm=--OPTION=VALUE"
            )
        options.append((option, value))
    return Submission(
        run=name,
        variables={"STUDY_RUN": name, **_given(settings)},
        options=options,
        nodes=arguments.nodes,
        root=CODE,
        logs=settings.root.run(name).logs,
    )


def _given(settings: Settings) -> dict[str, str]:
    """What the user chose: the job may start days later, from another environment."""
    from harness.foundations.values import as_text
    from harness.paths import CODE

    envs = settings["ROLLPOOL_ENVS"] or CODE / "envs"
    derived = {"BUNDLE": CODE, "ROLLPOOL_ENVS": CODE / "envs",
               "ROBOTWIN_PY": envs / "tabletop" / "bin" / "python",
               "XVLA_PY": envs / "model" / "bin" / "python"}  # fmt: skip
    given = {
        name: as_text(settings[name])
        for name, source in settings.sources.items()
        if source in ("command line", "environment") and name not in _SAID_APART
    }
    for name, place in derived.items():  # by a node's own env.sh
        if given.get(name) == str(place):
            del given[name]
    return given if settings.root.path == CODE else {"EVAL_ROOT": str(settings.root.path), **given}


def _look(settings: Settings) -> Status:
    from harness.reports.status import StatusReader

    return StatusReader(settings.root.run(run_name(settings)), limits(settings)).look()


def _positive(word: str) -> int:
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is less than 1")
    return number
