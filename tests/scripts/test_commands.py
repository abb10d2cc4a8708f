"""Every script says how it is used and refuses what it does not know; the launcher launches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Shell

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    file.relative_to(ROOT).as_posix()
    for pattern in ("scripts/*.sh", "orchestrators/*.sh", "policy/*/*.sh")
    for file in ROOT.glob(pattern)
)
#: Their arguments are those of another program, or they look at where they run before.
OF_OTHERS = {f"scripts/{name}.sh" for name in
             ("test", "stage_base_node", "stage_giants_node", "stage_fanout")}  # fmt: skip


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_header_comment_is_the_usage_text(shell: Shell, root: Path, name: str) -> None:
    shown = shell('exec bash "$1" --help', root / name)
    assert (shown.returncode, shown.stderr) == (0, "")
    header = (root / name).read_text().split("\nset -euo pipefail")[0]
    lines = header.splitlines()[1:]
    assert shown.stdout.splitlines() == [line.removeprefix("#").removeprefix(" ") for line in lines]
    assert f"bash {name}" in shown.stdout


@pytest.mark.parametrize("name", sorted({*SCRIPTS} - OF_OTHERS))
def test_an_unknown_option_is_refused(shell: Shell, root: Path, name: str) -> None:
    refused = shell('exec bash "$1" --frobnicate', root / name)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"{Path(name).name} --frobnicate: ")
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize("name", ["scripts/demo.sh", "scripts/measure_tabletop.sh"])
@pytest.mark.parametrize("word", ["", "0", "many"])
def test_a_number_is_looked_at_before_anything_is_set_up(
    shell: Shell, root: Path, name: str, word: str
) -> None:
    refused = shell('exec bash "$1" --workers $2', root / name, word)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"--workers {word}: not a number from 1 on; write --workers N\n"


def test_rollpool_before_set_up(shell: Shell, root: Path, tmp_path: Path) -> None:
    refused = shell('exec "$1/scripts/rollpool" status', root, ROLLPOOL_ENVS=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("rollpool: its environment is not set up")


def test_an_environment_whose_python_is_out_of_reach(
    shell: Shell, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "toolkit/bin").mkdir(parents=True)
    (tmp_path / "toolkit/bin/python").symlink_to("/home/else/python3")
    refused = shell('exec "$1/scripts/rollpool" status', root, ROLLPOOL_ENVS=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("rollpool: /home/else/python3 is not there, or you may not")


@pytest.mark.parametrize("options", [(), ("-P",)] if sys.version_info >= (3, 11) else [()])
def test_the_launcher_finds_its_own_checkout(
    root: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    checkout, elsewhere = tmp_path / "check out", tmp_path / "elsewhere"
    (checkout / "scripts/lib").mkdir(parents=True)
    (checkout / "harness").mkdir()
    elsewhere.mkdir()
    launcher = checkout / "scripts/lib/launch.py"
    launcher.write_text((root / "scripts/lib/launch.py").read_text())
    (checkout / "harness/__init__.py").touch()
    (checkout / "harness/cli.py").write_text("import queue, sys\nprint(sys.path[0], sys.argv[1:])")
    (elsewhere / "queue.py").write_text("raise SystemExit('the wrong queue')")
    printed = subprocess.run(
        [sys.executable, *options, str(launcher), "status", "my run"],
        cwd=elsewhere,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    ).stdout
    assert printed == f"{checkout} ['status', 'my run']\n"
