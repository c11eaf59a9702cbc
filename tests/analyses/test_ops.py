"""The table of ops: times on paper, torch's own figures, and recorded profiles read once more by other means."""

from __future__ import annotations

import gzip
import json
import lzma
import operator
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from kineto_files import annotation, frame, launched, op, write
from paths import DATA, DEMO, SHARED

from warpline.analyses.ops import SORTS, OpsTable, ops_table
from warpline.cli.main import run
from warpline.cli.ops import GROUPS
from warpline.errors import CannotAnswer, UsageError
from warpline.reports.ops import ops_report
from warpline.reports.terminal import render
from warpline.trace.open import open_trace

FILTERED = {
    "profiler::_record_function_enter",
    "profiler::_record_function_enter_new",
    "profiler::_record_function_exit",
    "aten::is_leaf",
    "aten::output_nr",
    "aten::_version",
}


def table_of(folder: Path, events: list[Any], **options: Any) -> OpsTable:
    return ops_table(open_trace(write(folder, events)), **options)


def row(table: OpsTable, name: str) -> dict[str, Any]:
    (found,) = table.frame.filter(pl.col("name") == name).to_dicts()
    return dict(found)


def test_self_time_leaves_out_ops_and_calls_inside(tmp_path: Path) -> None:
    events = [
        annotation("forward", 0, 100),
        op("aten::linear", 10, 60, external=1),
        op("aten::mm", 20, 40, external=2),
        *launched("gemm", 30, 50, 200, 7),
    ]
    table = table_of(tmp_path, events)
    forward, linear, mm, launch = (
        row(table, name) for name in ("forward", "aten::linear", "aten::mm", "cudaLaunchKernel")
    )
    assert [item["kind"] for item in (forward, linear, mm, launch)] == ["range", "op", "op", "call"]
    assert [item["cpu_total_ns"] for item in (forward, linear, mm, launch)] == [100_000, 60_000, 40_000, 5_000]
    assert [item["cpu_self_ns"] for item in (forward, linear, mm, launch)] == [40_000, 20_000, 35_000, 5_000]
    assert [item["gpu_total_ns"] for item in (forward, linear, mm, launch)] == [200_000, 200_000, 200_000, 0]
    assert [item["gpu_self_ns"] for item in (forward, linear, mm, launch)] == [0, 0, 200_000, 0]
    assert [item["launches"] for item in (forward, linear, mm, launch)] == [1, 1, 1, 0]
    assert mm["share"] == 1
    assert (table.gpu_ns, table.without_op_ns) == (200_000, 0)


def test_an_op_that_only_calls_itself_counts_once_and_recursion_counts_each_time(tmp_path: Path) -> None:
    redispatched = [op("aten::add", 0, 50), op("aten::add", 10, 30)]
    recursive = [op("aten::cat", 100, 50), op("aten::cat", 110, 10), op("aten::copy_", 130, 10)]
    table = table_of(tmp_path, redispatched + recursive)
    add, cat = row(table, "aten::add"), row(table, "aten::cat")
    assert (add["calls"], add["cpu_total_ns"], add["cpu_self_ns"]) == (1, 50_000, 50_000)
    assert (cat["calls"], cat["cpu_total_ns"], cat["cpu_self_ns"]) == (2, 60_000, 40_000)


def test_kernels_of_an_op_that_is_left_out_count_for_the_op_around_it(tmp_path: Path) -> None:
    events = [op("aten::add", 0, 50), op("aten::add", 10, 30), *launched("k", 15, 60, 10, 1)]
    table = table_of(tmp_path, events)
    assert row(table, "aten::add")["gpu_self_ns"] == 10_000
    events = [op("aten::sum", 0, 50), op("aten::_version", 10, 30), *launched("k", 15, 60, 10, 1)]
    assert row(table_of(tmp_path, events), "aten::sum")["gpu_self_ns"] == 10_000


