"""Whether a policy's answers depend on who is answered with them.

``Keeping`` stands around the policy of a model server and keeps what it is asked; ``compare`` asks
all of it again, twice: each session alone, and together with the others in batches. Both begin with
fresh memory and noise, so what differs is the batch's doing: sums in another order, in their last
bits, or noise that is not the session's own. Episodes that are played after that are answered in
company, so that where they end says what such differences come to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from harness.inference.spool import Observations, Spool
from harness.policies.contract import Observation, Policy, Session
from harness.policies.wrappers import Around

#: Differences that are named, the largest first.
NAMED = 10


@dataclass
class Seen:
    """A session and what it was asked, in order."""

    session: Session
    observations: Observations

    def again(self, policy: Policy) -> Session:
        """The session as it was before its first question."""
        session = self.session
        rng = np.random.default_rng(session.noise_seed)
        fresh = replace(session, rng=rng, memory={})
        policy.reset(fresh)
        return fresh


class Company:
    """A session each question of which is answered in a batch with what others were asked then."""

    def __init__(self, session: Session, others: Sequence[Seen], policy: Policy) -> None:
        self.session, self._policy, self._asked = session, policy, 0
        self._others = [(seen.observations, seen.again(policy)) for seen in others]

    def infer(self, observation: Observation) -> np.ndarray:
        rows = [(of[min(self._asked, len(of) - 1)], session) for of, session in self._others]
        at = self._asked % (len(rows) + 1)  # in each place of the batch by turns
        rows.insert(at, (observation, self.session))
        self._asked += 1
        return self._policy.infer_batch(*map(list, zip(*rows, strict=True)))[at]


class Keeping(Around):
    """The policy inside, and what it was asked until it was compared."""

    def __init__(self, inner: Policy) -> None:
        super().__init__(inner)
        self._seen: dict[int, Seen] = {}
        self._spool = Spool()
        self._batch = 1
        self._company: Company | None = None  # of the session that is played now

    def infer(self, observation: Observation, session: Session) -> np.ndarray:
        if self._batch > 1:
            return self._in_company(session).infer(observation)
        if id(session) not in self._seen:
            self._seen[id(session)] = Seen(session, Observations(self._spool))
        self._seen[id(session)].observations.append(observation)
        return super().infer(observation, session)

    def compare(self, batch: int) -> dict[str, Any]:
        """``chunks equal largest``: chunks that were compared; those equal bit by bit; and of the
        others those that differ most, each with ``scene task seed chunk batch action dimension
        alone together difference``. From then on sessions are answered in batches of as many. Of a
        policy that ``batches``."""
        self._batch = batch
        found: dict[str, Any] = {"chunks": 0, "equal": 0}
        differing = []
        for where, alone, together in self._pairs(batch):
            found["chunks"] += 1
            if np.array_equal(alone, together):
                found["equal"] += 1
            else:
                differing.append(where | _difference(alone, together))
        differing.sort(key=lambda one: -one["difference"])
        return found | {"largest": differing[:NAMED]}

    def _in_company(self, session: Session) -> Company:
        if self._company is None or self._company.session is not session:
            # The noise seed is of all that an episode is: this one is no company for itself.
            itself = session.noise_seed
            others = [seen for seen in self._seen.values() if seen.session.noise_seed != itself]
            self._company = Company(session, others[: self._batch - 1], self._inner)
        return self._company

    def _pairs(self, batch: int) -> Iterator[tuple[dict[str, Any], np.ndarray, np.ndarray]]:
        """Where, the chunk of a session alone, and the one of it in a batch."""
        policy, seen = self._inner, list(self._seen.values())
        alone, shared = ([each.again(policy) for each in seen] for _ in range(2))
        for chunk in range(max((len(each.observations) for each in seen), default=0)):
            rows = [row for row, each in enumerate(seen) if chunk < len(each.observations)]
            turned = rows[chunk % len(rows) :] + rows[: chunk % len(rows)]  # in other company
            for group in (turned[at : at + batch] for at in range(0, len(turned), batch)):
                asked = [seen[row].observations[chunk] for row in group]
                together = policy.infer_batch(asked, [shared[row] for row in group])
                for row, observation, answer in zip(group, asked, together, strict=True):
                    single, of = policy.infer(observation, alone[row]), seen[row].session
                    where = {"scene": of.scene, "task": of.task, "seed": of.seed}
                    yield {**where, "chunk": chunk, "batch": len(group)}, single, answer


def _difference(alone: np.ndarray, together: np.ndarray) -> dict[str, Any]:
    if alone.shape != together.shape:
        place = {"action": min(len(alone), len(together)), "dimension": 0}
        return {**place, "alone": len(alone), "together": len(together), "difference": np.inf}
    apart = np.abs(alone.astype(np.float64) - together)
    action, dimension = (int(at) for at in np.unravel_index(apart.argmax(), apart.shape))
    return {
        "action": action, "dimension": dimension, "difference": float(apart.max()),
        "alone": float(alone[action, dimension]), "together": float(together[action, dimension]),
    }  # fmt: skip
