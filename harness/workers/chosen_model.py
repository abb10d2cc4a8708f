"""The model that a run's settings ask for: who serves it, and the process that does so here.

Everything that starts a model server for a run goes through here, so that workers, ``serve`` and
``batch-check`` mean the same one.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.errors import RollpoolError
from harness.foundations.settings import Settings
from harness.foundations.yaml_files import policy_config
from harness.runs import servers
from harness.runs.run import Run
from harness.workers import chosen_simulator
from harness.workers.children import environment
from harness.workers.model_link import ComingModel, ModelLink, OwnServer, expected
from harness.workers.remote_server import Choice, RemoteServer
from harness.workers.server_process import ModelServerProcess


def links(run: Run, worker: str, clock: Callable[[], float]) -> list[ModelLink]:
    """One for each of the worker's simulators. Raises ``RollpoolError``."""
    settings = run.settings
    seats: int = settings["SIMS_PER_WORKER"]
    if settings["SIM_AS_SERVER"]:
        own = process(run, worker) if settings["MODEL_AS_CLIENT"] else None
        return [ComingModel(run, worker, own)]
    if settings["MODEL_AS_CLIENT"]:
        raise RollpoolError(
            "MODEL_AS_CLIENT=1", "no simulator of this worker's listens for it",
            "set SIM_AS_SERVER=1 too; alone it is for rollpool serve",
        )  # fmt: skip
    if servers.is_loopback(settings["MODEL_SERVER_HOST"]):
        return [OwnServer(run, worker, process(run, worker))] * seats
    choice = Choice(run, worker, clock)
    return [RemoteServer(run, choice) for _ in range(seats)]


def shared(settings: Settings) -> bool:
    """Whether the model that an episode of a worker is played on may have others meanwhile."""
    comes = settings["SIM_AS_SERVER"] and not settings["MODEL_AS_CLIENT"]
    elsewhere = not servers.is_loopback(settings["MODEL_SERVER_HOST"])
    return bool(comes or elsewhere or settings["SIMS_PER_WORKER"] > 1)


def process(run: Run, name: str, keeps: bool = False) -> ModelServerProcess:
    """A model server of ``run`` on this node, not started yet, that tells its clients it is
    ``name``, and ``keeps`` what it is asked instead of answering several at once. Raises
    ``RollpoolError`` where there is no Python for it."""
    settings, policy = run.settings, run.identity["policy"]
    config = policy_config(run.root, policy)
    python = chosen_simulator.interpreter(
        settings["MODEL_PY"], "MODEL_PY", f"policy {policy!r}", config.get("env") or "model"
    )
    checkpoint = str(run.checkpoint) if run.checkpoint else None
    return ModelServerProcess(
        python,
        run.policy_dir,
        {**config, "policy_name": policy, "checkpoint": checkpoint},
        settings.knobs(),
        run.token,
        run.paths.log(name, "model"),
        identity=expected(run, name),
        host=settings["MODEL_SERVER_BIND"],
        max_batch=1 if keeps else settings["MODEL_MAX_BATCH"] or 1,  # unset in older runs
        keeps=keeps,
        max_wait_ms=settings["MODEL_MAX_WAIT_MS"],
        connects=settings["MODEL_AS_CLIENT"],
        threads=settings["EVAL_THREADS"],
        env={**environment(), **settings.exports()},
    )
