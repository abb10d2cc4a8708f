"""Videos: whole under their name, or not there; never a reason for an episode to end."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from pathlib import Path

import numpy as np
import pytest

from harness.episodes.episode import run_episode
from harness.episodes.video import VideoWriter, find_ffmpeg, remove_abandoned
from tests.episode.test_episode import episode_of
from tests.fakes.models import FakeModel
from tests.fakes.pointsim import STEP_LIMIT, PointSim

FFMPEG = find_ffmpeg() or "no ffmpeg found"


def frames_in(path: Path) -> int:
    """Counted by decoding every one of them."""
    command = [FFMPEG, "-v", "error", "-i", str(path), "-f", "null", "-progress", "pipe:1", "-"]
    report = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return int(re.findall(r"^frame=(\d+)", report, re.MULTILINE)[-1])


def encoders_of_this_process() -> list[str]:
    threads = Path("/proc/self/task").iterdir()
    children = [pid for thread in threads for pid in (thread / "children").read_text().split()]
    names = [Path("/proc", pid, "comm").read_text().strip() for pid in children]
    return [name for name in names if name.startswith("ffmpeg")]


def picture(number: int, height: int = 48, width: int = 64) -> np.ndarray:
    return np.full((height, width, 3), number * 7 % 256, np.uint8)


def script(tmp_path: Path, body: str) -> str:
    """A stand-in for ffmpeg."""
    path = tmp_path / "ffmpeg"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def test_every_frame_is_in_the_file(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "new" / "a.mp4", FFMPEG)
    for number in range(25):
        writer.add(picture(number))
    assert writer.finish() == tmp_path / "new" / "a.mp4"
    assert frames_in(tmp_path / "new" / "a.mp4") == 25
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["a.mp4"]


def test_odd_sides_and_a_path_with_spaces(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a b.c.mp4", FFMPEG)
    writer.add(picture(1, 47, 33))
    assert writer.finish() is not None and frames_in(tmp_path / "a b.c.mp4") == 1


def test_until_it_is_whole_it_has_no_name(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", FFMPEG)
    for number in range(25):
        writer.add(picture(number))
        assert not (tmp_path / "a.mp4").exists()
    writer.discard()
    writer.discard()
    assert list(tmp_path.iterdir()) == []


def test_no_frame_no_file(tmp_path: Path) -> None:
    assert VideoWriter(tmp_path / "a.mp4", FFMPEG).finish() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("exit 3", "ffmpeg"),  # dead at once
        ("head -c 20000 > /dev/null; exit 1", "ffmpeg"),  # dead in the middle
        ("cat > /dev/null", "None of 400 frames"),  # ends well, and cannot say what it wrote
        ("cat > /dev/null; echo frame=399; echo progress=end", "399 of 400 frames"),
        ("cat > /dev/null; echo frame=400; echo progress=end", "No such file"),
    ],
)
def test_a_bad_encoder_is_noted_and_leaves_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], body: str, says: str
) -> None:
    writer = VideoWriter(tmp_path / "out" / "a.mp4", script(tmp_path, body))
    for number in range(400):
        writer.add(picture(number))
    assert writer.finish() is None
    assert list((tmp_path / "out").iterdir()) == []
    assert says in capfd.readouterr().err


def test_a_frozen_encoder_does_not_hold_the_episode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.episodes.video.FRAME_DEADLINE_S", 0.05)
    monkeypatch.setattr("harness.episodes.video.FINISH_DEADLINE_S", 0.05)
    writer = VideoWriter(tmp_path / "a.mp4", script(tmp_path, "exec sleep 600"))
    for number in range(100):
        writer.add(picture(number, 480, 640))
    assert writer.finish() is None


def test_no_such_encoder(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", str(tmp_path / "nowhere"))
    writer.add(picture(1))
    assert writer.finish() is None


def test_a_frame_of_another_size_spoils_the_video_alone(tmp_path: Path) -> None:
    writer = VideoWriter(tmp_path / "a.mp4", FFMPEG)
    writer.add(picture(1))
    writer.add(picture(1, 24, 32))
    assert writer.finish() is None and list(tmp_path.iterdir()) == []


def test_what_a_killed_writer_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    host = os.uname().nodename.partition(".")[0]
    for name in (
        f".a.{host}-{gone.pid}.part.mp4",
        f".b.{host}-{os.getpid()}.part.mp4",
        f".c.elsewhere-{gone.pid}.part.mp4",
        "d.mp4",
    ):
        (tmp_path / name).touch()
    remove_abandoned(tmp_path)
    assert {p.name[:2] for p in tmp_path.iterdir()} == {".b", ".c", "d."}
    remove_abandoned(tmp_path, owner_dead=True)
    assert [p.name for p in tmp_path.iterdir()] == ["d.mp4"]


def test_an_episode_is_filmed_from_reset_to_the_end(tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"
    result = run_episode(
        PointSim(), FakeModel(), episode_of("never_succeed"), video=video, ffmpeg=FFMPEG
    )
    assert result["video"] == str(video)
    assert frames_in(video) == STEP_LIMIT // 2 + 1  # 20 Hz at 10 frames a second, and the first


def test_the_last_picture_is_the_moment_of_success(tmp_path: Path) -> None:
    video = tmp_path / "a.mp4"
    steps = []
    for seed in range(6):
        result = run_episode(
            PointSim(), FakeModel(), episode_of("reach_goal", seed), video=video, ffmpeg=FFMPEG
        )
        steps.append(result["steps"])
        assert frames_in(video) == (result["steps"] + 1) // 2 + 1
    assert any(count % 2 for count in steps), "no episode ended between two frames"


def test_filming_changes_nothing_but_time(tmp_path: Path) -> None:
    def of(video: Path | None) -> dict[str, object]:
        result = run_episode(
            PointSim(), FakeModel(), episode_of("reach_goal"), video=video, ffmpeg=FFMPEG
        )
        return {k: v for k, v in result.items() if k not in ("video", "profile") and k[-2:] != "_s"}

    assert of(None) == of(tmp_path / "a.mp4")


@pytest.mark.parametrize(
    ("task", "kept"), [("reach_goal", False), ("never_succeed", True), ("raise_in_step", False)]
)
def test_videos_of_failures_only(tmp_path: Path, task: str, kept: bool) -> None:
    result = run_episode(
        PointSim(),
        FakeModel(),
        episode_of(task),
        video=tmp_path / "a.mp4",
        ffmpeg=FFMPEG,
        only_failures=True,
    )
    assert (result["video"] is not None) == kept
    assert encoders_of_this_process() == []
    assert [p.name for p in tmp_path.iterdir()] == (["a.mp4"] if kept else [])


@pytest.mark.parametrize("ffmpeg", [None, "/nowhere/ffmpeg", "/bin/false"])
def test_without_an_encoder_the_episode_goes_on(tmp_path: Path, ffmpeg: str | None) -> None:
    result = run_episode(
        PointSim(), FakeModel(), episode_of("reach_goal"), video=tmp_path / "a.mp4", ffmpeg=ffmpeg
    )
    assert result["outcome"] == "success" and result["video"] is None
    assert list(tmp_path.iterdir()) == []


def test_without_cameras_there_is_no_video(tmp_path: Path) -> None:
    sim = PointSim(cameras=False)
    result = run_episode(
        sim, FakeModel(), episode_of("reach_goal"), video=tmp_path / "a.mp4", ffmpeg=FFMPEG
    )
    assert result["outcome"] == "success" and result["video"] is None


def test_no_room_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("harness.episodes.video.tempfile.TemporaryFile", full)
    result = run_episode(
        PointSim(), FakeModel(), episode_of("reach_goal"), video=tmp_path / "a.mp4", ffmpeg=FFMPEG
    )
    assert result["outcome"] == "success" and result["video"] is None


def test_a_folder_that_cannot_be_spares_the_episode(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    video = tmp_path / "file" / "a.mp4"
    result = run_episode(
        PointSim(), FakeModel(), episode_of("reach_goal"), video=video, ffmpeg=FFMPEG
    )
    assert result["outcome"] == "success" and result["video"] is None


def test_no_video_is_kept_of_an_episode_that_ends_in_an_error(tmp_path: Path) -> None:
    class Broken(PointSim):
        def state_hash(self) -> str:
            raise RuntimeError("the physics are gone")

    result = run_episode(
        Broken(), FakeModel(), episode_of("reach_goal"), video=tmp_path / "a.mp4", ffmpeg=FFMPEG
    )
    assert result["outcome"] == "error" and list(tmp_path.iterdir()) == []
