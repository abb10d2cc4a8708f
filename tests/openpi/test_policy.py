"""``policy/openpi`` in our model server, against PyPI's openpi server."""

from __future__ import annotations

import os
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness.errors import RollpoolError
from harness.inference.model_client import ModelClient
from harness.policies import mapping
from harness.simulators.contract import Episode, Observation
from harness.wire import RemoteError
from harness.workers.server_process import ModelServerProcess
from tests.openpi.conftest import PYTHON, ROOT, Start, free_port
from tests.waiting import wait_for

FOLDER = ROOT / "policy" / "openpi"
STATE = np.arange(8, dtype=np.float32)
Ask = Callable[[str], np.ndarray]


@contextmanager
def asking(port: int, log: Path, **more: Any) -> Iterator[Ask]:
    """Our model server with the policy; the function asks it with a prompt."""
    settings = yaml.safe_load((FOLDER / "deploy_policy.yml").read_text())
    settings |= {"server": f"127.0.0.1:{port}", "deadline_s": 20, "connect_s": 20, **more}
    settings.pop("exec_actions")
    with ModelServerProcess(PYTHON, FOLDER, settings, {}, "t", log) as server:
        hello = server.start(60)
        assert hello["action_kind"] == "native" and hello["cameras"] == ["agentview", "wrist"]
        client = ModelClient(server.host, server.port, "t", "s", 60)
        client.reset(Episode("s", "t", "c", 1, "go"))
        picture = np.full((120, 240, 3), 9, np.uint8)
        picture[0, 0] = 200

        def ask(prompt: str) -> np.ndarray:
            images = {"agentview": picture, "wrist": picture}
            return client.infer(0, Observation(images, STATE, prompt), None, None)[0]

        yield ask
        client.close()


def test_a_chunk_comes_from_openpis_own_server(tmp_path: Path, start: Start) -> None:
    port = free_port()
    start(PYTHON, "tests/openpi/upstream_server.py", str(port))
    with asking(port, tmp_path / "log") as ask:
        actions = ask("go")
        assert actions.shape == (5, 7) and actions.dtype == np.float32
        assert actions[0, :6].tolist() == [0, 1, 2, 3, 224, 224]
        assert 150 < actions[0, 6] <= 200  # the bright pixel, once the picture was made to fit
        # What it raises comes back in its words; the next question finds a new connection.
        with pytest.raises(RemoteError, match="ValueError: no such cup") as raised:
            ask("raise no such cup")
        assert raised.value.kind == "policy"
        assert (ask("go") == actions).all()
        with pytest.raises(RemoteError, match="it has states"):
            ask("forget")
        assert (ask("go") == actions).all()
    assert "raise ValueError(rest)" in (tmp_path / "log").read_text()


def test_a_server_that_thinks_too_long_costs_its_deadline_and_no_more(
    tmp_path: Path, start: Start
) -> None:
    port, file = free_port(), tmp_path / "go"
    upstream = start(PYTHON, "tests/openpi/upstream_server.py", str(port))
    with asking(port, tmp_path / "log", deadline_s=1) as ask:
        expected = ask("go")
        # Its inference blocks its event loop, and with it /healthz.
        with pytest.raises(RemoteError, match="within 1 s; the server does not answer /healthz"):
            ask(f"await {file}")
        with pytest.raises(RemoteError, match="no openpi server: timed out"):
            ask("go")  # it still thinks
        file.touch()
        wait_for(lambda: healthy(port), "it answers again", upstream)
        assert (ask("go") == expected).all()  # and not the late answer to what came before


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10):
            return True
    except OSError:
        return False


def test_a_server_that_was_restarted_is_found_again(tmp_path: Path, start: Start) -> None:
    port = free_port()
    first = start(PYTHON, "tests/openpi/upstream_server.py", str(port))
    with asking(port, tmp_path / "log", connect_s=15) as ask:
        expected = ask("go")
        first.kill()
        first.wait(30)
        start(PYTHON, "tests/openpi/upstream_server.py", str(port))
        assert (ask("go") == expected).all()


def test_no_server_is_said_before_the_run_begins(tmp_path: Path) -> None:
    with (
        pytest.raises(RollpoolError, match="no openpi server"),
        asking(free_port(), tmp_path / "log", connect_s=0.5),
    ):
        pass


@pytest.mark.parametrize("example", ["deploy_policy", "examples/aloha", "examples/droid"])
def test_the_shipped_forms_are_sound(example: str) -> None:
    form = yaml.safe_load((FOLDER / f"{example}.yml").read_text())
    mapping.check(form["observation"])
    assert form["env"] == "openpi" and form["action_kind"] == "native"
    assert mapping.cameras(form["observation"])


SAME_FIT = """
import numpy as np
from harness.policies.mapping import fitted
from openpi_client.image_tools import resize_with_pad

rng = np.random.default_rng(0)
for shape in ((240, 320, 3), (128, 128, 3), (100, 224, 3), (300, 200, 3)):
    picture = rng.integers(0, 256, shape, dtype=np.uint8)
    theirs, ours = resize_with_pad(picture, 224, 224).astype(int), fitted(picture, 224, 224)
    assert np.abs(theirs - ours).max() <= 1, shape
"""


def test_pictures_are_fitted_as_openpis_own_tools_fit_them() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run([str(PYTHON), "-c", SAME_FIT], check=True, env=environment, timeout=60)