def test_a_kernel_without_an_op_has_its_own_row(tmp_path: Path) -> None:
    table = table_of(tmp_path, [op("aten::mm", 0, 20), *launched("a", 5, 30, 10, 1), *launched("b", 50, 60, 30, 2)])
    assert (table.gpu_ns, table.without_op_ns) == (40_000, 30_000)
    alone = row(table, "b")
    assert (alone["kind"], alone["calls"], alone["gpu_self_ns"], alone["cpu_self_ns"]) == ("kernel", 1, 30_000, None)
    assert int(table.frame["gpu_self_ns"].sum()) == table.gpu_ns


def test_steps_of_the_profiler_are_one_row(tmp_path: Path) -> None:
    steps = [annotation(f"ProfilerStep#{number}", 100 * number, 90) for number in range(3)]
    table = table_of(tmp_path, [*steps, op("aten::mm", 10, 20)])
    assert row(table, "ProfilerStep*")["calls"] == 3
    assert row(table, "ProfilerStep*")["cpu_self_ns"] == 250_000


def test_shapes_split_an_op(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 100 * at, 20, **{"Input Dims": [[size, 2], [2, 2]], "Input type": ["float", "float"]})
        for at, size in enumerate([8, 8, 16])
    ]
    table = table_of(tmp_path, events, group="shape", sort="calls")
    assert table.frame.select("group", "calls", "flops").rows() == [
        ("[[8, 2], [2, 2]]", 2, 128),
        ("[[16, 2], [2, 2]]", 1, 128),
    ]


def test_modules_lines_and_stacks_are_those_of_the_forward_op(tmp_path: Path) -> None:
    events = [
        frame("train.py(3): main", 0, 1000, 1, None),
        frame("train.py(9): step", 100, 500, 2, 1),
        frame("nn.Module: Linear_0", 110, 50, 3, 2),
        op("aten::mm", 120, 20, external=1, **{"Sequence number": 5, "Fwd thread id": 0}),
        op("MmBackward0", 200, 30, external=2, thread=200, **{"Sequence number": 5, "Fwd thread id": 1}),
        op("aten::mul", 210, 10, external=3, thread=200),
    ]
    for group, own, backward in (
        ("module", "Linear_0", "Linear_0 backward"),
        ("line", "train.py(def 9): step", "train.py(def 9): step"),
        ("stack", "train.py(def 9): step < train.py(open 3): main", "train.py(def 9): step < train.py(open 3): main"),
    ):
        table = table_of(tmp_path, events, group=group)
        assert [row(table, name)["group"] for name in ("aten::mm", "MmBackward0", "aten::mul")] == [
            own,
            backward,
            backward,
        ]
        assert (row(table, "aten::mm")["file"], row(table, "aten::mm")["line"]) == ("train.py", 9)


def test_steps_choose_ops_and_kernels(tmp_path: Path) -> None:
    events: list[Any] = []
    for step in range(3):
        at = 100 * step
        events += [annotation(f"ProfilerStep#{step}", at, 100), op("aten::mm", at + 10, 30, external=step + 1)]
        events += launched("gemm", at + 15, at + 50, 20, step + 1)
    trace = open_trace(write(tmp_path, events), steps="1:")
    table = ops_table(trace)
    assert row(table, "aten::mm")["calls"] == 2
    assert table.gpu_ns == 40_000
    assert table.steps == 2


def test_a_profile_without_ops_and_unknown_words_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CannotAnswer):
        table_of(tmp_path, launched("k", 0, 10, 10, 1))
    with pytest.raises(UsageError):
        table_of(tmp_path, [op("aten::mm", 0, 10)], group="colour")
    with pytest.raises(UsageError):
        table_of(tmp_path, [op("aten::mm", 0, 10)], sort="colour")


@pytest.mark.parametrize("sort", SORTS)
def test_rows_come_in_the_order_asked_for(sort: str) -> None:
    values = ops_table(open_trace(DEMO), sort=sort).frame[SORTS[sort]].drop_nulls()
    assert values.to_list() == sorted(values.to_list(), reverse=True)


