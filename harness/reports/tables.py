"""A report as text, CSV and JSON. Pure: a report in, a string out, the same string every time.

The text is plain ASCII, aligned, and explains itself to someone who has never seen the toolkit.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from harness.reports.report import Hole, Rate, Report, Tally, summed
from harness.stopwatch import PARTS

#: Values in a piece of ``json_parts``.
_AT_ONCE = 4096

CSV_HEADER = (
    *("scene", "task", "n", "SR", "HSR", "CR"),
    *("SR_low", "SR_high", "HSR_low", "HSR_high", "CR_low", "CR_high", "n_HSR", "n_CR"),
    *("selected", "errors", "quarantined", "missing", "partial"),
)
LEGEND = """\
SR       success rate: share of the n episodes in which the task was done within its step limit
HSR      hard success rate: done, and nothing was hit or knocked over on the way
CR       collision rate: share of the n episodes with at least one collision
n        episodes the rate is a share of; HSR and CR leave out those where they are unknown
[a, b]   Wilson 95 % interval of the rate, in percent
error    episodes the infrastructure failed (crash, stall, timeout, broken policy): in no rate
missing  selected episodes without any result: in no rate
"""
#: More holes than this are counted, not listed: results.json has them all.
LISTED = 20
#: Parts of the time that the command names.
LARGEST = 4
_HEAD = ("SR % [95 %]", "n", "HSR % [95 %]", "n", "CR % [95 %]", "n", "error", "missing", "")


def full_text(report: Report) -> str:
    """What the command prints: the tasks of each scene, then the scenes."""
    grids = [f"scene {scene}\n{_scene_grid(report, scene)}" for scene in report.tasks]
    overview = f"all scenes\n{_overview_grid(report)}"
    return _page(report, "all tasks", *grids, overview)


def overview_text(report: Report) -> str:
    """``runs/<model>/results.txt``: a line a scene, and TOTAL."""
    return _page(report, "all scenes", _overview_grid(report))


def scene_text(report: Report, scene: str) -> str:
    """``runs/<model>/<scene>/results.txt``: a line a task, and TOTAL."""
    return _page(report.only(scene), f"scene {scene}", _scene_grid(report, scene))


def profile_text(report: Report) -> str:
    """``runs/<model>/profile.txt``: where the time went, a line a task; "" where nobody measured.
    Apart from the results, which are the same whenever a run is played."""
    measured = {
        f"{scene}/{task}": profile
        for scene, tasks in report.profiles.items()
        for task, profile in tasks.items()
    }
    total = summed(measured.values())
    parts = [part for part in PARTS if total.get(part)]
    if not parts:
        return ""
    rows = [_profile_row(name, profile, parts) for name, profile in measured.items()]
    grid = _grid(("task", *parts, "hours", ""), rows, _profile_row("TOTAL", total, parts))
    return f"where the time went, % of the hours (its parts: harness/DESIGN.md)\n{grid}"


def profile_line(report: Report) -> str:
    """The largest parts of it all; "" where nobody measured."""
    total = summed(profile for tasks in report.profiles.values() for profile in tasks.values())
    whole = sum(total.values())
    if not whole:
        return ""
    largest = sorted(total, key=lambda part: -total[part])[:LARGEST]
    shares = ", ".join(f"{part} {100 * total[part] / whole:.0f} %" for part in largest)
    return f"{whole / 3600:.3f} hours of simulators, of them {shares}"


def csv_text(report: Report) -> str:
    """A line a task, then one a scene (task ``TOTAL``), then ``TOTAL,TOTAL``; rates in percent."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(CSV_HEADER)
    for scene, tasks in report.tasks.items():
        writer.writerows(_csv_row(scene, task, tally) for task, tally in tasks.items())
    for scene in report.tasks:
        writer.writerow(_csv_row(scene, "TOTAL", report.scene(scene)))
    writer.writerow(_csv_row("TOTAL", "TOTAL", report.total))
    return out.getvalue()


def json_parts(report: Report, episodes: Iterable[str], notes: Sequence[str]) -> Iterator[str]:
    """Everything, in pieces: rates as in the CSV, each counted episode, each hole with its reason
    and logs.

    Args:
        episodes: the JSON of each ``Counted``.
    """
    document: dict[str, Any] = {
        "format": 1,
        "model": report.model,
        "run": report.run,
        "config": report.config,
        "identity": dict(report.identity),
        "partial": report.partial,
        "total": _tally_json(report.total),
        "scenes": {
            scene: {
                "total": _tally_json(report.scene(scene)),
                "tasks": {task: _tally_json(tally) for task, tally in tasks.items()},
            }
            for scene, tasks in report.tasks.items()
        },
        "episodes": [],
        "holes": [],
        "profiles": report.profiles,
        "unsealed": [list(cell) for cell in report.unsealed],
        "notes": list(notes),
    }
    text = json.dumps(document, indent=1) + "\n"
    holes = (json.dumps(vars(hole)) for hole in report.holes)
    for name, lines in (("episodes", episodes), ("holes", holes)):
        before, key, text = text.partition(f'"{name}": [')
        yield before + key
        yield from _pieces(lines)
    yield text


def _pieces(lines: Iterable[str]) -> Iterator[str]:
    """The values of a list, each on a line of its own."""
    left, separator = iter(lines), "\n  "
    while some := list(itertools.islice(left, _AT_ONCE)):
        yield separator + ",\n  ".join(some)
        separator = ",\n  "


