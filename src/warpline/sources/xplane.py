"""XSpace files of XLA's profiler (JAX, TensorFlow: `*.xplane.pb`).

A space has planes: `/device:GPU:0` with a line for each stream, and `/host:CPU` with a line for each thread. Events and
the names of their statistics are numbers, which each plane explains. Times are picoseconds after the line's start. The
messages are those of xplane.proto in openxla/xla.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.kineto.lanes import API_CALL, COPY, GPU_PROCESS, SET, STREAM, XLA_FRAME
from warpline.sources.protobuf import message_class, messages, parse
from warpline.sources.rows import ROCM_DESCRIPTOR, Rows
from warpline.sources.unpack import ROWS_BOMB_BYTES, Unpacked
from warpline.units import capitalised, several

MESSAGES = {
    "Space": {"planes": (1, "*Plane"), "errors": (2, "*string"), "warnings": (3, "*string")},
    "Plane": {
        "name": (2, "string"),
        "lines": (3, "*Line"),
        "events": (4, "*EventName"),
        "stat_names": (5, "*StatName"),
        "stats": (6, "*Stat"),
    },
    "Line": {"id": (1, "int64"), "name": (2, "string"), "timestamp_ns": (3, "int64"), "events": (4, "*Event")},
    "Event": {
        "metadata_id": (1, "int64"),
        "offset_ps": (2, "int64"),
        "duration_ps": (3, "int64"),
        "stats": (4, "*Stat"),
    },
    "Stat": {
        "metadata_id": (1, "int64"),
        "double_value": (2, "double"),
        "uint64_value": (3, "uint64"),
        "int64_value": (4, "int64"),
        "str_value": (5, "bytes"),
        "bytes_value": (6, "bytes"),
        "ref_value": (7, "uint64"),
    },
    "EventName": {"key": (1, "int64"), "value": (2, "Name")},
    "StatName": {"key": (1, "int64"), "value": (2, "Name")},
    "Name": {"name": (2, "bytes"), "display_name": (4, "bytes")},
}
TPU = "/device:TPU"
ENVIRONMENT = "Task Environment"
DETAIL = re.compile(r"(?<!\w)(\w+):(\S+)")
COPIES = re.compile(r"^(?:Memcpy ?(?P<short>[HDPA](?:to|2)[HDPA])|Copy(?P<source>[HD])\w*To(?P<target>[HD])\w*)")
EARLIEST_EPOCH_NS = 10**18
"""Times below it, in 2001, are those since the profiler's start."""
PS_PER_NS = 1000