@pytest.mark.parametrize("group", GROUPS)
def test_groups_keep_every_call_and_nanosecond(group: str) -> None:
    trace = open_trace(DEMO)
    whole, split = ops_table(trace), ops_table(trace, group=group)
    sums = ("calls", "cpu_self_ns", "cpu_total_ns", "gpu_self_ns", "gpu_total_ns", "launches")
    assert split.frame.select(sums).sum().rows() == whole.frame.select(sums).sum().rows()
    assert int(whole.frame["gpu_self_ns"].sum()) + whole.without_op_ns == whole.gpu_ns


def test_the_line_of_code_is_a_column_of_its_own(tmp_path: Path) -> None:
    events = [
        frame("/home/me/project/train.py(12): forward", 0, 90, 1, None),
        op("aten::mm", 20, 40, external=2),
        *launched("gemm", 30, 50, 200, 7),
    ]
    found = table_of(tmp_path, events)
    text = render(ops_report(found, "title", "trace.json", 5), 200).plain
    (line,) = [line for line in text.splitlines() if "aten::mm" in line]
    assert line.split("aten::mm")[1].strip() == f"forward of {row(found, 'aten::mm')['file']}"
    assert "where" in text
    by_line = render(ops_report(table_of(tmp_path, events, group="line"), "title", "trace.json", 5), 200).plain
    assert by_line.count("train.py") == 1


def test_the_command_prints_json_and_writes_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, [op("aten::mm", 0, 20), *launched("a", 5, 30, 10, 1)]))
    assert run(["ops", path, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["schema"], answer["ops"][0]["name"]) == ("warpline.ops/1", "aten::mm")
    target = tmp_path / "ops.md"
    assert run(["ops", path, "-o", str(target)]) == 0
    assert "aten::mm" in target.read_text()
    assert run(["ops", path, "-o", str(target)]) == 2


# Torch's own figures


def _programs() -> dict[str, Any]:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    optimizer = torch.optim.AdamW(model.parameters())
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def training() -> None:
        with torch.profiler.record_function("step"):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(torch.randn(8, 16)), torch.randint(4, (8,))).backward()
            optimizer.step()

    def attention() -> None:
        layer(torch.randn(2, 5, 16)).sum().backward()

    def recursion() -> None:
        values = [torch.randn(3, 3).double().to(torch.float32).contiguous() for _ in range(3)]
        torch.block_diag(torch.cat(values), torch.stack(values).sum(0)).to(torch.int64).unique()
        torch.linalg.solve(torch.eye(3) * 2, torch.ones(3))

    return {"training": training, "attention": attention, "recursion": recursion}


def _plain(shapes: list[Any]) -> str:
    """Shapes as torch's table has them: a list of tensors is empty, and no shapes are as many empty ones."""
    flat = [[] if shape and isinstance(shape[0], list) else shape for shape in shapes]
    return str(flat) if any(flat) else ""


@pytest.mark.parametrize("name", ["training", "attention", "recursion"])
def test_calls_and_times_are_those_of_key_averages(name: str, tmp_path: Path) -> None:
    program = _programs()[name]
    from torch.profiler import ProfilerActivity, profile  # noqa: PLC0415 - torch is optional

    program()
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(3):
            program()
            profiler.step()
    path = tmp_path / "trace.json"
    profiler.export_chrome_trace(str(path))
    for options, group in (({}, None), ({"group_by_input_shape": True}, "shape")):
        expected: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
        for event in profiler.key_averages(**options):
            total = expected[event.key, _plain(event.input_shapes or []) if group else ""]
            for at, value in enumerate(
                (event.count, round(1000 * event.self_cpu_time_total), round(1000 * event.cpu_time_total))
            ):
                total[at] += value
        found: dict[Any, list[int]] = defaultdict(lambda: [0, 0, 0])
        for line in ops_table(open_trace(path), group=group).frame.to_dicts():
            total = found[line["name"], _plain(json.loads(line["group"] or "[]")) if group else ""]
            for at, value in enumerate((line["calls"], line["cpu_self_ns"], line["cpu_total_ns"])):
                total[at] += value
        assert len(found) > 10
        assert dict(found) == dict(expected)


