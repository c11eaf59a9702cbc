"""The Perfetto trace of rocprofv3 (`--output-format pftrace`): a sequence of packets.

A packet has an event with its category, name and details, or names that later packets of its writer refer to by number.
Each beginning of a call, kernel or copy carries the times of its record as details, `begin_ns` and `end_ns`; the ends
of bars are not needed. The messages are those of `protos/perfetto/trace` in google/perfetto.
"""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct, field

from warpline.errors import UnreadableFile
from warpline.sources.health import HealthEntry
from warpline.sources.kinds import Kind
from warpline.sources.protobuf import message_class, messages, parse
from warpline.sources.rocprofv3.records import (
    COPIES,
    DISPATCHES,
    GPU_TYPE,
    REGIONS,
    ProcessRecording,
    RocmAgent,
    rows_of,
)
from warpline.sources.rows import Rows
from warpline.sources.unpack import BOMB_RATIO, ROWS_BOMB_BYTES, Unpacked
from warpline.units import several

PACKETS_SEEN = 3
MESSAGES = {
    "Packet": {
        "sequence": (10, "uint32"),
        "event": (11, "Event"),
        "interned": (12, "Interned"),
        "flags": (13, "uint32"),
        "stats": (35, "Stats"),
        "compressed": (50, "bytes"),
        "track": (60, "Track"),
    },
    "Event": {
        "category_iids": (3, "*uint64"),
        "details": (4, "*Detail"),
        "type": (9, "int32"),
        "name_iid": (10, "uint64"),
        "categories": (22, "*bytes"),
        "name": (23, "bytes"),
    },
    "Detail": {
        "name_iid": (1, "uint64"),
        "unsigned": (3, "uint64"),
        "signed": (4, "int64"),
        "double": (5, "double"),
        "text": (6, "bytes"),
        "name": (10, "bytes"),
        "text_iid": (17, "uint64"),
    },
    "Interned": {
        "categories": (1, "*Text"),
        "names": (2, "*Text"),
        "details": (3, "*Text"),
        "texts": (29, "*Text"),
    },
    "Text": {"iid": (1, "uint64"), "text": (2, "bytes")},
    "Track": {"process": (3, "Process")},
    "Process": {"pid": (1, "int32"), "command": (2, "*bytes")},
    "Stats": {"buffers": (1, "*Buffer")},
    "Buffer": {"discarded": (18, "uint64"), "lost": (19, "uint64")},
}
BEGINS = 1
"""TrackEvent.TYPE_SLICE_BEGIN."""
CLEARED = 1
"""TracePacket.SEQ_INCREMENTAL_STATE_CLEARED: numbers of names start anew."""
KERNEL, COPY = "kernel_dispatch", "memory_copy"
CALLS = {"hip_api", "hsa_api", "marker_api", "rccl_api"}
FROM_GPU, TO_GPU = re.compile("DEVICE_TO"), re.compile("TO_DEVICE")
TYPE_RELATIVE = re.compile(r"GPU-(\d{1,4})$")
LAST = 2**62
LISTED = 3
Details = dict[str, Any]


def _is_perfetto(head: bytes, _: Path) -> bool:
    """Whether a file is nothing but packets, each the first field of a trace, as far as one can see."""
    ends = [end for _, (_, end) in zip(range(PACKETS_SEEN), messages(head), strict=False)]
    return len(ends) == PACKETS_SEEN or ends[-1:] == [len(head)]


PERFETTO = Kind("pftrace", _is_perfetto, (".pftrace",))
"""Perfetto trace."""


