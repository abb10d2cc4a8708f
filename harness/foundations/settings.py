"""The settings of one launch: where each value came from, and whether it can be right.

A value comes from, in this order: command line, environment, profile (``EVAL_PROFILE``), the
policy's ``deploy_policy.yml``, the declared default. This is the only module that reads the
toolkit's variables from the environment. Values of names it does not know are passed on to the
children and never printed: they may be secrets.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from harness.canonical import canonical_json
from harness.errors import RollpoolError
from harness.foundations.gpus import Gpu, list_gpus
from harness.foundations.misspellings import unknown_names
from harness.foundations.values import as_text, parse
from harness.foundations.variables import VARIABLES
from harness.foundations.yaml_files import load_profile, policy_config
from harness.paths import CODE, Root
from harness.simulators import registry

#: Key of ``deploy_policy.yml`` -> the variable it gives a value to.
POLICY_KEYS = {
    "checkpoint": "CKPT_NAME",
    "backbones": "GIANT_BACKBONES",
    "action_smooth": "DXVLA_ACTION_SMOOTH",
    "smooth_rot": "DXVLA_SMOOTH_ROT",
    "exec_actions": "DXVLA_EXEC_ACTIONS",
    "fake_proprio": "DXVLA_FAKE_PROPRIO",
}

#: Sources a user chose on purpose: these must agree with a run that is joined.
EXPLICIT = ("command line", "environment", "profile")


@dataclass(frozen=True)
class Settings:
    """Every declared variable's value (None where unset) and its source."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    root: Root = field(repr=False, compare=False)
    passed_on: Mapping[str, str] = field(repr=False, compare=False, default_factory=dict)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def sealed(self) -> dict[str, Any]:
        """What moves numbers, as JSON values; unset ones are left out."""
        return {
            name: value
            for name, value in self.values.items()
            if VARIABLES[name].moves_numbers and value is not None
        }

    def shared(self) -> dict[str, Any]:
        """What all workers of a run must have the same."""
        return {name: value for name, value in self.values.items() if VARIABLES[name].shared}

    def hash(self) -> str:
        """The sha256 of ``sealed()``."""
        return hashlib.sha256(canonical_json(self.sealed()).encode()).hexdigest()

    def having(self, **values: Any) -> Settings:
        """These settings with other values of some variables, from the same sources."""
        return replace(self, values={**self.values, **values})

    def knobs(self) -> dict[str, Any]:
        """The policy wrappers' settings under the names of ``deploy_policy.yml``, where set."""
        return {
            key: self.values[name]
            for key, name in POLICY_KEYS.items()
            if VARIABLES[name].reader == "policy wrapper" and self.values[name] is not None
        }

    def exports(self) -> dict[str, str]:
        """The environment the children get: every value that is set, and the unknown names."""
        known = {name: as_text(value) for name, value in self.values.items() if value is not None}
        return {**self.passed_on, **known}

    def joining(self, sealed: Mapping[str, Any]) -> Settings:
        """These settings in a run that sealed ``sealed``: what was not asked for is the run's."""
        given = {
            name: (self.values[name], source)
            for name, source in self.sources.items()
            if source in EXPLICIT
        }
        for name, variable in VARIABLES.items():
            agreed = variable.moves_numbers or (variable.shared and name in sealed)
            if agreed and name not in given:
                given[name] = (sealed.get(name), "run")
        return _complete(given, self.root, self.passed_on)


def find_root(environ: Mapping[str, str] | None = None) -> Root:
    """``EVAL_ROOT``, by default the folder that holds the toolkit, with its ``RUNS_ROOT``."""
    given = os.environ if environ is None else environ
    path, runs = (
        Path(given[name]).expanduser().absolute() if given.get(name) else None
        for name in ("EVAL_ROOT", "RUNS_ROOT")
    )
    return Root(path or CODE, runs)


def resolve(
    environ: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
    root: Root | None = None,
    gpus: Callable[[], list[Gpu]] = list_gpus,
    defaults: Mapping[str, Any] | None = None,
) -> tuple[Settings, list[str]]:
    """The settings and the warnings. Raises ``RollpoolError`` for a value that cannot be right.

    Args:
        environ: default: the process's environment. An empty value counts as unset.
        flags: variable name -> text, from the command line.
        gpus: asked only where a value depends on the GPU.
        defaults: values in place of the declared ones.
    """
    environ = {k: v for k, v in (os.environ if environ is None else environ).items() if v}
    flags = flags or {}
    root = root or find_root(environ)
    passed_on, warnings = unknown_names(environ)
    given: dict[str, tuple[Any, str]] = {}
    places = {"EVAL_ROOT": root.path, "RUNS_ROOT": root.runs}
    profile = flags.get("EVAL_PROFILE") or environ.get("EVAL_PROFILE")
    layers: list[tuple[Mapping[str, object], str]] = [
        (load_profile(root, profile) if profile else {}, "profile"),
        (environ, "environment"),
        (flags, "command line"),
    ]
    for layer, source in layers:
        for name, text in layer.items():
            if name in VARIABLES:
                value = places.get(name) or parse(VARIABLES[name], text, source, root)
                given[name] = (value, source)
    settings = _complete(given, root, passed_on, defaults or {})
    return settings, warnings + _known_bad(settings, gpus)


