"""The diagnosis as a terminal report: what to doubt, where the time went, and what to type next."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from warpline.analyses.breakdown import DeviceTime
from warpline.analyses.gaps import Gaps
from warpline.findings.diagnosis import Diagnosis
from warpline.fixes.words import counted
from warpline.reports.findings import explained, gains
from warpline.reports.numbers import numbers_table
from warpline.sources.stdin import as_typed
from warpline.units import duration, share, size

if TYPE_CHECKING:
    from warpline.findings.rank import Judgement

BAR_WIDTH = 60
PARTS = (("compute", "green"), ("comm", "magenta"), ("copy", "yellow"), ("memset", "cyan"), ("idle", "bright_black"))
MARKS = {"error": ("✗", "red"), "warning": ("!", "yellow"), "info": ("·", "cyan")}
CAUSE_MEANING = {
    "dispatch": "Python, framework and API calls were not fast enough",
    "sync": "the CPU was waiting for the device",
    "transfer": "the CPU was staging or waiting for a copy",
    "input": "the program was waiting for data",
    "memory": "memory was being allocated or freed",
    "comm": "waiting for other ranks",
    "cold_start": "code was being loaded, compiled or initialised",
    "launch_latency": "from the launch to its beginning on the device",
    "dependency": "launched in time, but waiting for other work on the device",
    "profiler": "the profiler itself",
    "unknown": "nothing recorded explains it",
}
LISTED_STEPS = 8
LISTED_SYNCS = 6
ROOM_FOR_SPREAD = 110
"""Terminals narrower than this show two figures of each kernel's spread instead of five."""


def render(diagnosis: Diagnosis, top: int = 10, width: int = 120) -> RenderableType:
    """The whole report, in the order in which one reads it, no wider than `width`."""
    parts: list[RenderableType] = [_head(diagnosis)]
    if diagnosis.health:
        parts += [_title("Health of the profile"), _health(diagnosis)]
    for device, gaps in zip(diagnosis.devices, diagnosis.gaps, strict=True):
        parts += [_title(_device_title(diagnosis, device)), _device(device, gaps)]
    if diagnosis.judgement is not None:
        parts += [_title("Verdict"), *_verdict(diagnosis.judgement, width)]
    if len(diagnosis.steps):
        parts += [_title(_steps_title(diagnosis)), _steps(diagnosis, width)]
    if len(diagnosis.kernels):
        parts += [_title("Kernels"), _kernels(diagnosis, top, width)]
    if len(diagnosis.launches):
        parts += [_title("Launches"), _launches(diagnosis, width)]
    if len(diagnosis.copies):
        parts += [_title("Copies"), _copies(diagnosis, width)]
    if len(diagnosis.syncs):
        parts += [_title("Waits of the CPU, per step"), _syncs(diagnosis, width)]
    parts += [_title("Next"), _next(diagnosis, width)]
    return Group(*parts)


def _title(text: str) -> Text:
    return Text(f"\n{text}", style="bold")


def _head(diagnosis: Diagnosis) -> Text:
    trace = diagnosis.trace
    words = [trace.path.name, trace.source, diagnosis.device_name or "no GPU work"]
    if trace.step_ns is not None:
        words.append(f"{len(diagnosis.steps)} steps of {duration(trace.step_ns)}")
    words.append(f"{len(trace.gpu):,} GPU operations, {len(trace.api):,} calls, {len(trace.ops):,} ops")
    return Text(" · ".join(words), style="bold blue")


def _health(diagnosis: Diagnosis) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=2)
    table.add_column(no_wrap=True)
    table.add_column()
    for entry in diagnosis.health:
        mark, colour = MARKS[entry.severity]
        table.add_row(Text(f" {mark}", colour), Text(entry.code, colour), entry.message)
    return table


def _device_title(diagnosis: Diagnosis, device: DeviceTime) -> str:
    window = "the chosen steps" if diagnosis.trace.chosen_steps else "first to last GPU operation"
    return (
        f"GPU {device.device}: {duration(device.window_ns)} ({window}), busy {share(device.busy_ns, device.window_ns)}"
    )


