"""One starter seals a run; whoever comes later joins what was sealed or is told what differs."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.foundations.settings import Settings, resolve
from harness.paths import Root
from harness.runs.checkpoint import checkpoint_name
from harness.runs.run import Run, open_run, refuse_other_code, refuse_other_weights
from harness.runs.run_record import budgets

Launch = Callable[..., Settings]


def test_creating_and_joining_give_the_same_run(root: Root, settings: Launch) -> None:
    created = open_run(root, settings(), create=True)
    joined = open_run(root, settings(), create=False)
    assert (joined.id, joined.token) == (created.id, created.token)
    assert joined.identity == created.identity
    assert joined.identity["checkpoint"] == {"name": "none", "digest": ""}
    assert created.paths.token.stat().st_mode & 0o777 == 0o600
    assert len(created.token) == 64 and created.token not in repr(created)


def test_resuming_needs_the_name_alone(root: Root, settings: Launch) -> None:
    created = open_run(root, settings(POLICY_NAME="trained", DXVLA_RT_SPP="8"), create=True)
    joined = open_run(root, resolve({"STUDY_RUN": "demo"}, root=root)[0], create=False)
    assert joined.settings.sealed() == created.settings.sealed()
    assert joined.identity == created.identity
    assert joined.policy_dir == root.policy / "trained"


def test_a_run_that_is_not_there_is_made_only_when_asked(root: Root, settings: Launch) -> None:
    with pytest.raises(RollpoolError, match=r"run 'demo': no .*run.json; run: rollpool prepare"):
        open_run(root, settings(), create=False)
    assert not root.run("demo").root.exists()
    with pytest.raises(RollpoolError, match="STUDY_RUN is not set"):
        open_run(root, settings(STUDY_RUN=""), create=True)
    with pytest.raises(RollpoolError, match="BENCH_CONFIG: not set"):
        open_run(root, settings(BENCH_CONFIG=""), create=True)


def test_a_folder_with_a_queue_can_become_a_run(root: Root, settings: Launch) -> None:
    paths = root.run("demo")
    paths.results.mkdir(parents=True)
    paths.queue.write_text("study press_bell\n")
    assert open_run(root, settings(), create=True).paths.queue.read_text() == "study press_bell\n"


def test_a_setting_that_differs_is_refused_naming_both_values(root: Root, settings: Launch) -> None:
    open_run(root, settings(DXVLA_EXEC_ACTIONS="0"), create=True)
    with pytest.raises(RollpoolError) as error:
        open_run(root, settings(DXVLA_EXEC_ACTIONS="20", DXVLA_RT_SPP="8"), create=True)
    assert str(error.value) == (
        "run 'demo': DXVLA_EXEC_ACTIONS is 0 in the run and 20 now; DXVLA_RT_SPP is unset in the "
        "run and 8 now; give the run's values, or choose another STUDY_RUN"
    )


def test_what_moves_no_numbers_may_differ(root: Root, settings: Launch) -> None:
    created = open_run(root, settings(STALL_TIMEOUT="60", EVAL_TEST_NUM="1"), create=True)
    joined = open_run(root, settings(STALL_TIMEOUT="30", EVAL_TEST_NUM="2"), create=True)
    assert joined.id == created.id
    assert joined.settings["STALL_TIMEOUT"] == 30


def test_what_all_workers_must_have_the_same_is_refused_or_taken_from_the_run(
    root: Root, settings: Launch
) -> None:
    open_run(root, settings(LEASE_TTL="30", EVAL_RETRIES="1"), create=True)
    assert open_run(root, settings(), create=False).settings["LEASE_TTL"] == 30
    assert budgets(root.run("demo"), settings()) == (1, 4)
    with pytest.raises(RollpoolError, match=r"EVAL_RETRIES is 1 in the run and 5 now; LEASE_TTL "):
        open_run(root, settings(LEASE_TTL="60", EVAL_RETRIES="5"), create=False)


def test_of_starters_with_different_settings_one_wins(root: Root, settings: Launch) -> None:
    start, runs, refusals = threading.Barrier(6), [], []

    def starter(number: int) -> None:
        launch = settings(DXVLA_RT_SPP=str(number))
        start.wait()
        try:
            runs.append(open_run(root, launch, create=True))
        except RollpoolError as error:
            refusals.append((number, str(error)))

    threads = [threading.Thread(target=starter, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (run,) = runs
    winner = run.settings["DXVLA_RT_SPP"]
    assert len(refusals) == 5
    for number, message in refusals:
        assert f"DXVLA_RT_SPP is {winner} in the run and {number} now" in message


def test_starters_with_the_same_settings_share_one_run(root: Root, settings: Launch) -> None:
    start = threading.Barrier(6)
    runs: list[Run] = []

    def starter() -> None:
        start.wait()
        runs.append(open_run(root, settings(), create=True))

    threads = [threading.Thread(target=starter) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(runs) == 6
    assert len({(run.id, run.token) for run in runs}) == 1


def test_weights_replaced_after_joining_are_refused(root: Root, settings: Launch) -> None:
    run = open_run(root, settings(POLICY_NAME="trained"), create=True)
    refuse_other_weights(run)
    refuse_other_weights(open_run(root, settings(STUDY_RUN="without"), create=True))
    assert run.checkpoint is not None
    run.checkpoint.write_bytes(b"other weights")
    with pytest.raises(RollpoolError, match=r"checkpoint net: its content is sha256:.*began with"):
        refuse_other_weights(run)


def test_another_checkpoint_under_the_same_name_is_refused(root: Root, settings: Launch) -> None:
    created = open_run(root, settings(POLICY_NAME="trained"), create=True)
    assert created.checkpoint == root.checkpoints / "net.safetensors"
    assert created.identity["checkpoint"]["name"] == "net"
    created.checkpoint.write_bytes(b"other weights")
    with pytest.raises(RollpoolError, match=r"checkpoint net: its content is sha256:.*began with"):
        open_run(root, settings(POLICY_NAME="trained"), create=False)
    created.checkpoint.unlink()
    with pytest.raises(RollpoolError, match="checkpoint 'net': not in"):
        open_run(root, settings(POLICY_NAME="trained"), create=False)


def test_an_unknown_policy_is_refused(root: Root, settings: Launch) -> None:
    with pytest.raises(RollpoolError, match=r"policy 'plane'.*pick one of: plain"):
        open_run(root, settings(POLICY_NAME="plane"), create=True)
    assert not root.run("demo").root.exists()


def test_other_code_is_pointed_out(root: Root, settings: Launch) -> None:
    assert open_run(root, settings(), create=True).warnings == ()
    (root.policy / "plain" / "deploy_policy.py").write_text("def get_model(usr_args): return 1\n")
    joined = open_run(root, settings(), create=False)
    assert joined.warnings == ("run 'demo' began with other code; its rows say which ran them",)


def test_other_code_adds_no_rows_unless_asked(root: Root, settings: Launch) -> None:
    run = open_run(root, settings(), create=True)
    refuse_other_code(run)
    (root.policy / "plain" / "deploy_policy.py").write_text("def get_model(usr_args): return 1\n")
    refuse_other_code(open_run(root, settings(), create=False))  # there are no rows to mix
    add_row(run)
    with pytest.raises(RollpoolError, match=r"it began with code \w{12}, this is \w{12}"):
        refuse_other_code(open_run(root, settings(), create=False))
    refuse_other_code(open_run(root, settings(EVAL_CODE_CHANGE="mark"), create=False))


def test_a_shared_run_is_for_its_group(root: Root, settings: Launch) -> None:
    umask = os.umask(0o077)
    try:
        alone = open_run(root, settings(), create=True)
        assert alone.paths.token.stat().st_mode & 0o777 == 0o600
        (root.runs / "ours").mkdir()
        (root.runs / "ours").chmod(0o2770)
        ours = open_run(root, settings(STUDY_RUN="ours"), create=True)
        assert ours.paths.token.stat().st_mode & 0o777 == 0o640
        ours.paths.workers.mkdir()
        assert ours.paths.workers.stat().st_mode & 0o777 == 0o770
    finally:
        os.umask(umask)


def test_a_newer_run_is_not_touched(root: Root, settings: Launch) -> None:
    run = open_run(root, settings(), create=True)
    record = json.loads(run.paths.run_json.read_text()) | {"format": 2}
    run.paths.run_json.write_text(json.dumps(record))
    before = sorted(run.paths.root.rglob("*"))
    with pytest.raises(RollpoolError, match=r"format 2, this toolkit knows 1; update"):
        open_run(root, settings(), create=True)
    assert sorted(run.paths.root.rglob("*")) == before


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b'{"format":"one"}', b'{"format":1,"id":"x"}', b"\xff"]
)
def test_a_damaged_run_is_refused(root: Root, settings: Launch, data: bytes) -> None:
    paths = root.run("demo")
    paths.root.mkdir(parents=True)
    paths.run_json.write_bytes(data)
    with pytest.raises(RollpoolError, match=r"run.json is damaged"):
        open_run(root, settings(), create=True)


def test_running_all_again_is_refused_on_a_run_with_rows(root: Root, settings: Launch) -> None:
    again = settings(EVAL_RESUME_SEEDS="0")
    run = open_run(root, again, create=True)
    file = run.paths.metrics_dir("press_bell", "plain", "c", "w") / "_metrics.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("torn")
    open_run(root, again, create=True)
    file.write_text(ROW + "\n")
    with pytest.raises(RollpoolError, match="it has results already; run: rollpool reset"):
        open_run(root, again, create=True)
    assert open_run(root, again, create=False).id == run.id, "a worker joins a run that is going"


def add_row(run: Run) -> None:
    file = run.paths.metrics_dir("press_bell", "plain", "c", "w") / "_metrics.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(ROW + "\n")


ROW = json.dumps(
    {
        "manifest": "m", "position": 0, "attempt": 1, "worker": "w", "host": "h", "run": "demo",
        "scene": "study", "task": "press_bell", "task_config": "c", "seed": 1,
        "instruction": "Press.", "outcome": "fail", "success": False, "policy": "plain",
        "checkpoint": {}, "simulator": "tabletop", "settings_hash": "", "code_hash": "",
        "started": 0, "finished": 1,
    }
)  # fmt: skip


def test_latest_is_resolved_once(root: Root, settings: Launch) -> None:
    model = root.checkpoints / "mine"
    for step in ("step_1", "step_2"):
        (model / step).mkdir(parents=True)
        (model / step / "weights").write_text(step)
    (model / "latest").symlink_to("step_1")
    launch = settings(POLICY_NAME="trained", CKPT_NAME="mine/latest")
    created = open_run(root, launch, create=True)
    assert created.checkpoint == model / "step_1" and not created.warnings
    assert created.settings["CKPT_NAME"] == created.identity["checkpoint"]["name"] == "mine/step_1"

    (model / "latest").unlink()
    (model / "latest").symlink_to("step_2")
    for joining in (launch, resolve({"STUDY_RUN": "demo"}, root=root)[0]):
        joined = open_run(root, joining, create=False)
        assert joined.checkpoint == model / "step_1"
        (warning,) = joined.warnings
        assert (
            "evaluates mine/step_1, as mine/latest was when it began; that is mine/step_2 now"
            in (warning)
        )
    assert checkpoint_name(root, launch) == "mine/step_1"
    named = settings(POLICY_NAME="trained", CKPT_NAME="mine/step_1")
    assert open_run(root, named, create=False).id == created.id
    with pytest.raises(RollpoolError, match="CKPT_NAME is mine/step_1 in the run and mine/step_2"):
        open_run(root, settings(POLICY_NAME="trained", CKPT_NAME="mine/step_2"), create=False)


def test_a_run_of_another_checkpoint_is_not_joined_as_latest(root: Root, settings: Launch) -> None:
    for name in ("net_1", "net_2"):
        (root.checkpoints / f"{name}.safetensors").write_text(name)
    (root.checkpoints / "latest.safetensors").symlink_to("net_2.safetensors")
    open_run(root, settings(POLICY_NAME="trained", CKPT_NAME="net_1"), create=True)
    with pytest.raises(RollpoolError, match=r"CKPT_NAME is net_1 .* and net_2\.safetensors"):
        open_run(root, settings(POLICY_NAME="trained", CKPT_NAME="latest"), create=True)


def test_what_latest_stands_for(root: Root, tmp_path: Path) -> None:
    model = root.checkpoints / "mine"
    (model / "global_step7" / "pretrained").mkdir(parents=True)
    (model / "latest").write_text("global_step7\n")
    assert root.resolve_latest("mine/latest", "plain") == "mine/global_step7"
    (model / "last").symlink_to(model / "global_step7")
    assert root.resolve_latest("mine/last/pretrained", "plain") == "mine/global_step7/pretrained"
    (model / "latest").write_text("global_step8")
    assert root.resolve_latest("mine/latest", "plain") == "mine/latest", "nothing of that name"
    (model / "latest").write_bytes(b"\xff weights")
    assert root.resolve_latest("mine/latest", "plain") == "mine/latest"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root.checkpoints / "latest").symlink_to(elsewhere)
    assert root.resolve_latest("latest", "plain") == str(elsewhere)
    assert root.find_checkpoint(str(elsewhere), "plain") == elsewhere
    assert root.resolve_latest("net", "plain") == "net"
