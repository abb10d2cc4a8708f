"""What every test shares: property tests that repeat themselves and bear a loaded machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("rollpool", deadline=None, derandomize=True)
settings.load_profile("rollpool")

#: A SLURM cluster, NFS clients, hundreds of faults, a million rows (over 600 MB at present): run
#: with ``ROLLPOOL_CLUSTER_TESTS=1`` until all of it has been shown to hold on an idle machine.
CLUSTER = ("slurm", "nfs", "chaos")
HUGE = "test_a_million_rows_take_seconds_and_bounded_memory"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("ROLLPOOL_CLUSTER_TESTS") == "1":
        return
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).parts[0] in CLUSTER or item.name == HUGE:
            item.add_marker(pytest.mark.skip(reason="set ROLLPOOL_CLUSTER_TESTS=1"))