def _overview_grid(report: Report) -> str:
    rows = [
        (scene, str(len(tasks)), *_cells(report.scene(scene)))
        for scene, tasks in report.tasks.items()
    ]
    tasks = sum(len(tasks) for tasks in report.tasks.values())
    total = ("TOTAL", str(tasks), *_cells(report.total))
    return _grid(("scene", "tasks", *_HEAD), rows, total)


def _scene_grid(report: Report, scene: str) -> str:
    rows = [(task, *_cells(tally)) for task, tally in report.tasks[scene].items()]
    return _grid(("task", *_HEAD), rows, ("TOTAL", *_cells(report.scene(scene))))


def _profile_row(name: str, profile: Mapping[str, float], parts: Sequence[str]) -> tuple[str, ...]:
    whole = sum(profile.values())
    shares = (f"{100 * profile.get(part, 0.0) / (whole or 1):.1f}" for part in parts)
    return (name, *shares, f"{whole / 3600:.3f}", "")


def _page(report: Report, title: str, *grids: str) -> str:
    head = f"{report.model} / {report.config} / {title}      (run {report.run})\n"
    identity = "  ".join(f"{key} {value}" for key, value in report.identity.items())
    parts = [head + (identity + "\n" if identity else ""), _banner(report), *grids, LEGEND]
    parts.append(_holes(report))
    return "\n".join(part for part in parts if part)


def _banner(report: Report) -> str:
    if not report.partial:
        return ""
    total = report.total
    lines = []
    if total.partial:
        aside = f" ({total.quarantined} of them set aside)" if total.quarantined else ""
        lines.append(
            f"{total.errors + total.missing} of {total.selected} selected episodes have no result: "
            f"{total.missing} missing, {total.errors} in error{aside}."
        )
    if report.unsealed:
        names = ", ".join(f"{scene}/{task}" for scene, task in report.unsealed)
        lines.append(f"Queued, but nothing sealed or recorded: {names}.")
    lines.append("The rates below are over the other episodes alone.")
    rule = "*" * 100
    body = "".join(f"***  {line}\n" for line in ("P A R T I A L", *lines))
    return f"{rule}\n{body}{rule}\n"


def _holes(report: Report) -> str:
    if not report.holes:
        return ""
    lines = [f"Not counted ({len(report.holes)}):"]
    lines += [f"  {hole_line(hole, report.run)}" for hole in report.holes[:LISTED]]
    if len(report.holes) > LISTED:
        lines.append(f"  ... and {len(report.holes) - LISTED} more, all in results.json")
    return "\n".join(lines) + "\n"


def hole_line(hole: Hole, run: str) -> str:
    """An episode that is not counted, why, and the log to read first."""
    kind = "set aside" if hole.kind == "quarantined" else hole.kind
    reason = f"; {hole.reason}" if hole.reason else ""
    log = f" (log: runs/{run}/{hole.logs[0]})" if hole.logs else ""
    return f"{hole.scene}/{hole.task} seed {hole.seed}: {kind}{reason}{log}"


def _cells(tally: Tally) -> tuple[str, ...]:
    rates = [
        cell for rate in (tally.success, tally.hard, tally.collision) for cell in _rate_cells(rate)
    ]
    mark = "PARTIAL" if tally.partial else ""
    return (*rates, str(tally.errors), str(tally.missing), mark)


def _rate_cells(rate: Rate) -> tuple[str, str]:
    if rate.percent is None or rate.interval is None:
        return "unknown", "0"
    low, high = rate.interval
    return f"{rate.percent:.1f} [{low:4.1f},{high:5.1f}]", str(rate.n)


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]], total: Sequence[str]) -> str:
    """Columns aligned: names and the last one to the left, numbers to the right."""
    widths = [max(len(row[k]) for row in (head, *rows, total)) for k in range(len(head))]

    def line(row: Sequence[str]) -> str:
        first, *numbers, last = (
            cell.rjust(width) if 0 < k < len(row) - 1 else cell.ljust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        return "  ".join((first, *numbers, last)).rstrip()

    rule = "-" * max(len(line(row)) for row in (head, *rows, total))
    return "\n".join((line(head), rule, *map(line, rows), rule, line(total))) + "\n"


def _csv_row(scene: str, task: str, tally: Tally) -> list[str | int]:
    rates = (tally.success, tally.hard, tally.collision)
    ends = [end for rate in rates for end in (rate.interval or (None, None))]
    return [
        *(scene, task, tally.success.n),
        *(_number(rate.percent) for rate in rates),
        *(_number(end) for end in ends),
        *(tally.hard.n, tally.collision.n),
        *(tally.selected, tally.errors, tally.quarantined, tally.missing, int(tally.partial)),
    ]


def _number(value: float | None) -> str:
    """Two decimals; empty where unknown."""
    return "" if value is None else f"{value:.2f}"


def _tally_json(tally: Tally) -> dict[str, Any]:
    rates = {"SR": tally.success, "HSR": tally.hard, "CR": tally.collision}
    return {
        "selected": tally.selected,
        **{name: _rate_json(rate) for name, rate in rates.items()},
        "errors": tally.errors,
        "quarantined": tally.quarantined,
        "missing": tally.missing,
        "partial": tally.partial,
    }


def _rate_json(rate: Rate) -> dict[str, Any]:
    return {"percent": rate.percent, "interval": rate.interval, "hits": rate.hits, "n": rate.n}
