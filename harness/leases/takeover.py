"""What the dead have left: whether an open claim may be taken over, and how what they held is
closed.

Promises: an episode that a dead worker was running has an error of kind ``lost`` on disk before its
claim is closed, so that a taker that dies in between leaves the death to be found again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from harness.foundations.records import Row
from harness.leases.heartbeat import Heartbeat, Record
from harness.leases.names import RELEASED, Claim
from harness.leases.observer import Observer
from harness.leases.standing import Standing
from harness.runs.population import Manifest


@dataclass(frozen=True)
class Lost:
    """An episode whose worker died over it: the callback records it as an error of kind ``lost``,
    with this attempt, and returns the row once it is on disk."""

    manifest: Manifest
    position: int
    attempt: int
    owner: Record


class Takeover:
    """One worker's judgement of the others' claims.

    Args:
        record_lost: see ``Lost``.
    """

    def __init__(
        self, heartbeat: Heartbeat, observer: Observer, record_lost: Callable[[Lost], Row]
    ) -> None:
        self._heartbeat, self._observer, self._record_lost = heartbeat, observer, record_lost

    def free(self, standing: Standing, position: int) -> bool:
        """Whether nobody holds ``position``, and this host may try it."""
        held = standing.book.open(position)
        if any(self._heartbeat.holds(str(claim)) for claim in held):
            return False
        if not all(self._observer.abandoned(claim) for claim in held):
            return False
        # A host leaves its own errors to others, as long as there is one that has not had its try.
        tried = standing.budget.error_hosts(standing.manifest.hash, position)
        untried = self._observer.live_hosts() - tried - {self._heartbeat.host}
        return self._heartbeat.host not in tried or not untried

    def live_again(self, dead: Collection[Claim]) -> bool:
        """Who thaws beats and then lists; who takes over lists and then looks for a beat. So one of
        the two sees the other."""
        self._observer.look_again()
        return not all(self._observer.abandoned(claim) for claim in dead)

    def bury(self, standing: Standing, dead: Collection[Claim]) -> None:
        """Record what the dead were running, then close their claims."""
        standing.load()
        for claim in dead:
            owner = self._observer.owner(claim)
            if owner and self._observer.dead(owner["worker"]) and owner["episode"]:
                self._bury_episode(standing, claim, owner, owner["episode"])
            standing.finish(claim, RELEASED)

    def _bury_episode(
        self, standing: Standing, claim: Claim, owner: Record, episode: Mapping[str, object]
    ) -> None:
        manifest, position = standing.manifest, int(str(episode["position"]))
        if episode["manifest"] != manifest.hash or not claim.covers(position):
            return
        if not standing.budget.has(manifest.hash, position, claim.attempt):
            standing.recorded(self._record_lost(Lost(manifest, position, claim.attempt, owner)))