def _device(device: DeviceTime, gaps: Gaps) -> RenderableType:
    lengths = {part: int(getattr(device, f"{part}_ns")) for part, _ in PARTS}
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    table.add_column(justify="right")
    table.add_column(style="bright_black")
    hidden = {"comm": device.overlapped_comm_ns, "copy": device.overlapped_copy_ns}
    for part, colour in PARTS:
        if lengths[part] or part in {"compute", "idle"}:
            note = f"and {duration(hidden[part])} hidden behind other work" if hidden.get(part) else ""
            table.add_row(
                Text(f"■ {part}", colour), duration(lengths[part]), share(lengths[part], device.window_ns), note
            )
    for cause, length in sorted(gaps.totals().items(), key=lambda item: -item[1]):
        if length:
            table.add_row(
                Text(f"  {cause}", "bright_black"),
                duration(length),
                share(length, device.window_ns),
                CAUSE_MEANING[cause],
            )
    return Padding(Group(_bar(lengths, device.window_ns), table), (0, 0, 0, 2))


def _verdict(judgement: Judgement, width: int) -> list[RenderableType]:
    """The sentence, each finding with its replayed gain, and what was seen, where, and what to do."""
    parts: list[RenderableType] = [Padding(Text(judgement.verdict.sentence, style="bold yellow"), (0, 0, 0, 2))]
    if judgement.findings:
        parts += [gains(judgement.findings, width), explained(judgement.findings)]
    return parts


def _bar(lengths: dict[str, int], whole: int) -> Text:
    """A bar whose cells add up to its width: each part ends at its rounded running sum."""
    bar = Text()
    so_far, drawn = 0, 0
    for part, colour in PARTS:
        so_far += lengths[part]
        reach = round(BAR_WIDTH * so_far / whole) if whole else 0
        bar.append(("░" if part == "idle" else "█") * (reach - drawn), style=colour)
        drawn = reach
    return bar


def _steps_title(diagnosis: Diagnosis) -> str:
    found = diagnosis.trace.steps["found_by"][0]
    how = {
        "profiler_step": "from ProfilerStep",
        "range": "from ranges",
        "python": "from calls of a function",
        "repetition": "from repeating work",
    }
    return f"Steps ({how.get(found, found)})"


def _steps(diagnosis: Diagnosis, width: int) -> Table:
    rows = [
        [
            str(row["index"]),
            duration(row["length_ns"]),
            share(row["busy_ns"], row["length_ns"]),
            f"{row['operations']:,}",
            row["name"],
        ]
        for row in diagnosis.steps.head(LISTED_STEPS).rows(named=True)
    ]
    more = len(diagnosis.steps) - LISTED_STEPS
    if more > 0:
        rows.append(["…", "", "", "", f"{more} more"])
    return numbers_table(["step", "length", "GPU busy", "operations", "name"], rows, width)


def _kernels(diagnosis: Diagnosis, top: int, width: int) -> Table:
    spread = ["mean", "median", "min", "max", "std"] if width >= ROOM_FOR_SPREAD else ["median", "max"]
    rows = [
        [
            f"{100 * row['share']:.1f} %",
            duration(row["total_ns"]),
            f"{row['count']:,}",
            *(duration(row[f"{what}_ns"]) for what in spread),
            _kind(row),
            compact_name(row["name"]),
        ]
        for row in diagnosis.kernels.head(top).rows(named=True)
    ]
    return numbers_table(["time", "total", "count", *spread, "class", "kernel"], rows, width)


def _kind(row: dict[str, Any]) -> str:
    """What the name says about the kernel, in a few words: `gemm tf32 TC`, tensor cores."""
    words = [row["class"]]
    if row["class"] in {"gemm", "conv", "attention"}:
        words += [row["dtype"]] if row["dtype"] else []
        words += {True: ["TC"], False: ["no TC"]}.get(row["tensor_core"], [])
    return " ".join(words)


