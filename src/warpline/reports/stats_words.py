"""What `stats -v` says about the rows of its tables: a sentence for each name, and API time spent once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl
from msgspec import to_builtins

from warpline.analyses.api_split import KINDS, ONE_TIME, ApiSplit
from warpline.analyses.gpu_metrics import GpuMetric
from warpline.analyses.words import words_of
from warpline.kernels import identify
from warpline.units import duration, several, share

_API = {"cuda_api_sum", "cuda_api_trace", "cuda_api_gpu_sum"}
_OS = {"osrt_sum"}
_KERNELS = {"cuda_gpu_kern_sum", "cuda_gpu_kern_gb_sum", "cuda_gpu_sum", "cuda_gpu_trace", "cuda_api_gpu_sum"}
SHOWN = 20
"""Names per report that get a sentence, in the order of the table; all of the OS's, whose tables are short."""


def words_of_rows(report: str, frame: pl.DataFrame) -> dict[str, str]:
    """A sentence for each of the first names of a report that has one."""
    if "Name" not in frame.columns:
        return {}
    found: dict[str, str] = {}
    names = frame["Name"].unique(maintain_order=True).drop_nulls()
    for name in names if report in _OS else names.head(SHOWN):
        text = _sentence(report, name)
        if text:
            found[name] = text
    return found


def _sentence(report: str, name: str) -> str | None:
    call = words_of(name, "api") if report in _API else words_of(name, "os") if report in _OS else None
    if call is not None:
        return call.text
    if report not in _KERNELS:
        return None
    kernel_class = identify(name).kernel_class
    words = words_of(kernel_class, "class")
    return f"{kernel_class}: {words.text}" if words is not None else None


def words_text(words: Iterable[tuple[str, str]]) -> str:
    """The sentences as lines."""
    return "".join(f"  {name}: {text}\n" for name, text in words)


def os_total_text(frame: pl.DataFrame) -> str:
    """The sum of the OS's rows, with and without calls that only wait."""
    total_ns = calls = waiting_ns = 0
    for name, time_ns, count in frame.select("Name", "Total Time (ns)", "Num Calls").iter_rows():
        total_ns, calls = total_ns + time_ns, calls + count
        words = words_of(name or "", "os")
        waiting_ns += time_ns if words is not None and words.when == "wait" else 0
    if not total_ns:
        return ""
    return (
        f"OS calls: {duration(total_ns)} in {several(calls, 'call')}, of which {duration(waiting_ns)} wait (mostly "
        f"idle helper threads) and {duration(total_ns - waiting_ns)} work.\n"
    )


def split_text(split: ApiSplit) -> str:
    """API time spent once against the rest, as lines; empty without calls."""
    if not split.total_ns:
        return ""
    lines = [
        f"API time: {duration(split.total_ns)}, of which {share(split.one_time_ns, split.total_ns)} is spent once "
        f"({duration(split.one_time_ns)})."
    ]
    for part in split.parts:
        within = ""
        if part.in_steps_ns is not None and split.steps:
            steps = f"{duration(part.in_steps_ns)} of it within steps"
            within = f", {steps if part.kind in ONE_TIME else f'{duration(part.in_steps_ns / split.steps)} a step'}"
        calls = several(part.calls, "call")
        time = f"{share(part.time_ns, split.total_ns):>7} {KINDS[part.kind]}: {duration(part.time_ns)}"
        lines.append(f"  {time} in {calls}{within}")
    return "\n".join(lines) + "\n"


def split_dict(split: ApiSplit) -> dict[str, Any]:
    """The same for JSON."""
    return {
        "total_ns": split.total_ns,
        "one_time_ns": split.one_time_ns,
        "steps": split.steps,
        "parts": to_builtins(split.parts),
    }


def metrics_text(metrics: tuple[GpuMetric, ...]) -> str:
    """GPU metrics as lines, without those that never were above zero; empty without any."""
    used = [one for one in metrics if one.maximum]
    if not used:
        return ""
    lines = ["GPU metrics: mean; mean while the GPU is busy; mean within steps; maximum"]
    for one in used:
        numbers = (one.mean, one.busy_mean, one.step_mean, one.maximum)
        values = " ".join(f"{value:>13,.1f}" if value is not None else f"{'–':>13}" for value in numbers)
        unit = f" ({one.unit})" if one.unit else ""
        lines.append(f"  {values}  {_device(one)}{one.name}{unit}")
    return "\n".join([*lines, *_by_range(used)]) + "\n"


def _by_range(metrics: list[GpuMetric]) -> Iterator[str]:
    """The known units within the ranges that the program named, a line for each range."""
    for device in dict.fromkeys(one.device for one in metrics):
        known = [one for one in metrics if one.unit and one.device == device and one.range_means]
        names = list(dict.fromkeys(name for one in known for name in one.range_means))
        if not names:
            continue
        widths = [max(len(one.unit or ""), 6) for one in known]
        units = "  ".join(f"{one.unit:>{width}}" for one, width in zip(known, widths, strict=True))
        yield f"  mean in each range, %: {_device(known[0])}"
        yield f"  {units}  range"
        for name in names:
            cells = [one.range_means.get(name) for one in known]
            words = ("–" if cell is None else f"{cell:.1f}" for cell in cells)
            yield "  " + "  ".join(f"{word:>{width}}" for word, width in zip(words, widths, strict=True)) + f"  {name}"


def _device(metric: GpuMetric) -> str:
    return f"GPU {metric.device}: " if metric.device is not None else ""
