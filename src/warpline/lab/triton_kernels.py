"""Triton: five kernels against torch, torch.compile and the bandwidth of a copy, each with a bad version.

The kernels are in `warpline.lab.kernels`, one file each.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from warpline.errors import CannotAnswer
from warpline.lab.model import LabColumn, LabExperiment, LabTable, LabValue, Observation
from warpline.lab.workbench import Workbench
from warpline.units import share, speedup

if TYPE_CHECKING:
    from warpline.lab.kernels.model import TritonKernel

ROWS, COLUMNS = 16384, 8192
"""268 MB in bf16: several times the L2 of any GPU."""
DTYPE = "bfloat16"
TABLE = (
    LabColumn("kernel", "kernel"),
    LabColumn("time_ns", "Triton", "ns"),
    LabColumn("rate", "rate", "bytes_per_second"),
    LabColumn("copy_share", "of a copy", "share"),
    LabColumn("eager_ns", "eager", "ns"),
    LabColumn("compile_ns", "compile", "ns"),
    LabColumn("against_compile", "compile over Triton", "gain"),
    LabColumn("bad_ns", "bad version", "ns"),
    LabColumn("bad_times", "slower by", "gain"),
    LabColumn("wrong", "cases wrong", "count"),
    LabColumn("fault", "what is wrong with the bad version"),
)


def run(lab: Workbench) -> Observation:
    """Every kernel, after a check that it is correct."""
    try:
        from warpline.lab.kernels.check import KERNELS  # noqa: PLC0415 - needs Triton
    except ImportError as error:
        raise CannotAnswer("no-triton", "Triton is not installed", "pip install triton") from error
    copy_rate = _copy_rate(lab)
    rows = [row for kernel in KERNELS if (row := lab.attempt(kernel.name, partial(_row, lab, kernel, copy_rate)))]
    title = f"{ROWS:,} rows of {COLUMNS:,} in bf16; a copy moves {copy_rate / 1e12:.2f} TB/s"
    table = LabTable("kernels", title, TABLE, tuple(rows))
    return Observation(_seen(table), WHY, (table,))


def _copy_rate(lab: Workbench) -> float:
    """Bytes per second of a copy within the device, read and written, of as many bytes."""
    source = lab.random(ROWS, COLUMNS, dtype=DTYPE)
    target = lab.torch.empty_like(source)
    moved = 2.0 * source.numel() * source.element_size()
    return moved / lab.time(target.copy_, source, name="copy", bytes=moved).median_ns * 1e9


def _row(lab: Workbench, kernel: TritonKernel, copy_rate: float) -> tuple[LabValue, ...]:
    from warpline.lab.kernels.check import wrong_cases  # noqa: PLC0415 - needs Triton

    torch = lab.torch
    lab.report(f"  {kernel.name}: {kernel.computes}")
    wrong = wrong_cases(torch, kernel, lab.device)
    lab.notes += [f"{kernel.name} is wrong: {case}" for case in wrong[:3]]
    args = kernel.inputs(torch, ROWS, COLUMNS, getattr(torch, DTYPE), lab.device)
    moved = kernel.passes * args[0].numel() * args[0].element_size()
    times = {"Triton": _timed(lab, kernel.run, args, f"{kernel.name}, Triton", moved)}
    times["eager"] = _timed(lab, kernel.reference, args, f"{kernel.name}, eager", moved)
    torch.compiler.reset()
    compiled = torch.compile(kernel.reference, dynamic=False)
    with lab.quiet():
        lab.attempt(f"{kernel.name}, compile", partial(compiled, *args))
    compile_ns = lab.attempt(
        f"{kernel.name}, compile", partial(_timed, lab, compiled, args, f"{kernel.name}, compile", moved)
    )
    bad_ns = lab.attempt(
        f"{kernel.name}, bad version", partial(_timed, lab, kernel.bad, args, f"{kernel.name}, bad version", moved)
    )
    rate = moved / times["Triton"] * 1e9
    return (
        kernel.name,
        times["Triton"],
        rate,
        rate / copy_rate,
        times["eager"],
        compile_ns,
        compile_ns / times["Triton"] if compile_ns else None,
        bad_ns,
        bad_ns / times["Triton"] if bad_ns else None,
        len(wrong),
        kernel.fault,
    )


def _timed(lab: Workbench, function: Any, args: tuple[Any, ...], name: str, moved: float) -> float:
    return lab.time(function, *args, name=name, bytes=moved).median_ns


def _seen(table: LabTable) -> str:
    shares = {str(row[0]): float(row[3]) for row in table.rows if isinstance(row[3], float)}
    ratios = {str(row[0]): float(row[6]) for row in table.rows if isinstance(row[6], float)}
    slower = {str(row[0]): float(row[8]) for row in table.rows if isinstance(row[8], float)}
    sentences = []
    if shares:
        low, high = min(shares.values()), max(shares.values())
        sentences.append(f"The kernels reach {share(low, 1)} to {share(high, 1)} of the rate of a copy.")
    if ratios:
        worst = min(ratios, key=lambda name: ratios[name])
        sentences.append(
            f"Against torch.compile the slowest is {worst}: compile takes {ratios[worst]:.2f} times as long."
        )
    if slower:
        sentences.append(
            f"The bad versions take {speedup(min(slower.values()))} to {speedup(max(slower.values()))} as long."
        )
    return " ".join(sentences)


WHY = (
    "Each of these kernels does little arithmetic for each byte, so the best it can do is to move every byte once, at "
    "the rate of a copy. Eager torch moves some bytes several times; a bad access pattern, too few programs, or values "
    "that spill move more bytes or leave units idle. `warpline dive` names the reason from Nsight Compute's counters."
)
EXPERIMENT = LabExperiment(
    "triton",
    "How near to the rate of a copy does a kernel written in Triton come, and what spoils it?",
    run,
    on_cpu="Triton's interpreter checks results on a CPU, but its times say nothing",
)
