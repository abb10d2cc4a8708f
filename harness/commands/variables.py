"""``rollpool variables``: the declarations, as a table or as what this launch would use."""

from __future__ import annotations

import argparse

from harness.commands.launch import add_flags, read_settings
from harness.errors import EXIT_OK


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--markdown", action="store_true", help="the table of the README")
    add_flags(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the README's table, or ``name value source`` of each variable, with its meaning."""
    from harness.foundations.values import as_text
    from harness.foundations.variable_table import markdown_table
    from harness.foundations.variables import VARIABLES

    if arguments.markdown:
        print(markdown_table(), end="")
        return EXIT_OK
    settings = read_settings(arguments)
    for name, variable in VARIABLES.items():
        value = settings[name]
        shown = "-" if value is None else as_text(value)
        source = "" if value is None else f"  ({settings.sources[name]})"
        print(f"{name:26} {shown}{source}\n{'':26} {variable.meaning.replace('`', '')}")
    return EXIT_OK
