"""One preparer for a run that many nodes start at once.

Promises: while a preparer lives nobody else prepares; when it has died another takes over, by the
rules of the leases (``mkdir`` has one winner, a heartbeat that stands still is a death). Not
promised: that a preparer judged dead is dead. Sealing is idempotent, so two would seal the same
episodes, unless the simulator seals differently on the two hosts.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from harness.errors import RollpoolError
from harness.filesystem import Filesystem
from harness.heartbeat import Heartbeat, WorkerId
from harness.lease import Claim
from harness.observer import Observer
from harness.paths import RunPaths

_POLL_S = 0.2


def prepare_once(
    paths: RunPaths, ttl: float, prepared: Callable[[], bool], prepare: Callable[[], object]
) -> bool:
    """Return when the run is prepared; whether it was this process that did it.

    Args:
        prepared: looks whether there is nothing to do; asked again after each wait.
        prepare: does it. What it raises ends the wait of this process alone.
    """
    if not paths.root.is_dir():
        raise RollpoolError(
            f"run {paths.name!r}", f"no {paths.root}",
            f"make it with its queue: mkdir -p {paths.root}, cp QUEUE {paths.queue}",
        )  # fmt: skip
    fs, observer = Filesystem(), Observer(paths.workers, ttl)
    while not prepared():
        observer.look()
        claim = _next_claim(fs, paths, observer)
        if claim is None:
            time.sleep(_POLL_S)
            continue
        if fs.mkdir(paths.preparing / claim.name):
            with _beating(paths, ttl, claim):
                prepare()
            return True
    return False


def _next_claim(fs: Filesystem, paths: RunPaths, observer: Observer) -> Claim | None:
    """The attempt to make now; None while the last one may be under way."""
    fs.mkdir(paths.preparing)
    names = fs.names(paths.preparing)
    claims = [claim for name in names if (claim := Claim.parse(paths.preparing.name, 0, name))]
    last = max(claims, key=lambda claim: claim.attempt, default=None)
    if last is not None and not observer.abandoned(last):
        return None
    return Claim(paths.preparing.name, 0, 0, 0, last.attempt + 1 if last else 1)


@contextlib.contextmanager
def _beating(paths: RunPaths, ttl: float, claim: Claim) -> Iterator[None]:
    """A heartbeat that names ``claim`` and lasts as long as this process."""
    heartbeat, stop = Heartbeat(paths, WorkerId.new(), ttl), threading.Event()
    heartbeat.beat(claim=str(claim))
    heartbeat.start()

    def live() -> None:
        while not stop.wait(heartbeat.interval):
            heartbeat.alive()

    thread = threading.Thread(target=live, name="preparing", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        heartbeat.end()
