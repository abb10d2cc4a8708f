"""Default arguments of the checkout's code that its calls change: a scene then depends on the
process's history.

Promises: ``restore_defaults`` puts every list, dict or set among them, of the modules imported from
the watched folders, back to what it was when its code was imported.
"""

from __future__ import annotations

import copy
import importlib.abc
import importlib.machinery
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

#: Default arguments that can change, and what they were when their code had just been imported.
_DEFAULTS: list[tuple[Any, Any]] = []
_WATCHED: list[Path] = []


def watch_defaults(folders: Sequence[Path]) -> None:
    """From now on remember the defaults of every module that is imported from ``folders``."""
    if not _WATCHED:
        sys.meta_path.insert(0, _Finder())
    _WATCHED[:] = [folder.resolve() for folder in folders]


def restore_defaults() -> None:
    """In place: whoever holds the object sees it as it was."""
    for value, original in _DEFAULTS:
        fresh = copy.deepcopy(original)
        if isinstance(value, list):
            value[:] = fresh
        else:
            value.clear()
            value.update(fresh)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return None
        file = Path(spec.origin or "").resolve()
        if not any(folder in file.parents for folder in _WATCHED):
            return None
        spec.loader = _Loader(fullname, str(spec.origin))
        return spec


class _Loader(importlib.machinery.SourceFileLoader):
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        for function in _functions(module):
            values = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
            for value in values:
                if isinstance(value, (list, dict, set)):
                    _DEFAULTS.append((value, copy.deepcopy(value)))


def _functions(module: ModuleType) -> Iterator[Any]:
    """The functions and methods that the module itself defines."""
    for value in vars(module).values():
        if getattr(value, "__module__", None) != module.__name__:
            continue
        members = vars(value).values() if inspect.isclass(value) else (value,)
        for member in members:
            function = getattr(member, "__func__", member)  # static and class methods
            if inspect.isfunction(function):
                yield function
