"""Costs of the host on hand-made traces: read off the trace, then off a calibration, then a default."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kineto_files as files
import pytest
from kineto_files import Event

import warpline
from warpline.replay.costs.cost import Cost
from warpline.replay.costs.host import (
    DEFAULT,
    DEFAULT_KINETO,
    MIN_SPREAD,
    SAME_CHIP,
    SCALED_HOST,
    UNKNOWN_HOST,
    host_costs,
    read_calibration,
)
from warpline.trace.open import open_trace

A100 = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, "computeMajor": 8, "computeMinor": 0}


def opened(folder: Path, events: list[Event], **header: Any) -> warpline.Trace:
    return open_trace(files.write(folder, events, **header), cache=False)


def launching(count: int, launch_us: float = 5.0, gap_us: float = 10.0) -> list[Event]:
    """Launches one after the other, each with one op that begins in the gap before it."""
    events: list[Event] = [files.annotation("ProfilerStep#0", 0, count * (launch_us + gap_us))]
    for number in range(count):
        at = number * (launch_us + gap_us)
        events.append(files.op("aten::add", at + 2, gap_us - 2 + launch_us))
        events.append(files.call("cudaLaunchKernel", at + gap_us, launch_us, number + 1))
        events.append(files.kernel("kernel", at + gap_us + launch_us + 1, 1, number + 1))
    return events


def silent() -> list[Event]:
    """A step with a single launch."""
    return [files.annotation("ProfilerStep#0", 0, 100), *files.launched("kernel", 10, 20, 1, 1)]


def calibration(**costs: float) -> dict[str, Any]:
    entries = {name: {"low": value, "expected": value, "high": value} for name, value in costs.items()}
    return {"schema": "warpline.host_costs/1", "costs_ns": entries}


def with_manifest(trace: warpline.Trace, document: object) -> warpline.Trace:
    manifest = {"schema": "warpline.run/1", "traces": [{"file": trace.file.name, "host_costs": document}]}
    (trace.file.parent / "manifest.json").write_text(json.dumps(manifest))
    return trace


def width(cost: Cost) -> float:
    return cost.high / cost.low


def test_launches_and_ops_are_read_off_the_trace_less_the_cost_of_recording(tmp_path: Path) -> None:
    """A launch of 5 µs holds half of what recording a call costs (5 µs); of the 10 µs before the next, recording takes
    the other half and an op's 2.5 µs."""
    costs = host_costs(opened(tmp_path, launching(20)))
    assert costs.recording.op.expected == pytest.approx(DEFAULT_KINETO.op.expected)
    assert costs.launch.expected == pytest.approx(2_500)
    assert costs.op.expected == pytest.approx(5_000)
    assert costs.launch.source == "this trace: 19 launches"
    assert costs.launched_op.expected == pytest.approx(7_500)


def test_defaults_are_scaled_by_the_speed_of_the_trace_and_known_less_well(tmp_path: Path) -> None:
    costs = host_costs(opened(tmp_path, launching(20, launch_us=8.3, gap_us=20.0)))
    # 6.6 µs of each launch are the CPU's, where the reference host takes 3.3.
    assert costs.region.expected == pytest.approx(2 * DEFAULT.region.expected)
    assert costs.recording.call.expected == pytest.approx(2 * DEFAULT_KINETO.call.expected)
    assert width(costs.region) == pytest.approx(width(DEFAULT.region) * SCALED_HOST**2)
    assert "× 2.00" in costs.region.source


def test_a_launch_after_a_pause_says_nothing_about_the_host(tmp_path: Path) -> None:
    """Half of the launches come after a pause of 100 µs and take 30 µs; the close ones take 5."""
    events: list[Event] = []
    for number in range(15):
        at = 200.0 * number
        events += [
            files.call("cudaLaunchKernel", at, 30, 2 * number + 1),
            files.kernel("kernel", at + 31, 1, 2 * number + 1),
            files.call("cudaLaunchKernel", at + 40, 5, 2 * number + 2),
            files.kernel("kernel", at + 46, 1, 2 * number + 2),
        ]
    assert host_costs(opened(tmp_path, events)).region.expected == pytest.approx(DEFAULT.region.expected)


def test_graph_launches_and_compiled_regions_are_read_off_the_trace(tmp_path: Path) -> None:
    """A graph launch of 9 µs with two nodes (1 µs each to record); a region of 40 µs with 15 µs of calls, whose own op
    begins outside of them: 25 - 2.5 - 2.5."""
    events = launching(20)
    for number in range(10):
        at, first = 1_000.0 + 100 * number, 1_000 + 10 * number
        events.append(files.call("cudaGraphLaunch", at, 9, first))
        events += [files.kernel("node", at + 10 + 2 * node, 1, first) for node in range(2)]
        events.append(files.op("Torch-Compiled Region: 0/0", at + 20, 40))
        events += files.launched("triton_0", at + 35, at + 41, 1, first + 1)
        events += files.launched("triton_1", at + 45, at + 51, 1, first + 2)
    costs = host_costs(opened(tmp_path, events))
    assert costs.graph_launch.expected == pytest.approx(7_000)
    assert costs.graph_launch.source == "this trace: 10 graph launches"
    assert costs.region.expected == pytest.approx(20_000)
    assert costs.region.source == "this trace: 10 compiled regions"


