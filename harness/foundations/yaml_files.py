"""What users write in YAML: profiles, policies' ``deploy_policy.yml``, simulators' configurations.

Promises: a file that is missing, no YAML or no mapping is a ``RollpoolError`` that names it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from harness.errors import RollpoolError
from harness.foundations.variables import VARIABLES
from harness.paths import Root, suggest

#: What says which profile is read, and where everything lies.
_KNOWN_BEFORE = ("EVAL_PROFILE", "EVAL_ROOT", "RUNS_ROOT")


def load_profile(root: Root, name: str) -> dict[str, object]:
    """A profile's values: ``<name>.yml`` of the shipped ones, or a user's own file by its path."""
    file = root.place(name) if is_yaml(name) else root.profiles / f"{name}.yml"
    if not file.is_file():
        known = sorted(f.stem for f in root.profiles.glob("*.yml"))
        raise RollpoolError(f"profile {name!r}", f"no {file}", suggest(name, known))
    values = {key: value for key, value in load_yaml(file).items() if value is not None}
    for key in values:
        if key in _KNOWN_BEFORE:
            raise RollpoolError(
                f"{file}: {key}", "known before a profile is read", "set it in the environment"
            )
        if key not in VARIABLES:
            raise RollpoolError(f"{file}: {key}", "no such variable", suggest(key, [*VARIABLES]))
    return values


def is_yaml(name: str) -> bool:
    """Whether a name is that of a file of this kind."""
    return name.endswith((".yml", ".yaml"))


def policy_config(root: Root, policy: str) -> dict[str, Any]:
    """The policy's ``deploy_policy.yml``."""
    return load_yaml(root.policy_dir(policy) / "deploy_policy.yml")


def load_yaml(file: Path) -> dict[str, Any]:
    """A YAML file that holds one mapping. Raises ``RollpoolError``."""
    try:
        loaded = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        what = " ".join(str(error).split())
        raise RollpoolError(str(file), f"not a YAML file ({what})", "correct it") from error
    if loaded is not None and not isinstance(loaded, dict):
        raise RollpoolError(str(file), "not a mapping", "write lines `name: value`")
    if odd := [name for name in loaded or {} if not isinstance(name, str)]:
        raise RollpoolError(str(file), f"the name {odd[0]!r} is no text", "put it in quotes")
    return loaded or {}
