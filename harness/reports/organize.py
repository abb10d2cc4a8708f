"""``organize_results.py RUN MODEL``: a run's rows become tables and named videos.

Writes ``runs/<model>/`` for the configuration ``clean`` and ``runs/<model>_<config>/`` for any
other: ``results.txt|csv|json``, ``<scene>/results.txt``, ``<scene>/<task>/seed<N>.mp4``; and, where
it is asked for, ``upstream/`` (see ``upstream_results``).

Promises: every file appears whole or not at all; repeating it, also after a kill, gives the same
files; nothing of the run is touched, even where run and model share a directory; a file that no
earlier organize made is never overwritten or removed; a directory that is another run, or holds
another run's report, is refused (``--replace`` allows the latter).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import EXIT_OK, EXIT_PARTIAL, RollpoolError
from harness.foundations.atomic import write_atomic
from harness.paths import Root, RunPaths, component
from harness.reports import tables
from harness.reports.episode_table import CountedEpisodes
from harness.reports.report import Counted, Report
from harness.reports.report import tables as tables_of
from harness.reports.report_files import ReportFiles
from harness.reports.results import RunReader, RunResults
from harness.reports.upstream_results import upstream_texts


def organize(
    root: Root,
    run: str,
    model: str,
    replace: bool = False,
    limits: tuple[int, int] = (2, 4),
    say: Callable[[str], None] = print,
    upstream: bool = False,
) -> int:
    """Write and print the report of each configuration of ``run``.

    Args:
        replace: overwrite another run's report, or files that no organize made.
        limits: ``EVAL_RETRIES`` and ``EVAL_LOST_RETRIES``, which say what is set aside.
        upstream: write ``upstream/`` too, the layout of RoboTwin's and RoboPRO's own evaluation.

    Returns:
        0, or 1 where a table is PARTIAL.

    Raises:
        RollpoolError: unknown run, no results, or a directory that is not ours to write in.
    """
    paths = root.run(run)
    results = RunReader(paths, *limits).gather()
    if not results.configs:
        raise RollpoolError(
            f"results of run '{run}'", f"no sealed episode and no row in {paths.root}",
            "check the run's name (STUDY_RUN), or let it run first",
        )  # fmt: skip
    drafts = [
        _draft(root, paths, model, config, results, replace, upstream)
        for config in sorted(results.configs)
    ]
    for draft in drafts:
        draft.write()
        say(draft.printed())
    _say_remarks(results, say)
    partial = results.incomplete or any(draft.report.partial for draft in drafts)
    return EXIT_PARTIAL if partial else EXIT_OK


@dataclass(frozen=True)
class _Draft:
    """A report that passed all checks and is not yet written."""

    report: Report
    counted: CountedEpisodes
    recorded: int  # episodes whose row names a video
    remarks: Sequence[str]
    videos: dict[str, Path]  # name in the report -> file in the run
    files: ReportFiles
    upstream: dict[str, str]  # name in the report -> text

    def write(self) -> None:
        """Videos first, then the tables that count them."""
        texts = dict(self._texts())
        with self.files.writing([*self.videos, *texts], self.videos):
            for name, source in self.videos.items():
                self.files.link(name, source)
            for name, text in texts.items():
                write_atomic(self.files.folder / name, (part.encode() for part in text))

    def printed(self) -> str:
        folder, lost = self.files.folder, self.recorded - len(self.videos)
        videos = f"{len(self.videos)} videos  {folder}/<scene>/<task>/seed<N>.mp4"
        if lost:
            videos += f"  ({lost} more are named in rows, but their files are gone)"
        files = f"tables    {folder}/results.txt, .csv, .json"
        if took := tables.profile_line(self.report):
            files += f"\ntime      {folder}/profile.txt  ({took})"
        return f"{tables.full_text(self.report)}\n{files}\n{videos}"

    def _texts(self) -> Iterator[tuple[str, Iterable[str]]]:
        """Name in the report -> its text, in pieces."""
        yield "results.txt", [tables.overview_text(self.report)]
        yield "results.csv", [tables.csv_text(self.report)]
        lines = self.counted.json_lines()
        yield "results.json", tables.json_parts(self.report, lines, self.remarks)
        for scene in self.report.tasks:
            yield f"{component(scene)}/results.txt", [tables.scene_text(self.report, scene)]
        if profile := tables.profile_text(self.report):
            yield "profile.txt", [profile]
        yield from ((name, [text]) for name, text in self.upstream.items())


def _draft(
    root: Root,
    paths: RunPaths,
    model: str,
    config: str,
    results: RunResults,
    replace: bool,
    upstream: bool,
) -> _Draft:
    of_config = results.configs[config]
    counted = of_config.counted
    report = Report(
        model=model,
        run=paths.name,
        config=config,
        tasks=tables_of(counted.tallies, of_config.holes),
        holes=tuple(of_config.holes),
        unsealed=tuple(of_config.unsealed),
        identity=results.identity,
        profiles=of_config.profiles,
    )
    recorded = list(counted.with_video())
    videos = dict(_videos(paths, recorded))
    files = ReportFiles(root.report(model, config), paths)
    scenes = [component(scene) for scene in report.tasks]
    texts = dict(upstream_texts(report, counted, _began(paths))) if upstream else {}
    files.check(scenes, [*videos, *texts], replace)
    remarks = [*results.problems, *results.notes]
    return _Draft(report, counted, len(recorded), remarks, videos, files, texts)


def _began(paths: RunPaths) -> float:
    """When the run was sealed, in seconds since 1970; one of another tool has its results alone."""
    marks = (paths.run_json, paths.results)
    return next((mark.stat().st_mtime for mark in marks if mark.exists()), 0.0)


def _videos(paths: RunPaths, recorded: Iterable[Counted]) -> Iterator[tuple[str, Path]]:
    """``<scene>/<task>/seed<N>.mp4`` -> its file; ``seed<N>_p<position>`` where seeds repeat."""
    seen: set[str] = set()
    for episode in recorded:
        source = _inside(paths.root, episode.video)
        if source is None:
            continue
        folder = f"{component(episode.scene)}/{component(episode.task)}"
        name = f"{folder}/seed{episode.seed}.mp4"
        if name in seen:
            name = f"{folder}/seed{episode.seed}_{episode.manifest[:8]}_p{episode.position}.mp4"
        seen.add(name)
        yield name, source


def _inside(root: Path, video: str | None) -> Path | None:
    """The file, if it is there and below ``root``: a row names nothing outside its run."""
    if not video or PurePosixPath(video).is_absolute() or ".." in PurePosixPath(video).parts:
        return None
    path = root / video
    return path if os.path.isfile(path) else None


def _say_remarks(results: RunResults, say: Callable[[str], None]) -> None:
    if results.problems:
        say(f"\nlines that could not be read and are not counted: {len(results.problems)}")
        for problem in results.problems:
            say(f"  {problem}")
    for note in results.notes:
        say(f"note: {note}")
