"""Preparing a run as work that many processes share: what is to do is claimed as episodes are.

Promises: by the rules of the leases (``mkdir`` has one winner, a heartbeat that stands still is a
death) two living processes do not do one piece, and a dead one's piece is taken over. What a piece
comes to is published once, so it is the same whoever did it, and whether it is done is asked of
that alone: a claim says only that somebody is at it.
Not promised: that a process judged dead is dead. ``Piece.held`` tells it when it thaws.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from harness.errors import Declined
from harness.leases.filesystem import Filesystem
from harness.leases.heartbeat import Heartbeat, WorkerId
from harness.leases.lease import LeaseBook
from harness.leases.names import DONE, RELEASED, Claim, shard_of
from harness.leases.observer import Observer
from harness.paths import RunPaths
from harness.runs.behind import Behind

#: What the names of works end in: ``<cell>.scan``, ``<cell>.seal-<hash>``. Claims on episodes are
#: in ``<cell>.<hash>``, so a heartbeat tells which it names.
SCAN, SEAL = "scan", "seal-"

_POLL_S = 0.2
#: For the piece that is worked on, and the one that ends behind it.
_SEATS = 2


@contextlib.contextmanager
def asking(what: str) -> Iterator[None]:
    """Around a question to the simulator: what it declines says which one it was."""
    try:
        yield
    except Declined as error:
        raise Declined(
            what, str(error),
            "mend that, or leave out the seed in its bank, or the task in queue.txt",
        ) from error  # fmt: skip


def is_preparing(claim: str) -> bool:
    """Whether a heartbeat that names ``claim`` is at a piece of preparing, not at episodes."""
    work = claim.partition("/")[0].rpartition(".")[2]
    return work == SCAN or work.startswith(SEAL)


class Work(Protocol):
    """Something of a run that has to be prepared, by this process or by others."""

    def over(self) -> bool:
        """Whether nothing of it is left to do for anybody."""
        ...

    def advance(self) -> bool:
        """Do a piece of it, if there is one that nobody does; whether there was."""
        ...


class Piece:
    """A claim that this process holds."""

    def __init__(self, claim: Claim, book: LeaseBook, heartbeat: Heartbeat, lapses: int) -> None:
        self.claim = claim
        self._book, self._heartbeat, self._lapses = book, heartbeat, lapses

    def held(self) -> bool:
        """Whether nobody can have taken it: ask before something is published that another's word
        would contradict."""
        lapses = self._heartbeat.lapses
        if lapses != self._lapses:
            self._book.refresh(self.claim.shard)
            attempt = self._book.attempts(self.claim.first, self.claim.last)
            if attempt > self.claim.attempt or self._book.marked(self.claim, RELEASED):
                return False
            self._lapses = lapses
        return True


class Preparer:
    """One process's part in preparing a run.

    Args:
        begin: makes the run; called once, before anything is written there.
    """

    def __init__(self, paths: RunPaths, ttl: float, begin: Callable[[], object]) -> None:
        self._paths, self._ttl, self._begin = paths, ttl, begin
        self._fs, self._observer = Filesystem(), Observer(paths.workers, ttl)
        self._books: dict[str, LeaseBook] = {}
        self._heartbeat: Heartbeat | None = None
        self._begun = self._idle = False
        self._behind, self._seat = Behind(), 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="preparing", daemon=True)

    def __enter__(self) -> Preparer:
        return self

    def __exit__(self, *error: object) -> None:
        if self._heartbeat is not None:
            self._stop.set()
            self._thread.join()
            self._heartbeat.end()

    def begin(self) -> None:
        """Make the run, if this process has not done so."""
        if not self._begun:
            self._begin()
            self._begun = True

    def finish(self, works: Iterable[Work]) -> None:
        """Return when all of them are over, doing what nobody else does meanwhile.

        Raises:
            Declined: the simulator would not have one; all that it would have are over.
        """
        waiting, declined = list(works), dict[Work, Declined]()
        while waiting := [work for work in waiting if work not in declined and not work.over()]:
            if not self._round(waiting, declined):
                self._wait(len(waiting))
        if errors := [error for work, error in declined.items() if not work.over()]:
            names = ", ".join(error.asked for error in errors)
            raise Declined(names, errors[0].found, errors[0].todo)

    def _round(self, works: Iterable[Work], declined: dict[Work, Declined]) -> bool:
        """A piece of each, where there is one; whether there was any."""
        advanced = False
        try:
            for work in works:
                try:
                    advanced |= work.advance()
                except Declined as error:
                    declined[work] = error
        finally:
            self._behind.settle()
        return advanced

    def folder(self, name: str) -> Path:
        """Where the claims on the work ``name`` are, and what has come of them."""
        return self._paths.preparing / name

    @contextlib.contextmanager
    def piece(
        self, name: str, first: int, last: int, done: Callable[[], bool]
    ) -> Iterator[Piece | None]:
        """Hold the positions ``first..last`` of the work ``name``; None where somebody else does,
        or they are ``done`` already. Given back where the block raises."""
        piece = self._take(name, first, last, done)
        if piece is None:
            yield None
            return
        marker = RELEASED
        try:
            yield piece
            marker = DONE
        finally:
            self._books[name].finish(piece.claim, marker)

    def end_behind(self, held: contextlib.ExitStack, end: Callable[[], object]) -> None:
        """``end`` the piece of the context ``held``, and that context, while the next piece is
        worked on. Raises what the piece before raised, which has ended by then."""
        self._behind.settle()
        piece = held.pop_all()

        def ending() -> None:
            with piece:
                end()

        self._seat = (self._seat + 1) % _SEATS  # this one names the piece until it has ended
        self._behind.call(ending)

    def _take(self, name: str, first: int, last: int, done: Callable[[], bool]) -> Piece | None:
        heartbeat, shard = self._beating(), shard_of(first)
        if name not in self._books:
            self._books[name] = LeaseBook(self._paths.preparing, name, self._fs)
        book, lapses = self._books[name], heartbeat.lapses
        book.refresh(shard)
        self._observer.look()
        others = {claim for at in range(first, last + 1) for claim in book.open(at)}
        held = [claim for claim in others if not self._observer.abandoned(claim)]
        # Asked after the listing: what a finished claim came to is published before its marker.
        if held or done():
            return None
        book.void = book.done()
        claim = book.try_claim(first, last, 0, others)
        if claim is None:
            return None
        heartbeat.beat(seat=self._seat, claim=str(claim), state="running")
        self._idle = False
        for other in others:
            book.finish(other, RELEASED)
        piece = Piece(claim, book, heartbeat, lapses)
        if piece.held():
            return piece
        book.finish(claim, RELEASED)
        return None

    def _wait(self, works: int) -> None:
        """For others. A look costs a few listings for each work, and many may look."""
        if self._heartbeat is not None and not self._idle:
            for seat in range(_SEATS):
                self._heartbeat.beat(seat=seat, claim=None, state="idle")
            self._idle = True
        time.sleep(min(self._ttl / 10, _POLL_S * (1 + works / 2)))

    def _beating(self) -> Heartbeat:
        """A heartbeat that lasts as long as this process: it waits for the simulator without
        looking up, and that wait has a deadline of its own."""
        if self._heartbeat is None:
            self.begin()
            self._heartbeat = Heartbeat(self._paths, WorkerId.new(), self._ttl, seats=_SEATS)
            self._heartbeat.start()
            self._thread.start()
        return self._heartbeat

    def _live(self) -> None:
        assert self._heartbeat is not None
        while not self._stop.wait(self._heartbeat.interval):
            self._heartbeat.alive()
