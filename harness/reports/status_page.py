"""A run's status as plain text or JSON, once or live.

On a terminal the live page is redrawn in place; into a file or a pipe it is one line now and then.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import IO

from harness.reports.status import CellStatus, Status, WorkerStatus
from harness.reports.tables import hole_line

#: Unfinished cells shown before the rest is folded.
SHOWN_CELLS = 30
WATCH_S = 2.0
#: Between two lines where the output is no terminal.
PLAIN_S = 10.0
_BAR = 30


def json_text(status: Status) -> str:
    """The status with its sums; one document."""
    document = asdict(status) | {
        "total": asdict(status.total),
        "workers_alive": status.alive,
        "seconds_left": status.seconds_left,
    }
    return json.dumps(document, indent=1)


def line(status: Status) -> str:
    """The status in one line."""
    total = status.total
    parts = [f"sealing {_sealing(status)}"] if status.sealing else []
    parts += [f"{total.done} of {total.selected} episodes done", f"{total.running} running"]
    parts += [f"{total.in_error} in error"] if total.in_error else []
    parts += [f"{total.set_aside} set aside"] if total.set_aside else []
    parts.append(f"{status.alive} workers alive")
    parts += [f"nodes kept out: {len(status.kept_out)}"] if status.kept_out else []
    parts += [f"{status.per_minute:.1f} episodes/min"] if status.per_minute else []
    parts += [_time_left(status)] if status.seconds_left else []
    return ", ".join(parts)


def missing(status: Status) -> list[str]:
    """A line for each cell that lacks an episode's result; empty for a whole run. A run in which
    nothing is queued and nothing sealed is not whole."""
    if not status.cells and not status.unsealed:
        return ["all of it: nothing is queued"]
    lines = [f"{scene} {task}: nothing is sealed" for scene, task in status.unsealed]
    for cell in status.cells:
        if cell.done < cell.selected:
            aside = f", {cell.set_aside} of them set aside" if cell.set_aside else ""
            lines.append(
                f"{cell.scene} {cell.task} {cell.task_config}: "
                f"{cell.selected - cell.done} of {cell.selected} episodes{aside}"
            )
    return lines


def kept_out(status: Status) -> list[str]:
    """A line for each node whose check failed."""
    return [f"{node.node}: {node.words}" for node in status.kept_out]


def text(status: Status, every_cell: bool = False) -> str:
    """The whole page."""
    parts = [_head(status), _cells(status, every_cell), _workers(status.workers)]
    parts += [_kept_out(status), _aside(status)]
    return "\n".join(part for part in parts if part)


def _head(status: Status) -> str:
    total, cells = status.total, status.cells
    finished = sum(cell.finished for cell in cells)
    busy = sum(cell.running > 0 for cell in cells)
    share = total.done / total.selected if total.selected else 0.0
    bar = "#" * int(share * _BAR)
    identity = "  ".join(f"{key} {value}" for key, value in status.identity.items())
    lines = [
        f"run {status.run}" + (f"      {identity}" if identity else ""),
        "",
        f"episodes  [{bar.ljust(_BAR, '.')}] {total.done} of {total.selected} done"
        f" ({100 * share:.0f} %)",
        f"          {total.running} running, {total.left} left"
        f" ({total.in_error} of them in error), {total.set_aside} set aside",
        f"cells     {finished} of {len(cells)} finished, {busy} running",
        f"workers   {status.alive} alive of {len(status.workers)}",
        f"rate      {status.per_minute:.1f} episodes/min over the last 10 minutes of work",
        f"time left {_time_left(status)}",
    ]
    if status.sealing:
        lines.append(f"sealing   {_sealing(status)} by {status.sealing.at_work} processes")
    else:
        lines += [f"queued, but nothing sealed: {scene} {task}" for scene, task in status.unsealed]
    return "\n".join(lines) + "\n"


def _sealing(status: Status) -> str:
    assert status.sealing is not None
    return f"{status.sealing.sealed} of {status.sealing.cells} cells"


def _finished(status: Status) -> bool:
    cells = status.cells
    return bool(cells) and not status.unsealed and all(cell.finished for cell in cells)


def _time_left(status: Status) -> str:
    seconds = status.seconds_left
    if not status.total.left + status.total.running:
        if status.unsealed or not status.cells:
            return f"unknown: nothing is sealed of {len(status.unsealed)} queued cells"
        aside = status.total.set_aside
        return (
            f"none: {aside} set aside, the rest is finished" if aside else "none: all is finished"
        )
    if seconds is None:
        return "unknown: " + ("no episode finished lately" if status.alive else "no worker alive")
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours:
        return f"about {hours} h {minutes:02d} min left"
    return f"about {minutes} min left" if minutes else "less than a minute left"


def _cells(status: Status, every_cell: bool) -> str:
    shown = [cell for cell in status.cells if every_cell or not cell.finished]
    folded = 0 if every_cell else max(0, len(shown) - SHOWN_CELLS)
    shown = shown[: len(shown) - folded]
    finished = len(status.cells) - len(shown) - folded
    rows = [_cell_row(cell) for cell in shown]
    head = ("scene", "task", "configuration", *_COUNTS)
    lines = _aligned([head, *rows], left=3) if rows else []
    lines += [f"... and {folded} more unfinished cells (--all shows them)"] if folded else []
    lines += [f"{finished} finished cells not shown (--all shows them)"] if finished else []
    return "\n".join(lines) + "\n" if lines else ""


_COUNTS = ("selected", "done", "running", "left", "in error", "set aside")


def _cell_row(cell: CellStatus) -> tuple[str, ...]:
    counts = (cell.selected, cell.done, cell.running, cell.left, cell.in_error, cell.set_aside)
    return (cell.scene, cell.task, cell.task_config, *map(str, counts))


def _workers(workers: Sequence[WorkerStatus]) -> str:
    rows = [row for worker in workers if worker.state != "ended" for row in _worker_rows(worker)]
    if not rows:
        return ""
    head = ("worker", "state", "last sign", "episode")
    return "\n".join(_aligned([head, *rows], left=4)) + "\n"


def _worker_rows(worker: WorkerStatus) -> list[tuple[str, ...]]:
    """One, and one more for each further simulator that plays."""
    doing = [
        f"{at['scene']}/{at['task']} seed {at['seed']}, step {step}" for at, step in worker.playing
    ] or ["-"]
    own = (worker.worker, worker.state, f"{worker.silent_s:.0f} s ago")
    return [(*(own if number == 0 else ("", "", "")), at) for number, at in enumerate(doing)]


def _kept_out(status: Status) -> str:
    if not status.kept_out:
        return ""
    lines = ["Nodes that take no work:", *(f"  {line}" for line in kept_out(status))]
    return "\n".join(lines) + "\n"


def _aside(status: Status) -> str:
    if not status.set_aside:
        return ""
    lines = [f"Set aside ({len(status.set_aside)}):"]
    lines += [f"  {hole_line(hole, status.run)}" for hole in status.set_aside]
    return "\n".join(lines) + "\n"


def _aligned(rows: Sequence[Sequence[str]], left: int) -> list[str]:
    """The first ``left`` columns to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def cell(k: int, word: str) -> str:
        return word.ljust(widths[k]) if k < left else word.rjust(widths[k])

    return ["  ".join(cell(k, word) for k, word in enumerate(row)).rstrip() for row in rows]