HOST = ("name", "thread", "start_ns", "end_ns")
COLUMNS = {
    "gpu": (
        *("kind", "name", "device", "stream", "start_ns", "end_ns", "correlation", "bytes", "copy_kind"),
        *(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"),
        *("registers", "shared_bytes"),
    ),
    "api": (*HOST, "layer", "correlation"),
    "ops": HOST,
    "ranges": (*HOST, "style"),
    "python": HOST,
    "threads": ("tid", "name", "process_name"),
    "devices": (
        *("device", "name", "compute_major", "compute_minor", "sm_count"),
        *("memory_bytes", "memory_bandwidth", "clock_hz"),
    ),
}
TEXTS = {"kind", "name", "copy_kind", "layer", "style", "process_name"}
LAST = 2**61
"""Of any number: beyond, differences do not fit in 64 bits."""
Row = dict[str, Any]


def read_xplane(path: Path) -> Rows:
    """Read an XSpace file; one of a TPU is refused."""
    space, health = _space(path)
    planes = [_Plane(plane) for plane in space.planes]
    tables: dict[str, list[Row]] = {name: [] for name in COLUMNS}
    start_ns = 0
    for plane in planes:
        if gpu := GPU_PROCESS.match(plane.name):
            tables["devices"].append(_device(plane, int(gpu[1])))
            tables["gpu"] += _gpu_rows(plane, int(gpu[1]))
        elif plane.name.startswith("/host:"):
            _add_host_rows(plane, tables)
        elif plane.name == ENVIRONMENT:
            start_ns = plane.stats(plane.message).get("profile_start_time", 0)
    _refuse_other_devices(path, planes, tables)
    zero_ns = _move_to_zero(tables)
    health += [HealthEntry("profiler-messages", "warning", f"XLA's profiler says: {text}") for text in space.errors]
    if unnamed := sum(plane.unnamed for plane in planes):
        message = f"{several(unnamed, 'event')} without a name in the file were left out."
        health.append(HealthEntry("missing-values", "warning", message))
    epoch_ns = zero_ns if zero_ns > EARLIEST_EPOCH_NS else zero_ns + start_ns
    frames = {name: _frame(name, rows) for name, rows in tables.items() if rows}
    return Rows("xla", frames, {"epoch_ns": str(epoch_ns)}, health)


def _space(path: Path) -> tuple[Any, list[HealthEntry]]:
    """The space; of a file that is cut short, the planes before the cut, if a GPU's is among them."""
    unpacked = Unpacked(path, bomb_bytes=ROWS_BOMB_BYTES)
    content, kind = b"".join(unpacked), message_class("warpline.xplane", MESSAGES)
    try:
        return parse(kind, content), []
    except ValueError as error:
        why = unpacked.damage or "its messages are cut short or overwritten"
        space = _planes_before_damage(kind, content)
        if space is None:
            raise UnreadableFile(
                "damaged-file", f"{path} is a damaged XSpace file of XLA's profiler: {why}", "copy or record it again"
            ) from error
    names = ", ".join(plane.name for plane in space.planes)
    message = f"{capitalised(why).rstrip('.')}; only these planes are whole: {names}."
    return space, [HealthEntry("truncated-file", "error", message)]


def _planes_before_damage(kind: Any, content: bytes) -> Any:
    """None without a whole plane of a GPU: what the CPU did alone would look as if the GPU had done nothing."""
    whole = max((end for _, end in messages(content)), default=0)
    try:
        space = parse(kind, content[:whole])
    except ValueError:
        return None
    return space if any(GPU_PROCESS.match(plane.name) and plane.lines for plane in space.planes) else None


def _frame(table: str, rows: list[Row]) -> pl.DataFrame:
    """The rows as columns; a value of another type is null."""
    kinds = {name: (str, pl.String()) if name in TEXTS else (int, pl.Int64()) for name in COLUMNS[table]}
    return pl.DataFrame(
        {
            name: pl.Series([value if isinstance(value := row.get(name), kind) else None for row in rows], dtype=dtype)
            for name, (kind, dtype) in kinds.items()
        }
    )


class _Plane:
    """A plane with its names."""

    def __init__(self, message: Any) -> None:
        self.message = message
        self.name: str = message.name
        self.unnamed = 0
        """Events that were left out since the plane has no name for them."""
        self._events = {entry.key: _text(entry.value.name) for entry in message.events}
        self._stats = {entry.key: _text(entry.value.name) for entry in message.stat_names}

    def events(self, line: Any) -> Iterator[Any]:
        """The events of a line that the plane names: others say nothing, and may take two bytes each."""
        for event in line.events:
            if event.metadata_id in self._events:
                yield event
            else:
                self.unnamed += 1

    def event_name(self, event: Any) -> str:
        """What an event is called."""
        return self._events[event.metadata_id]

    def stats(self, message: Any) -> Row:
        """The statistics of an event or a plane by name."""
        return {self._stats.get(stat.metadata_id, ""): self._value(stat) for stat in message.stats}

    def _value(self, stat: Any) -> Any:
        for field, value in stat.ListFields():
            if field.name == "ref_value":
                return self._stats.get(value, "")
            if isinstance(value, bytes):
                return _text(value)
            if field.name != "metadata_id" and abs(value) < LAST:
                return value
        return None


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")


def _span(line: Any, event: Any) -> Row:
    """Start and end in whole nanoseconds."""
    start_ps = line.timestamp_ns * PS_PER_NS + event.offset_ps
    times_ps = {"start_ns": start_ps, "end_ns": start_ps + max(event.duration_ps, 0)}
    return {name: min(max(ps // PS_PER_NS, -LAST), LAST) for name, ps in times_ps.items()}


def _gpu_rows(plane: _Plane, device: int) -> Iterator[Row]:
    """What the streams of a GPU ran; its other lines have the same time again, by module and by op."""
    for line in plane.message.lines:
        stream = STREAM.match(line.name)
        for event in plane.events(line) if stream is not None else ():
            name, stats = re.sub(ROCM_DESCRIPTOR, "", plane.event_name(event)), plane.stats(event)
            copied, is_set = stats.get("memcpy_details"), "memset_details" in stats or SET.match(name)
            is_copy = copied is not None or COPY.match(name)
            yield {
                "kind": "memcpy" if is_copy else "memset" if is_set else "kernel",
                "name": name,
                "device": device,
                "stream": int(stream[1]) if stream is not None else 0,
                **_span(line, event),
                "correlation": stats.get("correlation_id"),
                **_launch(str(stats.get("kernel_details", ""))),
                "bytes": _details(str(copied or stats.get("memset_details", ""))).get("size"),
                "copy_kind": _copy_kind(name) if is_copy else None,
            }


def _details(text: str) -> dict[str, int]:
    """The whole numbers of `regs:32 static_shared:0 …`."""
    return {key: int(value) for key, value in DETAIL.findall(text) if value.isdecimal() and len(value) < 16}


def _launch(text: str) -> Row:
    """The launch that `regs:32 static_shared:0 dynamic_shared:0 grid:8,1,1 block:256,1,1` describes."""
    found: Row = {}
    for what, value in DETAIL.findall(text):
        axes = value.split(",")
        if what in ("grid", "block") and len(axes) == 3:
            found |= {
                f"{what}_{axis}": int(n) for axis, n in zip("xyz", axes, strict=True) if n.isdecimal() and len(n) < 16
            }
    numbers = _details(text)
    shared = [numbers[key] for key in ("static_shared", "dynamic_shared", "group_mem") if key in numbers]
    return {**found, "registers": numbers.get("regs"), "shared_bytes": sum(shared) if shared else None}


def _copy_kind(name: str) -> str | None:
    copy = COPIES.match(name)
    if copy is None:
        return None
    return copy["short"].replace("2", "to") if copy["short"] else f"{copy['source']}to{copy['target']}"


def _add_host_rows(plane: _Plane, tables: dict[str, list[Row]]) -> None:
    """Sort the events of a host's threads into calls, Python frames, steps and other ops."""
    for line in plane.message.lines:
        thread = len(tables["threads"])
        tables["threads"].append({"tid": line.id, "name": line.name, "process_name": plane.name})
        for event in plane.events(line):
            name = plane.event_name(event)
            row = {"name": name, "thread": thread, **_span(line, event)}
            if API_CALL.match(name):
                layer = "driver" if name[2:3].isupper() else "runtime"
                correlation = plane.stats(event).get("correlation_id")
                tables["api"].append({**row, "layer": layer, "correlation": correlation})
            elif frame := XLA_FRAME.match(name):
                tables["python"].append({**row, "name": f"{frame['file']}({frame['line']}): {frame['name']}"})
            elif event.stats and "step_num" in plane.stats(event):  # jax.profiler.StepTraceAnnotation
                tables["ranges"].append({**row, "style": "annotation"})
            else:
                tables["ops"].append(row)


def _device(plane: _Plane, device: int) -> Row:
    """A device as XLA describes it. ROCm's version of its chip is no compute capability."""
    stats = plane.stats(plane.message)
    vendor = str(stats.get("device_vendor", ""))
    is_amd = vendor.upper() == "AMD"
    return {
        "device": device,
        "name": stats.get("device_type_string") or (f"{vendor} GPU" if vendor else None),
        "compute_major": None if is_amd else stats.get("compute_cap_major"),
        "compute_minor": None if is_amd else stats.get("compute_cap_minor"),
        "sm_count": stats.get("core_count"),
        "memory_bytes": stats.get("memory_size"),
        "memory_bandwidth": stats.get("memory_bandwidth"),
        "clock_hz": clock * 1000 if isinstance(clock := stats.get("clock_rate"), int) else None,
    }


def _refuse_other_devices(path: Path, planes: list[_Plane], tables: dict[str, list[Row]]) -> None:
    if tables["gpu"]:
        return
    if any(plane.name.startswith(TPU) for plane in planes):
        raise UnreadableFile(
            "other-device",
            f"{path} is a profile of a TPU, which warpline does not read: it knows GPUs only",
            "open it with xprof",
        )
    if not any(rows for name, rows in tables.items() if name not in ("devices", "threads")):
        raise UnreadableFile(
            "empty-trace", f"{path} is an XSpace file that has no event with a name", "record it again"
        )


def _move_to_zero(tables: dict[str, list[Row]]) -> int:
    """Make the earliest event start at zero, in place; returns its time."""
    timed = [row for rows in tables.values() for row in rows if "start_ns" in row]
    zero_ns: int = min(row["start_ns"] for row in timed)
    for row in timed:
        row["start_ns"] -= zero_ns
        row["end_ns"] -= zero_ns
    return zero_ns