def compact_name(name: str) -> str:
    """A kernel's name without what all have in common: `void`, well-known namespaces and the argument list."""
    depth, cut = 0, len(name)
    for position in range(len(name) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(name[position], 0)
        if depth == 0:
            cut = position if name.endswith(")") else cut
            break
    bare = (
        name[:cut]
        .removeprefix("void ")
        .replace("at::native::", "")
        .replace("(anonymous namespace)::", "")
        .replace("<unnamed>::", "")
    )
    return bare.strip() or name


def _launches(diagnosis: Diagnosis, width: int) -> RenderableType:
    rows = [
        [
            f"{row['calls']:,}",
            f"{row['operations']:,}",
            duration(row["call_total_ns"]),
            duration(row["call_median_ns"]),
            duration(row["call_max_ns"]),
            duration(row["delay_median_ns"]),
            row["name"],
        ]
        for row in diagnosis.launches.rows(named=True)
    ]
    table = numbers_table(["calls", "operations", "in calls", "median", "max", "to start", "call"], rows, width)
    queue = diagnosis.queue
    if queue is None:
        return table
    note = (
        f"  {100 * queue.empty_share:.0f} % of the launches found nothing waiting ahead of them; "
        f"queue: {queue.mean:.1f} on average, {queue.maximum:,} at most"
    )
    return Group(table, Text(note, style="bright_black"))


def _copies(diagnosis: Diagnosis, width: int) -> Table:
    rows = []
    for row in diagnosis.copies.rows(named=True):
        rate = f"{size(row['bytes_per_second'])}/s" if row["bytes_per_second"] else "–"
        whole, largest = ("–" if row[key] is None else size(row[key]) for key in ("bytes", "largest_bytes"))
        rows.append([duration(row["total_ns"]), f"{row['count']:,}", whole, largest, rate, _copy_name(row)])
    return numbers_table(["total", "count", "bytes", "largest", "bandwidth", "copy"], rows, width)


def _syncs(diagnosis: Diagnosis, width: int) -> RenderableType:
    rows = []
    for row in diagnosis.syncs.head(LISTED_SYNCS).rows(named=True):
        back = "–" if row["returned_ns"] is None else duration(row["returned_ns"])
        place = f"{row['file']}:{row['line']}" if row["file"] else ""
        what = " ".join(word for word in (row["op"], f"{row['call']} ({row['kind']})", place) if word)
        rows.append([counted(row["count"]), duration(row["blocked_ns"]), back, what])
    table = numbers_table(["calls", "blocked", "given back", "where"], rows, width)
    more = len(diagnosis.syncs) - LISTED_SYNCS
    return Group(table, Text(f"  {more} more places", style="bright_black")) if more > 0 else table


def _copy_name(row: dict[str, Any]) -> str:
    if row["name"].startswith("[") and row["source_memory"]:
        return f"{row['name']} {row['source_memory']} to {row['target_memory']}"
    return str(row["name"])


def _next(diagnosis: Diagnosis, width: int) -> Text:
    file = shlex.quote(_short_path(diagnosis.trace.path))
    commands = []
    if diagnosis.judgement is not None and diagnosis.judgement.verdict.fix:
        commands.append((f"warpline whatif {file} --fix {diagnosis.judgement.verdict.fix}", "what that fix assumes"))
    elif diagnosis.judgement is None and len(diagnosis.kernels):
        commands.append((f"warpline diagnose {file} --why", "replay it: why it is slow, and what each fix would gain"))
    if len(diagnosis.steps) > 2 and diagnosis.trace.chosen_steps is None:
        commands.append((f"warpline diagnose {file} --steps 1:", "leave the first step out"))
    if len(diagnosis.kernels):
        commands.append((f"warpline stats {file} -r cuda_gpu_kern_sum", "all kernels, as nsys stats prints them"))
    commands.append((f"warpline sql {file}", "the tables behind this, to ask anything of"))
    text = Text(no_wrap=True, overflow="ignore")
    widest = max(len(command) for command, _ in commands)
    for command, purpose in commands:
        text.append(f"  {command.ljust(widest)}", style="green")
        text.append(f"   {purpose}\n" if widest + len(purpose) + 5 <= width else "\n", style="bright_black")
    text.rstrip()
    return text


def _short_path(path: Path) -> str:
    """Relative where that is shorter to type."""
    relative, typed = os.path.relpath(path), str(as_typed(path))
    return relative if len(relative) < len(typed) else typed
