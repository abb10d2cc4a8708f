"""``rollpool serve RUN``: this node's model, for simulators on other nodes."""

from __future__ import annotations

import argparse
import functools

from harness.commands.launch import add_flags, add_run, read_settings, warn


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    add_flags(parser, "policy", "ckpt", "config", "simulator", "profile")


def run(arguments: argparse.Namespace) -> int:
    """Serve until nothing of the run is left. ``MODEL_SERVER_BIND`` is the address to listen on;
    with ``MODEL_AS_CLIENT=1`` it connects to the run's simulators instead."""
    from harness.runs.run import open_run, refuse_other_code
    from harness.workers.serve import serve

    settings = read_settings(arguments)
    joined = open_run(settings.root, settings, create=False)
    refuse_other_code(joined)
    warn(joined.warnings)
    return serve(joined, functools.partial(print, flush=True))
