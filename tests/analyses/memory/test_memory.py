"""Memory of traces and snapshots, worked out on paper."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import snapshot_files
from hypothesis import given
from hypothesis import strategies as st
from kineto_files import MAIN, PROCESS, Event, annotation, frame, op, write
from nsys_files import GLOBAL_PID, small
from paths import SHARED
from snapshot_files import MIB

from warpline.analyses.memory import DeviceMemory, memory_of_trace
from warpline.analyses.memory.allocations import Allocations
from warpline.analyses.memory.growth import chance_of, growth
from warpline.analyses.memory.lifetimes import alive_after, freed_at
from warpline.cli.main import run
from warpline.errors import CannotAnswer
from warpline.front.functions import memory_use
from warpline.trace.open import open_trace


def event(
    at: float, change: int, address: int, total: int | None, reserved: int | None = None, device: int = 0
) -> Event:
    args: dict[str, Any] = {"Bytes": change, "Addr": address, "Device Id": device, "Device Type": int(device >= 0)}
    if total is not None:
        args |= {"Total Allocated": total, "Total Reserved": reserved or 0}
    return {"ph": "i", "s": "t", "name": "[memory]", "pid": PROCESS, "tid": MAIN, "ts": at, "args": args}


def device_of(folder: Path, events: list[Event], **options: Any) -> DeviceMemory:
    return memory_of_trace(open_trace(write(folder, events), **options)).devices[0]


@pytest.fixture
def events() -> list[Event]:
    """1000 bytes were allocated before; 400 by linear, 300 by relu (the peak, 1700), then linear's are freed."""
    return [
        annotation("ProfilerStep#0", 0, 100),
        annotation("ProfilerStep#1", 100, 100),
        frame("train.py(7): step", 0, 200, 1, None),
        op("aten::linear", 10, 20, external=1),
        op("aten::addmm", 12, 10, external=2),
        event(15, 400, 64, 1400, 2048),
        op("aten::relu", 40, 20, external=3),
        event(45, 300, 4096, 1700, 4096),
        event(150, -400, 64, 1300, 4096),
        event(160, 200, 64, 1500, 4096),
    ]


def test_peak_and_what_is_alive(events: list[Event], tmp_path: Path) -> None:
    found = device_of(tmp_path, events)
    assert (found.device, found.counted, found.events, found.start_known) == ("cuda:0", "tensors", 4, True)
    assert (found.start_bytes, found.end_bytes, found.earlier_bytes) == (1000, 1500, 1000)
    peak = found.peak
    assert (peak.allocated_bytes, peak.reserved_bytes, peak.step, peak.op) == (1700, 4096, 0, "aten::relu")
    assert peak.line == "train.py(open 7): step"
    rows = [(one.name, one.peak_bytes, one.peak_count, one.allocated_bytes) for one in found.holders["op"]]
    assert rows == [("aten::linear", 400, 1, 400), ("aten::relu", 300, 1, 300), (None, 0, 0, 200)]
    (line,) = found.holders["line"]
    assert (line.name, line.peak_bytes, line.allocated_count) == ("train.py(open 7): step", 700, 3)


def test_the_parts_of_the_peak_sum_to_it(events: list[Event], tmp_path: Path) -> None:
    found = device_of(tmp_path, events)
    for entries in found.holders.values():
        assert found.earlier_bytes + sum(one.peak_bytes for one in entries) == found.peak.allocated_bytes


def test_chosen_steps_have_their_own_peak(events: list[Event], tmp_path: Path) -> None:
    found = device_of(tmp_path, events, steps="1:")
    assert (found.peak.allocated_bytes, found.peak.step, found.earlier_bytes) == (1500, 1, 1000)
    assert [one.name for one in found.holders["op"]][:1] == ["aten::relu"]  # what step 0 left is alive


def test_a_trace_without_totals_gives_what_is_known(tmp_path: Path) -> None:
    """Before 2022 torch wrote no totals: 100 bytes that were there before are freed first."""
    found = device_of(
        tmp_path,
        [op("aten::mm", 0, 5, external=1), event(1, -100, 1, None), event(2, 500, 2, None), event(3, -500, 2, None)],
    )
    assert not found.start_known
    assert (found.start_bytes, found.peak.allocated_bytes, found.end_bytes) == (100, 500, 0)


def test_without_addresses_nobody_knows_what_is_alive(tmp_path: Path) -> None:
    bare = event(1, 100, 0, 100)
    del bare["args"]["Addr"]
    found = device_of(tmp_path, [op("aten::mm", 0, 5, external=1), bare])
    assert found.earlier_bytes is None
    assert [(one.name, one.peak_bytes, one.allocated_bytes) for one in found.holders["op"]] == [("aten::mm", None, 100)]


