"""From queue and seed bank to a sealed population: what ``rollpool prepare`` does.

Promises: everything the user wrote is checked before anything is sealed; the simulator is asked
only about cells and banks that are not sealed yet, so that resuming a prepared run costs file reads
alone; interrupted anywhere and repeated, the result is the same. Any number of processes may
prepare one run at once: they share the work, and the result is the same (``preparer``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.errors import RollpoolError
from harness.foundations.atomic import refusing, write_atomic
from harness.foundations.settings import Settings
from harness.paths import RunPaths, suggest
from harness.runs import population
from harness.runs.feasible import FIRST_SEED, Check, Scan
from harness.runs.population import Cell, Manifest
from harness.runs.preparer import Preparer
from harness.runs.reuse import Source, Sources
from harness.runs.sealing import Sealing, SealLines

Describe = Callable[[], Mapping[str, Any]]

_MAKE_QUEUE = "write one with `rollpool queue -o FILE`; copy it there, or give it with --queue FILE"
_MAKE_BANK = "make it with scripts/precollect_eval_seeds.py, or set SEEDS_ROOT to another bank"


def prepare(
    paths: RunPaths, settings: Settings, describe: Describe, seal_lines: SealLines, check: Check,
    queue: Path | None = None, begin: Callable[[], object] = lambda: None,
) -> list[Manifest]:  # fmt: skip
    """Seal what is missing and select; returns the manifests of the run in queue order.

    Args:
        queue: a queue file for a run that has none yet.
        describe: ``SimulatorProcess.describe``; called at most once.
        seal_lines: ``SimulatorProcess.seal``: the manifest's lines of seeds.
        check: ``SimulatorProcess.check``; called with ``USE_EVAL_SEEDS=0`` alone.
        begin: makes the run and installs the queue; called before anything is written there, so
            that nothing of it stands in a run when something of it is refused.

    Raises:
        RollpoolError: a queue line, a bank or a setting that cannot be; a disk that refuses.
        Declined: what the simulator would not seal; all the rest is.
    """
    described = functools.cache(describe)
    offered = Sources(settings.root, settings)
    cells = _cells(paths, queue or paths.queue, settings, described, offered)
    with refusing(paths.root), Preparer(paths, settings["LEASE_TTL"], begin) as preparer:

        def sealing(cell: Cell, seeds: Sequence[int], source: Source | None = None) -> Sealing:
            return Sealing(
                paths, preparer, cell, seeds, seal_lines, lambda: described()["name"], source
            )

        if settings["USE_EVAL_SEEDS"]:
            banks = _banks(paths, settings, cells, offered)
            wanted = [sealing(*bank) for bank in banks]
        else:
            found = _scan(paths, settings, cells, check, offered, preparer)
            wanted = [sealing(cell, seeds) for cell, seeds in found.items()]
        try:
            preparer.finish(wanted)
        finally:  # what is sealed stays, whatever came in the way of the rest
            sealed = [(work, work.manifest) for work in wanted if work.manifest]
            for work, manifest in sealed:
                population.select(paths, manifest, settings["EVAL_TEST_NUM"] or len(work.seeds))
    known: dict[Cell, list[Manifest]] = {}
    for work, manifest in sealed:
        known.setdefault(work.cell, []).append(manifest)
    return [m for cell in cells for m in population.load(paths, cell, known.get(cell, ()))]


def read_cells(paths: RunPaths, bench_config: str) -> list[Cell]:
    """The cells of a prepared run, in queue order. Raises ``RollpoolError`` before ``prepare``."""
    cells = []
    for scene, task in read_queue(paths.queue):
        cell = _sealed_cell(paths, scene, task, bench_config)
        if cell is None:
            raise RollpoolError(
                f"run {paths.name}", f"{scene} {task} is not sealed yet",
                f"run: rollpool prepare {paths.name}",
            )  # fmt: skip
        cells.append(cell)
    return cells


def refuse_other_queue(paths: RunPaths, source: Path) -> bytes:
    """The bytes of a queue file. Raises ``RollpoolError`` where the run has another one."""
    data = _read(source, "queue", _MAKE_QUEUE)
    if paths.queue.exists() and paths.queue.read_bytes() != data:
        raise RollpoolError(
            f"queue {source}", f"run {paths.name} has another {paths.queue.name}",
            f"edit {paths.queue}, or choose another STUDY_RUN",
        )  # fmt: skip
    return data


def install_queue(paths: RunPaths, source: Path) -> None:
    """Copy a queue file into the run. Raises ``RollpoolError`` where the run has another one."""
    write_atomic(paths.queue, refuse_other_queue(paths, source))


def read_queue(
    path: Path, known: Collection[tuple[str, str]] | None = None
) -> list[tuple[str, str]]:
    """The ``(scene, task)`` lines of a queue file; ``#`` begins a comment.

    Raises ``RollpoolError`` for a line that is not one of ``known`` (if given) or stands twice.
    """
    text = _text(_read(path, "queue", _MAKE_QUEUE), f"queue {path}")
    first_line: dict[tuple[str, str], int] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#")[0].split()
        if not words:
            continue
        asked = f"{path} line {number}: {' '.join(words)!r}"
        if len(words) != 2:
            raise RollpoolError(asked, "not two words", "write a line as `scene task`")
        pair = (words[0], words[1])
        if known is not None and pair not in known:
            raise _unknown_pair(asked, pair, known)
        if pair in first_line:
            raise RollpoolError(
                asked, f"stands already in line {first_line[pair]}", "remove one of the two lines"
            )
        first_line[pair] = number
    if not first_line:
        raise RollpoolError(f"queue {path}", "no lines in it", "write lines `scene task`")
    return list(first_line)


def read_bank(seeds_root: Path, task: str, task_config: str) -> list[int]:
    """The seeds of ``<seeds_root>/<task>/<task_config>.txt``. Raises ``RollpoolError``."""
    file = seeds_root / task / f"{task_config}.txt"
    words = _text(_read(file, "seed bank", _MAKE_BANK), f"seed bank {file}").split()
    if not words:
        raise RollpoolError(f"seed bank {file}", "empty", _MAKE_BANK)
    seeds: dict[int, None] = {}
    for number, word in enumerate(words, start=1):
        if not (word.isascii() and word.isdecimal()) or int(word) in seeds:
            twice = word.isascii() and word.isdecimal()
            raise RollpoolError(
                f"seed bank {file}: {word!r}, number {number}",
                "the seed stands twice" if twice else "not a seed",
                "remove one of the two" if twice else "write whole numbers between spaces",
            )
        seeds[int(word)] = None
    return list(seeds)


def task_config(scene: str, bench_config: str, available: Collection[str]) -> str:
    """The configuration that ``BENCH_CONFIG`` names in a scene. Raises ``RollpoolError``."""
    for name in _config_names(scene, bench_config):
        if name in available:
            return name
    raise RollpoolError(
        f"BENCH_CONFIG={bench_config}",
        f"scene {scene!r} has no bench_demo_{scene}_{bench_config}",
        suggest(bench_config, sorted(n.removeprefix(f"bench_demo_{scene}_") for n in available)),
    )


def _cells(
    paths: RunPaths, queue: Path, settings: Settings, described: Describe,
    offered: Sources,
) -> list[Cell]:  # fmt: skip
    bench_config = _required(settings, "BENCH_CONFIG", "set it to clean, or d6 to d15")
    pairs = read_queue(queue)
    cells = [_sealed_cell(paths, scene, task, bench_config, offered) for scene, task in pairs]
    if None not in cells:
        return [cell for cell in cells if cell]
    known = {(scene, task) for scene, task in described()["cells"]}
    read_queue(queue, known)
    configs = described()["task_configs"]
    return [
        cell or Cell(scene, task, task_config(scene, bench_config, configs.get(scene, ())))
        for cell, (scene, task) in zip(cells, pairs, strict=True)
    ]


def _banks(
    paths: RunPaths, settings: Settings, cells: Sequence[Cell], offered: Sources
) -> list[tuple[Cell, list[int], Source | None]]:
    """Each cell's seeds: from the bank, or those sealed already, here or where ``EVAL_MANIFESTS``
    points, where no bank is named. With the manifest to take over, if there is one."""
    count, root, banks = settings["EVAL_TEST_NUM"], settings["SEEDS_ROOT"], []
    for cell in cells:
        sources = offered.of(cell)
        if root is not None:
            seeds = read_bank(root, cell.task, cell.task_config)
            banks.append((cell, seeds, _begins_with(sources, seeds)))
        elif sources:
            _only([source.manifest for source in sources], count)
            banks += [(cell, source.seeds, source) for source in sources]
        elif not population.is_sealed(paths, cell):
            _required(settings, "SEEDS_ROOT", "set it to a folder of seed banks, e.g. in seeds/")
        elif count is not None:
            manifests = population.load(paths, cell)
            _only(manifests, count)
            banks.append((cell, manifests[0].episodes.seeds(), None))
    for cell, seeds, _ in banks:
        if count is not None and count > len(seeds):
            bank = f"{root}/{cell.task}/{cell.task_config}.txt" if root else f"of {cell.name}"
            raise RollpoolError(
                f"EVAL_TEST_NUM={count}", f"the bank {bank} has {len(seeds)} seeds",
                "lower it, or make a larger bank with scripts/precollect_eval_seeds.py",
            )  # fmt: skip
    return banks


def _scan(
    paths: RunPaths, settings: Settings, cells: Sequence[Cell], check: Check,
    offered: Sources, preparer: Preparer,
) -> dict[Cell, list[int]]:  # fmt: skip
    """Each cell's seeds without a bank: the first that the expert solves. Sealed ones stay."""
    count = _required(settings, "EVAL_TEST_NUM", "say how many seeds to look for")
    found, scans = {}, []
    for cell in cells:
        for source in offered.of(cell):
            preparer.begin()
            source.copy_to(paths)
        sealed = {s: None for m in population.load(paths, cell) for s in m.episodes.seeds()}
        found[cell] = list(sealed)[:count]
        if (missing := count - len(found[cell])) > 0:
            first = max([FIRST_SEED, *(seed + 1 for seed in found[cell])])
            scans.append(Scan(preparer, cell, check, first, missing))
    preparer.finish(scans)
    for scan in scans:
        found[scan.cell] += scan.seeds() or []
    for cell, seeds in found.items():
        if len(seeds) < count:
            raise RollpoolError(
                f"USE_EVAL_SEEDS=0: {count} seeds of {cell.name}",
                f"the expert solved only {len(seeds)} of those tried",
                "ask for fewer, or give a bank with SEEDS_ROOT",
            )  # fmt: skip
    return found


