"""Every environment variable of the toolkit, declared once.

Validation, the README's table (``variable_table``) and the exports to the children come from
``VARIABLES``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Reader = Literal["toolkit", "simulator", "model", "policy wrapper", "setup"]
Type = Literal["text", "int", "float", "flag", "path", "name or path", "mapping"]


@dataclass(frozen=True)
class Variable:
    """One declaration. ``default`` is the text a user would write; None = unset unless given."""

    name: str
    type: Type
    default: str | None
    reader: Reader
    meaning: str
    unit: str = ""
    moves_numbers: bool = False  # sealed in the run: a later launch that differs is refused
    shared: bool = False  # moves no number, but all workers of a run must have the same
    choices: tuple[str, ...] = ()
    default_of: str = ""  # the default holds only where this is the run's policy
    low: float | None = None
    high: float | None = None
    whole: bool = False  # a path of the node, or one that others read by themselves: never relative


# fmt: off
_DECLARATIONS = (
    Variable("STUDY_RUN", "text", None, "toolkit",
        "run directory under `runs/`: shared lease queue and results"),
    Variable("SIMULATOR", "text", "tabletop", "toolkit",
        "simulator adapter: a name, or `package.module:factory`", moves_numbers=True),
    Variable("SIM_CONFIG", "mapping", None, "toolkit",
        "YAML file with the simulator's own configuration, e.g. a gymnasium environment; its "
        "content is sealed in the run, wherever the file lies", moves_numbers=True),
    Variable("POLICY_NAME", "text", "tinyvla", "toolkit",
        "policy: a folder of `policy/`", moves_numbers=True),
    Variable("CKPT_NAME", "text", None, "toolkit",
        "checkpoint, looked up in `checkpoints/`, `ablation_ckpts/`, "
        "`policy/<policy>/checkpoints/`; unset: the policy's own default", moves_numbers=True),
    Variable("BENCH_CONFIG", "text", None, "toolkit",
        "`clean` or `d6`..`d15` (task_config `bench_demo_<scene>_<CONFIG>`), or a whole "
        "task_config", moves_numbers=True),
    Variable("EVAL_PROFILE", "name or path", None, "toolkit",
        "a named profile (`rollpool list profiles`) or a YAML file of variables; what is "
        "given otherwise beats it"),
    Variable("SEEDS_ROOT", "path", None, "toolkit",
        "seed bank: a directory of `<task>/<task_config>.txt`"),
    Variable("USE_EVAL_SEEDS", "flag", "1", "toolkit",
        "1 = the seeds of the bank; 0 = the first that the simulator's expert solves, from "
        "100000 on, found and sealed before the run"),
    Variable("EVAL_MANIFESTS", "name or path", None, "toolkit",
        "sealed manifests to take over byte for byte instead of asking the simulator: another run "
        "by its name or folder, or a folder like its `manifests`; with `SEEDS_ROOT` those of the "
        "bank's seeds"),
    Variable("EVAL_TEST_NUM", "int", None, "toolkit",
        "seeds per cell: the first N of the bank (clean 5 or 10, clutter 2); unset = all",
        unit="seeds", low=1),
    Variable("EVAL_RESUME_SEEDS", "flag", "1", "toolkit",
        "1 = run only what is missing; 0 is refused on a run that has rows, until "
        "`rollpool reset`"),
    Variable("EVAL_CODE_CHANGE", "text", "refuse", "toolkit",
        "when a run that has rows is gone on with by other code (harness, scripts, policy): "
        "refuse, or mark, where every row and table says so", choices=("refuse", "mark")),
    Variable("EVAL_MINIBATCH", "int", "1", "toolkit",
        "episodes claimed at once, fewer near the end; 0 = the whole cell", unit="episodes", low=0),
    Variable("EVAL_RETRIES", "int", "2", "toolkit",
        "further attempts after an error, before the episode is set aside; one at least after what "
        "another episode on the same model may have done", shared=True, low=0),
    Variable("EVAL_LOST_RETRIES", "int", "4", "toolkit",
        "further attempts after a worker died in the episode; more, since most such deaths "
        "are the node's", shared=True, low=0),
    Variable("EVAL_VIDEO", "text", "all", "toolkit",
        "which episodes keep their video", choices=("all", "failures", "none")),
    Variable("QUEUE_MODE", "text", "lease", "toolkit",
        "how work is claimed", choices=("lease",)),
    Variable("LEASE_TTL", "float", "60", "toolkit",
        "silence after which a worker counts as dead on another host; a worker beats ten "
        "times as often, so nine lost beats or a half-minute stall of the shared filesystem"
        " cost nothing", unit="s", shared=True, low=0.1),
    Variable("STALL_TIMEOUT", "float", "300", "toolkit",
        "no progress before a simulator is killed; above the slowest single step known (a "
        "cold renderer compiling its shaders takes minutes)", unit="s", low=0.1),
    Variable("PER_TASK_TIMEOUT", "float", "1800", "toolkit",
        "wall time of one episode, whatever the batch; 1200 steps, the longest limit of "
        "RoboPRO, at 1.5 s each", unit="s", low=0.1),
    Variable("SIM_RECYCLE_EPISODES", "int", None, "toolkit",
        "a simulator's process ends after so many and a new one goes on, where a simulator leaks "
        "or slows down; unset = one process for all", unit="episodes", low=1),
    Variable("SIM_RECYCLE_MB", "int", None, "toolkit",
        "the same after an episode that left its process with so much memory", unit="MB", low=1),
    Variable("WORKERS_PER_GPU", "int", "1", "toolkit",
        "lease workers per GPU, or per node where there is none; more than 1 is refused on "
        "Blackwell: no MPS there, sharing corrupts the simulator", low=1),
    Variable("SIMS_PER_WORKER", "int", "1", "toolkit",
        "simulators that share a worker's model server; more than 1 is refused on Blackwell, too, "
        "and with `SIM_AS_SERVER`", unit="simulators", low=1, high=64),
    Variable("EVAL_THREADS", "int", "1", "toolkit",
        "threads of a worker's simulator and model processes each; a run that a node of a pool "
        "begins takes that node's share of `--cpus-per-task`", unit="threads", low=1,
        moves_numbers=True),
    Variable("MODEL_MAX_BATCH", "int", "1", "toolkit",
        "simulators that a model server answers in one call, where the policy can "
        "(`policy/README.md`); 1 = one after the other. Sums of a batch may differ in their last "
        "bits: `rollpool batch-check` says by how much, and whether outcomes change",
        unit="simulators", low=1, high=256, moves_numbers=True),
    Variable("MODEL_MAX_WAIT_MS", "float", "50", "toolkit",
        "the longest that simulators wait for another one to be answered with: they do only while "
        "one is expected so soon that all gain by it", unit="ms", low=0, high=1000),
    Variable("DXVLA_ACTION_SMOOTH", "float", "0.7", "policy wrapper",
        "cross-chunk EMA: first action = this x last executed + the rest x raw; 0 disables",
        moves_numbers=True, default_of="dxvla", low=0, high=1),
    Variable("DXVLA_SMOOTH_ROT", "flag", "1", "policy wrapper",
        "1 = smooth xyz and rot6d, 0 = xyz alone", moves_numbers=True, default_of="dxvla"),
    Variable("DXVLA_EXEC_ACTIONS", "int", "0", "policy wrapper",
        "actions executed of each chunk; 0 = all, 20 = receding horizon of a 30-action "
        "chunk", unit="actions", moves_numbers=True, default_of="dxvla", low=0),
    Variable("DXVLA_FAKE_PROPRIO", "flag", "1", "policy wrapper",
        "1 = proprio is the last commanded action", moves_numbers=True, default_of="dxvla"),
    Variable("XVLA_POSED_DA3", "flag", "1", "model",
        "1 = camera extrinsics and intrinsics go to DA3", moves_numbers=True, default_of="dxvla"),
    Variable("XVLA_RGB_INPUT", "flag", "1", "model",
        "1 = RGB input", moves_numbers=True, default_of="dxvla"),
    Variable("XVLA_SKIP_GEOMETRY_REINIT", "flag", "1", "model",
        "1 = keep the trained geometry weights", moves_numbers=True, default_of="dxvla"),
    Variable("XVLA_DA3_NATIVE_INPUT", "flag", None, "model",
        "1 for the K=160 giants", moves_numbers=True),
    Variable("XVLA_DA3_INPUT_H", "int", None, "model",
        "height of DA3's own pictures; unset = as the checkpoint records it", unit="pixels",
        moves_numbers=True, low=1),
    Variable("XVLA_DA3_INPUT_W", "int", None, "model",
        "their width", unit="pixels", moves_numbers=True, low=1),
    Variable("DXVLA_GEOSTACK_STEP", "int", None, "model",
        "step of the GeoStack reload (20000)", moves_numbers=True, low=0),
    Variable("GIANT_CODE_DIR", "path", None, "model",
        "model code directory; sets `DA3_XVLA_ROOT`"),
    Variable("GIANT_KEEP", "text", None, "toolkit",
        "staged checkpoints to keep on a node, names separated by commas; unset = as many as "
        "`DXVLA_LOCAL_GB` allows, the most recently used ones"),
    Variable("GIANT_BACKBONES", "text", None, "toolkit",
        "Hugging Face models that the checkpoint needs, staged with it: `owner/name`, "
        "separated by commas; or `backbones` in `deploy_policy.yml`"),
    Variable("DXVLA_LOCAL", "path", "/tmp/dxvla_local", "toolkit",
        "folder on the node's own disk to which environments, weights and assets are staged",
        whole=True),
    Variable("DXVLA_LOCAL_GB", "float", "40", "toolkit",
        "cap of the staged weights; those used longest ago go first", unit="GB", low=0),
    Variable("EVAL_DOCTOR", "flag", "1", "toolkit",
        "1 = a node is checked (`rollpool doctor`) first; one that fails takes no work"),
    Variable("DXVLA_STAGE", "flag", "1", "toolkit",
        "1 = a node stages to `DXVLA_LOCAL` first and runs from there; 0 = it runs from the "
        "shared filesystem"),
    Variable("DA3_XVLA_ROOT", "path", None, "model",
        "root of the model's code; from `GIANT_CODE_DIR` where that is given"),
    Variable("DXVLA_SAPIEN_B1", "flag", "1", "simulator",
        "1 = SAPIEN 3.0.0b1, needed for RoboPRO's office and kitchen physics",
        moves_numbers=True, default_of="dxvla"),
    Variable("DXVLA_DENOISER", "text", "optix", "simulator",
        "ray-tracing denoiser; `oidn` is a silent no-op on Blackwell",
        moves_numbers=True, choices=("optix", "oidn", "none"), default_of="dxvla"),
    Variable("DXVLA_RT_SPP", "int", "32", "simulator",
        "ray-trace samples per pixel", moves_numbers=True, default_of="dxvla", low=1),
    Variable("DXVLA_PRIMARY_CAM", "text", "countertop", "simulator",
        "main camera of the policy", moves_numbers=True, default_of="dxvla"),
    Variable("DXVLA_VIDEO_CAM", "text", "countertop_camera", "simulator",
        "camera of the videos", default_of="dxvla"),
    Variable("ROBOTWIN_ROOT", "path", None, "simulator",
        "a RoboTwin checkout (`SIMULATOR=robotwin`), where `SIM_CONFIG` names none"),
    Variable("BENCH_ROOT", "path", None, "simulator",
        "RoboPRO's `benchmark` folder, where `SIM_CONFIG` names none"),
    Variable("ROBOTWIN_BENCH_TASK", "text", None, "simulator",
        "`bench` = the checkout is RoboPRO, where `SIM_CONFIG` says nothing", choices=("bench",)),
    Variable("CUROBO_IK_FAIL_RETURN", "text", None, "simulator",
        "passed on to a RoboPRO checkout; unset = its own default", moves_numbers=True),
    Variable("EVAL_FAST_CTRL", "flag", "1", "simulator",
        "passed on to a RoboPRO checkout", moves_numbers=True, default_of="dxvla"),
    Variable("VK_ICD_FILENAMES", "text", None, "simulator",
        "Vulkan driver files; unset = found"),
    Variable("WARP_CACHE_PATH", "path", None, "simulator",
        "Warp's kernel cache; keep it on the node's own disk", whole=True),
    Variable("CUDA_CACHE_PATH", "path", None, "simulator",
        "CUDA's kernel cache; keep it on the node's own disk", whole=True),
    Variable("POLICY_SERVER", "text", None, "model",
        "`host:port` of the server that the policies `openpi`, `robotwin_tcp` and `xvla_http` ask; "
        "unset = `server` in `deploy_policy.yml`"),
    Variable("MODEL_SERVER_BIND", "text", "127.0.0.1", "toolkit",
        "address the model server listens on; `0.0.0.0` for simulators on other nodes"),
    Variable("MODEL_SERVER_HOST", "text", "127.0.0.1", "toolkit",
        "nodes whose model servers (`rollpool serve` there) this node's simulators use, separated "
        "by commas: the least loaded one, and another where one is lost; loopback = each worker "
        "starts its own"),
    Variable("SIM_AS_SERVER", "flag", "0", "toolkit",
        "1 = reversed roles: the simulator listens and the model comes to it"),
    Variable("MODEL_AS_CLIENT", "flag", "0", "toolkit",
        "1 = reversed roles: the model goes to the simulators; with `SIM_AS_SERVER=1` each "
        "worker has its own, alone it is for `rollpool serve`"),
    Variable("SIM_SERVER_HOST", "text", None, "toolkit",
        "reversed roles: address the simulator listens on (loopback), and the model looks for it"),
    Variable("SIM_SERVER_PORT", "int", None, "toolkit",
        "reversed roles: its port; unset = a free one, published in the run", low=1, high=65535),
    Variable("EVAL_ROOT", "path", None, "toolkit",
        "root of runs, checkpoints and policies; `env.sh` sets it to its own folder"),
    Variable("RUNS_ROOT", "path", None, "toolkit",
        "where the run directories are; unset = `$EVAL_ROOT/runs`. Users of one read-only "
        "installation each have their own"),
    Variable("BUNDLE", "path", None, "toolkit",
        "folder that holds `seeds/`; `env.sh` sets it to `EVAL_ROOT`"),
    Variable("HF_HOME", "path", None, "model",
        "Hugging Face's cache", whole=True),
    Variable("SIM_PY", "path", None, "toolkit",
        "Python of the simulator, whichever it is; unset = `ROBOTWIN_PY` for tabletop, robotwin "
        "and one of your own, else `envs/<its environment>/bin/python`. A user's own is used as "
        "it is"),
    Variable("MODEL_PY", "path", None, "toolkit",
        "Python of the model, whichever it is; unset = that of the environment which `env:` in "
        "`deploy_policy.yml` names, else `XVLA_PY`. A user's own is used as it is"),
    Variable("XVLA_PY", "path", None, "toolkit",
        "Python of the model; unset = `envs/model/bin/python`. A user's own is used as it "
        "is"),
    Variable("ROBOTWIN_PY", "path", None, "toolkit",
        "Python of tabletop and robotwin; unset = `envs/tabletop/bin/python`. A user's own is "
        "used as it is"),
    Variable("ROLLPOOL_ENVS", "path", None, "setup",
        "folder of the environments; unset = `$EVAL_ROOT/envs`"),
    Variable("ROLLPOOL_PYTHON", "text", None, "setup",
        "Python to build the environments with; unset = the first fit one found"),
    Variable("ROLLPOOL_TORCH", "text", None, "setup",
        "another torch requirement or wheel for the environments `model` and `maniskill`"),
)
# fmt: on

#: Name -> declaration, in the order of the table.
VARIABLES: dict[str, Variable] = {v.name: v for v in _DECLARATIONS}
