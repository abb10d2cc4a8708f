"""Load ``policy/<name>/deploy_policy.py`` by its path and make a ``Policy`` of its model."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError, one_line
from harness.policies.adapt import Adapted
from harness.policies.contract import Policy
from harness.policies.wrappers import wrap

MODULE = "deploy_policy.py"


def load_policy(policy_dir: Path, usr_args: Mapping[str, Any], knobs: Mapping[str, Any]) -> Policy:
    """The policy of ``policy_dir``, loaded, checked and wrapped.

    Args:
        policy_dir: a folder with ``deploy_policy.py``; it joins ``sys.path``, so that the policy
            can import its own modules.
        usr_args: what ``get_model`` gets: the contents of ``deploy_policy.yml``, with
            ``checkpoint`` as a path or None.
        knobs: see ``wrappers.wrap``.

    Raises:
        RollpoolError: what is missing or wrong, in plain words, the cause chained.
    """
    get_model = _get_model(Path(policy_dir).resolve())
    try:
        model = get_model(dict(usr_args))
    except RollpoolError:
        raise
    except Exception as error:
        raise _failed(policy_dir, "get_model", error) from error
    return wrap(Adapted(model, usr_args), knobs)


def _get_model(policy_dir: Path) -> Callable[[dict[str, Any]], Any]:
    path = policy_dir / MODULE
    if not path.is_file():
        folder = "no such file" if policy_dir.is_dir() else "no such policy folder"
        known = sorted(p.parent.name for p in policy_dir.parent.glob(f"*/{MODULE}"))
        raise RollpoolError(
            f"policy {path}", folder, f"choose one of: {', '.join(known) or 'none here'}"
        )
    module = _imported(path)
    get_model = getattr(module, "get_model", None)
    if not callable(get_model):
        raise RollpoolError(
            f"policy {path}", "it has no get_model", "define get_model(usr_args) -> model in it"
        )
    return get_model


def _imported(path: Path) -> Any:
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    name = f"rollpool_policy_{path.parent.name}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickles look their module up there
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise _failed(path.parent, "import", error) from error
    return module


def _failed(policy_dir: Path, what: str, error: Exception) -> RollpoolError:
    todo = f"correct {MODULE}, its checkpoint or its environment ({sys.executable})"
    return RollpoolError(f"{what} of policy {Path(policy_dir).name}", one_line(error), todo)
