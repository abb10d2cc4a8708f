"""Measured figures as text: on the screen, and as the table between the markers of README.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.atomic import write_atomic

BEGIN, END = "<!-- bench: begin -->\n", "<!-- bench: end -->"

Record = Mapping[str, Any]


def lines(name: str, figure: Record) -> list[str]:
    """A figure for the screen."""
    found = [f"{name}: {figure['title']} ({figure['seconds']:.0f} s)"]
    for series in figure["series"]:
        found.append(f"  {series['name']:<44} {_spread(series, series['unit'])}")
    for goal in figure["goals"]:
        met = "reached" if goal["reached"] else "MISSED"
        found.append(
            f"  {goal['what']:<44} {_spread(goal, goal['unit'])}   reach: {_reach(goal)}   {met}"
        )
    return found + [f"  note: {note}" for note in figure["notes"]]


def markdown(results: Record) -> str:
    """The table, and what it was measured with."""
    rows = ["| figure | | measured | reach | |", "|---|---|---|---|---|"]
    for name, figure in results["figures"].items():
        title = f"`{name}`: {figure['title']}"
        for goal in figure["goals"]:
            met = "yes" if goal["reached"] else "**no**"
            spread = _spread(goal, goal["unit"])
            rows.append(f"| {title} | {goal['what']} | {spread} | {_reach(goal)} | {met} |")
            title = ""
        beside = "; ".join(f"{s['name']} {_spread(s, s['unit'])}" for s in figure["series"])
        rows.append(f"| {title} | | {beside} | | |")
    machine = results["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    where = f"{machine['cpu']}, {machine['cores']} cores, {machine['filesystem']}"
    said = f"`{results['command']}` on {where}, load {machine['load']} before it began; {versions}."
    return "\n".join(["Medians [least, greatest] of turns taken in one run.", "", *rows, "", said])


def write(readme: Path, results: Record) -> None:
    """Put the table in. Raises as ``split`` does."""
    before, after = split(readme)
    write_atomic(readme, f"{before}{BEGIN}\n{markdown(results)}\n\n{END}{after}".encode())


def split(readme: Path) -> tuple[str, str]:
    """What stands before and after the table. Raises ``OSError``, or ``RollpoolError`` where the
    markers are missing."""
    before, begin, rest = readme.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RollpoolError(str(readme), f"no {BEGIN.strip()} ... {END}", "put the markers in")
    return before, after


def _spread(of: Record, unit: str) -> str:
    values: Sequence[float] = of["values"]
    return f"{_number(of['median'])} {unit} [{_number(min(values))}, {_number(max(values))}]"


def _reach(goal: Record) -> str:
    return f"{'≤' if goal['at_most'] else '≥'} {_number(goal['reach'])} {goal['unit']}"


def _number(value: float) -> str:
    """Three digits that count, and no exponent."""
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1g}"
