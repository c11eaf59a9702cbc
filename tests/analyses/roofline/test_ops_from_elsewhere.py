"""Work of kernels without ops: from a capture, from emit_nvtx ranges, and from a second trace."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kineto_files import annotation, call, frame, kernel, launched, op, write
from paths import DATA, SHARED

from warpline.analyses.ops import ops_table
from warpline.analyses.parts.table import parts_table
from warpline.analyses.roofline.table import roofline_table
from warpline.cli.main import run
from warpline.errors import CannotAnswer
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

GEMM = "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_TNT"
NORM = "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::Half, float>(int)"
HALF = "c10::Half"


def opened(folder: Path, events: list[Any]) -> Trace:
    folder.mkdir(exist_ok=True)
    return open_trace(write(folder, events))


def shaped(name: str, start: float, number: int, *shapes: list[int]) -> Any:
    arguments = {"Input Dims": list(shapes), "Input type": [HALF for _ in shapes]}
    return op(name, start, 20, external=number, **arguments)


def captured(start: float, number: int, size: int) -> list[Any]:
    """A capture of one matmul, and the first launch of its graph."""
    return [
        call("cudaStreamBeginCapture", start, 1, number),
        shaped("aten::mm", start + 5, number, [size, 64], [64, size]),
        call("cuLaunchKernelEx", start + 10, 2, number + 1, external=number),
        call("cudaStreamEndCapture", start + 30, 1, number + 2),
        call("cudaGraphLaunch", start + 40, 2, number + 3),
        kernel(GEMM, start + 50, 10, number + 3),
    ]


def test_replays_have_the_work_of_the_captured_ops(tmp_path: Path) -> None:
    replays = [call("cudaGraphLaunch", at, 2, at) for at in (200, 300)]
    replays += [kernel(GEMM, at + 5, 10, at) for at in (200, 300)]
    table = roofline_table(opened(tmp_path, [*captured(0, 10, 32), *replays]))
    (entry,) = table.entries
    assert (entry.name, entry.count, entry.flops) == ("aten::mm", 3, 3 * 2 * 32 * 32 * 64)
    assert table.modelled_pct == 100


def test_graphs_with_one_kernel_are_told_apart_by_their_order(tmp_path: Path) -> None:
    norm = [call("cudaGraphLaunch", 350, 2, 77), kernel(NORM, 355, 10, 77)]
    events = [*captured(0, 10, 32), *captured(100, 20, 64)]
    table = roofline_table(opened(tmp_path, [*events, *norm]))
    assert {entry.shapes: entry.count for entry in table.entries} == {
        "[[32, 64], [64, 32]]": 1,
        "[[64, 64], [64, 64]]": 1,
    }
    # A replay whose neighbours fit neither graph stays unknown.
    lonely = [call("cudaGraphLaunch", 400, 2, 90), kernel(GEMM, 405, 10, 90)]
    table = roofline_table(opened(tmp_path, [*events, *norm, *lonely]))
    assert table.modelled_ns == 20_000


def test_ranges_of_emit_nvtx_are_ops(tmp_path: Path) -> None:
    events = [
        annotation("aten::linear, seq = 7, op_id = 11, sizes = [[32, 64], [64, 64]]", 0, 100),
        annotation("aten::mm, seq = 7, op_id = 12, sizes = [[32, 64], [64, 64]]", 5, 50),
        *launched(GEMM, 10, 30, 10, 1),
    ]
    trace = opened(tmp_path, events)
    (entry,) = roofline_table(trace).entries
    assert (entry.name, entry.flops, entry.math) == ("aten::mm", 2 * 32 * 64 * 64, "fp16 tensor")
    rows = {row["name"]: row for row in ops_table(trace).frame.to_dicts()}
    mm, linear = rows["aten::mm"], rows["aten::linear"]
    assert set(rows) == {"aten::mm", "aten::linear", "cudaLaunchKernel"}
    assert [mm[name] for name in ("gpu_self_ns", "cpu_self_ns", "cpu_total_ns")] == [10_000, 45_000, 50_000]
    assert [linear[name] for name in ("gpu_self_ns", "gpu_total_ns", "cpu_self_ns")] == [0, 10_000, 50_000]


def lender(folder: Path, size: int, length: float = 10) -> Trace:
    events = [shaped("aten::mm", 0, 1, [size, 64], [64, size]), *launched(GEMM, 5, 30, length, 1)]
    return opened(folder, events)


def test_another_trace_lends_its_shapes(tmp_path: Path) -> None:
    events = [*launched(GEMM, 0, 10, 10, 1), *launched(GEMM, 100, 110, 10, 101)]
    trace = opened(tmp_path / "mine", events)
    table = roofline_table(trace, shapes_from=lender(tmp_path / "other", 32))
    (entry,) = table.entries
    assert (entry.count, entry.shapes, table.modelled_pct) == (2, "[[32, 64], [64, 32]]", 100)
    parts = parts_table(trace, shapes_from=lender(tmp_path / "other", 32))
    assert parts.known_ns == 20_000
    assert parts.shapes["shapes"].to_list() == ["[[32, 64], [64, 32]]"]
    rows = ops_table(trace, group="shape", shapes_from=lender(tmp_path / "other", 32)).frame
    assert rows.select("name", "group", "calls", "gpu_self_ns").rows() == [
        ("aten::mm", "[[32, 64], [64, 32]]", 2, 20_000)
    ]


def test_a_kernel_that_takes_another_time_has_other_shapes(tmp_path: Path) -> None:
    trace = opened(tmp_path / "mine", launched(GEMM, 0, 10, 100, 1))
    table = roofline_table(trace, shapes_from=lender(tmp_path / "other", 32))
    assert table.modelled_ns == 0


def test_a_trace_without_ops_and_without_a_lender_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer, match="shapes-from"):
        ops_table(opened(tmp_path, launched(GEMM, 0, 10, 100, 1)))


ACTIVATION = "void silu_kernel<c10::Half>(int)"


def layers(*launches: Any) -> list[Any]:
    """Two layers, each with a matmul and an activation in their modules; each launch is (api name, kernel argument)."""
    events: list[Any] = []
    for layer, start in enumerate((100, 200)):
        block, number = 10 * layer + 1, 100 * layer
        events += [frame(f"nn.Module: Block_{layer}", start, 90, block, None)]
        for place, (name, module) in enumerate((("aten::mm", "Linear"), ("aten::silu", "SiLU"))):
            at = start + 40 * place
            events += [
                frame(f"nn.Module: {module}_{layer}", at + 1, 38, block + place + 1, block),
                shaped(name, at + 5, number + place, [8, 64], [64, 64]) | {"dur": 25},
                *launches[place](at + 10, 1000 + number + place, number + place),
            ]
    return events


def capture_trace(folder: Path, api: str, named: bool) -> Trace:
    """The layers captured into a graph."""

    def node(name: str) -> Any:
        def launch(at: float, correlation: int, external: int) -> list[Any]:
            event = call(api, at, 2, correlation, external=external)
            event["args"] |= {"kernel": name} if named else {}
            return [event]

        return launch

    prefix = api.split("Launch", maxsplit=1)[0].removesuffix("Module")
    begin, end = call(f"{prefix}StreamBeginCapture", 50, 1, 1), call(f"{prefix}StreamEndCapture", 300, 1, 2)
    return opened(folder, [begin, *layers(node(GEMM), node(ACTIVATION)), end, *launched(NORM, 400, 410, 1, 3)])


def replay_trace(folder: Path, api: str, names: tuple[str, ...] = (GEMM, ACTIVATION) * 2) -> Trace:
    events = [call(api, 0, 5, 50)]
    return opened(folder, events + [kernel(name, 10 + 20 * place, 20, 50) for place, name in enumerate(names)])


@pytest.mark.parametrize(
    ("launch", "replay", "named"),
    [("hipModuleLaunchKernel", "hipGraphLaunch", True), ("cudaLaunchKernel", "cudaGraphLaunch", False)],
)
def test_the_trace_of_a_capture_lends_ops_and_modules_to_the_replays(
    tmp_path: Path, launch: str, replay: str, named: bool
) -> None:
    trace, lent = replay_trace(tmp_path / "mine", replay), capture_trace(tmp_path / "other", launch, named)
    parts = parts_table(trace, shapes_from=lent)
    assert parts.by == "module"
    assert parts.frame.select("part", "gpu_ns", "calls", "inferred_ns").rows()[:2] == [
        ("Block > Linear", 40_000, 2, 40_000),
        ("Block > SiLU", 40_000, 2, 40_000),
    ]
    table = ops_table(trace, shapes_from=lent)
    assert table.frame.select("name", "calls", "gpu_self_ns", "inferred_ns").rows() == [
        ("aten::mm", 2, 40_000, 40_000),
        ("aten::silu", 2, 40_000, 40_000),
    ]
    assert (table.without_op_ns, table.inferred_ns) == (0, 80_000)
    assert roofline_table(trace, shapes_from=lent).modelled_pct == (100 if named else 0)


def test_a_capture_without_names_lends_shapes_to_a_step_of_its_batch_size(tmp_path: Path) -> None:
    lent = capture_trace(tmp_path / "other", "cudaLaunchKernel", named=False)
    for batch, modelled in ((8, 100), (5, 0)):
        events = [
            annotation(f"execute_context_0(0)_generation_{batch}({batch})", 0, 200),
            call("cudaGraphLaunch", 1, 5, 50),
        ]
        events += [kernel(name, 10 + 20 * place, 20, 50) for place, name in enumerate((GEMM, ACTIVATION) * 2)]
        trace = opened(tmp_path / str(batch), events)
        assert roofline_table(trace, shapes_from=lent).modelled_pct == modelled
        assert ops_table(trace, shapes_from=lent).without_op_ns == 0


def test_a_capture_of_other_kernels_lends_nothing(tmp_path: Path) -> None:
    trace = replay_trace(tmp_path / "mine", "hipGraphLaunch", (GEMM, NORM, GEMM, NORM))
    lent = capture_trace(tmp_path / "other", "hipModuleLaunchKernel", named=True)
    assert not len(parts_table(trace, by="module", shapes_from=lent).frame.filter(pl.col("inferred_ns") > 0))


def eager(folder: Path, gemm: str, extra: list[Any]) -> Trace:
    def alone(name: str, **sizes: Any) -> Any:
        def launch(at: float, correlation: int, external: int) -> list[Any]:
            event = call("cudaLaunchKernel", at, 2, correlation, external=external)
            return [event, kernel(name, 500 + at, 20, correlation, **sizes)]

        return launch

    return opened(folder, [*layers(alone(gemm), alone(ACTIVATION, grid=[8, 1, 1], block=[128, 1, 1])), *extra])


def test_the_same_kernels_launched_one_by_one_lend_op_and_module_to_a_graph(tmp_path: Path) -> None:
    """For another batch size the grids differ, and the matmul has another kernel: op and module are inferred, shapes are
    not."""
    other = GEMM.replace("256x128", "128x64")
    replay = [call("cudaGraphLaunch", 2000, 5, 5000)]
    for place in range(2):
        replay += [
            kernel(other, 2100 + 50 * place, 20, 5000),
            kernel(ACTIVATION, 2125 + 50 * place, 20, 5000, grid=[4, 1, 1], block=[128, 1, 1]),
        ]
    trace = eager(tmp_path, GEMM, replay)
    parts = parts_table(trace, by="module").frame
    assert dict(parts.select("part", "inferred_ns").iter_rows()) == {
        "Block > Linear": 40_000,
        "Block > SiLU": 40_000,
        "(gaps)": None,
    }
    shapes = ops_table(trace, group="shape").frame.filter(pl.col("inferred_ns") > 0)
    assert shapes["group"].to_list() == [None, None]


def test_annotations_of_graph_nodes_are_modules_that_nobody_inferred(tmp_path: Path) -> None:
    """As `torch.cuda._annotate_cuda_graph_trace` writes them: layers have one name."""
    annotated = [
        kernel(GEMM, 10 + 20 * layer, 20, 50, **{"graph node id": layer + 1, "module_fqn": f"layers.{layer}.mlp.w1"})
        for layer in range(2)
    ]
    trace = opened(tmp_path, [call("cudaGraphLaunch", 0, 5, 50), *annotated, kernel(NORM, 50, 5, 50)])
    assert parts_table(trace, by="module").frame.select("part", "gpu_ns", "inferred_ns").rows()[:2] == [
        ("layers.*.mlp.w1", 40_000, 0),
        ("(none)", 5_000, 0),
    ]


def test_the_recording_of_a_capture_is_found_beside_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = replay_trace(tmp_path, "hipGraphLaunch").file
    folder = tmp_path / "capture_traces"
    lent = capture_trace(folder, "hipModuleLaunchKernel", named=True).file
    (folder / "bs_2.json.gz").write_bytes(gzip.compress(lent.read_bytes()))
    lent.unlink()
    assert run(["parts", str(mine)]) == 0
    out = capsys.readouterr().out
    assert "shapes from bs_2.json.gz" in out and "Block > Linear" in out and "is inferred" in out
    assert run(["ops", str(mine)]) == 0
    assert "aten::silu" in capsys.readouterr().out


def test_the_command_takes_the_other_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = lender(tmp_path / "other", 32).file
    mine = opened(tmp_path / "mine", launched(GEMM, 0, 10, 10, 1)).file
    for verb in ("roofline", "ops", "parts"):
        assert run([verb, str(mine), "--shapes-from", str(other)]) == 0
        assert "32×64" in capsys.readouterr().out or verb == "ops"


@pytest.mark.shared
def test_known_work_of_recorded_graphs_and_of_nsys() -> None:
    folder = SHARED / "h200"
    compiled = roofline_table(open_trace(folder / "kineto" / "compiled.json.gz"))
    assert compiled.modelled_pct >= 90
    matmuls = {entry.shapes: entry.count for entry in compiled.entries if entry.name == "aten::mm"}
    assert sorted(matmuls.values()) == [14, 14, 14, 28]
    for name in ("layer_eager", "block_fp32"):
        other = open_trace(folder / "kineto" / f"{name}.json.gz")
        mine = open_trace(folder / "nsys" / f"{name}.sqlite.gz")
        lent, direct = roofline_table(mine, shapes_from=other), roofline_table(other)
        assert lent.modelled_pct >= 90
        counts = [
            {(entry.name, entry.shapes): entry.count for entry in table.entries if entry.shapes}
            for table in (lent, direct)
        ]
        gemms = [{key: count for key, count in table.items() if "mm" in key[0]} for table in counts]
        assert gemms[0] == gemms[1]


@pytest.mark.shared
def test_ranges_and_borrowed_ops_agree_on_the_recorded_layer() -> None:
    other = open_trace(SHARED / "h200" / "kineto" / "layer_eager.json.gz")
    table = parts_table(open_trace(SHARED / "h200" / "nsys" / "layer_eager.sqlite.gz"), shapes_from=other)
    flops = dict(table.frame.filter(pl.col("calls") > 0).select("part", "flops").iter_rows())
    assert flops["qkv_proj"] == 15 * 2 * 2048 * 4096 * 12288
    assert flops["down_proj"] == 15 * 2 * 2048 * 11008 * 4096
    assert flops["o_proj"] == 15 * 2 * 2048 * 4096 * 4096


def test_a_recorded_step_within_emit_nvtx_has_the_flops_of_its_layers() -> None:
    """`tests/data/record/leak.py` on an H200: 1,024 rows through 256→512, twice 512→2048→512, and 512→64."""
    trace = open_trace(DATA / "nsys" / "emit_nvtx.sqlite.xz")
    table = ops_table(trace)
    rows = {row["name"]: row for row in table.frame.to_dicts()}
    first, others = 2 * 1024 * 256 * 512, 2 * 1024 * (4 * 512 * 2048 + 512 * 64)
    # Backward, each layer has a product for its weights, and all but the first one for its input.
    assert (rows["aten::addmm"]["flops"], rows["aten::mm"]["flops"]) == (first + others, first + 2 * others)
    assert rows["AddmmBackward0"]["gpu_total_ns"] == rows["aten::mm"]["gpu_self_ns"]
    assert int(table.frame["gpu_self_ns"].sum()) + table.without_op_ns == table.gpu_ns
    assert table.without_op_ns == 0
    assert roofline_table(trace).modelled_ns > 0.99 * table.gpu_ns