def _complete(
    given: Mapping[str, tuple[Any, str]],
    root: Root,
    passed_on: Mapping[str, str],
    defaults: Mapping[str, Any] = {},
) -> Settings:
    """Add to what was given the policy's own values, then the defaults."""
    found = dict(given)
    policy, _ = found.get("POLICY_NAME", (VARIABLES["POLICY_NAME"].default, ""))
    config = policy_config(root, policy) if policy in root.policies() else {}
    if config:
        for key, name in POLICY_KEYS.items():
            if config.get(key) is not None and name not in found:
                source = f"policy/{policy}/deploy_policy.yml"
                found[name] = (parse(VARIABLES[name], config[key], source, root), "policy")
    computed = {
        "EVAL_ROOT": root.path,
        "RUNS_ROOT": root.runs,
        "BUNDLE": root.path,
        "DA3_XVLA_ROOT": found.get("GIANT_CODE_DIR", (None, ""))[0],
        **_pythons(found, root, config.get("env")),
    }
    for name, variable in VARIABLES.items():
        default = None if variable.default_of not in ("", policy) else variable.default
        value = computed.get(name) if default is None else parse(variable, default, "default", root)
        value = defaults.get(name, value)
        found.setdefault(name, (value, "default"))
    ordered = {name: found[name] for name in VARIABLES}
    return Settings(
        {name: value for name, (value, _) in ordered.items()},
        {name: source for name, (_, source) in ordered.items()},
        root,
        passed_on,
    )


def _pythons(
    found: Mapping[str, tuple[Any, str]], root: Root, model_env: str | None
) -> dict[str, Path]:
    """Each interpreter that nobody named: the run's simulator decides, and the policy's ``env``."""
    envs: Path = found.get("ROLLPOOL_ENVS", (root.envs, ""))[0]
    simulator, _ = found.get("SIMULATOR", (VARIABLES["SIMULATOR"].default, ""))

    def python(environment: str) -> Path:
        return envs / environment / "bin" / "python"

    pythons = {"ROBOTWIN_PY": python("tabletop"), "XVLA_PY": python("model")}
    robotwin, xvla = (found.get(name, (pythons[name], ""))[0] for name in pythons)
    own = registry.by_robotwin_py(simulator)
    pythons["SIM_PY"] = robotwin if own else python(registry.environment(simulator))
    pythons["MODEL_PY"] = python(model_env) if model_env else xvla
    return pythons


def _known_bad(settings: Settings, gpus: Callable[[], list[Gpu]]) -> list[str]:
    """Refuse values that are known to give wrong results; warn of those without effect."""
    remote = settings["MODEL_SERVER_HOST"]
    if settings["SIM_AS_SERVER"] and remote not in (None, "127.0.0.1", "localhost"):
        raise RollpoolError(
            "SIM_AS_SERVER=1", f"MODEL_SERVER_HOST={remote} says that the model listens",
            "set one of them: with SIM_AS_SERVER the model comes to the simulator",
        )  # fmt: skip
    if settings["SIM_AS_SERVER"] and settings["SIMS_PER_WORKER"] > 1:
        raise RollpoolError(
            f"SIMS_PER_WORKER={settings['SIMS_PER_WORKER']}",
            "with SIM_AS_SERVER=1 each simulator listens and waits for a model of its own",
            "set it to 1, and start more workers (WORKERS_PER_GPU)",
        )
    several = [n for n in ("WORKERS_PER_GPU", "SIMS_PER_WORKER") if settings[n] > 1]
    oidn = settings["DXVLA_DENOISER"] == "oidn"
    blackwell = [gpu for gpu in gpus() if gpu.blackwell] if several or oidn else []
    if blackwell and several:
        raise RollpoolError(
            f"{several[0]}={settings[several[0]]}",
            f"{blackwell[0].name} is a Blackwell GPU: no MPS there, sharing corrupts the simulator",
            "set it to 1",
        )
    if blackwell and oidn:
        return [f"DXVLA_DENOISER=oidn is a silent no-op on {blackwell[0].name} (Blackwell): "
                "pictures stay noisy and numbers move; use optix"]  # fmt: skip
    return []