class Live:
    """Shows ``look()`` from a thread of its own until the ``with`` block ends, and then once more.

    Args:
        page: status -> what a terminal shows.
        out: a terminal is redrawn every ``WATCH_S``; anything else gets a line every ``PLAIN_S``.
    """

    def __init__(
        self,
        look: Callable[[], Status],
        page: Callable[[Status], str] = text,
        out: IO[str] | None = None,
    ) -> None:
        self._take, self._page, self._out = look, page, out or sys.stderr
        self._last: Status | None = None
        self._stop = threading.Event()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._show, name="status", daemon=True)

    def __enter__(self) -> Live:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(timeout=30.0)
        if self._failure is not None and kind is None:
            raise self._failure

    def wait(self) -> None:
        """Until everything is finished or cannot be read; KeyboardInterrupt ends it."""
        while not (self._last and _finished(self._last)):
            self._thread.join(timeout=WATCH_S / 4)
            if not self._thread.is_alive():
                return

    def _show(self) -> None:
        try:
            (self._show_page if self._out.isatty() else self._show_lines)()
        except Exception as error:  # raised where the block ends, not in a thread nobody watches
            self._failure = error

    def _look(self) -> Status:
        self._last = self._take()
        return self._last

    def _show_lines(self) -> None:
        shown, at = "", 0.0
        while True:
            stopping = self._stop.wait(WATCH_S if shown else 0.0)
            now = time.monotonic()
            if stopping or not shown or now - at >= PLAIN_S:
                words = line(self._look())
                if words != shown:
                    print(words, file=self._out, flush=True)
                    shown, at = words, now
            if stopping:
                return

    def _show_page(self) -> None:
        from rich.console import Console
        from rich.live import Live as Redrawn
        from rich.text import Text

        def page() -> Text:
            return Text(self._page(self._look()), no_wrap=True, overflow="ellipsis")

        console = Console(file=self._out)
        with Redrawn(console=console, auto_refresh=False) as redrawn:
            while True:
                stopping = self._stop.wait(WATCH_S)
                redrawn.update(page(), refresh=True)
                if stopping:
                    return
