"""Where a value comes from, what is refused, and what a user is told."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest

from harness.errors import RollpoolError
from harness.foundations.gpus import Gpu, parse
from harness.foundations.misspellings import PREFIXES
from harness.foundations.settings import EXPLICIT, Settings, find_root, resolve
from harness.foundations.variables import VARIABLES
from harness.foundations.yaml_files import load_profile
from harness.paths import CODE, Root

GB10 = Gpu("NVIDIA GB10", (12, 1))
H200 = Gpu("NVIDIA H200", (9, 0))


@pytest.fixture
def root(tmp_path: Path) -> Root:
    policy = tmp_path / "policy" / "smooth"
    policy.mkdir(parents=True)
    (policy / "deploy_policy.yml").write_text("checkpoint: net\naction_smooth: 0.3\nchunk: 30\n")
    plain = tmp_path / "policy" / "tinyvla"  # stands before the one that ships, with its knobs
    plain.mkdir()
    (plain / "deploy_policy.yml").write_text("chunk: 30\n")
    return Root(tmp_path)


def settings(root: Root, **environ: str) -> Settings:
    return resolve(environ, root=root, gpus=list)[0]


def refused(root: Root, environ: Mapping[str, str], gpus: list[Gpu] | None = None) -> str:
    with pytest.raises(RollpoolError) as error:
        resolve(environ, root=root, gpus=lambda: gpus or [])
    return str(error.value)


def test_the_first_of_the_five_sources_wins(root: Root, tmp_path: Path) -> None:
    profile = tmp_path / "mine.yml"
    profile.write_text("POLICY_NAME: smooth\nDXVLA_ACTION_SMOOTH: 0.4\nEVAL_RETRIES: 3\n")
    environ = {"EVAL_PROFILE": str(profile), "EVAL_RETRIES": "4", "EVAL_MINIBATCH": "5"}
    found, _ = resolve(environ, {"EVAL_MINIBATCH": "6"}, root)
    shown = {name: (found[name], found.sources[name]) for name in found.values}
    assert shown["EVAL_MINIBATCH"] == (6, "command line")
    assert shown["EVAL_RETRIES"] == (4, "environment")
    assert shown["DXVLA_ACTION_SMOOTH"] == (0.4, "profile")
    assert shown["CKPT_NAME"] == ("net", "policy")
    assert shown["EVAL_LOST_RETRIES"] == (4, "default")


def test_the_wrappers_defaults_belong_to_dxvla(root: Root) -> None:
    assert settings(root).knobs() == {}
    assert settings(root, POLICY_NAME="smooth").knobs() == {"action_smooth": 0.3}
    assert settings(root, POLICY_NAME="dxvla").knobs() == {
        "action_smooth": 0.7, "smooth_rot": True, "exec_actions": 0, "fake_proprio": True,
    }  # fmt: skip


def test_an_empty_value_is_an_unset_one(root: Root) -> None:
    assert settings(root, EVAL_TEST_NUM="")["EVAL_TEST_NUM"] is None


def test_what_moves_numbers_is_sealed_and_hashed(root: Root) -> None:
    one = settings(root, BENCH_CONFIG="clean")
    assert one.sealed() == {
        "SIMULATOR": "tabletop", "POLICY_NAME": "tinyvla", "BENCH_CONFIG": "clean",
        "EVAL_THREADS": 1, "MODEL_MAX_BATCH": 1,
    }  # fmt: skip
    assert one.hash() == settings(root, BENCH_CONFIG="clean", EVAL_TEST_NUM="5").hash()
    assert one.hash() != settings(root, BENCH_CONFIG="d6").hash()


def test_joining_takes_the_runs_values_where_none_were_given(root: Root) -> None:
    sealed = settings(root, BENCH_CONFIG="d6", POLICY_NAME="dxvla").sealed()
    joined = settings(root, DXVLA_RT_SPP="64").joining(sealed)
    assert joined["POLICY_NAME"] == "dxvla"
    assert joined["DXVLA_RT_SPP"] == 64
    assert joined["DXVLA_VIDEO_CAM"] == "countertop_camera"
    assert joined.sealed() == {**sealed, "DXVLA_RT_SPP": 64}
    assert joined.sources["POLICY_NAME"] not in EXPLICIT


def test_children_get_every_value_and_the_names_that_are_not_ours(root: Root) -> None:
    found, warnings = resolve({"EVAL_SECRET_THING": "hush", "HF_TOKEN": "hush"}, root=root)
    exports = found.exports()
    assert exports["USE_EVAL_SEEDS"] == "1"
    assert exports["EVAL_SECRET_THING"] == "hush"
    assert "EVAL_TEST_NUM" not in exports and "HF_TOKEN" not in exports
    assert warnings == ["EVAL_SECRET_THING is not a variable of the toolkit; passed on as it is"]
    assert "hush" not in repr(found)


def test_paths_are_the_users_or_the_roots(root: Root, tmp_path: Path) -> None:
    found = settings(root, SEEDS_ROOT="seeds/mine", GIANT_CODE_DIR="/code/giant")
    assert found["SEEDS_ROOT"] == tmp_path / "seeds" / "mine"
    assert found["DA3_XVLA_ROOT"] == Path("/code/giant")
    assert found["ROBOTWIN_PY"] == tmp_path / "envs" / "tabletop" / "bin" / "python"
    assert settings(root, ROBOTWIN_PY="/conda/python")["ROBOTWIN_PY"] == Path("/conda/python")
    assert find_root({"EVAL_ROOT": str(tmp_path)}).path == tmp_path
    assert find_root({}).path == CODE


def test_where_everything_lies_is_found_in_one_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found, _ = resolve({"EVAL_ROOT": "installation", "RUNS_ROOT": "new/runs"}, gpus=list)
    assert found["EVAL_ROOT"] == found.root.path == tmp_path / "installation"
    assert found["RUNS_ROOT"] == found.root.runs == tmp_path / "new" / "runs"
    assert found.exports()["RUNS_ROOT"] == str(tmp_path / "new" / "runs")
    profile = tmp_path / "mine.yml"
    profile.write_text("RUNS_ROOT: elsewhere\n")
    assert "known before a profile is read" in refused(found.root, {"EVAL_PROFILE": "mine.yml"})


@pytest.mark.parametrize("name", [v.name for v in VARIABLES.values() if v.type == "path"])
def test_a_path_is_the_same_in_every_process(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if VARIABLES[name].whole:
        assert "not a whole path" in refused(root, {name: "here"})
    else:
        assert settings(root, **{name: "here"})[name].is_absolute()


def test_the_simulator_and_the_policy_say_which_python_is_theirs(
    root: Root, tmp_path: Path
) -> None:
    def pythons(**environ: str) -> tuple[str, str]:
        found = settings(root, ROLLPOOL_ENVS="/e", ROBOTWIN_PY="/r", XVLA_PY="/x", **environ)
        return str(found["SIM_PY"]), str(found["MODEL_PY"])

    assert pythons() == pythons(SIMULATOR="robotwin") == ("/r", "/x")
    assert pythons(SIMULATOR="my.own:factory") == ("/r", "/x")
    assert pythons(SIMULATOR="metaworld") == ("/e/metaworld/bin/python", "/x")
    folder = tmp_path / "policy" / "pi"
    folder.mkdir(parents=True)
    (folder / "deploy_policy.yml").write_text("policy_name: pi\nenv: openpi\n")
    assert pythons(POLICY_NAME="pi") == ("/r", "/e/openpi/bin/python")
    own = pythons(POLICY_NAME="pi", SIMULATOR="libero", SIM_PY="/s", MODEL_PY="/m")
    assert own == ("/s", "/m")


def test_the_simulators_configuration_is_sealed_by_its_content(root: Root, tmp_path: Path) -> None:
    file, same, other = (tmp_path / name for name in ("a.yml", "b.yml", "c.yml"))
    file.write_text("tasks: {push: {id: gym_pusht/PushT-v0, size: [96, 96]}}\n")
    same.write_text('# the same\ntasks:\n  push: {"size": [96, 96], "id": gym_pusht/PushT-v0}\n')
    other.write_text("tasks: {push: {id: gym_pusht/PushT-v0, size: [64, 64]}}\n")
    one = settings(root, SIM_CONFIG=str(file))
    assert one["SIM_CONFIG"]["tasks"]["push"]["size"] == [96, 96]
    assert one.hash() == settings(root, SIM_CONFIG=str(same)).hash()
    assert one.hash() != settings(root, SIM_CONFIG=str(other)).hash()

    exported = one.exports()["SIM_CONFIG"]
    assert settings(root, SIM_CONFIG=exported)["SIM_CONFIG"] == one["SIM_CONFIG"]
    assert settings(root).joining(one.sealed())["SIM_CONFIG"] == one["SIM_CONFIG"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n- b\n", "not a mapping"),
        ("began: 2026-11-29\n", "not plain values"),
        ("a: {b\n", "not a YAML file"),
        ("1: a\n", "the name 1 is no text"),
    ],
)
def test_a_configuration_that_is_no_mapping_of_plain_values_is_refused(
    root: Root, tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "a.yml").write_text(text)
    assert message in refused(root, {"SIM_CONFIG": str(tmp_path / "a.yml")})


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("EVAL_TESTNUM", "EVAL_TEST_NUM"),
        ("EVAL_TEST_NUMS", "EVAL_TEST_NUM"),
        ("SEED_ROOT", "SEEDS_ROOT"),
        ("STUDYRUN", "STUDY_RUN"),
        ("CKPT_NAEM", "CKPT_NAME"),
        ("WORKER_PER_GPU", "WORKERS_PER_GPU"),
        ("DXVLA_EXEC_ACTION", "DXVLA_EXEC_ACTIONS"),
        ("LEASE_TLL", "LEASE_TTL"),
        ("MODEL_MAX_WAIT", "MODEL_MAX_WAIT_MS"),
        ("SIM_RECYCLE", "SIM_RECYCLE_EPISODES or SIM_RECYCLE_MB"),
    ],
)
def test_a_misspelling_is_refused_with_what_was_meant(root: Root, name: str, meant: str) -> None:
    assert f"variable {name}: no such variable; did you mean {meant}?" in refused(root, {name: "x"})


def test_names_of_others_are_nobodys_business(root: Root) -> None:
    environ = {"PATH": "/bin", "HOME": "/root", "SLURM_JOB_ID": "1", "HF_HUB_OFFLINE": "1"}
    assert resolve(environ, root=root)[1] == []


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"EVAL_TEST_NUM": "five"}, "EVAL_TEST_NUM=five (environment): not a whole number"),
        ({"EVAL_TEST_NUM": "0"}, "EVAL_TEST_NUM=0 (environment): out of range"),
        ({"LEASE_TTL": "nan"}, "LEASE_TTL=nan (environment): out of range"),
        ({"STALL_TIMEOUT": "inf"}, "STALL_TIMEOUT=inf (environment): out of range"),
        ({"DXVLA_ACTION_SMOOTH": "1.5"}, "set it to a number from 0 to 1"),
        ({"USE_EVAL_SEEDS": "yes"}, "USE_EVAL_SEEDS=yes (environment): neither 0 nor 1"),
        ({"EVAL_VIDEO": "some"}, "no such choice; set it to all or failures or none"),
        ({"QUEUE_MODE": "redis"}, "no such choice; set it to lease"),
        ({"SIM_AS_SERVER": "1", "MODEL_SERVER_HOST": "n1"}, "n1 says that the model listens"),
    ],
)
def test_a_value_that_cannot_be_is_refused(
    root: Root, environ: dict[str, str], message: str
) -> None:
    assert message in refused(root, environ)


def test_sharing_a_blackwell_gpu_is_refused(root: Root) -> None:
    message = refused(root, {"WORKERS_PER_GPU": "2"}, [GB10])
    assert message == (
        "WORKERS_PER_GPU=2: NVIDIA GB10 is a Blackwell GPU: no MPS there, sharing corrupts the "
        "simulator; set it to 1"
    )
    for gpus in (list, lambda: [H200]):
        assert resolve({"WORKERS_PER_GPU": "2"}, root=root, gpus=gpus)[1] == []


def test_oidn_on_blackwell_is_warned_about(root: Root) -> None:
    environ = {"DXVLA_DENOISER": "oidn"}
    (warning,) = resolve(environ, root=root, gpus=lambda: [GB10])[1]
    assert "silent no-op on NVIDIA GB10" in warning
    assert resolve(environ, root=root, gpus=lambda: [H200])[1] == []


def test_gpus_are_asked_only_where_it_matters(root: Root) -> None:
    def asked() -> list[Gpu]:
        raise AssertionError("nvidia-smi takes a second")

    resolve({"WORKERS_PER_GPU": "1"}, root=root, gpus=asked)


def test_what_nvidia_smi_says_is_understood() -> None:
    text = "NVIDIA GB10, 12.1\nNVIDIA H200, 9.0\nNo devices were found\n"
    assert parse(text) == [GB10, H200]
    assert [gpu.blackwell for gpu in parse(text)] == [True, False]


@pytest.mark.parametrize("profile", sorted((CODE / "harness" / "profiles").glob("*.yml")))
def test_a_shipped_profile_is_valid(root: Root, profile: Path) -> None:
    found, warnings = resolve({"EVAL_PROFILE": profile.stem}, root=root, gpus=lambda: [GB10])
    assert warnings == []
    assert {found.sources[name] for name in load_profile(root, profile.stem)} == {"profile"}


def test_the_k320_reference_is_the_published_one(root: Root) -> None:
    found = settings(root, EVAL_PROFILE="k320_clean_reference")
    assert found.sealed() == {
        "SIMULATOR": "robotwin", "POLICY_NAME": "dxvla", "CKPT_NAME": "da3-xvla-k320-ckpt90k",
        "BENCH_CONFIG": "clean", "DXVLA_SAPIEN_B1": True, "DXVLA_DENOISER": "optix",
        "DXVLA_RT_SPP": 32, "XVLA_POSED_DA3": True, "XVLA_RGB_INPUT": True,
        "XVLA_SKIP_GEOMETRY_REINIT": True, "DXVLA_FAKE_PROPRIO": True, "DXVLA_ACTION_SMOOTH": 0.7,
        "DXVLA_SMOOTH_ROT": True, "DXVLA_EXEC_ACTIONS": 0, "EVAL_THREADS": 1,
        "DXVLA_PRIMARY_CAM": "countertop", "MODEL_MAX_BATCH": 1,
        "EVAL_FAST_CTRL": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("EVAL_TESTNUM: 5\n", "EVAL_TESTNUM: no such variable; pick one of: EVAL_TEST_NUM"),
        ("- clean\n", "not a mapping"),
        ("a: [\n", "not a YAML file"),
        ("EVAL_TEST_NUM: five\n", "EVAL_TEST_NUM=five (profile): not a whole number"),
        ("SIM_CONFIG: {size: .nan}\n", "SIM_CONFIG (profile): not plain values"),
        ("BENCH_CONFIG: {day: 2026-01-01}\n", "BENCH_CONFIG (profile): not plain values"),
    ],
)
def test_a_bad_profile_is_refused(root: Root, tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "mine.yml"
    file.write_text(text)
    assert message in refused(root, {"EVAL_PROFILE": str(file)})


def test_a_relative_path_is_the_user_s_else_the_root_s_and_the_same_everywhere(
    root: Root, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    (here / "old").mkdir(parents=True)
    (here / "mine.yml").write_text("SEEDS_ROOT: old\nSIM_CONFIG: {size: 1}\n")
    (tmp_path / "shared.yml").write_text("size: 2\n")
    monkeypatch.chdir(here)
    given = {"EVAL_PROFILE": "mine.yml", "EVAL_MANIFESTS": "./old", "SIM_CONFIG": "shared.yml"}
    found = settings(root, **given)
    assert found["EVAL_PROFILE"] == str(here / "mine.yml")
    assert found["EVAL_MANIFESTS"] == str(here / "old") and found["SEEDS_ROOT"] == here / "old"
    assert found["SIM_CONFIG"] == {"size": 2}
    monkeypatch.chdir(tmp_path)
    assert settings(root, **found.exports()).values == found.values
    assert settings(root, EVAL_MANIFESTS="old")["EVAL_MANIFESTS"] == "old", "a run's name"


def test_an_unknown_profile_names_those_there_are(root: Root) -> None:
    assert "pick one of: k320_clean_reference" in refused(root, {"EVAL_PROFILE": "k320_clean"})


def test_nobody_else_reads_the_toolkits_variables() -> None:
    ours = {name for name in VARIABLES if name.startswith(PREFIXES)}
    for file in sorted((CODE / "harness").rglob("*.py")):
        if file.name == "settings.py":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = _environment_name(node)
            if (
                "simulators" in file.parts
                and name in ours
                and VARIABLES[name].reader == "simulator"
            ):
                continue  # the simulator it is for, in its own process
            assert name not in ours, f"{file}:{getattr(node, 'lineno', 0)} reads {name}"


def _environment_name(node: ast.AST) -> str | None:
    """The variable in ``os.environ[name]``, ``os.environ.get(name)`` or ``os.getenv(name)``."""
    key: ast.AST | None = None
    if isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("environ"):
        key = node.slice
    elif isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        key = node.args[0] if called.endswith(("environ.get", "getenv")) else None
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