def _begins_with(sources: Sequence[Source], seeds: Sequence[int]) -> Source | None:
    return next((s for s in sources if s.seeds[: len(seeds)] == list(seeds)), None)


def _only(manifests: Sequence[Manifest], count: int | None) -> None:
    if count is not None and len(manifests) > 1:
        raise RollpoolError(
            "EVAL_TEST_NUM", f"{manifests[0].cell.name} has {len(manifests)} banks",
            "say which one is meant with SEEDS_ROOT",
        )  # fmt: skip


def _sealed_cell(
    paths: RunPaths, scene: str, task: str, bench_config: str, offered: Sources | None = None
) -> Cell | None:
    for name in _config_names(scene, bench_config):
        cell = Cell(scene, task, name)
        if population.is_sealed(paths, cell) or (offered and offered.has(cell)):
            return cell
    return None


def _config_names(scene: str, bench_config: str) -> tuple[str, str]:
    return f"bench_demo_{scene}_{bench_config}", bench_config


def _unknown_pair(
    asked: str, pair: tuple[str, str], known: Collection[tuple[str, str]]
) -> RollpoolError:
    scene, task = pair
    scenes = sorted({s for s, _ in known})
    if scene not in scenes:
        return RollpoolError(asked, f"no scene {scene!r}", suggest(scene, scenes))
    tasks = sorted(t for s, t in known if s == scene)
    return RollpoolError(asked, f"no task {task!r} in scene {scene!r}", suggest(task, tasks))


def _required(settings: Settings, name: str, todo: str) -> Any:
    if settings[name] is None:
        raise RollpoolError(name, "not set", todo)
    return settings[name]


def _read(file: Path, what: str, todo: str) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise RollpoolError(f"{what} {file}", error.strerror or str(error), todo) from error


def _text(data: bytes, asked: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RollpoolError(asked, f"not a text file ({error.reason})", "write it anew") from error
