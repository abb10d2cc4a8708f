"""An empty root, and a run of it made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.paths import Root
from tests.report.handmade import HandMade


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


@pytest.fixture
def run(root: Root) -> HandMade:
    return HandMade(root, "demo")