AVERAGES = DATA / "kineto" / "averages"
FIVE = ("calls", "cpu_self_ns", "cpu_total_ns", "gpu_self_ns", "gpu_total_ns")


@pytest.mark.parametrize("group", [None, "shape"])
@pytest.mark.parametrize("name", ["training", "attention", "graph"])
def test_cuda_programs_have_the_figures_of_key_averages(name: str, group: str | None) -> None:
    """Calls, CPU self and total, GPU self and total, to the nanosecond, as torch counted them on an H200."""
    reference = json.loads(lzma.decompress((AVERAGES / "key_averages.json.xz").read_bytes()))
    expected: dict[Any, list[int]] = defaultdict(lambda: [0] * 5)
    for key, shapes, *values in reference[name][group or "plain"]:
        total = expected[key, _plain(shapes) if group else ""]
        total[:] = map(operator.add, total, values)
    found: dict[Any, list[int]] = defaultdict(lambda: [0] * 5)
    table = ops_table(open_trace(AVERAGES / f"{name}.json.xz"), group=group).frame
    # torch has no rows of kernels without an op, such as those of a graph.
    for line in table.filter(pl.col("cpu_self_ns").is_not_null()).to_dicts():
        total = found[line["name"], _plain(json.loads(line["group"] or "[]")) if group else ""]
        total[:] = map(operator.add, total, (line[field] for field in FIVE))
    assert len(found) > 20 and sum(values[3] for values in found.values())
    assert dict(found) == dict(expected)


# Recorded profiles, attributed once more from the raw events


def raw_gpu_times(path: Path) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Calls, GPU self and GPU total by name, for ops; calls, CPU self and total: torch's rules, event by event."""
    with gzip.open(path) as file:
        events = json.load(file)["traceEvents"]
    spans = [event for event in events if event.get("ph") == "X"]
    ops = [event for event in spans if event["cat"] == "cpu_op" and event["name"] not in FILTERED]
    ops += [event for event in spans if event["cat"] == "user_annotation"]
    calls = [event for event in spans if event["cat"] in {"cuda_runtime", "cuda_driver"}]
    by_id = {event["args"].get("External id"): event for event in ops if event["cat"] == "cpu_op"}
    thread = {id(event): event["tid"] for event in ops}
    for event in calls:
        linked = by_id.get(event["args"].get("External id"))
        thread[id(event)] = linked["tid"] if linked else event["tid"]
    nodes = sorted(ops + calls, key=lambda event: (str(thread[id(event)]), _start(event), -_end(event)))
    parent: dict[int, Any] = {}
    children: dict[int, list[Any]] = defaultdict(list)
    stack: list[Any] = []
    for event in nodes:
        while stack and (
            thread[id(stack[-1])] != thread[id(event)]
            or _start(event) >= _end(stack[-1])
            or _end(event) > _end(stack[-1])
        ):
            stack.pop()
        if stack:
            parent[id(event)] = stack[-1]
            children[id(stack[-1])].append(event)
        stack.append(event)
    merged: dict[int, Any] = {}
    for event in nodes:
        above = parent.get(id(event))
        if above is not None and above["name"] == event["name"] and len(children[id(above)]) == 1:
            merged[id(event)] = above
            children[id(above)] = children[id(event)]
            for child in children[id(event)]:
                parent[id(child)] = above
    host: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for event in nodes:
        if id(event) not in merged:
            inside = sum(_end(child) - _start(child) for child in children[id(event)])
            length = _end(event) - _start(event)
            name = "ProfilerStep*" if event["name"].startswith("ProfilerStep#") else event["name"]
            host[name] = [host[name][0] + 1, host[name][1] + length - inside, host[name][2] + length]
    device: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for event in spans:
        if event["cat"] not in {"kernel", "gpu_memcpy", "gpu_memset"}:
            continue
        node = by_id.get(event["args"].get("External id"))
        while node is not None and id(node) in merged:
            node = merged[id(node)]
        length = _end(event) - _start(event)
        if node is not None:
            device[node["name"]][0] += length
        while node is not None:
            name = "ProfilerStep*" if node["name"].startswith("ProfilerStep#") else node["name"]
            device[name][1] += length
            node = parent.get(id(node))
    return host, device


