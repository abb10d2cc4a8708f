"""Names in the environment that look like the toolkit's variables and are none.

Promises: a name so close to a variable's that it was meant for it is refused with what was meant,
since a setting that nobody reads moves numbers in silence; what looks like the toolkit's otherwise
is passed on to the children; all others are nobody's business.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import RollpoolError
from harness.foundations.variables import VARIABLES

#: A name that begins like this is the toolkit's or its wrappers': an unknown one is looked at.
PREFIXES = (
    "EVAL_", "USE_EVAL_", "DXVLA_", "XVLA_", "DA3_XVLA_", "BENCH_", "SEEDS_", "LEASE_", "STALL_",
    "PER_TASK_", "GIANT_", "STUDY_", "CKPT_", "POLICY_", "SIM_", "SIMS_", "SIMULATOR",
    "WORKERS_",
    "MODEL_SERVER_", "MODEL_AS_", "MODEL_MAX_", "QUEUE_", "CUROBO_", "ROLLPOOL_", "ROBOTWIN_",
    "RUNS_",
)  # fmt: skip


def unknown_names(environ: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """Names like the toolkit's that are not declared: refuse misspellings, pass on the rest."""
    passed_on: dict[str, str] = {}
    warnings = []
    ours = [name for name in VARIABLES if name.startswith(PREFIXES)]
    for name in sorted(set(environ) - set(VARIABLES)):
        like_ours = name.startswith(PREFIXES)
        bound = 2 if like_ours and len(name) > 10 else 1
        near = [
            known for known in ours
            if _distance(name, known, bound) <= bound or known.startswith(f"{name}_")
        ]  # fmt: skip
        if near and (like_ours or len(name) >= 8):
            raise RollpoolError(
                f"variable {name}", "no such variable",
                f"did you mean {' or '.join(near)}? unset {name} if not",
            )  # fmt: skip
        if like_ours:
            passed_on[name] = environ[name]
            warnings.append(f"{name} is not a variable of the toolkit; passed on as it is")
    return passed_on, warnings


def _distance(a: str, b: str, bound: int) -> int:
    """Edits (insert, delete, replace, swap neighbours) between two names; > bound cut short."""
    if abs(len(a) - len(b)) > bound:
        return bound + 1
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and y == a[i - 2]:
                row[j] = min(row[j], last[j - 2] + 1)
        if min(row) > bound:
            return bound + 1
    return row[-1]
