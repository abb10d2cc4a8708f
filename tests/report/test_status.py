"""How a run stands: counts by cell, workers by their heartbeats, rate and time left."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.errors import RollpoolError
from harness.leases.heartbeat import Heartbeat, Process
from harness.nodes import node_words
from harness.reports import status_page
from harness.reports.status import CellStatus, StatusReader
from tests.report.handmade import HandMade

NOW = 1_000_000.0
ELSEWHERE = Process("another boot", "", 1, 1)


def beat(
    run: HandMade, worker: str, seconds_ago: float, seat: int = 0, **fields: Any
) -> None:  # fmt: skip
    """A heartbeat of a worker on another machine, that was last written a while ago; ``seat`` is
    the last of its seats, and what they tell apart stands there."""
    run.paths.workers.mkdir(exist_ok=True)
    heart = Heartbeat(run.paths, worker, 60.0, process=ELSEWHERE, host="node7", seats=seat + 1)
    heart.beat(seat=seat, **({"state": "running"} | fields))
    os.utime(run.paths.heartbeat(worker), (NOW - seconds_ago, NOW - seconds_ago))


def playing(run: HandMade, manifest: Any, position: int) -> dict[str, Any]:
    episode = manifest.episodes[position]
    names = ("manifest", "position", "scene", "task", "task_config", "seed", "instruction")
    return {name: getattr(episode, name) for name in names} | {"attempt": 1}


@pytest.fixture
def busy(run: HandMade) -> HandMade:
    """One cell finished, one with an episode each: done, running, in error, set aside, left."""
    bell = run.seal("office", "press_bell", [1])
    cup = run.seal("study", "put_cup_in_box", [1, 2, 3, 4, 5])
    times: dict[str, Any] = {"started": NOW - 120, "finished": NOW - 60}
    run.write(run.row(bell, 0, **times), run.row(cup, 0, "fail", **times))
    run.write(run.row(cup, 2, "error", **times))
    run.write(*(run.row(cup, 3, "error", attempt=k, **times) for k in (1, 2, 3)))
    beat(run, "node7-1-aa", 2.0, episode=playing(run, cup, 1), step=17)
    beat(run, "node7-2-bb", 300.0, episode=playing(run, cup, 4))
    beat(run, "node7-3-cc", 900.0, state="ended")
    return run


def look(run: HandMade) -> Any:
    return StatusReader(run.paths, now=lambda: NOW).look()


def test_counts(busy: HandMade) -> None:
    status = look(busy)
    cup = CellStatus(
        *("study", "put_cup_in_box", "bench_demo_study_clean"),
        selected=5, done=1, running=1, left=2, in_error=1, set_aside=1,
    )  # fmt: skip
    assert [cell for cell in status.cells if cell.scene == "study"] == [cup]
    assert [cell.finished for cell in status.cells] == [True, False]
    assert {w.worker: w.state for w in status.workers} == {
        "node7-1-aa": "running", "node7-2-bb": "silent", "node7-3-cc": "ended",
    }  # fmt: skip
    assert status.per_minute == pytest.approx(1.0)  # two outcomes since the first began
    assert status.seconds_left == pytest.approx(180.0)


def test_whole_page(busy: HandMade) -> None:
    assert (
        status_page.text(look(busy))
        == """\
run demo      policy tinyvla  checkpoint tiny (sha256:01234567)  simulator pointsim

