"""Work that several share: one piece, one process; what the dead leave is taken over."""

from __future__ import annotations

import contextlib
import threading
from pathlib import Path

import pytest

from harness.leases.heartbeat import Heartbeat, WorkerId
from harness.leases.lease import LeaseBook
from harness.leases.names import RELEASED, Claim
from harness.paths import RunPaths
from harness.runs.preparer import Piece, Preparer

TTL = 1.0


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    return RunPaths(tmp_path)


def preparer(paths: RunPaths, ttl: float = TTL) -> Preparer:
    return Preparer(paths, ttl, lambda: paths.root.mkdir(exist_ok=True))


def never() -> bool:
    return False


class Marks:
    """Pieces 0, 1, ... of which each leaves a mark with its maker's name."""

    def __init__(self, folder: Path, preparer: Preparer, name: str, count: int) -> None:
        self._folder, self._preparer, self._name, self._count = folder, preparer, name, count

    def over(self) -> bool:
        return all((self._folder / str(n)).exists() for n in range(self._count))

    def advance(self) -> bool:
        for n in range(self._count):
            file = self._folder / str(n)
            with self._preparer.piece("marks", n, n, file.exists) as piece:
                if piece is not None:
                    with file.open("x") as out:
                        out.write(self._name)
                    return True
        return False


def test_many_share_the_work_and_none_does_a_piece_twice(paths: RunPaths, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    barrier = threading.Barrier(4)
    failures: list[BaseException] = []

    def part(name: str) -> None:
        barrier.wait()
        try:
            with preparer(paths) as mine:
                mine.finish([Marks(marks, mine, name, 40)])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=part, args=(f"p{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert len(list(marks.iterdir())) == 40


def test_a_piece_is_held_by_one_and_given_back_where_it_fails(paths: RunPaths) -> None:
    with preparer(paths) as mine, preparer(paths) as other:
        with pytest.raises(ValueError, match="broken"), mine.piece("w", 0, 3, never) as piece:
            assert piece is not None and piece.held()
            for first, last in ((0, 3), (3, 3)):
                with other.piece("w", first, last, never) as none:
                    assert none is None
            raise ValueError("broken")
        with other.piece("w", 0, 3, never) as again:
            assert again is not None and again.claim.attempt == 2
        with mine.piece("w", 0, 3, lambda: True) as done:
            assert done is None
        with mine.piece("w", 0, 3, never) as lost:
            assert lost is not None, "what it came to is gone: its marker is void"


def test_a_dead_ones_piece_is_taken_over(paths: RunPaths) -> None:
    """It held two: one was worked on, the other was being ended behind it."""
    paths.root.mkdir(exist_ok=True)
    heartbeat = Heartbeat(paths, WorkerId.new(), TTL, seats=2)
    for seat, work in enumerate(("v", "w")):
        LeaseBook(paths.preparing, work).try_claim(0, 0, 0)
        heartbeat.beat(seat=seat, claim=str(Claim(work, 0, 0, 0, 1)))
    with preparer(paths) as mine, contextlib.ExitStack() as stack:
        for work in ("v", "w"):
            assert stack.enter_context(mine.piece(work, 0, 0, never)) is None
        heartbeat.end()
        for work in ("v", "w"):
            piece: Piece | None = None
            while piece is None:
                piece = stack.enter_context(mine.piece(work, 0, 0, never))
            assert piece.claim.attempt == 2
            assert (paths.preparing / work / "0" / "0-0.1.released").exists()


def test_who_was_taken_for_dead_is_told(paths: RunPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    with preparer(paths) as mine, mine.piece("w", 0, 0, never) as piece:
        assert piece is not None
        book = LeaseBook(paths.preparing, "w")
        book.refresh(0)
        taken = book.try_claim(0, 0, 0, dead=[piece.claim])
        assert taken is not None
        assert piece.held(), "nothing says that it slept"
        monkeypatch.setattr(Heartbeat, "lapses", 1)
        assert not piece.held()
        book.finish(piece.claim, RELEASED)
        taken.path(paths.preparing).rmdir()
        assert not piece.held()
