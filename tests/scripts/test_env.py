"""env.sh: sourced by people's shells, so it must set its defaults and leave no other trace."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SHELLS = [shell for shell in ("bash", "zsh") if shutil.which(shell)]
NAMES = ("EVAL_ROOT", "BUNDLE", "HF_HOME", "ROLLPOOL_ENVS", "ROBOTWIN_PY", "XVLA_PY", "PATH")


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Path:
    """A folder with env.sh alone, its path full of what shells trip over."""
    folder = tmp_path / "a checkout; with $odd 'names"
    folder.mkdir()
    shutil.copy(root / "env.sh", folder)
    return folder


def source(shell: str, checkout: Path, then: str, **variables: str) -> str:
    """What ``then`` prints after env.sh was sourced twice under ``set -eu``."""
    script = f'set -eu; . "$1/env.sh"; . "$1/env.sh"; {then}'
    return subprocess.run(
        [shell, "-c", script, shell, str(checkout)],
        env={"HOME": "/home/someone", "PATH": "/usr/bin:/bin", **variables},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout


def values(shell: str, checkout: Path, **variables: str) -> dict[str, str]:
    printed = source(shell, checkout, "env", **variables)
    pairs = (line.partition("=") for line in printed.splitlines())
    return {name: value for name, _, value in pairs if name in NAMES}


@pytest.mark.parametrize("shell", SHELLS)
def test_defaults_are_exported_once(shell: str, checkout: Path) -> None:
    assert values(shell, checkout) == {
        "EVAL_ROOT": f"{checkout}",
        "BUNDLE": f"{checkout}",
        "HF_HOME": "/home/someone/.cache/huggingface",
        "ROLLPOOL_ENVS": f"{checkout}/envs",
        "ROBOTWIN_PY": f"{checkout}/envs/tabletop/bin/python",
        "XVLA_PY": f"{checkout}/envs/model/bin/python",
        "PATH": f"{checkout}/scripts:{checkout}/envs/toolkit/bin:/usr/bin:/bin",
    }


@pytest.mark.parametrize("shell", SHELLS)
def test_values_of_the_user_stay_except_the_root(shell: str, checkout: Path) -> None:
    own = {"BUNDLE": "/b", "HF_HOME": "/h", "ROBOTWIN_PY": "/r/python", "XVLA_PY": "/x/python"}
    found = values(shell, checkout, EVAL_ROOT="/another/checkout", ROLLPOOL_ENVS="/envs", **own)
    assert {name: found[name] for name in own} == own
    assert found["EVAL_ROOT"] == f"{checkout}"
    assert found["PATH"].startswith(f"{checkout}/scripts:/envs/toolkit/bin:")


@pytest.mark.parametrize("shell", SHELLS)
def test_environments_stay_where_they_are_wherever_a_script_goes(
    shell: str, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = values(shell, checkout, ROLLPOOL_ENVS="my envs")
    assert found["ROLLPOOL_ENVS"] == f"{tmp_path}/my envs"
    assert found["XVLA_PY"] == f"{tmp_path}/my envs/model/bin/python"


@pytest.mark.parametrize("shell", SHELLS)
def test_private_env_is_exported_and_never_printed(shell: str, checkout: Path) -> None:
    (checkout / ".env").write_text("HF_TOKEN=hf_secret\nBUNDLE='/shared/my bundle'\n")
    assert source(shell, checkout, "true") == ""
    assert source(shell, checkout, "env | grep -c hf_secret") == "1\n"
    assert values(shell, checkout)["BUNDLE"] == "/shared/my bundle"


@pytest.mark.parametrize("options", ["set +eu", "set -eu", "set -a", "set -euo pipefail"])
def test_shell_options_and_names_do_not_leak(options: str, checkout: Path) -> None:
    (checkout / ".env").write_text("HF_TOKEN=hf_secret\n")
    script = f'{options}; set -o >"$2/before"; . "$1/env.sh"; set -o >"$2/after"; set'
    printed = subprocess.run(
        ["bash", "-c", script, "bash", str(checkout), str(checkout)],
        env={"HOME": "/home/someone", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    assert (checkout / "before").read_text() == (checkout / "after").read_text()
    assert "_rollpool" not in printed
