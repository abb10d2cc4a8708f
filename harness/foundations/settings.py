"""The settings of one launch: where each value came from, and whether it can be right.

A value comes from, in this order: command line, environment, profile (``EVAL_PROFILE``), the
policy's ``deploy_policy.yml``, the declared default. This is the only module that reads the
toolkit's variables from the environment. Values of names it does not know are passed on to the
children and never printed: they may be secrets.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from harness.errors import RollpoolError
from harness.foundations.gpus import Gpu, list_gpus
from harness.foundations.records import canonical_json
from harness.foundations.variables import VARIABLES, Variable
from harness.paths import CODE, Root, suggest
from harness.simulators import registry

#: A name that begins like this is the toolkit's or its wrappers': an unknown one is looked at.
PREFIXES = (
    "EVAL_", "USE_EVAL_", "DXVLA_", "XVLA_", "DA3_XVLA_", "BENCH_", "SEEDS_", "LEASE_", "STALL_",
    "PER_TASK_", "GIANT_", "STUDY_", "CKPT_", "POLICY_", "SIM_", "SIMS_", "SIMULATOR",
    "WORKERS_",
    "MODEL_SERVER_", "MODEL_AS_", "MODEL_MAX_", "QUEUE_", "CUROBO_", "ROLLPOOL_", "ROBOTWIN_",
    "RUNS_",
)  # fmt: skip

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
    passed_on, warnings = _unknown_names(environ)
    given: dict[str, tuple[Any, str]] = {}
    profile = flags.get("EVAL_PROFILE") or environ.get("EVAL_PROFILE")
    layers: list[tuple[Mapping[str, object], str]] = [
        (load_profile(root, profile) if profile else {}, "profile"),
        (environ, "environment"),
        (flags, "command line"),
    ]
    for layer, source in layers:
        for name, text in layer.items():
            if name in VARIABLES:
                given[name] = (parse(VARIABLES[name], text, source, root), source)
    settings = _complete(given, root, passed_on, defaults or {})
    return settings, warnings + _known_bad(settings, gpus)


def parse(variable: Variable, text: object, source: str, root: Root) -> Any:
    """The value of a variable's text. Raises ``RollpoolError`` naming what it may be."""
    text = as_text(text)
    asked = f"{variable.name}={text} ({source})"
    if variable.type == "flag":
        if text not in ("0", "1"):
            raise RollpoolError(asked, "neither 0 nor 1", "set it to 0 or 1")
        return text == "1"
    if variable.type == "path":
        here = Path(text).expanduser()
        return here.absolute() if here.exists() or here.is_absolute() else root.path / here
    if variable.type == "mapping":
        return _mapping(text, asked)
    if variable.choices and text not in variable.choices:
        raise RollpoolError(asked, "no such choice", f"set it to {' or '.join(variable.choices)}")
    if variable.type == "text":
        return text
    try:
        number = int(text) if variable.type == "int" else float(text)
    except ValueError:
        kind = "a whole number" if variable.type == "int" else "a number"
        raise RollpoolError(asked, f"not {kind}", f"set it to {kind}{_range(variable)}") from None
    low, high = variable.low, variable.high
    inside = (low is None or number >= low) and (high is None or number <= high)
    if not inside or number in (float("inf"), float("-inf")) or number != number:
        raise RollpoolError(asked, "out of range", f"set it to a number{_range(variable)}")
    return number


def as_text(value: object) -> str:
    """A value as one writes it in the environment."""
    if isinstance(value, dict):
        return canonical_json(value)
    return str(int(value)) if isinstance(value, bool) else str(value)


def _mapping(text: str, asked: str) -> dict[str, Any]:
    """The content of the YAML file ``text``, or what ``as_text`` made of it, as JSON values."""
    try:
        content = json.loads(text) if text.startswith("{") else load_yaml(Path(text).expanduser())
        # Through JSON and back, so that it is the same on joining, where JSON is all there is.
        mapping: dict[str, Any] = json.loads(canonical_json(content))
    except (TypeError, ValueError) as error:
        raise RollpoolError(
            asked, f"not plain values ({error})", "use text, numbers, lists and mappings alone"
        ) from error
    return mapping


def load_profile(root: Root, name: str) -> dict[str, object]:
    """A profile's values: ``<name>.yml`` of the shipped ones, or a user's own file by its path."""
    file = Path(name).expanduser()
    if file.suffix not in (".yml", ".yaml"):
        file = root.profiles / f"{name}.yml"
    if not file.is_file():
        known = sorted(f.stem for f in root.profiles.glob("*.yml"))
        raise RollpoolError(f"profile {name!r}", f"no {file}", suggest(name, known))
    values = {key: value for key, value in load_yaml(file).items() if value is not None}
    for key in values:
        if key not in VARIABLES or key == "EVAL_PROFILE":
            raise RollpoolError(f"{file}: {key}", "no such variable", suggest(key, [*VARIABLES]))
    return values


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


def _complete(
    given: Mapping[str, tuple[Any, str]],
    root: Root,
    passed_on: Mapping[str, str],
    defaults: Mapping[str, Any] = {},
) -> Settings:
    """Add to what was given the policy's own values, then the defaults."""
    found = {name: (v, s) for name, (v, s) in given.items()}
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


def _unknown_names(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Names like the toolkit's that are not declared: refuse misspellings, pass on the rest."""
    passed_on: dict[str, str] = {}
    warnings = []
    ours = [name for name in VARIABLES if name.startswith(PREFIXES)]
    for name in sorted(set(environ) - set(VARIABLES)):
        like_ours = name.startswith(PREFIXES)
        bound = 2 if like_ours and len(name) > 10 else 1
        near = [
            known for known in ours
            if _distance(name, known, bound) <= bound or known.startswith(f"{name}_")
        ]  # fmt: skip
        if near and (like_ours or len(name) >= 8):
            raise RollpoolError(
                f"variable {name}", "no such variable",
                f"did you mean {' or '.join(near)}? unset {name} if not",
            )  # fmt: skip
        if like_ours:
            passed_on[name] = environ[name]
            warnings.append(f"{name} is not a variable of the toolkit; passed on as it is")
    return passed_on, warnings


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


def _range(variable: Variable) -> str:
    low, high = variable.low, variable.high
    if high is not None:
        return f" from {low:g} to {high:g}"
    return "" if low is None else f" of at least {low:g}"


def _distance(a: str, b: str, bound: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) between two names; > bound cut short."""
    if abs(len(a) - len(b)) > bound:
        return bound + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                row[j] = min(row[j], last[j - 2] + 1)
        if min(row) > bound:
            return bound + 1
    return row[-1]