def test_without_launches_the_calibration_of_the_capture_counts(tmp_path: Path) -> None:
    trace = with_manifest(opened(tmp_path, silent()), calibration(op=13_000, launch=5_000, recording_op=6_000))
    costs = host_costs(trace)
    assert (costs.op.expected, costs.launch.expected) == (13_000, 5_000)
    # The default for recording an op, on a host that is twice as slow, is 5 µs; a loop of ops shows at least 6.
    assert (costs.recording.op.low, costs.recording.op.expected) == (6_000, 6_000)
    assert costs.op.source == "calibration of this host, stored with the capture"
    assert width(costs.op) == pytest.approx(MIN_SPREAD**2)
    # What was not calibrated is twice the default, as a launched op is.
    assert costs.region.expected == pytest.approx(2 * DEFAULT.region.expected)


def test_without_a_calibration_the_default_counts_with_a_wider_range(tmp_path: Path) -> None:
    costs = host_costs(opened(tmp_path, silent()))
    assert costs.op.expected == DEFAULT.op.expected
    assert width(costs.op) == pytest.approx(width(DEFAULT.op) * UNKNOWN_HOST**2)
    assert "not known" in costs.op.source


def test_what_a_trace_shows_comes_before_its_calibration(tmp_path: Path) -> None:
    trace = with_manifest(opened(tmp_path, launching(20)), calibration(op=13_000, recording_call=1_000))
    costs = host_costs(trace)
    assert costs.op.source.startswith("this trace")
    # A loop of one op shows the least that recording costs, and no more than that.
    assert costs.recording.call.expected == pytest.approx(DEFAULT_KINETO.call.expected)
    assert costs.recording.call.low >= 1_000


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "text",
        {},
        {"schema": "warpline.host_costs/2", "costs_ns": {"op": {"low": 1, "expected": 1, "high": 1}}},
        {"schema": "warpline.host_costs/1"},
        calibration(),
        calibration(op=-5.0),
        calibration(op=float("nan")),
        {"schema": "warpline.host_costs/1", "costs_ns": {"op": {"expected": "much"}}},
        {"schema": "warpline.host_costs/1", "costs_ns": [1, 2]},
    ],
)
def test_a_damaged_calibration_is_ignored(document: object, tmp_path: Path) -> None:
    assert read_calibration(document, "test") is None
    trace = with_manifest(opened(tmp_path, silent()), document)
    assert host_costs(trace).op.expected == DEFAULT.op.expected


def test_a_calibration_stored_with_the_ceilings_of_such_a_gpu_counts_for_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceilings = {
        "schema": "warpline.ceilings/1",
        "device": {"name": A100["name"], "sm_count": 108, "compute": "8.0"},
        "date": "2026-11-15",
        "measurements": {},
        "host": calibration(op=9_000),
    }
    file = tmp_path / "ceilings" / "a100.json"
    file.parent.mkdir()
    file.write_text(json.dumps(ceilings))
    monkeypatch.setenv("WARPLINE_CEILINGS", str(file))
    costs = host_costs(opened(tmp_path, silent(), deviceProperties=[A100]))
    assert costs.op.expected == 9_000
    assert width(costs.op) == pytest.approx((MIN_SPREAD * SAME_CHIP) ** 2)
    assert costs.op.source == "calibration of a host with this GPU (2026-11-15)"
    other = tmp_path / "other"
    other.mkdir()
    assert host_costs(opened(other, silent())).op.expected == DEFAULT.op.expected


def test_a_cost_must_be_ordered_and_has_three_cases() -> None:
    cost = Cost(1.0, 2.0, 4.0, "test")
    assert [cost.at(case) for case in range(3)] == [1.0, 2.0, 4.0]
    assert cost.times(2).widened(2) == Cost(1.0, 4.0, 16.0, "test")
    with pytest.raises(ValueError, match="low <= expected"):
        Cost(3.0, 2.0, 4.0, "test")


@pytest.mark.parametrize(("launch_us", "slowness"), [(5.0, 1.0), (6.65, 1.5), (3.35, 0.5), (1.8, 0.4)])
def test_the_bus_is_no_slower_on_a_slow_host(launch_us: float, slowness: float, tmp_path: Path) -> None:
    """1.7 µs of a launch are the bus's: 6.65 µs leave 4.95 for the CPU, where the reference host takes 3.3."""
    costs = host_costs(opened(tmp_path, launching(40, launch_us)))
    assert costs.recording.op.expected == pytest.approx(slowness * DEFAULT_KINETO.op.expected, rel=0.01)