def test_gpus_come_first(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        [
            op("aten::mm", 0, 5, external=1),
            event(1, 9, 1, 9, device=-1),
            event(2, 7, 1, 7, device=1),
            event(3, 5, 1, 5),
        ],
    )
    answer = memory_of_trace(open_trace(path))
    assert [one.device for one in answer.devices] == ["cuda:0", "cuda:1", "cpu"]
    assert answer.devices[2].peak.reserved_bytes is None


def test_a_trace_without_memory_events_cannot_answer(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer, match="profile_memory=True"):
        memory_of_trace(open_trace(write(tmp_path, [op("aten::mm", 0, 5, external=1)])))


def test_a_leak_is_found_and_its_op_named(tmp_path: Path) -> None:
    events, total = [], 1000
    for step in range(8):
        at = 100 * step
        events += [annotation(f"ProfilerStep#{step}", at, 100), op("aten::mm", at + 5, 20, external=2 * step)]
        events += [event(at + 10, 5000, 77, total + 5000), event(at + 30, -5000, 77, total)]
        events += [op("aten::clone", at + 40, 20, external=2 * step + 1), event(at + 50, 64, 1000 + step, total + 64)]
        total += 64
    found = device_of(tmp_path, events)
    assert (found.growth.trend, found.growth.steps, found.growth.per_step_bytes) == ("growing", 7, 64.0)
    ((op_name, per_step),) = [(one.op, one.per_step_bytes) for one in found.growers]
    assert (op_name, per_step) == ("aten::clone", 64.0)
    assert found.floors_bytes[:3] == (1000, 1064, 1128)


def test_memory_that_settles_is_no_leak() -> None:
    assert growth(np.array([0, 100, 200, 300, 400, 400, 400, 400, 400, 400])).trend == "steady"
    assert growth(np.array([500] * 20)).trend == "steady"
    assert growth(np.array([0, 10, 5, 12, 4, 11, 6, 13])).trend == "steady"


def test_few_steps_cannot_tell() -> None:
    found = growth(np.array([0, 100, 200, 300, 400]))
    assert (found.trend, found.per_step_bytes) == ("unknown", None)
    assert growth(np.array([0, 100, 200, 300, 400, 500])).trend == "growing"
    assert growth(np.array([], np.int64)).reason == "the trace has no steps; the test needs 6"


