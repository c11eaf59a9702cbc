"""The tables of a diagnosis as sections: steps, kernels, launches, copies, and where the CPU waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from warpline.analyses.user_frames import site_of
from warpline.findings.diagnosis import Diagnosis
from warpline.reports.sections import Column, Section, Table, Text, Value
from warpline.trace.column_rules import NO_NAME
from warpline.units import count, several, share

LISTED_STEPS = 8
LISTED_WAITS = 6
FOUND_BY = {
    "profiler_step": "from ProfilerStep",
    "range": "from ranges",
    "python": "from calls of a function",
    "repetition": "from repeating GPU activity",
    "tokens": "from reads of tokens",
    "optimizer": "from the optimizer's steps",
}
TOOLS = {"timeline": "timeline", "ncu": "Nsight Compute"}
TENSOR_CORE_CLASSES = {"gemm", "conv", "attention"}


def sections(diagnosis: Diagnosis, top: int) -> Iterator[Section]:
    """All tables that have rows, in the order of the report; `top` is the number of kernels listed."""
    if len(diagnosis.steps):
        yield _steps(diagnosis)
    if len(diagnosis.kernels):
        yield kernels(diagnosis, top)
    if diagnosis.next_tools:
        yield _next_tools(diagnosis)
    if len(diagnosis.launches):
        yield _launches(diagnosis)
    if len(diagnosis.copies):
        yield _copies(diagnosis)
    if len(diagnosis.syncs):
        yield _waits(diagnosis)


def _steps(diagnosis: Diagnosis) -> Section:
    """Duration and GPU busy time of every step."""
    found = diagnosis.trace.all_steps.found_by[0]
    on_gpu = (
        Column("busy_share", "GPU busy", "share"),
        Column("operations", "GPU operations", "count", priority=3),
    )
    columns = (
        Column("index", "step", "count", key=True),
        Column("length_ns", "length", "ns"),
        *(on_gpu if diagnosis.devices else ()),
        Column("name", "name", priority=2),
    )
    rows = tuple(
        (
            row["index"],
            row["length_ns"],
            *((part_of(row["busy_ns"], row["length_ns"]), row["operations"]) if diagnosis.devices else ()),
            row["name"],
        )
        for row in diagnosis.steps.head(LISTED_STEPS).rows(named=True)
    )
    hidden = len(diagnosis.steps) - len(rows)
    note = f"{several(hidden, 'more step')}: --json lists them" if hidden else ""
    loops = diagnosis.step_loops.words
    what = (Text(f"Each step: {loops}."),) if loops else ()
    return Section("steps", f"Steps ({FOUND_BY.get(found, found)})", (*what, Table(columns, rows, hidden, note)))


def _next_tools(diagnosis: Diagnosis) -> Section:
    """For each top kernel, whether the timeline explains its time or Nsight Compute is needed."""
    columns = (
        Column("share", "time", "share"),
        Column("kernel", "kernel", key=True),
        Column("tool", "tool"),
        Column("why", "because"),
    )
    rows = tuple(
        (tool.kernel.share, tool.kernel.with_op, TOOLS.get(tool.tool, tool.tool), tool.why)
        for tool in diagnosis.next_tools
    )
    alike = Text("A row is the launches of one kernel with one grid and one set of shapes.", "quiet")
    words = Text("timeline: this recording explains the kernel's time; counters would add nothing.", "quiet")
    explained = (words,) if any(tool.tool == "timeline" for tool in diagnosis.next_tools) else ()
    return Section("next_tools", "Which tool next", (Table(columns, rows), alike, *explained))


def kernels(diagnosis: Diagnosis, top: int) -> Section:
    """The kernels with the longest total time, with the spread of single runs."""
    listed = diagnosis.kernels.head(top).rows(named=True)
    names = _names([row["name"] for row in listed])
    spread = tuple(
        Column(f"{what}_ns", what, "ns", priority=priority)
        for what, priority in (("mean", 5), ("median", 3), ("min", 6), ("max", 4), ("std", 7))
    )
    columns = (
        Column("share", "time", "share"),
        Column("total_ns", "total", "ns"),
        Column("count", "count", "count"),
        *spread,
        Column("class", "class", priority=2),
        Column("name", "kernel", key=True),
    )
    rows = tuple(
        (
            row["share"],
            row["total_ns"],
            row["count"],
            *(row[column.name] for column in spread),
            _kind(row),
            names[row["name"]],
        )
        for row in listed
    )
    hidden = len(diagnosis.kernels) - len(rows)
    note = f"{several(hidden, 'more kernel')}: --top {len(diagnosis.kernels)}" if hidden else ""
    return Section("kernels", "Kernels", (Table(columns, rows, hidden, note),))


def _launches(diagnosis: Diagnosis) -> Section:
    """API calls that launch GPU operations, and the depth of the queue."""
    columns = (
        Column("calls", "calls", "count"),
        Column("operations", "GPU operations", "count", priority=4),
        Column("call_total_ns", "in calls", "ns"),
        Column("call_median_ns", "median", "ns", priority=2),
        Column("call_max_ns", "max", "ns", priority=3),
        Column("delay_median_ns", "launch→start", "ns"),
        Column("name", "call", key=True),
    )
    rows = tuple(tuple(row[column.name] for column in columns) for row in diagnosis.launches.rows(named=True))
    queue = diagnosis.queue
    if queue is None:
        return Section("launches", "Launches", (Table(columns, rows),))
    note = (
        f"{share(queue.empty_share, 1)} of the launches found an empty queue; "
        f"queue depth: {queue.mean:.1f} on average, {count(queue.maximum)} at most"
    )
    return Section("launches", "Launches", (Table(columns, rows), Text(note, "quiet")))


def _copies(diagnosis: Diagnosis) -> Section:
    """Copies and memsets, with their bandwidth."""
    columns = (
        Column("total_ns", "total", "ns"),
        Column("count", "count", "count"),
        Column("bytes", "bytes", "bytes"),
        Column("largest_bytes", "largest", "bytes", priority=2),
        Column("bytes_per_second", "bandwidth", "bytes_per_second"),
        Column("name", "copy", key=True),
    )
    rows = tuple(
        (*(row[column.name] for column in columns[:4]), row["bytes_per_second"] or None, _copy_name(row))
        for row in diagnosis.copies.rows(named=True)
    )
    return Section("copies", "Copies", (Table(columns, rows),))


def _waits(diagnosis: Diagnosis) -> Section:
    """Where the CPU waits for the GPU, and the time recoverable per step by not waiting there."""
    columns = (
        Column("count", "calls", "count"),
        Column("blocked_ns", "blocked", "ns"),
        Column("returned_ns", "recoverable", "ns"),
        Column("where", "where", key=True),
    )
    rows: list[tuple[Value, ...]] = []
    spots: set[tuple[Value, ...]] = set()
    for row in diagnosis.syncs.head(LISTED_WAITS).rows(named=True):
        site = site_of(row)
        words = (row["written"], row["op"], f"{row['call']} ({row['kind']})", f"in {site.spot}" if site else "")
        where = " ".join(filter(None, words))
        # A copy and the wait after it, in one op, are recoverable together: the time is shown once.
        spot = (row["op"], row["file"], row["line"])
        rows.append((row["count"], row["blocked_ns"], None if spot in spots else row["returned_ns"], where))
        spots |= {spot} if row["op"] else set()
    hidden = len(diagnosis.syncs) - len(rows)
    note = f"{several(hidden, 'more place')}: --json lists them" if hidden else ""
    title = "CPU waits, per step" if len(diagnosis.steps) else "CPU waits, in the whole recording"
    table = Table(columns, tuple(rows), hidden, note)
    meaning = Text(
        "recoverable: how much shorter the step is without this wait alone, by replay; remove_sync takes away all of "
        "them, and ops that exist only for them.",
        "quiet",
    )
    return Section("syncs", title, (table, meaning) if any(row[2] for row in rows) else (table,))


def compact_name(name: str) -> str:
    """A kernel's name without `void`, well-known namespaces and the argument list."""
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


def _names(names: list[str | None]) -> dict[str | None, str]:
    """Compact names; full names if two kernels would look the same."""
    compact = {name: compact_name(name or NO_NAME) for name in names}
    seen = Counter(compact.values())
    return {name: short if seen[short] == 1 or not name else name for name, short in compact.items()}


def _kind(row: dict[str, Any]) -> str:
    """What the kernel's name shows, in a few words: `gemm tf32 TC` (tensor cores)."""
    words = [row["class"]]
    if row["class"] in TENSOR_CORE_CLASSES:
        words += [row["dtype"]] if row["dtype"] else []
        words += {True: ["TC"], False: ["no TC"]}.get(row["tensor_core"], [])
    return " ".join(words)


def _copy_name(row: dict[str, Any]) -> str:
    name = row["name"] or NO_NAME
    if name.startswith("[") and row["source_memory"]:
        return f"{name} {row['source_memory']} to {row['target_memory']}"
    return str(name)


def part_of(part: int, whole: int) -> float | None:
    """A part as a fraction of the whole, if there is a whole."""
    return part / whole if whole else None
