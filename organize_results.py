#!/usr/bin/env python3
"""Success tables and videos of a run: ``python organize_results.py RUN MODEL``.

Writes ``runs/<MODEL>/results.txt`` (also ``.csv``, ``.json``), ``runs/<MODEL>/<scene>/results.txt``
and ``runs/<MODEL>/<scene>/<task>/seed<N>.mp4``; a configuration other than ``clean`` goes to
``runs/<MODEL>_<config>/``. Exits 1 where a table is PARTIAL, 2 where something is refused.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from harness.cli import main

if __name__ == "__main__":
    if find_spec("yaml") is None:
        sys.exit(
            f"organize_results.py: error: {sys.executable} is not the toolkit's Python; "
            "`source env.sh` first (after scripts/setup.sh)"
        )
    sys.exit(main(["organize", *sys.argv[1:]]))
