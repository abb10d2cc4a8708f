"""The README's table of all variables.

``python -m harness.foundations.variable_table`` prints it; with a file name it renews the one that
stands between the file's two ``variables`` marker comments.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.foundations.variables import VARIABLES

BEGIN, END = "<!-- variables: begin -->", "<!-- variables: end -->"


def markdown_table() -> str:
    """The table of all variables, for the README."""
    lines = ["| variable | default | read by | meaning |", "|---|---|---|---|"]
    for v in VARIABLES.values():
        default = "-" if v.default is None else f"`{v.default}`{f' {v.unit}' if v.unit else ''}"
        default += f" for `{v.default_of}`" if v.default_of else ""
        choices = f" ({', '.join(f'`{c}`' for c in v.choices)})" if v.choices else ""
        sealed = "; **moves numbers**" if v.moves_numbers else ""
        sealed += "; the same for all workers of a run" if v.shared else ""
        lines.append(f"| `{v.name}` | {default} | {v.reader} | {v.meaning}{choices}{sealed} |")
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """``text`` with the table between its markers renewed. Raises ``ValueError`` without them."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"no {BEGIN} ... {END} in the text")
    return f"{before}{begin}\n{markdown_table()}{end}{after}"


def main(arguments: list[str]) -> None:
    """Print the table, or renew it in the files named."""
    for name in arguments:
        file = Path(name)
        file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")
    if not arguments:
        sys.stdout.write(markdown_table())


if __name__ == "__main__":
    main(sys.argv[1:])
