"""A kernel's gain carried to the step: where the device sets the pace, the step is shorter by what the launches save."""

from pathlib import Path

import pytest
from dive_kernels import kernel as reported
from dived_trace import copies

from warpline.dive.answer import dive_into
from warpline.sources.ncu.model import NcuReport
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    return open_trace(copies(tmp_path), cache=False)


def test_the_step_is_shorter_by_what_the_launches_save(trace: Trace) -> None:
    report = NcuReport(Path("r.csv"), "csv-raw", "", (reported("copy"), reported("missing", launch=1)))
    found, absent = dive_into(report, trace).found
    assert found.step is not None
    assert found.step.launches == 2
    # DRAM at 50 %: at best 2x, so that 8 ms of each step become 4 ms.
    saved_ns = found.step.old_step_ns.expected - found.step.new_step_ns.expected
    assert saved_ns == pytest.approx(8e6 * (1 - 1 / found.gain.expected), rel=0.15)
    assert found.step.gain.low == pytest.approx(1.0, abs=0.02)  # waiting promises nothing
    assert 1.3 < found.step.gain.high < found.gain.high
    assert absent.step is None and "no launch of this kernel" in absent.step_note
