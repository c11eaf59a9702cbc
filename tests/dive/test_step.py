"""A kernel's gain carried to the step: where the device sets the pace, the step is shorter by what the launches save."""

from pathlib import Path

import pytest
from dive_kernels import kernel as reported
from kineto_files import Event, annotation, call, kernel, op, write

from warpline.dive.answer import dive_into
from warpline.sources.ncu.model import NcuReport
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Three steps of 10 ms: two launches of 4 ms each of `copy`, and one of 1 ms of `other`, back to back."""
    events: list[Event] = []
    number = 0
    for step in range(3):
        at = 10_000.0 * step
        events.append(annotation(f"ProfilerStep#{step}", at, 10_000))
        for name, start, length in (("copy", 100.0, 4000.0), ("copy", 4100.0, 4000.0), ("other", 8100.0, 1000.0)):
            number += 1
            begin = at + 20.0 * (number % 3)
            events += [
                op("aten::x", begin, 15, external=number),
                call("cudaLaunchKernel", begin + 2, 5, number, external=number),
                kernel(name, at + start, length, number, grid=[8192, 1, 1], block=[256, 1, 1]),
            ]
        events.append(call("cudaDeviceSynchronize", at + 100, 9050, 1000 + step))
    return open_trace(write(tmp_path, events), cache=False)


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
