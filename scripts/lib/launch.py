"""Starts ``harness.cli`` of this checkout, from any directory and under ``python -P`` too.

The checkout goes to the head of ``sys.path`` and this folder leaves it; no PYTHONPATH is set, which
a simulator's or a model's process would inherit.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path[:] = [str(here.parents[1]), *(entry for entry in sys.path if entry != str(here))]
runpy.run_module("harness.cli", run_name="__main__", alter_sys=True)
