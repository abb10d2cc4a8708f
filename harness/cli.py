"""The ``rollpool`` command: one module of ``harness.commands`` for each subcommand.

Promises: ``--help`` imports nothing but the standard library; a flag beats the environment variable
it stands for; what the toolkit refuses is one line on stderr and its exit code (2), a table or run
with gaps exits 1, and anything else that escapes is a defect and keeps its traceback.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
from collections.abc import Sequence
from types import ModuleType

from harness.errors import EXIT_OK, RollpoolError

#: Subcommand -> its module in ``harness.commands``, with ``add_arguments`` and ``run``; its help.
COMMANDS = {
    "prepare": ("prepare", "make a run and seal its episodes from queue and seed bank"),
    "run": ("run", "prepare a run and evaluate it on this machine, with progress"),
    "work": ("work", "one lease worker: claim and evaluate episodes until none is left"),
    "node": ("node", "this node's share of a run: a worker for each of its GPUs"),
    "submit": ("submit", "prepare a run and hand it to SLURM, or print what would be"),
    "status": ("status", "how a run stands: cells, workers, rate, time left"),
    "retry": ("decide", "try set-aside episodes again, with a fresh budget"),
    "skip": ("decide", "leave episodes out that have no result, until they are retried"),
    "reset": ("decide", "run episodes anew; their rows stay, as an earlier generation"),
    "compact": ("compact", "replace the names of finished leases by few; safe while workers run"),
    "organize": ("organize", "success tables and named videos of a run"),
    "episode": ("episode", "one episode by hand, with its video and traceback"),
    "list": ("listing", "scenes, tasks, configs, checkpoints, policies, profiles, simulators"),
    "queue": ("queue_file", "write a queue file from a scene and task filter"),
    "stage": ("stage", "bring environments, weights and assets to this node's own disk"),
    "serve": ("serve", "this node's model, for simulators on other nodes"),
    "clean": ("clean", "staged copies, old videos, finished leases: what can go, what it frees"),
    "doctor": ("doctor", "check this node: GPU, pictures, simulator, disk, shared folder, ffmpeg"),
    "batch-check": ("batch_check", "whether results depend on who shares a batch of the policy"),
    "conform": ("conform", "whether a simulator's adapter keeps the contract"),
    "variables": ("variables", "every variable: value, where it comes from, meaning"),
}
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        parsed = _parser(arguments).parse_args(arguments)
        code: int = _module(parsed.command).run(parsed)
        sys.stdout.flush()
    except RollpoolError as error:
        print(f"rollpool: error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("rollpool: interrupted; the same command goes on where it stopped", file=sys.stderr)
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough; nothing may be flushed into the pipe at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK
    return code


def _parser(arguments: Sequence[str]) -> argparse.ArgumentParser:
    """All commands by name; the arguments of those alone that ``arguments`` may mean."""
    parser = argparse.ArgumentParser(
        prog="rollpool", description="Evaluate robot policies in simulators.",
        epilog="rollpool COMMAND --help tells more. What is refused exits 2, what is incomplete 1.",
    )  # fmt: skip
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, does) in COMMANDS.items():
        sub = subparsers.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.")
        if name in arguments:
            _module(name).add_arguments(sub)
    return parser


def _module(command: str) -> ModuleType:
    return importlib.import_module(f"harness.commands.{COMMANDS[command][0]}")


def _terminated(number: int, frame: object) -> None:
    """Ends a command as an exception does: its processes and temporary folders go with it."""
    raise SystemExit(128 + number)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _terminated)  # who runs episodes has its own
    sys.exit(main())
