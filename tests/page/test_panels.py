"""The data of the page's panels is what the commands answer; a panel without data is null."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from answers import diagnosed
from kineto_files import annotation, kernel, launched, memory, op, write
from paths import DATA, DEMO

from warpline.analyses.kernels import top_kernels
from warpline.analyses.ops import ops_table
from warpline.analyses.roofline.pieces import GpuWork
from warpline.cli.main import run
from warpline.findings.diagnosis import Diagnosis, diagnose
from warpline.findings.fix_table import whatif
from warpline.replay.representative_steps import in_warm_steps
from warpline.reports.page.contract import Panels
from warpline.reports.page.panels import flame_panel, panels
from warpline.trace.open import open_trace
from warpline.units import duration, share

NSYS = DATA / "nsys" / "graph_node.sqlite.gz"


def made(diagnosis: Diagnosis) -> Panels:
    return panels(diagnosis, GpuWork(diagnosis.trace), 0)


@pytest.fixture(scope="module")
def diagnosis() -> Diagnosis:
    return diagnosed(DEMO)


@pytest.fixture(scope="module")
def shown(diagnosis: Diagnosis) -> Panels:
    return made(diagnosis)


def test_every_combination_of_the_plan_was_replayed_as_whatif_does(diagnosis: Diagnosis, shown: Panels) -> None:
    data = shown.whatif
    assert data is not None
    assert data.step_ns == diagnosis.judgement.evidence.step_ns  # type: ignore[union-attr]
    assert [data.fixes[number].name for number in data.planned] == [step.fix for step in diagnosis.plan]
    known = {tuple(one.fixes): one.step_ns for one in data.replayed}
    assert {(number,) for number in range(len(data.fixes))} <= set(known)
    # Each alone, every combination of the first four of the plan, and what the plan has beyond.
    planned = len(data.planned)
    first = min(planned, 4)
    assert len(known) == len(data.fixes) + (2**first - 1 - first) + (planned - first)
    for finding in diagnosis.findings:
        alone = known[(next(place for place, fix in enumerate(data.fixes) if fix.name == finding.fix),)]
        assert (alone.low, alone.expected, alone.high) == tuple(finding.new_step_ns.to_dict().values())
    for count in range(1, len(diagnosis.plan) + 1):
        together = known[tuple(sorted(data.planned[:count]))]
        assert together.expected == pytest.approx(diagnosis.plan[count - 1].new_step_ns.expected, abs=1)
    one, other = data.planned[0], data.planned[first - 1]
    asked = whatif(diagnosis.trace, [data.fixes[one].name, data.fixes[other].name]).new_step_ns
    assert known[tuple(sorted((one, other)))].expected == pytest.approx(asked.expected, rel=1e-6)


def test_the_ops_table_is_that_of_the_command(diagnosis: Diagnosis, shown: Panels) -> None:
    assert shown.tables is not None
    trace = in_warm_steps(diagnosis.trace)
    ops, parts, kernels = shown.tables.tables
    assert [ops.title, parts.title, kernels.title] == ["Ops", "Parts", "Kernels"]
    gpu_time = [column.title for column in parts.columns].index("GPU time")
    assert sum(row[gpu_time] or 0 for row in parts.rows) == trace.window.length_ns  # type: ignore[misc]
    frame = ops_table(trace).frame
    assert [row[0] for row in ops.rows] == frame["name"].to_list()
    gpu_self = [column.title for column in ops.columns].index("GPU self")
    assert sum(row[gpu_self] or 0 for row in ops.rows) == frame["gpu_self_ns"].sum()  # type: ignore[misc]
    total = [column.title for column in kernels.columns].index("total")
    assert kernels.left_out == 0
    known = top_kernels(trace)["total_ns"].sum()
    assert sum(row[total] or 0 for row in kernels.rows) == known  # type: ignore[misc]


def test_flame_graphs_keep_the_width_of_callers(diagnosis: Diagnosis, shown: Panels) -> None:
    assert shown.flame is not None
    gpu = shown.flame.flames[0]
    assert gpu.name == "GPU time"
    gpu_ns = (diagnosis.trace.gpu.stored["end_ns"] - diagnosis.trace.gpu.stored["start_ns"]).sum()
    roots = sum(total for total, parent in zip(gpu.total_ns, gpu.parent, strict=True) if parent == -1)
    assert roots == pytest.approx(gpu_ns, rel=0.01)
    for flame in shown.flame.flames:
        inside = [0] * len(flame.frame)
        for node, parent in enumerate(flame.parent):
            assert parent < node
            if parent >= 0:
                inside[parent] += flame.total_ns[node]
        assert all(children <= total for children, total in zip(inside, flame.total_ns, strict=True))


def test_the_budget_starts_with_the_numbers_of_the_command(shown: Panels, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["budget", str(DEMO), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    data = shown.budget
    assert data is not None
    assert (data.launches, data.cpu_ns, data.gpu_ns, data.step_ns, data.graph_ns) == (
        answer["ops_per_step"],
        answer["cpu_ns_per_op"],
        answer["gpu_ns_per_op"],
        answer["step_ns"],
        answer["graph_step_ns"],
    )


def test_the_roofline_has_ceilings_with_their_source(shown: Panels) -> None:
    data = shown.roofline
    assert data is not None
    assert data.memory.source == "measured"
    assert data.compute
    assert data.drawn_ns == pytest.approx(sum(dot.time_ns for dot in data.dots))
    assert all(dot.intensity > 0 and dot.flops_per_second > 0 for dot in data.dots)


def test_how_each_number_was_made(diagnosis: Diagnosis, shown: Panels) -> None:
    assert shown.numbers is not None
    said = {entry.number: entry for entry in shown.numbers.entries}
    replay = diagnosis.to_dict()["replay"]
    assert said["Step without a profiler"].value.startswith(duration(replay["bare_step_ns"]))
    assert "Estimated" in said["Step without a profiler"].how
    device = diagnosis.shown.devices[0]
    assert said["GPU 0 busy"].value == f"{share(device.busy_ns, device.window_ns)} of {duration(device.window_ns)}"


def test_a_memory_curve_keeps_its_peak(tmp_path: Path) -> None:
    events = [
        *launched("k", 0, 10, 5, 1),
        *(memory(10 + step, 100 if step != 1_234 else 777, 900) for step in range(3_000)),
    ]
    found = made(diagnose(open_trace(write(tmp_path, events), cache=False))).memory
    assert found is not None
    (curve,) = found.curves
    assert max(curve.allocated_bytes) == 777
    assert len(curve.times_ns) == len(curve.allocated_bytes) == len(curve.reserved_bytes) <= 800
    assert set(curve.reserved_bytes) == {900}


@pytest.mark.parametrize(
    ("events", "missing"),
    [
        ([op("aten::mm", 0, 10)], {"whatif", "steps", "roofline", "budget", "memory", "numbers"}),
        ([kernel("gemm", 0, 10, 1)], {"whatif", "steps", "roofline", "budget", "memory"}),
    ],
    ids=["no GPU work", "one kernel without a launch"],
)
def test_a_panel_without_data_is_null(tmp_path: Path, events: list[dict[str, object]], missing: set[str]) -> None:
    found = made(diagnose(open_trace(write(tmp_path, events), cache=False)))
    assert {
        name for name in ("whatif", "steps", "roofline", "budget", "memory", "numbers") if getattr(found, name) is None
    } == missing
    assert found.flame is not None


def test_nsys_profiles_have_kernels_but_no_ops() -> None:
    found = made(diagnose(open_trace(NSYS, cache=False), why=False))
    assert found.tables is not None
    assert [table.title for table in found.tables.tables] == ["Parts", "Kernels"]


def test_a_flame_graph_of_many_stacks_is_cut(tmp_path: Path) -> None:
    events = [annotation("step", 0, 40_000), *(op(f"op{place}", 10 * place, 9) for place in range(4_000))]
    found = flame_panel(diagnose(open_trace(write(tmp_path, events), cache=False)))
    assert found is not None
    (cpu,) = found.flames
    assert len(cpu.frame) <= 2_500
    assert cpu.total_ns[0] == 40_000_000
