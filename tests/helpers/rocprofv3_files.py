"""Tiny recordings of rocprofv3, as the database (rocpd), the JSON and the Perfetto trace that it would write.

Times are in nanoseconds.
"""

from __future__ import annotations

import itertools
import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from protobuf_files import message

PID, TID = 4242, 77
CPU, GPU0, GPU1 = 0, 1, 2
"""Agents: their numbers in rocpd, and their handles in JSON less BASE."""
BASE = 37_900
UUID = "_00003fdc_92cb_72cb_9169_c7e541b1fcdf"
KINDS = {
    "NONE": [],
    "HIP_RUNTIME_API_EXT": ["hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize", "hipGetDevicePropertiesR0600"],
    "HSA_CORE_API": ["hsa_signal_store_screlease"],
    "MARKER_CORE_RANGE_API": ["roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA", "roctxGetThreadId"],
    "RCCL_API": ["ncclAllReduce"],
    "KERNEL_DISPATCH": [],
    "MEMORY_COPY": [],
}
LISTS = {"HIP": "hip_api", "HSA": "hsa_api", "MARKER": "marker_api", "RCCL": "rccl_api"}
AGENT = {"cu_count": 304, "wave_front_size": 64, "max_waves_per_cu": 32, "lds_size_in_kb": 64, "mem_banks": []}
TABLES = {
    "string": "id INTEGER PRIMARY KEY, string TEXT",
    "info_node": "id INTEGER PRIMARY KEY, hostname TEXT",
    "info_process": "id INTEGER PRIMARY KEY, nid INT, pid INT, command TEXT",
    "info_thread": "id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT",
    "info_agent": (
        "id INTEGER PRIMARY KEY, nid INT, pid INT, type TEXT, absolute_index INT, type_index INT, name TEXT, "
        "product_name TEXT, extdata JSONB"
    ),
    "info_kernel_symbol": (
        "id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT, arch_vgpr_count INT, accum_vgpr_count INT"
    ),
    "event": (
        "id INTEGER PRIMARY KEY, category_id INT, stack_id INT, parent_stack_id INT, correlation_id INT, extdata JSONB"
    ),
    "region": "id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, start BIGINT, end BIGINT, name_id INT, event_id INT",
    "kernel_dispatch": (
        "id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, agent_id INT, kernel_id INT, queue_id INT, stream_id INT, "
        "start BIGINT, end BIGINT, group_segment_size INT, workgroup_size_x INT, workgroup_size_y INT, "
        "workgroup_size_z INT, grid_size_x INT, grid_size_y INT, grid_size_z INT, event_id INT"
    ),
    "memory_copy": (
        "id INTEGER PRIMARY KEY, nid INT, pid INT, tid INT, start BIGINT, end BIGINT, name_id INT, dst_agent_id INT, "
        "src_agent_id INT, size INT, stream_id INT, event_id INT"
    ),
    "pmc_event": "id INTEGER PRIMARY KEY, event_id INT, value REAL",
}


