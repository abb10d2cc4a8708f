"""What the subcommands share: flags that stand for variables, and opening a run."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from harness.foundations.settings import Settings

#: Flag -> the variable it stands for and beats.
FLAGS = {
    "policy": "POLICY_NAME",
    "ckpt": "CKPT_NAME",
    "config": "BENCH_CONFIG",
    "simulator": "SIMULATOR",
    "sim-config": "SIM_CONFIG",
    "profile": "EVAL_PROFILE",
    "seeds": "SEEDS_ROOT",
    "manifests": "EVAL_MANIFESTS",
    "test-num": "EVAL_TEST_NUM",
    "minibatch": "EVAL_MINIBATCH",
    "video": "EVAL_VIDEO",
}


def add_run(parser: argparse.ArgumentParser) -> None:
    """The RUN argument."""
    parser.add_argument("run", metavar="RUN", nargs="?", help="the run's name (or STUDY_RUN)")


def add_flags(parser: argparse.ArgumentParser, *names: str) -> None:
    """The flags of these names, or all of ``FLAGS``."""
    from harness.foundations.variables import VARIABLES

    group = parser.add_argument_group("settings", "each beats the variable in capitals")
    for name in names or FLAGS:
        variable = VARIABLES[FLAGS[name]]
        meaning = variable.meaning.replace("%", "%%").replace("`", "")
        group.add_argument(f"--{name}", dest=variable.name, metavar=variable.name, help=meaning)


def read_settings(
    arguments: argparse.Namespace, defaults: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of this launch; warnings go to stderr. What is made from now on is for the
    group where the runs are shared. ``defaults`` stand for the declared ones."""
    from harness.foundations import sharing
    from harness.foundations.settings import resolve

    given = {name: value for name in FLAGS.values() if (value := getattr(arguments, name, None))}
    if getattr(arguments, "run", None):
        given["STUDY_RUN"] = arguments.run
    settings, warnings = resolve(flags=given, defaults=defaults)
    warn(warnings)
    sharing.join(settings.root.runs)
    return settings


def run_name(settings: Settings) -> str:
    """``STUDY_RUN``. Raises ``RollpoolError`` where nobody named a run."""
    from harness.errors import RollpoolError

    if settings["STUDY_RUN"] is None:
        raise RollpoolError("run", "no RUN given and STUDY_RUN is not set", "name the run")
    return str(settings["STUDY_RUN"])


def limits(settings: Settings) -> tuple[int, int]:
    """The error budgets of the run's workers, which decide what counts as set aside."""
    from harness.runs.run_record import budgets

    return budgets(settings.root.run(run_name(settings)), settings)


def warn(warnings: list[str] | tuple[str, ...]) -> None:
    """Say each on a line of stderr."""
    for warning in warnings:
        print(f"rollpool: warning: {warning}", file=sys.stderr)
