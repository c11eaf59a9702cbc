"""What `warpline run` says when a tool wrote no report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warpline.capture.launch import Ending
from warpline.capture.ncu_log import LOG
from warpline.capture.plan import NCU, Plan
from warpline.capture.process_record import NOTHING, RECORDED
from warpline.capture.run import why_no_trace

NO_KERNELS = "==WARNING== No kernels were profiled.\n"
FORBIDDEN = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n"
WAITING: dict[str, Any] = {"state": NOTHING, "ended_by": None, "steps_seen": {"forward": 13}}
DONE = {**WAITING, "state": RECORDED}


@pytest.mark.parametrize(
    ("log", "parts", "code"),
    [
        (NO_KERNELS, [WAITING], "too-few-steps"),
        (NO_KERNELS, [DONE], "no-kernels-profiled"),
        (NO_KERNELS, [], "no-kernels-profiled"),
        (FORBIDDEN, [WAITING], "counters-forbidden"),
    ],
    ids=["ended before the recording", "profiled none of the kernels", "no process of ours", "forbidden counters"],
)
def test_a_program_that_ended_before_the_recording_has_too_few_steps_under_ncu_too(
    tmp_path: Path, log: str, parts: list[dict[str, Any]], code: str
) -> None:
    (tmp_path / LOG).write_text(log)
    assert why_no_trace(tmp_path, Plan(folder="", tool=NCU), parts, Ending(0, None, 1.0, False)).code == code
