#!/usr/bin/env python3
"""Serve a policy: load it once, answer each observation with a chunk of actions.

    policy_model_server.py --policy_name tinyvla --port 5577
    policy_model_server.py --policy_name mine --config policy/mine/deploy_policy.yml \\
        --ckpt my_checkpoint --port 5577 --overrides --exec_actions 20 --action_smooth 0.7
    policy_model_server.py --policy_name tinyvla --protocol openpi --port 8000 \\
        --form policy/openpi/deploy_policy.yml
    policy_model_server.py --policy_name tinyvla --connect 10.0.0.7:5577   (reversed roles)
    policy_model_server.py --settings FILE.json --channel FD        (as the lease worker does)

Runs in the model's own Python (``$XVLA_PY``): standard library and numpy, and PyYAML to read
``deploy_policy.yml``. ``--protocol`` answers clients of openpi, or of RoboTwin's classic policy
server (robotwin-tcp), from a process of its own beside it; ``--form`` names the deploy_policy.yml
that says what they send. ``--connect`` goes to a simulator that listens (``eval_policy_client.py
--listen``), which may not be there yet, and ends when it leaves. Ends with Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness.errors import EXIT_OK, RollpoolError  # noqa: E402
from harness.inference import model_server  # noqa: E402
from harness.paths import Root  # noqa: E402
from harness.policies.wrappers import KNOBS  # noqa: E402

#: For a simulator to listen: its renderer may still be compiling shaders.
PATIENCE_S = 300.0


def main(arguments: Sequence[str]) -> int:
    if any(argument.split("=")[0] == "--settings" for argument in arguments):
        return model_server.main(arguments)
    try:
        given = parser().parse_args(arguments)
        settings = by_hand(given)
        if given.connect:
            go_to(given.connect, settings)
        elif given.protocol == "rollpool":
            model_server.run(settings, channel=None)
        else:
            front = Front(given, settings)
            model_server.run(front.behind(), channel=None, listening=front.start)
    except RollpoolError as error:
        return model_server.refuse(error, channel=None)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    return EXIT_OK


def parser() -> argparse.ArgumentParser:
    fronts = ("openpi", "robotwin-tcp")
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--policy_name", required=True, help="a folder of policy/")
    parser.add_argument("--config", type=Path, help="default: policy/<name>/deploy_policy.yml")
    parser.add_argument("--ckpt", help="name or path; default: the policy's own `checkpoint`")
    parser.add_argument("--host", default=model_server.LOOPBACK, help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 (default) = any free one")
    parser.add_argument(
        "--connect",
        type=address,
        metavar="[HOST:]PORT",
        help="reversed roles: go there",
    )
    parser.add_argument("--token-file", type=Path, help="clients must know what stands in it")
    parser.add_argument(
        "--protocol", choices=("rollpool", *fronts), default="rollpool", help="what clients speak"
    )
    parser.add_argument("--form", type=Path, help="what clients of another protocol send")
    parser.add_argument("--open", action="store_true", help="let anybody in who reaches --host")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    parser.add_argument(
        "--overrides",
        nargs=argparse.REMAINDER,
        default=[],
        metavar="--KEY VALUE",
        help="values that beat deploy_policy.yml's (must come last)",
    )
    return parser


def by_hand(given: argparse.Namespace) -> model_server.Settings:
    """The settings a worker would have written, from flags and ``deploy_policy.yml``."""
    config = given.config or ROOT / "policy" / given.policy_name / "deploy_policy.yml"
    usr_args = {**read_yaml(config), **overrides(given.overrides)}
    knobs = {name: usr_args.pop(name) for name in KNOBS if name in usr_args}
    checkpoint = find_checkpoint(given.ckpt or usr_args.get("checkpoint"), given.policy_name)
    return model_server.Settings(
        policy_dir=str(config.resolve().parent),
        usr_args={**usr_args, "checkpoint": checkpoint},
        knobs=knobs,
        token=given.token_file.read_text().strip() if given.token_file else "",
        host=given.host,
        port=given.port,
        threads=given.threads,
        policy=given.policy_name,
        checkpoint=checkpoint and {"name": Path(checkpoint).name},
    )


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or model_server.LOOPBACK, int(port)


def go_to(simulator: tuple[str, int], settings: model_server.Settings) -> None:
    """Reversed roles: serve one simulator until it leaves."""
    host, port = simulator

    def join(server: model_server.ModelServer) -> None:
        print(f"going to the simulator at {host}:{port}, for up to {PATIENCE_S:.0f} s", flush=True)
        server.join(host, port, PATIENCE_S)
        print("it left", flush=True)

    model_server.run(dataclasses.replace(settings, connects=True), channel=None, listening=join)


class Front:
    """The process that speaks another wire, and asks this one's model server."""

    #: Inference of a large model that compiles itself at the first call.
    DEADLINE_S = 600.0

    def __init__(self, given: argparse.Namespace, settings: model_server.Settings) -> None:
        self._protocol, self._settings = given.protocol, settings
        default = ROOT / "policy" / given.protocol.replace("-", "_") / "deploy_policy.yml"
        self._form = read_yaml(given.form or default)
        self._open, self._token = given.open, secrets.token_hex(16)
        blind = [name for name in ("action_smooth", "fake_proprio") if settings.knobs.get(name)]
        if blind:
            raise RollpoolError(
                f"{', '.join(blind)} for clients of {given.protocol}",
                "they do not say which actions they executed",
                f"set it to 0: --overrides --{blind[0]} 0",
            )

    def behind(self) -> model_server.Settings:
        """The model server's own settings: for the front alone."""
        return dataclasses.replace(
            self._settings, host=model_server.LOOPBACK, port=0, token=self._token
        )

    def start(self, server: model_server.ModelServer) -> None:
        """Start the front; this process ends with it, and it with this one."""
        if "expert" in server.identity["needs"]:
            raise RollpoolError(
                f"policy {server.identity['policy']} for clients of {self._protocol}",
                "it needs the simulator's expert",
                "serve it to our own simulators",
            )
        told = {
            "model": (server.host, server.port),
            "token": self._token,
            "policy": server.identity["policy"],
            "form": self._form,
            "host": self._settings.host,
            "port": self._settings.port,
            "key": self._settings.token,
            "open": self._open,
            "deadline_s": self.DEADLINE_S,
        }
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            json.dump(told, file)
        child = subprocess.Popen(self._command(file.name), stdin=subprocess.PIPE, cwd=ROOT)
        threading.Thread(target=self._follow, args=(child,), daemon=True).start()

    def _command(self, settings: str) -> list[str]:
        if self._protocol == "robotwin-tcp":
            return [sys.executable, "-m", "harness.fronts.robotwin", "--settings", settings]
        envs = Path(os.environ.get("ROLLPOOL_ENVS") or Root(ROOT).envs)
        python = envs / "openpi" / "bin" / "python"
        if not python.exists():
            raise RollpoolError("an openpi front", f"no {python}", "run scripts/setup.sh openpi")
        return [str(python), "-m", "harness.fronts.openpi", "--settings", settings]

    @staticmethod
    def _follow(child: subprocess.Popen[bytes]) -> None:
        os._exit(child.wait())