@pytest.mark.parametrize("steps", [2, 3, 5, 6])
def test_the_chance_is_that_of_all_orders(steps: int) -> None:
    orders = list(itertools.permutations(range(steps)))
    rising = [sum(a < b for a, b in itertools.combinations(order, 2)) for order in orders]
    for count in range(steps * (steps - 1) // 2 + 1):
        assert chance_of(count, steps) == pytest.approx(sum(one >= count for one in rising) / len(orders))


def test_exact_and_normal_chances_agree() -> None:
    pairs = 61 * 60 // 2
    for count in (pairs // 2, int(pairs * 0.55), int(pairs * 0.6)):
        assert chance_of(count, 61) == pytest.approx(chance_of(count * 60 * 59 // (61 * 60), 60), rel=0.25)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 1000)), min_size=1, max_size=60))
def test_whatever_is_allocated_the_peak_is_accounted_for(steps: list[tuple[int, int]]) -> None:
    held: dict[int, int] = {}
    changes, addresses, totals = [], [], []
    for address, size in steps:
        change = -held.pop(address) if address in held else size
        if change > 0:
            held[address] = size
        changes.append(change)
        addresses.append(address)
        totals.append(sum(held.values()))
    nothing = pl.DataFrame({"op": [], "module": [], "line": []})
    numbers = [np.array(values, np.int64) for values in (range(len(steps)), changes, addresses, totals)]
    made = Allocations("cuda:0", "tensors", *numbers, None, 0, True, nothing)
    ends = freed_at(numbers[2])
    for place, total in enumerate(totals):
        assert made.bytes[alive_after(made, ends, place)].sum() == total


def test_a_snapshot(tmp_path: Path) -> None:
    answer = memory_use(snapshot_files.write(tmp_path, snapshot_files.training()))
    (found,) = answer.devices
    assert (found.start_bytes, found.peak.allocated_bytes, found.end_bytes) == (MIB, 6 * MIB, 3 * MIB)
    assert (found.peak.reserved_bytes, found.peak_reserved_bytes) == (24 * MIB, 24 * MIB)
    assert (found.peak.op, found.peak.line) == ("aten::relu", "/home/me/train.py(13): forward")
    assert found.earlier_bytes == 0  # the older block has its own stack
    lines = [(one.name, one.peak_bytes) for one in found.holders["line"]]
    assert lines == [("/home/me/train.py(12): forward", 4 * MIB), ("/home/me/train.py(13): forward", 2 * MIB)]
    pieces = found.pieces
    assert pieces is not None
    assert (pieces.segments, pieces.free_bytes, pieces.rounding_bytes) == (2, 21 * MIB - 512, 512)
    assert (pieces.largest_free_bytes, pieces.returnable_bytes) == (18 * MIB - 512, 0)
    assert pieces.split_share == pytest.approx(1 - (18 * MIB - 512) / (21 * MIB - 512))
    (failure,) = answer.failures
    assert (failure.wanted_bytes, failure.free_bytes, failure.unused_bytes) == (20 * MIB, MIB, 21 * MIB)


def test_a_snapshot_with_steps_tells_growth(tmp_path: Path) -> None:
    (found,) = memory_use(snapshot_files.write(tmp_path, snapshot_files.leaking())).devices
    assert (found.growth.trend, found.growth.per_step_bytes) == ("growing", 4096.0)
    assert [(one.op, one.per_step_bytes) for one in found.growers] == [("aten::relu", 4096.0)]
    assert memory_use(snapshot_files.write(tmp_path, snapshot_files.training())).devices[0].growth.trend == "unknown"


def test_cuda_allocations_of_nsys(tmp_path: Path) -> None:
    export = small()
    usage = {"globalPid": GLOBAL_PID, "deviceId": 0}
    for start, address, size, kind, freed in (
        (1, 512, 1000, 2, 0),
        (2, 9000, 300, 1, 0),
        (3, 4096, 500, 2, 0),
        (4, 512, 1000, 2, 1),
    ):
        export.add(
            "CUDA_GPU_MEMORY_USAGE_EVENTS",
            start=start,
            address=address,
            bytes=size,
            memKind=kind,
            memoryOperationType=freed,
            **usage,
        )
    answer = memory_of_trace(open_trace(export.write(tmp_path / "report.sqlite")))
    assert [(one.device, one.counted, one.peak.allocated_bytes) for one in answer.devices] == [
        ("cuda:0", "CUDA allocations", 1500),
        ("cpu", "CUDA allocations", 300),
    ]


@pytest.mark.shared
def test_a_recorded_training_is_accounted_for() -> None:
    answer = memory_of_trace(open_trace(SHARED / "h200/kineto/bad_training.json.gz"))
    found = answer.devices[0]
    assert (found.peak.allocated_bytes, found.peak.reserved_bytes) == (81_523_712, 3_755_999_232)
    assert found.earlier_bytes == found.start_bytes == 68_157_440
    assert found.growth.trend == "steady"
    decode = memory_of_trace(open_trace(SHARED / "h200/kineto/llama_decode.json.gz")).devices[0]
    assert (decode.growth.trend, decode.growth.per_step_bytes) == ("growing", 16_384.0)  # the key-value cache
    assert decode.growers[0].op == "aten::cat"


def test_the_curve_keeps_the_peak_and_is_drawn(
    events: list[Event], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    many = [event(1000 + n, 1, 9000 + n, 1500 + n, 4096) for n in range(3000)]
    path = write(tmp_path, [*events, *many])
    picture = tmp_path / "memory.svg"
    assert run(["memory", str(path), "--svg", str(picture)]) == 0
    assert "4.50 kB" in capsys.readouterr().out
    assert "prefers-color-scheme: dark" in picture.read_text()
    assert run(["memory", str(path), "--svg", str(picture)]) == 2  # it exists
    capsys.readouterr()
    run(["memory", str(path), "--json"])
    (device,) = json.loads(capsys.readouterr().out)["devices"]
    assert len(device["curve"]["time_ns"]) <= 1000
    assert max(device["curve"]["allocated_bytes"]) == device["peak"]["allocated_bytes"] == 4499


def test_live_memory_events_of_torch(tmp_path: Path) -> None:
    """A program on the CPU: 40 MB are alive at the peak, allocated by two lines; each step leaves 4 kB behind."""
    torch = pytest.importorskip("torch")
    from torch.profiler import ProfilerActivity, profile, record_function  # noqa: PLC0415

    kept = []
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        for step in range(8):
            with record_function(f"ProfilerStep#{step}"):
                first = torch.zeros(5_000_000)
                second = first + 1
                kept.append(torch.ones(1000))
                del first, second
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    (found,) = memory_use(tmp_path / "trace.json").devices
    assert found.device == "cpu"
    assert found.peak.allocated_bytes - found.start_bytes == pytest.approx(40_000_000, abs=50_000)
    assert {one.name for one in found.holders["op"][:2]} == {"aten::zeros", "aten::add"}
    assert (found.growth.trend, found.growers[0].op) == ("growing", "aten::ones")
    assert found.growth.per_step_bytes == pytest.approx(4000, abs=64)