episodes  [##########....................] 2 of 6 done (33 %)
          1 running, 2 left (1 of them in error), 1 set aside
cells     1 of 2 finished, 1 running
workers   1 alive of 3
rate      1.0 episodes/min over the last 10 minutes of work
time left about 3 min left

scene  task            configuration           selected  done  running  left  in error  set aside
study  put_cup_in_box  bench_demo_study_clean         5     1        1     2         1          1
1 finished cells not shown (--all shows them)

worker      state    last sign  episode
node7-1-aa  running  2 s ago    study/put_cup_in_box seed 2, step 17
node7-2-bb  silent   300 s ago  study/put_cup_in_box seed 5, step 0

Set aside (1):
  study/put_cup_in_box seed 4: set aside; 3 errors (stall x3) on node; the last: no progress \
for 300 s (log: runs/demo/logs/node-1-aa.log)
"""
    )


def test_nodes_that_were_kept_out(run: HandMade) -> None:
    run.seal("study", "put_cup_in_box", [1])
    well = {"check": "disk", "level": "ok", "words": "80 GB free", "todo": ""}
    black = {"check": "rendering", "level": "failure", "words": "no device", "todo": "mend it"}
    for node, finding in (("n2", black), ("n3", black), ("n3", well), ("n4", well)):
        node_words.leave(run.paths.nodes, node, [well, finding])
    status = look(run)
    assert [(node.node, node.words) for node in status.kept_out] == [("n2", "rendering: no device")]
    assert "Nodes that take no work:\n  n2: rendering: no device\n" in status_page.text(status)
    assert ", nodes kept out: 1" in status_page.line(status)
    assert json.loads(status_page.json_text(status))["kept_out"][0]["node"] == "n2"


def test_many_cells_are_folded(run: HandMade) -> None:
    for number in range(40):
        run.seal("study", f"task_{number:02d}", [1])
    page = status_page.text(look(run))
    assert "task_29" in page and "task_30" not in page
    assert "... and 10 more unfinished cells (--all shows them)" in page
    assert "task_39" in status_page.text(look(run), every_cell=True)


def test_json_is_one_document(busy: HandMade) -> None:
    document = json.loads(status_page.json_text(look(busy)))
    assert document["total"]["done"] == 2 and document["workers_alive"] == 1
    assert document["set_aside"][0]["seed"] == 4


def test_a_dead_process_of_this_machine_is_dead_at_once(run: HandMade) -> None:
    run.seal("study", "put_cup_in_box", [1])
    run.paths.workers.mkdir()
    here = Process.this()
    gone = Process(here.boot_id, here.pid_ns, here.pid, here.start_time + 1)
    Heartbeat(run.paths, "vm-1-dd", ttl=60.0, process=gone).beat(state="running")
    (worker,) = StatusReader(run.paths).look().workers
    assert worker.state == "dead" and not worker.alive


def test_rate_forgets_what_is_long_past(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1, 2, 3])
    old = run.row(manifest, 0, started=NOW - 5000, finished=NOW - 4000)
    new = run.row(manifest, 1, started=NOW - 1000, finished=NOW - 30)
    error = run.row(manifest, 2, "error", started=NOW - 20, finished=NOW - 10)
    run.write(old)
    assert _rate(run) == 0.0
    run.write(new, error)
    assert _rate(run) == pytest.approx(0.1)  # one in ten minutes


def _rate(run: HandMade) -> float:
    """With a worker that lives, so that the minutes count up to now."""
    if not run.paths.workers.exists():
        run.paths.workers.mkdir()
        Heartbeat(run.paths, "vm-1-dd", ttl=1e9).beat(state="running")
    return look(run).per_minute


def test_nobody_works(run: HandMade) -> None:
    run.seal("study", "put_cup_in_box", [1])
    assert "time left unknown: no worker alive" in status_page.text(look(run))


def test_unknown_run(run: HandMade) -> None:
    with pytest.raises(RollpoolError, match=r"status of run 'nosuch': no run in"):
        StatusReader(run.root.run("nosuch"))


def test_live_says_lines_where_the_output_is_a_file(busy: HandMade, tmp_path: Path) -> None:
    out = io.StringIO()
    reader = StatusReader(busy.paths, now=lambda: NOW)
    with status_page.Live(reader.look, out=out):
        cup = busy.seal("study", "put_cup_in_box", [1, 2, 3, 4, 5])
        busy.write(busy.row(cup, 4, finished=NOW - 1, started=NOW - 2), worker="node7-9-ee")
    last = out.getvalue().splitlines()[-1]
    assert last.startswith("3 of 6 episodes done, 1 running, 1 in error, 1 set aside, 1 workers")


def test_live_fails_where_the_run_cannot_be_read(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    reader = StatusReader(run.paths)
    run.paths.manifest(manifest.cell.name, 0, manifest.hash).write_text("{}\n")
    with (
        pytest.raises(RollpoolError, match="changed after it was sealed"),
        status_page.Live(reader.look, out=io.StringIO()) as live,
    ):
        live.wait()


def test_live_ends_when_all_is_finished(run: HandMade) -> None:
    manifest = run.seal("study", "put_cup_in_box", [1])
    run.write(run.row(manifest, 0))
    with status_page.Live(StatusReader(run.paths).look, out=io.StringIO()) as live:
        live.wait()


def test_a_run_that_is_being_sealed(run: HandMade) -> None:
    run.seal("office", "press_bell", [1])
    run.paths.queue.write_text("office press_bell\nstudy put_cup_in_box\nstudy pour\n")
    cell = "study.put_cup_in_box.bench_demo_study_clean"
    beat(run, "node7-1-aa", 2.0, claim=f"{cell}.scan/0/0-3.1")
    beat(run, "node7-2-bb", 2.0, seat=1, claim=f"{cell}.seal-0123456789ab/0/0-0.1")
    beat(run, "node7-3-cc", 2.0, claim=f"{cell}.0123456789ab/0/0-0.1")
    status = look(run)
    assert "sealing   1 of 3 cells by 2 processes" in status_page.text(status)
    assert status_page.line(status).startswith("sealing 1 of 3 cells, ")
    assert json.loads(status_page.json_text(status))["sealing"]["at_work"] == 2


def test_a_run_of_which_nothing_is_sealed_is_not_whole(run: HandMade) -> None:
    run.paths.results.mkdir(parents=True)
    assert status_page.missing(look(run)) == ["all of it: nothing is queued"]
    run.paths.queue.write_text("office press_bell\nstudy pour\n")
    status = look(run)
    assert status_page.missing(status) == [
        "office press_bell: nothing is sealed", "study pour: nothing is sealed",
    ]  # fmt: skip
    assert "time left unknown: nothing is sealed of 2 queued cells" in status_page.text(status)


def test_live_waits_for_what_is_not_sealed_yet(
    run: HandMade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_page, "PLAIN_S", 0.05)
    monkeypatch.setattr(status_page, "WATCH_S", 0.1)
    run.paths.results.mkdir(parents=True)
    run.paths.queue.write_text("study put_cup_in_box\n")
    looks = iter([False, True])

    def look_or_seal() -> Any:
        if next(looks, True):
            run.write(run.row(run.seal("study", "put_cup_in_box", [1]), 0))
        return look(run)

    with status_page.Live(look_or_seal, out=io.StringIO()) as live:
        live.wait()
        assert run.paths.manifests.exists()


def test_nobody_seals_when_all_who_did_are_gone(run: HandMade) -> None:
    run.seal("office", "press_bell", [1])
    run.paths.queue.write_text("office press_bell\nstudy pour\n")
    beat(run, "node7-1-aa", 300.0, claim="study.pour.c.scan/0/0-3.1")
    assert look(run).sealing is None
    assert "queued, but nothing sealed: study pour" in status_page.text(look(run))


def test_every_episode_of_a_worker_of_several_simulators_is_shown(run: HandMade) -> None:
    cup = run.seal("study", "put_cup_in_box", [1, 2, 3])
    run.paths.workers.mkdir(exist_ok=True)
    heart = Heartbeat(run.paths, "node7-1-aa", 60.0, process=ELSEWHERE, host="node7", seats=3)
    for seat in (0, 2):
        heart.beat(seat=seat, state="running", episode=playing(run, cup, seat), step=seat + 5)
    os.utime(run.paths.heartbeat("node7-1-aa"), (NOW - 2, NOW - 2))
    status = look(run)
    assert (status.total.running, status.total.left) == (2, 1)
    page = status_page.text(status)
    assert "seed 1, step 5" in page and "seed 3, step 7" in page
    assert page.count("node7-1-aa") == 1