def read_pftrace(path: Path) -> Rows:
    """Read the Perfetto trace of rocprofv3, plain or packed, up to any damage; one of another program is refused."""
    unpacked = Unpacked(path, bomb_bytes=ROWS_BOMB_BYTES)
    content = b"".join(unpacked)
    found = _PerfettoEvents()
    whole = 0
    try:
        for packet, end in messages(content):
            found.add(packet)
            whole = end
    except (ValueError, zlib.error) as error:
        unpacked.damage = unpacked.damage or f"A packet cannot be read ({error}); what precedes it was read."
    if not found.events and found.others:
        raise UnreadableFile(
            "foreign-trace",
            f"{path} is a Perfetto trace of another program: {_described(found.others)}, and none of rocprofv3's",
            "give the profile that it was made from; rocprofv3 and rocprof-sys write databases (rocpd), too",
        )
    is_cut = whole < len(content)
    if not found.events:
        what = "damaged Perfetto trace: no event can be read" if is_cut else "Perfetto trace without an event"
        raise UnreadableFile(
            "damaged-file" if is_cut else "empty-trace", f"{path} is a {what}", "copy or record it again"
        )
    rows = rows_of([found.recording()], path)
    health = []
    if unpacked.damage or is_cut:
        message = unpacked.damage or "The file ends within a packet: the events of its end are missing."
        health.append(HealthEntry("truncated-file", "error", message))
    if found.has_lost:
        message = "Perfetto's buffer was too small: rocprofv3 lost events."
        health.append(HealthEntry("dropped-events", "error", message))
    return Rows(rows.source, rows.tables, rows.meta, [*health, *rows.health])


def _described(categories: Counter[str]) -> str:
    named = [f'"{name}"' for name, _ in categories.most_common(LISTED) if name]
    of = f" ({', '.join(named)}{' …' if len(categories) > LISTED else ''})" if named else ""
    return f"{several(categories.total(), 'event')}{of}"


class _InternedNames(Struct):
    """What one writer of packets calls things, by number."""

    categories: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    details: dict[int, str] = field(default_factory=dict)
    texts: dict[int, str] = field(default_factory=dict)


class _PerfettoEvents:
    """The events of rocprofv3 by category, and what else the packets say."""

    def __init__(self) -> None:
        self.events: dict[str, list[tuple[str, Details]]] = {}
        self.others: Counter[str] = Counter()
        self.has_lost = False
        self._pid: int | None = None
        self._command = ""
        self._writers: dict[int, _InternedNames] = {}
        self._packet = message_class("warpline.perfetto", MESSAGES)

    def add(self, data: bytes) -> None:
        """Take a packet, or those that are compressed in it."""
        packet = parse(self._packet, data)
        if packet.compressed:
            for inner, _ in messages(_inflated(packet.compressed)):
                self._add_plain(parse(self._packet, inner))
        else:
            self._add_plain(packet)

    def _add_plain(self, packet: Any) -> None:
        if packet.HasField("track") and packet.track.process.pid:
            self._pid = packet.track.process.pid
            self._command = " ".join(map(_text, packet.track.process.command))
        self.has_lost |= any(buffer.discarded or buffer.lost for buffer in packet.stats.buffers)
        if packet.flags & CLEARED or packet.sequence not in self._writers:
            self._writers[packet.sequence] = _InternedNames()
        names = self._writers[packet.sequence]
        for kind in _InternedNames.__struct_fields__ if packet.HasField("interned") else ():
            getattr(names, kind).update({one.iid: _text(one.text) for one in getattr(packet.interned, kind)})
        if packet.event.type == BEGINS:
            self._add_event(packet.event, names)

    def _add_event(self, event: Any, names: _InternedNames) -> None:
        known = (*map(_text, event.categories), *(names.categories.get(iid, "") for iid in event.category_iids))
        category = next(iter(known), "")
        details = {_name(one, names.details): _value(one, names) for one in event.details}
        if category in (KERNEL, COPY, *CALLS) and "begin_ns" in details and "end_ns" in details:
            self.events.setdefault(category, []).append((_name(event, names.names), details))
        else:
            self.others[category] += 1

    def recording(self) -> ProcessRecording:
        """The records of the process."""
        kernels, copies = self.events.get(KERNEL, []), self.events.get(COPY, [])
        agents = _agents(kernels, copies)
        numbers = {label: number for number, label in enumerate(agents)}
        return ProcessRecording(
            _frame(DISPATCHES, (self._dispatch(name, details, numbers) for name, details in kernels)),
            _frame(COPIES, (self._copy(details, numbers) for _, details in copies)),
            _frame(REGIONS, (self._region(call, *one) for call in CALLS for one in self.events.get(call, ()))),
            dict(enumerate(agents.values())),
            commands={self._pid: self._command} if self._pid is not None else {},
            # rocprofv3 adds each counter's value to its kernel; everything else is a whole number or a text.
            has_counters=any(isinstance(value, float) for _, details in kernels for value in details.values()),
        )

    def _place(self, details: Details) -> Details:
        return {
            "process": self._pid,
            "start": details["begin_ns"],
            "end": details["end_ns"],
            "correlation": details.get("corr_id"),
        }

    def _dispatch(self, name: str, details: Details, agents: dict[str, int]) -> Details:
        registers = [details.get(key) for key in ("VGPR_Count", "Accum_VGPR_Count")]
        return {
            **self._place(details),
            "agent": agents.get(str(details.get("agent"))),
            "queue": details.get("queue"),
            "stream": details.get("stream_ID", 0),
            "name": name or None,
            # Products over the axes are all that is written.
            **{"items_x": details.get("grid_size"), "items_y": 1, "items_z": 1},
            **{"block_x": details.get("workgroup_size"), "block_y": 1, "block_z": 1},
            "lds_bytes": details.get("LDS_Block_Size", details.get("group_segment_size")),
            "registers": sum(one for one in registers if isinstance(one, int)) or None,
        }

    def _copy(self, details: Details, agents: dict[str, int]) -> Details:
        return {
            **self._place(details),
            "source_agent": agents.get(str(details.get("src_agent"))),
            "target_agent": agents.get(str(details.get("dst_agent"))),
            "stream": details.get("stream_ID", 0),
            "bytes": details.get("copy_bytes"),
        }

    def _region(self, category: str, name: str, details: Details) -> Details:
        return {
            **self._place(details),
            "tid": details.get("tid"),
            "parent": details.get("ancestor_id"),
            "category": category,
            "name": name or None,
        }