def _start(event: Any) -> int:
    return round(float(event["ts"]) * 1000)


def _end(event: Any) -> int:
    return _start(event) + round(float(event["dur"]) * 1000)


@pytest.mark.shared
@pytest.mark.parametrize("name", ["layer_eager", "block_fp32", "compiled", "streams"])
def test_recorded_profiles_follow_torchs_rules(name: str) -> None:
    path = SHARED / "h200" / "kineto" / f"{name}.json.gz"
    host, device = raw_gpu_times(path)
    found = {line["name"]: line for line in ops_table(open_trace(path)).frame.to_dicts()}
    assert {key: [line["calls"], line["cpu_self_ns"], line["cpu_total_ns"]] for key, line in found.items()} == host
    with_time = {
        key: [line["gpu_self_ns"], line["gpu_total_ns"]] for key, line in found.items() if line["gpu_total_ns"]
    }
    assert with_time == {key: value for key, value in device.items() if value[1]}


@pytest.mark.shared
def test_the_matmuls_of_a_layer_take_what_their_kernels_and_memsets_take() -> None:
    table = ops_table(open_trace(SHARED / "h200" / "kineto" / "layer_eager.json.gz"))
    assert row(table, "aten::mm")["gpu_self_ns"] == 16_448_189


def test_self_times_do_not_exceed_the_time_where_ranges_overlap(tmp_path: Path) -> None:
    """The optimizer's step ends 10 µs after the profiler's, which it began in: 40 of its 50 µs are no longer the
    latter's, and 10 belong to the next."""
    events = [
        annotation("ProfilerStep#0", 0, 100),
        op("aten::mm", 10, 30, external=1),
        annotation("Optimizer.step#SGD.step", 60, 50),
        op("aten::add_", 71, 20, external=2),
        annotation("ProfilerStep#1", 100, 50),
    ]
    table = table_of(tmp_path, events)
    own = {name: row(table, name)["cpu_self_ns"] for name in ("ProfilerStep*", "aten::mm", "Optimizer.step#SGD.step")}
    assert own == {"ProfilerStep*": 30_000 + 50_000, "aten::mm": 30_000, "Optimizer.step#SGD.step": 20_000}
    assert table.frame["cpu_self_ns"].sum() == table.window_ns == 150_000


def test_a_cpu_program_is_pointed_to_no_verb_about_the_gpu(tmp_path: Path) -> None:
    trace = open_trace(write(tmp_path, [op("aten::mm", 0, 10)]))
    report = str(ops_report(ops_table(trace), "title", "x.json", 9))
    assert "warpline diagnose x.json" in report
    assert "warpline roofline" not in report
    assert "warpline parts" not in report


@pytest.mark.parametrize(
    ("name", "says"), [("gpu_metrics.sqlite.xz", "stats"), ("graph_bar.sqlite.gz", "torch.profiler")]
)
def test_only_a_program_of_pytorch_is_asked_for_a_trace_of_torch_profiler(name: str, says: str) -> None:
    with pytest.raises(CannotAnswer) as caught:
        ops_table(open_trace(DATA / "nsys" / name))
    assert says in (caught.value.hint or "")