def read_yaml(path: Path) -> dict[str, Any]:
    try:
        import yaml
    except ImportError as error:
        raise RollpoolError(
            f"read {path}", f"no PyYAML in {sys.executable}", "install it there, or use --settings"
        ) from error
    if not path.is_file():
        raise RollpoolError(f"read {path}", "no such file", "check --policy_name and --config")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        found = " ".join(str(error).split())
        raise RollpoolError(f"read {path}", f"not YAML: {found}", "correct it") from error
    if not isinstance(values, dict):
        raise RollpoolError(f"read {path}", "not a mapping", "write `key: value` lines")
    return values


def overrides(words: Sequence[str]) -> dict[str, Any]:
    """``--key value`` pairs; a value that is JSON (a number, true, null, a list) is taken so."""
    if len(words) % 2 or not all(key.startswith("--") for key in words[::2]):
        raise RollpoolError("--overrides", f"{' '.join(words)!r}", "give pairs of --key value")
    return {key[2:]: _value(text) for key, text in zip(words[::2], words[1::2], strict=True)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def find_checkpoint(name: str | None, policy: str) -> str | None:
    if not name:
        return None
    path = Path(name)
    return str(path.resolve() if path.exists() else Root(ROOT).find_checkpoint(name, policy))


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    # A model's libraries may hang in their own clean-up; nothing of ours is left to do.
    os._exit(code)
