"""The directory of a report: what may be written there, and what is ours in it.

``.organized.json`` names the run a report was made from and every file of it, written *before* the
files are: a kill in the middle leaves nothing that the next time would take for someone else's.
A video is ours while it has the size and modification time noted there.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.atomic import write_atomic
from harness.paths import RunPaths

LEDGER = ".organized.json"
_TABLES = ("results.txt", "results.csv", "results.json", "profile.txt")

#: Size in bytes and modification time in ns: equal in a hard link and in a faithful copy.
Stamp = list[int]


def refuse_report_of_another(paths: RunPaths) -> None:
    """A run that is yet to be made does not move in where another run's report lives."""
    owner = _read_ledger(paths.root / LEDGER).get("run")
    if owner not in (None, paths.name) and not paths.run_json.exists():
        raise RollpoolError(
            f"run {paths.name!r}", f"{paths.root} holds the report of run {owner!r}",
            "choose another STUDY_RUN",
        )  # fmt: skip


class ReportFiles:
    """The files of one report in ``folder``, made from the run of ``paths``."""

    def __init__(self, folder: Path, paths: RunPaths) -> None:
        self.folder = folder
        self._paths = paths
        ledger = _read_ledger(folder / LEDGER)
        self._owner: str | None = ledger.get("run")
        self._old: dict[str, Stamp | None] = ledger.get("files", {})

    def check(self, scenes: Iterable[str], videos: Iterable[str], replace: bool) -> None:
        """Raises ``RollpoolError`` where writing would mix up or destroy what is not ours."""
        if self.folder != self._paths.root:
            self._refuse_another_run()
        else:
            self._refuse_names_of_the_run(scenes)
        if replace:
            return
        if self._owner not in (None, self._paths.name):
            raise self._refusal(f"it holds the report of run '{self._owner}'")
        names = [*_TABLES, *(f"{scene}/results.txt" for scene in scenes), *videos]
        for name in names:
            if (self.folder / name).exists() and not self._is_ours(name):
                raise self._refusal(f"{name} is there already and was not made by this command")

    @contextlib.contextmanager
    def writing(self, names: Iterable[str], videos: Mapping[str, Path]) -> Iterator[None]:
        """Note the new files, let them be written, then remove those of ours that are stale."""
        new = {name: _stamp(videos[name]) if name in videos else None for name in names}
        self._write_ledger(self._old | new)
        yield
        for name in sorted(set(self._old) - set(new)):
            self._remove(name)
        self._write_ledger(new)

    def link(self, name: str, source: Path) -> None:
        """``name`` becomes a hard link to ``source``, or a copy where links cannot be made."""
        target = self.folder / name
        if target.exists() and _stamp(target) == _stamp(source):
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        try:
            try:
                os.link(source, temporary)
            except OSError:  # another filesystem, or one without hard links
                shutil.copy2(source, temporary)
            os.replace(temporary, target)
        except OSError as error:
            raise RollpoolError(
                f"video {target}", error.strerror or str(error), "free the disk or fix its rights"
            ) from error
        finally:
            temporary.unlink(missing_ok=True)

    def _refuse_another_run(self) -> None:
        paths = RunPaths(self.folder)
        marks = (paths.run_json, paths.queue, paths.results, paths.manifests)
        found = [mark.name for mark in marks if mark.exists()]
        if found:
            raise RollpoolError(
                f"a report in {self.folder}", f"that is another run (it has {found[0]})",
                "choose another model name",
            )  # fmt: skip

    def _refuse_names_of_the_run(self, scenes: Iterable[str]) -> None:
        paths = [path for path in vars(self._paths).values() if isinstance(path, Path)]
        own = {path.name for path in paths if path != self.folder}
        for scene in scenes:
            if scene in own:
                raise RollpoolError(
                    f"a report in {self.folder}, the run's own directory",
                    f"scene '{scene}' has the name of a file of the run",
                    "choose a model name that is not the run's",
                )

    def _refusal(self, found: str) -> RollpoolError:
        return RollpoolError(
            f"a report of run '{self._paths.name}' in {self.folder}", found,
            "choose another model name, or give --replace",
        )  # fmt: skip

    def _is_ours(self, name: str) -> bool:
        stamp = self._old.get(name)
        return name in self._old and (stamp is None or _stamp(self.folder / name) == stamp)

    def _remove(self, name: str) -> None:
        path = self.folder / name
        if ".." in Path(name).parts or not path.is_file() or not self._is_ours(name):
            return
        path.unlink()
        with contextlib.suppress(OSError):  # a folder that still holds something stays
            for parent in path.relative_to(self.folder).parents[:-1]:
                (self.folder / parent).rmdir()

    def _write_ledger(self, files: Mapping[str, Stamp | None]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for name in files:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
        record = {"format": 1, "run": self._paths.name, "files": files}
        write_atomic(self.folder / LEDGER, json.dumps(record, sort_keys=True).encode())


def _read_ledger(path: Path) -> dict[str, Any]:
    """Empty where there is none; a damaged one makes every file there someone else's."""
    try:
        record = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return record if isinstance(record, dict) else {}


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns]
