"""The check of a node before it takes work: every question asked, the answers kept in the run.

Promises: ``examine`` asks everything within minutes, and whatever it finds is an answer; a node
with a failure is named in ``runs/<RUN>/nodes/``, with the reason.
"""

from __future__ import annotations

import re
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.episodes.rendering import examine as examine_renderer
from harness.episodes.video import find_ffmpeg
from harness.errors import RollpoolError
from harness.foundations.gpus import list_gpus
from harness.foundations.settings import Settings
from harness.foundations.slurm import Allocation, allocation
from harness.foundations.yaml_files import policy_config
from harness.nodes import known_episode, node_checks, node_words
from harness.nodes.known_episode import Played
from harness.nodes.node_checks import Finding
from harness.nodes.relocate import B1_VERSION
from harness.paths import CODE, RunPaths
from harness.runs import population
from harness.runs.run import Run
from harness.simulators.contract import Episode
from harness.workers import children, chosen_simulator

#: Cells tried for a known episode: a task that is broken everywhere is not the node's fault.
_CELLS = 3


@dataclass(frozen=True)
class Report:
    """All findings of one node."""

    node: str
    findings: tuple[Finding, ...]
    played: Played | None

    @property
    def failures(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.level == "failure"]

    def fields(self) -> dict[str, Any]:
        """As JSON values."""
        level = "failure" if self.failures else "ok"
        return {"node": self.node, "level": level, "findings": [asdict(f) for f in self.findings]}

    def leave_word(self, paths: RunPaths) -> None:
        """Name this node in the run, with what was found. Raises ``RollpoolError``."""
        played = asdict(self.played) if self.played else None
        node_words.leave(paths.nodes, self.node, [asdict(f) for f in self.findings], played)


def examine(settings: Settings, run: Run | None = None) -> Report:
    """Ask everything; of a sealed run also for its known episode. Raises ``RollpoolError``."""
    given, found = allocation(), list_gpus()
    pictures = needs_pictures(settings, given)
    findings = [
        node_checks.gpus(given, found),
        node_checks.denoiser(settings["DXVLA_DENOISER"], found),
        node_checks.disk({
            "node": settings["DXVLA_LOCAL"], "runs": settings.root.runs,
            "temporary files": Path(tempfile.gettempdir()),
        }),
        node_checks.ffmpeg(find_ffmpeg(), settings["EVAL_VIDEO"] != "none" and pictures),
    ]  # fmt: skip
    if run is not None:
        findings.append(node_checks.shared_folder(run.paths.root))
    elif settings.root.runs.is_dir():
        findings.append(node_checks.shared_folder(settings.root.runs))
    if settings["SIMULATOR"] == "tabletop" and (pictures or found):
        renderer = examine_renderer(str(settings["SIM_PY"]))
        findings.append(node_checks.rendering(renderer, found, pictures))
    more, played = _simulator(settings, run, given.node)
    return Report(given.node, (*findings, *more), played)


def needs_pictures(settings: Settings, given: Allocation) -> bool:
    """Whether this launch renders: a policy that sees, or videos where there is a GPU."""
    needs = policy_config(settings.root, settings["POLICY_NAME"]).get("needs") or []
    videos = settings["EVAL_VIDEO"] != "none" and (bool(given.gpus) or not given.inside)
    return "images" in needs or videos


def wanted_version(settings: Settings) -> str:
    """The simulator version to find; "" where nothing pins it."""
    if settings["DXVLA_SAPIEN_B1"]:
        return f"sapien {B1_VERSION}"
    pins = CODE / "requirements" / "tabletop.txt"
    if settings["SIMULATOR"] != "tabletop" or not pins.is_file():
        return ""
    (version,) = re.findall(r"^sapien==(\S+)", pins.read_text(), flags=re.MULTILINE)
    return f"sapien {version}"


def _simulator(
    settings: Settings, run: Run | None, node: str
) -> tuple[list[Finding], Played | None]:
    """Ask the simulator's version, and play the known episode of a run. An episode that cannot be
    played may be its task's fault, so others are tried."""
    findings, deaths = [], []
    for episode in [None] if run is None else _known_episodes(run):
        try:
            versions, states = _ask(settings, episode)
        except children.ProcessDied as died:
            deaths.append(str(died))
            continue
        except RollpoolError as error:
            return [Finding("simulator", "failure", str(error), "see scripts/setup.sh")], None
        findings = [node_checks.pin(versions, wanted_version(settings))]
        if run is not None and episode is not None and states:
            played = known_episode.played(node, versions, episode, states)
            return [*findings, known_episode.compare(played, run.paths.nodes)], played
    if deaths and not findings:
        return [Finding("simulator", "failure", deaths[-1], "see its own words")], None
    if run is not None:
        words = "no episode of the first cells can be played"
        findings.append(Finding("known episode", "warning", words, "try: rollpool episode --run"))
    return findings, None


def _ask(settings: Settings, episode: Episode | None) -> tuple[dict[str, str], list[str]]:
    """The versions of a simulator process of its own, and its states after playing ``episode``
    twice; none where the task raises."""
    with tempfile.TemporaryDirectory(prefix="rollpool-") as folder:
        log = Path(folder) / "simulator.log"
        with chosen_simulator.start(settings, log, render=False) as sim:
            versions = sim.ready()
            if episode is None:
                return versions, []
            try:
                return versions, [sim.probe(episode, known_episode.STEPS) for _ in range(2)]
            except children.ProcessDied:
                raise
            except RollpoolError:
                return versions, []


def _known_episodes(run: Run) -> list[Episode]:
    """The first sealed episode of each of the first cells."""
    manifests = [population.load(run.paths, cell) for cell in run.cells[:_CELLS]]
    return [sealed[0].episodes[0] for sealed in manifests if sealed and sealed[0].episodes]