@dataclass
class RocprofFile:
    """Records of one process."""

    kernels: list[dict[str, Any]] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    regions: list[dict[str, Any]] = field(default_factory=list)
    counters: int = 0

    def kernel(
        self, start: int, end: int, call: int, name: str = "gemm", *, gpu: int = GPU0, queue: int = 16, stream: int = 3
    ) -> RocprofFile:
        self.kernels.append(
            {"start": start, "end": end, "call": call, "name": name, "gpu": gpu, "queue": queue, "stream": stream}
        )
        return self

    def copy(self, start: int, end: int, call: int, source: int, target: int, size: int = 4096) -> RocprofFile:
        self.copies.append({"start": start, "end": end, "call": call, "source": source, "target": target, "size": size})
        return self

    def region(
        self, kind: str, name: str, start: int, end: int, number: int, *, parent: int = 0, message: str | None = None
    ) -> RocprofFile:
        self.regions.append(
            {
                "kind": next(known for known in KINDS if known.startswith(kind)),
                **{"name": name, "start": start, "end": end, "number": number, "parent": parent, "message": message},
            }
        )
        return self

    @property
    def names(self) -> list[str]:
        return sorted({kernel["name"] for kernel in self.kernels})

    def write_database(self, path: Path, uuid: str = UUID) -> Path:
        """As rocprofv3 writes a database; a second one into the same path is merged, as `rocpd` does."""
        texts = [*KINDS, *(name for names in KINDS.values() for name in names)]
        database = sqlite3.connect(path)
        for table, columns in TABLES.items():
            database.execute(f'CREATE TABLE "rocpd_{table}{uuid}"({columns})')
            database.execute(f'CREATE VIEW IF NOT EXISTS "rocpd_{table}" AS SELECT * FROM "rocpd_{table}{uuid}"')

        def insert(table: str, **values: Any) -> None:
            marks = ", ".join("?" * len(values))
            columns = ", ".join(f'"{name}"' for name in values)
            database.execute(f'INSERT INTO "rocpd_{table}{uuid}"({columns}) VALUES ({marks})', list(values.values()))

        numbers = itertools.count(1)

        def event(kind: str, call: int, parent: int, message: str | None = None) -> int:
            number = next(numbers)
            insert(
                "event",
                **{"id": number, "category_id": texts.index(kind), "correlation_id": 0},
                **{"stack_id": call, "parent_stack_id": parent},
                extdata=json.dumps({"message": message} if message else {}),
            )
            return number

        for number, text in enumerate(texts):
            insert("string", id=number, string=text)
        insert("info_node", id=9, hostname="node")
        insert("info_process", id=PID, nid=9, pid=PID, command="/usr/bin/train --steps 3")
        insert("info_thread", id=TID, nid=9, pid=PID, tid=TID)
        for agent in _agents():
            gpu = agent["type"] == 2
            insert(
                "info_agent",
                **{"id": agent["node_id"], "nid": 9, "pid": PID, "type": "GPU" if gpu else "CPU"},
                **{"absolute_index": agent["node_id"], "type_index": agent["logical_node_type_id"]},
                **{"name": agent["name"], "product_name": agent["product_name"], "extdata": json.dumps(agent)},
            )
        for number, name in enumerate(self.names):
            shown = {"kernel_name": f"_Z{name}.kd", "display_name": name}
            insert("info_kernel_symbol", id=number, **shown, arch_vgpr_count=32, accum_vgpr_count=4)
        place = {"nid": 9, "pid": PID, "tid": TID}
        for region in self.regions:
            number = event(region["kind"], region["number"], region["parent"], region["message"])
            times = {"start": region["start"], "end": region["end"]}
            insert("region", **place, **times, name_id=texts.index(region["name"]), event_id=number)
        for kernel in self.kernels:
            insert(
                "kernel_dispatch",
                **place,
                **{"start": kernel["start"], "end": kernel["end"], "agent_id": kernel["gpu"]},
                **{"queue_id": kernel["queue"], "stream_id": kernel["stream"]},
                **{"kernel_id": self.names.index(kernel["name"]), "group_segment_size": 512},
                **{"workgroup_size_x": 256, "workgroup_size_y": 1, "workgroup_size_z": 1},
                **{"grid_size_x": 1000, "grid_size_y": 2, "grid_size_z": 1},
                event_id=event("KERNEL_DISPATCH", kernel["call"], kernel["call"]),
            )
        for copy in self.copies:
            insert(
                "memory_copy",
                **place,
                **{"start": copy["start"], "end": copy["end"], "name_id": 0, "size": copy["size"], "stream_id": 3},
                **{"src_agent_id": copy["source"], "dst_agent_id": copy["target"]},
                event_id=event("MEMORY_COPY", copy["call"], copy["call"]),
            )
        for _ in range(self.counters):
            insert("pmc_event", event_id=1, value=2.0)
        database.commit()
        database.close()
        return path

    def content(self) -> dict[str, Any]:
        """The JSON of the process."""
        kinds = list(KINDS)
        records: dict[str, list[dict[str, Any]]] = {name: [] for name in LISTS.values()}
        for region in self.regions:
            records[LISTS[region["kind"].partition("_")[0]]].append(
                {
                    **{"kind": kinds.index(region["kind"]), "operation": KINDS[region["kind"]].index(region["name"])},
                    **{"thread_id": TID, "start_timestamp": region["start"], "end_timestamp": region["end"]},
                    "correlation_id": {"internal": region["number"], "external": 0, "ancestor": region["parent"]},
                }
            )
        records["kernel_dispatch"] = [
            {
                **{"thread_id": TID, "start_timestamp": kernel["start"], "end_timestamp": kernel["end"]},
                "correlation_id": {"internal": kernel["call"], "external": 0},
                "stream_id": {"handle": kernel["stream"]},
                "dispatch_info": {
                    **{"agent_id": {"handle": BASE + kernel["gpu"]}, "queue_id": {"handle": kernel["queue"]}},
                    **{"kernel_id": self.names.index(kernel["name"]), "group_segment_size": 512},
                    "workgroup_size": {"x": 256, "y": 1, "z": 1},
                    "grid_size": {"x": 1000, "y": 2, "z": 1},
                },
            }
            for kernel in self.kernels
        ]
        records["memory_copy"] = [
            {
                **{"thread_id": TID, "start_timestamp": copy["start"], "end_timestamp": copy["end"]},
                "correlation_id": {"internal": copy["call"], "external": 0},
                **{"stream_id": {"handle": 3}, "bytes": copy["size"]},
                **{
                    "src_agent_id": {"handle": BASE + copy["source"]},
                    "dst_agent_id": {"handle": BASE + copy["target"]},
                },
            }
            for copy in self.copies
        ]
        messages = [{"key": one["number"], "value": one["message"]} for one in self.regions if one["message"]]
        return {
            "metadata": {"pid": PID, "command": ["/usr/bin/train", "--steps", "3"], "node": {"hostname": "node"}},
            "agents": _agents(),
            "strings": {
                "buffer_records": [{"kind": kind, "operations": names} for kind, names in KINDS.items()],
                "marker_api": messages,
            },
            "kernel_symbols": [
                {
                    **{"kernel_id": number, "kernel_name": f"_Z{name}.kd", "formatted_kernel_name": name},
                    **{"arch_vgpr_count": 32, "accum_vgpr_count": 4},
                }
                for number, name in enumerate(self.names)
            ],
            "callback_records": {"counter_collection": [{"value": 2.0}] * self.counters},
            "buffer_records": records,
        }

    def write_json(self, path: Path) -> Path:
        path.write_text(json.dumps({"rocprofiler-sdk-tool": [self.content()]}))
        return path

    def write_pftrace(self, path: Path) -> Path:
        path.write_bytes(self.pftrace())
        return path

    def pftrace(self) -> bytes:
        """The Perfetto trace of the process."""
        packets = Packets()
        process = message((1, PID), (2, "/usr/bin/train"), (2, "--steps"), (2, "3"))
        packets.add((60, message((1, 1), (3, process))))
        for region in self.regions:
            packets.bar(
                LISTS[region["kind"].partition("_")[0]],
                region["message"] or region["name"],
                **{"begin_ns": region["start"], "end_ns": region["end"], "tid": TID},
                **{"corr_id": region["number"], "ancestor_id": region["parent"]},
            )
        for copy in self.copies:
            sides = ["HOST" if copy[side] == CPU else "DEVICE" for side in ("source", "target")]
            packets.bar(
                "memory_copy",
                f"MEMORY_COPY_{sides[0]}_TO_{sides[1]}",
                **{"begin_ns": copy["start"], "end_ns": copy["end"], "corr_id": copy["call"], "tid": TID},
                **{"src_agent": f"Agent-{copy['source']}", "dst_agent": f"Agent-{copy['target']}"},
                **{"copy_bytes": copy["size"], "stream_ID": 3},
            )
        for kernel in self.kernels:
            packets.bar(
                "kernel_dispatch",
                kernel["name"],
                **{"begin_ns": kernel["start"], "end_ns": kernel["end"], "corr_id": kernel["call"], "tid": TID},
                **{"agent": f"Agent-{kernel['gpu']}", "agent_type": "GPU", "queue": kernel["queue"] - 1},
                **{"LDS_Block_Size": 512, "VGPR_Count": 32, "Accum_VGPR_Count": 4, "stream_ID": kernel["stream"]},
                **{"workgroup_size": 256, "grid_size": 2000},
                **({"SQ_WAVES": 2.0} if self.counters else {}),
            )
        return packets.content


