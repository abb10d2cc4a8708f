"""The declarations are complete and consistent, and the README's table is made of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.foundations.values import parse
from harness.foundations.variable_table import BEGIN, markdown_table, with_table
from harness.foundations.variables import VARIABLES, Variable
from harness.paths import CODE, Root

#: Every name of the RoboPRO pipeline guide: its users set these.
GUIDE = """
    STUDY_RUN CKPT_NAME BENCH_CONFIG SEEDS_ROOT USE_EVAL_SEEDS EVAL_TEST_NUM EVAL_RESUME_SEEDS
    QUEUE_MODE LEASE_TTL STALL_TIMEOUT PER_TASK_TIMEOUT WORKERS_PER_GPU GIANT_CODE_DIR GIANT_KEEP
    DA3_XVLA_ROOT DXVLA_SAPIEN_B1 DXVLA_DENOISER DXVLA_RT_SPP DXVLA_PRIMARY_CAM DXVLA_VIDEO_CAM
    DXVLA_FAKE_PROPRIO DXVLA_ACTION_SMOOTH DXVLA_SMOOTH_ROT DXVLA_EXEC_ACTIONS XVLA_POSED_DA3
    XVLA_RGB_INPUT XVLA_SKIP_GEOMETRY_REINIT XVLA_DA3_NATIVE_INPUT DXVLA_GEOSTACK_STEP
    CUROBO_IK_FAIL_RETURN EVAL_FAST_CTRL VK_ICD_FILENAMES WARP_CACHE_PATH CUDA_CACHE_PATH
    MODEL_SERVER_BIND MODEL_SERVER_HOST SIM_AS_SERVER MODEL_AS_CLIENT SIM_SERVER_HOST
    SIM_SERVER_PORT EVAL_ROOT BUNDLE HF_HOME XVLA_PY ROBOTWIN_PY
"""


def test_every_variable_of_the_guide_is_declared() -> None:
    assert set(GUIDE.split()) <= set(VARIABLES)


@pytest.mark.parametrize("variable", VARIABLES.values(), ids=lambda v: v.name)
def test_a_declaration_is_whole(variable: Variable) -> None:
    assert variable.meaning and not variable.meaning.endswith(".")
    if variable.default is not None:
        parse(variable, variable.default, "default", Root(CODE))
    if variable.moves_numbers:
        assert variable.type != "path", "a path differs between machines that compute the same"


def test_a_cell_of_the_table_holds_no_bar() -> None:
    rows = markdown_table().splitlines()
    assert len(rows) == len(VARIABLES) + 2
    assert {row.count("|") for row in rows} == {5}


def test_the_table_is_renewed_between_its_markers() -> None:
    old = "# Title\n<!-- variables: begin -->\nstale row\n<!-- variables: end -->\nrest\n"
    new = with_table(old)
    assert new.startswith("# Title\n<!-- variables: begin -->\n| variable |")
    assert new.endswith("<!-- variables: end -->\nrest\n")
    assert "stale row" not in new
    assert with_table(new) == new
    with pytest.raises(ValueError, match="no <!-- variables"):
        with_table("# Title\n")


def test_every_document_that_shows_the_table_shows_todays() -> None:
    for document in sorted(Path(CODE).glob("*.md")):
        text = document.read_text(encoding="utf-8")
        if BEGIN in text:
            assert with_table(text) == text, (
                f"renew it: python -m harness.foundations.variable_table {document}"
            )
