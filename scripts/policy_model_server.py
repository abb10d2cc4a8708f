#!/usr/bin/env python3
"""Serve a policy: load it once, answer each observation with a chunk of actions.

    policy_model_server.py --policy_name tinyvla --port 5577
    policy_model_server.py --policy_name mine --config policy/mine/deploy_policy.yml \\
        --ckpt my_checkpoint --port 5577 --overrides --exec_actions 20 --action_smooth 0.7
    policy_model_server.py --settings FILE.json --channel FD        (as the lease worker does)

Runs in the model's own Python (``$XVLA_PY``): standard library and numpy, and PyYAML to read
``deploy_policy.yml``. Ends with Ctrl-C or SIGTERM.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from harness import model_server  # noqa: E402
from harness.errors import EXIT_OK, RollpoolError  # noqa: E402
from harness.paths import Root  # noqa: E402
from harness.policies.wrappers import KNOBS  # noqa: E402


def main(arguments: Sequence[str]) -> int:
    if any(argument.split("=")[0] == "--settings" for argument in arguments):
        return model_server.main(arguments)
    try:
        model_server.run(by_hand(parser().parse_args(arguments)), channel=None)
    except RollpoolError as error:
        return model_server.refuse(error, channel=None)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    return EXIT_OK


def parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=form)
    parser.add_argument("--policy_name", required=True, help="a folder of policy/")
    parser.add_argument("--config", type=Path, help="default: policy/<name>/deploy_policy.yml")
    parser.add_argument("--ckpt", help="name or path; default: the policy's own `checkpoint`")
    parser.add_argument("--host", default=model_server.LOOPBACK, help="address to listen on")
    parser.add_argument("--port", type=int, default=0, help="0 (default) = any free one")
    parser.add_argument("--token-file", type=Path, help="clients must know what stands in it")
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
