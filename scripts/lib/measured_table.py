#!/usr/bin/env python3
"""Write what ``scripts/measure_tabletop.sh`` measured into the README, as Markdown.

    measured_table.py README.md "expert tinyvla" "clean d6"

Reads the reports of the runs ``measured_<policy>_<config>``; replaces what stands between the
benchmark markers of the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from harness.errors import EXIT_OK, RollpoolError  # noqa: E402
from harness.foundations.atomic import write_atomic  # noqa: E402
from harness.foundations.settings import find_root  # noqa: E402

BEGIN, END = "<!-- benchmark: begin -->\n", "<!-- benchmark: end -->"

Report = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    readme, policies, configs = Path(arguments[0]), arguments[1].split(), arguments[2].split()
    reports = {(p, c): load(p, c) for p in policies for c in configs}
    text = readme.read_text()
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RollpoolError(str(readme), f"no {BEGIN.strip()} ... {END}", "put the markers in")
    table = "\n".join([*totals(reports, policies, configs), "", *tasks(reports, policies, configs)])
    write_atomic(readme, f"{before}{begin}\n{table}\n\n{end}{after}".encode())
    return EXIT_OK


def load(policy: str, config: str) -> Report:
    """The report of one run. Raises ``RollpoolError`` where it is missing or partial."""
    file = find_root().report(f"measured_{policy}", config) / "results.json"
    if not file.is_file():
        raise RollpoolError(str(file), "not there", "run: bash scripts/measure_tabletop.sh")
    report: Report = json.loads(file.read_text())
    if report["partial"]:
        raise RollpoolError(str(file), "PARTIAL", "run: bash scripts/measure_tabletop.sh")
    return report


def totals(
    reports: Mapping[tuple[str, str], Report], policies: Sequence[str], configs: Sequence[str]
) -> list[str]:
    """All tasks together: SR / HSR with their intervals and n."""
    lines = ["SR / HSR in percent [Wilson 95 % interval], all tasks together:", ""]
    lines += ["| policy | " + " | ".join(configs) + " |", "|---" * (len(configs) + 1) + "|"]
    for policy in policies:
        cells = [_total(reports[policy, config]["total"]) for config in configs]
        lines.append(f"| `{policy}` | " + " | ".join(cells) + " |")
    return lines


def tasks(
    reports: Mapping[tuple[str, str], Report], policies: Sequence[str], configs: Sequence[str]
) -> list[str]:
    """Per task: solved of n on each configuration, and hard successes on the first."""
    policy = next(p for p in policies if p != "expert")
    lines = [f"`{policy}`, solved / of them without a collision / episodes:", ""]
    lines += ["| scene | task | " + " | ".join(configs) + " |", "|---" * (len(configs) + 2) + "|"]
    for scene, of_scene in reports[policy, configs[0]]["scenes"].items():
        for task in of_scene["tasks"]:
            found = [reports[policy, c]["scenes"][scene]["tasks"][task] for c in configs]
            cells = [f"{t['SR']['hits']} / {t['HSR']['hits']} / {t['SR']['n']}" for t in found]
            lines.append(f"| {scene} | `{task}` | " + " | ".join(cells) + " |")
    return lines


def _total(total: Mapping[str, Any]) -> str:
    rates = []
    for name in ("SR", "HSR"):
        low, high = total[name]["interval"]
        rates.append(f"{total[name]['percent']:.0f} [{low:.0f}, {high:.0f}]")
    return f"{rates[0]} / {rates[1]}, n = {total['SR']['n']}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except RollpoolError as error:
        print(f"measured_table: error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
