"""The tables of docs/work-models.md, made from recorded profiles: against Nsight Compute, and what bounds what.

`WARPLINE_UPDATE=1 pytest tests/work/test_work_models_page.py` rewrites them.
"""

from __future__ import annotations

import csv
import gzip
import os
from dataclasses import dataclass
from functools import cache

import pytest
from calls import HALF, SINGLE, call
from paths import ROOT, SHARED

from warpline.analyses.roofline.entry import RooflineEntry, RooflineTable
from warpline.analyses.roofline.table import roofline_table
from warpline.hardware import roof_of
from warpline.reports.roofline import shape_label
from warpline.trace.open import open_trace
from warpline.work import MATRIX, OpCall, work_of

PAGE = ROOT / "docs" / "work-models.md"
SCALES = {"byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "%": 1.0}
TILES = "each tile reads its operands again; L2 serves most of these reads"
STAYS = "the last bytes written are still in L2 when the kernel ends"
NONE_READ = "nothing is read; the last bytes written are still in L2"


@dataclass(frozen=True)
class Profiled:
    """A kernel of a file of Nsight Compute's, and the op that launched it."""

    file: str
    number: int
    op: OpCall
    math: tuple[str, str]
    reason: str


def mm(rows: int, inner: int, columns: int, dtype: str = HALF) -> OpCall:
    return call("aten::mm", ((rows, inner), dtype), ((inner, columns), dtype))


def one(name: str, *shape: int, operands: int = 1, dtype: str = HALF) -> OpCall:
    return call(name, *[(shape, dtype)] * operands)


LAYER, BLOCK, VECTOR = "layer_full", "block_full", ("fp32", "vector")
PROFILED = [
    Profiled(LAYER, 7, mm(2048, 4096, 12288), ("fp16", "tensor"), TILES),
    Profiled(LAYER, 8, mm(2048, 4096, 4096), ("fp16", "tensor"), TILES),
    Profiled(LAYER, 0, mm(2048, 4096, 11008), ("fp16", "tensor"), TILES),
    Profiled(LAYER, 4, mm(2048, 11008, 4096), ("fp16", "tensor"), TILES),
    Profiled(LAYER, 2, one("aten::silu", 2048, 11008), VECTOR, STAYS),
    Profiled(LAYER, 3, one("aten::mul", 2048, 11008, operands=2), VECTOR, STAYS),
    Profiled(LAYER, 5, one("aten::add", 2048, 4096, operands=2), VECTOR, STAYS),
    Profiled(
        LAYER,
        6,
        call("aten::native_layer_norm", ((2048, 4096), HALF), [4096], ((4096,), HALF), ((4096,), HALF), 1e-5),
        VECTOR,
        "all output fits in L2; one row at a time leaves memory idle",
    ),
    Profiled(BLOCK, 0, one("aten::uniform_", 4096, 4096, dtype=SINGLE), VECTOR, NONE_READ),
    Profiled(BLOCK, 4, one("aten::uniform_", 16384, 4096, dtype=SINGLE), VECTOR, NONE_READ),
    Profiled(BLOCK, 6, one("aten::normal_", 16, 512, 4096, dtype=SINGLE), VECTOR, NONE_READ),
    Profiled(BLOCK, 7, mm(8192, 4096, 4096, SINGLE), ("tf32", "tensor"), TILES),
]


@cache
def ncu(file: str) -> tuple[dict[str, float], ...]:
    """Metrics of each kernel of a file, in bytes, seconds and percent."""
    with gzip.open(SHARED / "h200" / "ncu" / f"{file}.raw.csv.gz", "rt") as text:
        names, units, *rows = csv.reader(text)
    wanted = {
        "read": "dram__bytes_read.sum",
        "written": "dram__bytes_write.sum",
        "seconds": "gpu__time_duration.sum",
        "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "hit": "lts__t_sector_hit_rate.pct",
        "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    }
    places = {key: names.index(name) for key, name in wanted.items()}
    return tuple(
        {key: float(row[at].replace(",", "")) * SCALES[units[at]] for key, at in places.items()} for row in rows
    )


def our_percent(item: Profiled, seconds: float) -> float:
    roof, work = roof_of("H200"), work_of(item.op)
    assert work is not None
    memory = roof.bandwidth("dram")
    assert memory is not None
    floor = work.bytes / memory.value
    for part in work.flops:
        peak = roof.compute(*(item.math if part.unit == MATRIX else ("fp32", "vector")))
        assert peak is not None
        floor = max(floor, part.count / peak.value)
    return 100 * floor / seconds


def ncu_table() -> str:
    lines = [
        "| kernel of | our bytes, read + written (MB) | `dram__bytes`, read + written (MB) | L2 hits | our % of roof "
        "| ncu's SM % / memory % | why they differ |",
        "|---|---|---|---|---|---|---|",
    ]
    for item in PROFILED:
        work, metrics = work_of(item.op), ncu(item.file)[item.number]
        assert work is not None
        shapes = " · ".join("×".join(map(str, tensor.shape)) for tensor in item.op.all_tensors())
        lines.append(
            f"| `{item.op.name}` {shapes} | {work.read_bytes / 1e6:.1f} + {work.written_bytes / 1e6:.1f} "
            f"| {metrics['read'] / 1e6:.1f} + {metrics['written'] / 1e6:.1f} | {min(metrics['hit'], 100):.0f} % "
            f"| {our_percent(item, metrics['seconds']):.0f} | {metrics['sm']:.0f} / {metrics['memory']:.0f} "
            f"| {item.reason} |"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.shared
@pytest.mark.parametrize("item", PROFILED, ids=lambda item: f"{item.op.name}-{item.number}")
def test_memory_never_carries_much_less_than_is_read_nor_more_than_is_written(item: Profiled) -> None:
    # ncu empties the caches before each kernel, so inputs come from memory at least once; only what is written
    # last may still be in L2 when the kernel ends.
    work, metrics = work_of(item.op), ncu(item.file)[item.number]
    assert work is not None
    assert metrics["read"] >= 0.98 * work.read_bytes
    assert metrics["written"] <= 1.02 * work.written_bytes
    assert metrics["written"] >= work.written_bytes - 52_428_800


@cache
def table(path: str) -> RooflineTable:
    return roofline_table(open_trace(SHARED / path))


def entry(path: str, name: str, shapes: str) -> RooflineEntry:
    return next(item for item in table(path).entries if item.name == name and shape_label(item.shapes) == shapes)


LAYER_TRACE, TRAIN, DECODE, FP32 = (
    f"h200/kineto/{name}.json.gz" for name in ("layer_eager", "llama_train", "llama_decode", "block_fp32")
)
CLASSIFIED = [
    ("GEMM, prefill (M = 2048)", LAYER_TRACE, "aten::mm", "2048×4096 · 4096×12288", "compute"),
    ("GEMM, decode (M = 1)", DECODE, "aten::mm", "1×1024 · 1024×32000", "memory"),
    ("GEMM, decode, small", DECODE, "aten::mm", "1×1024 · 1024×2816", "latency"),
    (
        "Attention, causal, 1,024 tokens",
        TRAIN,
        "aten::_cudnn_attention_forward",
        "8×16×1024×128 · 8×16×1024×128 · 8×16×1024×128",
        "compute",
    ),
    ("LayerNorm", LAYER_TRACE, "aten::native_layer_norm", "1×2048×4096 · 4096 · 4096", "memory"),
    ("SiLU", LAYER_TRACE, "aten::silu", "1×2048×11008", "memory"),
    ("gate × up", LAYER_TRACE, "aten::mul", "1×2048×11008 · 1×2048×11008", "memory"),
    ("Residual add", LAYER_TRACE, "aten::add", "1×2048×4096 · 1×2048×4096", "memory"),
    ("Softmax", FP32, "aten::_softmax", "16×512×512", "memory"),
    ("Log-softmax, 32,000 classes", TRAIN, "aten::_log_softmax", "8192×32000", "memory"),
    ("AdamW, fused", TRAIN, "aten::_fused_adamw_", "", "memory"),
]


def classified_table() -> str:
    lines = [
        "| operation | op and shapes | FLOP/byte | bound by | achieved | % of roof |",
        "|---|---|---|---|---|---|",
    ]
    for title, path, name, shapes, _ in CLASSIFIED:
        found = entry(path, name, shapes)
        by_flops = found.bound == "compute"
        rate = found.flops_per_second if by_flops else found.bytes_per_second
        lines.append(
            f"| {title} | `{name}` {shapes} | {found.intensity or 0:,.4g} | {found.bound} "
            f"| {rate / 1e12:.3g} {'TFLOP/s' if by_flops else 'TB/s'} "
            f"| {'~' if found.estimate else ''}{found.roof_pct or 0:.0f} |"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.shared
@pytest.mark.parametrize(("title", "path", "name", "shapes", "bound"), CLASSIFIED, ids=lambda value: str(value)[:24])
def test_what_bounds_what(title: str, path: str, name: str, shapes: str, bound: str) -> None:
    found = entry(path, name, shapes)
    assert found.bound == bound, title
    assert found.roof_pct is not None
    assert 0 < found.roof_pct < 110


@pytest.mark.shared
@pytest.mark.parametrize(("mark", "make"), [("ncu", ncu_table), ("classified", classified_table)])
def test_the_page_has_the_tables_of_today(mark: str, make: object) -> None:
    assert callable(make)
    start, end = f"<!-- {mark}: WARPLINE_UPDATE=1 pytest tests/work writes it -->\n", f"<!-- end of {mark} -->\n"
    head, rest = PAGE.read_text(encoding="utf-8").split(start)
    written, tail = rest.split(end)
    wanted = make()
    if os.environ.get("WARPLINE_UPDATE"):
        PAGE.write_text(head + start + wanted + end + tail, encoding="utf-8")
        written = wanted
    assert written == wanted, "docs/work-models.md is behind: WARPLINE_UPDATE=1 pytest tests/work"