def _inflated(data: bytes) -> bytes:
    """Packets that are compressed in one; ValueError for more than a trace has."""
    stream = zlib.decompressobj()
    content = stream.decompress(data, BOMB_RATIO * len(data))
    if stream.unconsumed_tail:
        raise ValueError("compressed packets are too large")
    return content


def _frame(schema: dict[str, pl.DataType], rows: Iterator[Details]) -> pl.DataFrame:
    """The rows as columns; a value of another type is null."""
    found = list(rows)
    columns = {}
    for name, dtype in schema.items():
        kind = str if dtype == pl.String() else int
        columns[name] = [value if isinstance(value := row.get(name), kind) else None for row in found]
    return pl.DataFrame(columns, schema=schema)


def _agents(kernels: list[tuple[str, Details]], copies: list[tuple[str, Details]]) -> dict[str, RocmAgent]:
    """The GPUs by the label of their agent. Where agents are counted together with CPUs, GPUs count from the first."""
    labels = {str(details.get("agent")) for _, details in kernels if details.get("agent_type", "GPU") == "GPU"}
    for name, details in copies:
        labels |= {str(details.get("src_agent"))} if FROM_GPU.search(name) else set()
        labels |= {str(details.get("dst_agent"))} if TO_GPU.search(name) else set()
    ordered = sorted(labels, key=lambda label: (len(label), label))
    given = {label: found[1] for label in ordered if (found := TYPE_RELATIVE.match(label))}
    return {
        label: RocmAgent(type=GPU_TYPE, logical_node_type_id=int(given.get(label, number)))
        for number, label in enumerate(ordered)
    }


def _name(one: Any, known: dict[int, str]) -> str:
    return _text(one.name) if one.name else known.get(one.name_iid, "")


def _value(detail: Any, names: _InternedNames) -> int | float | str | None:
    for kind, value in detail.ListFields():
        if kind.name in ("unsigned", "signed"):
            return value if abs(value) < LAST else None
        if kind.name == "double":
            return float(value)
        if kind.name == "text":
            return _text(value)
        if kind.name == "text_iid":
            return names.texts.get(value, "")
    return None


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