class Packets:
    """A Perfetto trace of one writer: each name is written once, and then referred to by number."""

    def __init__(self) -> None:
        self.content = b""
        self._known: dict[tuple[int, str], int] = {}

    def add(self, *fields: tuple[int, int | str | bytes | float]) -> None:
        flags = 2 if self.content else 1  # the first packet clears the state
        self.content += message((1, message((10, 2), *fields, (13, flags))))

    def bar(self, category: str, name: str, **details: int | str | float) -> None:
        """Its beginning and its end."""
        new: list[tuple[int, bytes]] = []

        def number(table: int, text: str) -> int:
            if (table, text) not in self._known:
                self._known[table, text] = len(self._known) + 1
                new.append((table, message((1, self._known[table, text]), (2, text))))
            return self._known[table, text]

        fields = [(3, number(1, category)), (9, 1), (10, number(2, name)), (11, 1)]
        for key, value in details.items():
            kind = {int: 3, float: 5, str: 6}[type(value)]
            fields.append((4, message((1, number(3, key)), (kind, value))))
        self.add((8, details["begin_ns"]), (11, message(*fields)), (12, message(*new)))
        self.add((8, details["end_ns"]), (11, message((9, 2), (11, 1))))


def _agents() -> list[dict[str, Any]]:
    described = [("EPYC", "EPYC 9575F", 1, 0), ("gfx942", "AMD Instinct MI300X", 2, 0), ("gfx942", "", 2, 1)]
    return [
        {
            **{"id": {"handle": BASE + number}, "node_id": number, "type": kind, "logical_node_type_id": index},
            **{"name": name, "product_name": product, **AGENT},
        }
        for number, (name, product, kind, index) in enumerate(described)
    ]


def small() -> RocprofFile:
    """Two kernels and a copy on GPU 0 within 8 µs: busy from 2 to 7 and from 9 to 10 µs."""
    file = RocprofFile()
    file.region("HIP", "hipLaunchKernel", 1_000, 1_400, 1).kernel(2_000, 5_000, 1)
    file.region("HIP", "hipMemcpyAsync", 1_500, 1_600, 2).copy(4_000, 7_000, 2, CPU, GPU0)
    return file.region("HIP", "hipLaunchKernel", 5_000, 5_200, 3).kernel(9_000, 10_000, 3, "relu")
