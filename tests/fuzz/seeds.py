"""What is mutated: small profiles of every kind, written by hand or cut from our own recordings."""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import sqlite3
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from kineto_files import AUTOGRAD, MAIN, PROCESS, Event, annotation, call, copy, frame, kernel, memset, op
from ncu_files import block, message
from ncu_files import report as ncu_report
from nsys_files import GENERATIONS, GLOBAL_PID, GLOBAL_TID, GLOBAL_WORKER, Export, small
from nvprof_files import LAUNCH, NvprofFile
from paths import DATA, SUITES
from rocprofv3_files import small as small_rocprofv3
from scan_samples import OF_2021, TODAY
from snapshot_files import leaking
from snapshot_files import training as snapshot_of_training

from tests.fuzz.commands import HISTORY
from warpline.cli.main import run
from warpline.sources.local_record import append

EVENTS = 120
"""A recording is cut to this many events, so that a command takes well under a second."""
EVERY = 6
"""One recording in so many is used: reading one takes longer than most commands."""
ROWS = 40
"""Likewise to this many rows a table."""


SNAPSHOTS = {"training": snapshot_of_training, "leaking": leaking}
"""Memory snapshots, as plain values."""


def training() -> dict[str, Any]:
    """Three steps with everything that torch.profiler records: about 120 events."""
    events: list[Event] = [
        {"ph": "M", "name": "process_name", "pid": PROCESS, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {
            "ph": "M",
            "name": "thread_name",
            "pid": PROCESS,
            "tid": MAIN,
            "ts": 0,
            "args": {"name": "thread 100 (python)"},
        },
        {"ph": "M", "name": "process_labels", "pid": 0, "tid": 0, "ts": 0, "args": {"labels": "GPU 0"}},
    ]
    for step in range(3):
        events += _step(step, 1000.0 * step)
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            {
                "id": 0,
                "name": "NVIDIA H200",
                "totalGlobalMem": 150110011392,
                "computeMajor": 9,
                "computeMinor": 0,
                "numSms": 132,
            }
        ],
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": 1759449622000000000,
        "traceEvents": events,
        "traceName": "/tmp/trace.json",
    }


def _step(step: int, at: float) -> list[Event]:
    first = 100 * step + 1
    square = {"Input Dims": [[64, 64], [64, 64]], "Input type": ["float", "float"], "Input Strides": [[64, 1], [64, 1]]}
    worker = annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 2, 40)
    return [
        annotation(f"ProfilerStep#{step}", at, 990),
        worker,
        frame("train.py(10): main", at, 980, 10 * step + 1, None),
        frame("nn.Module: Linear_0", at + 50, 200, 10 * step + 2, 10 * step + 1),
        op("aten::to", at + 44, 30, external=first, **{"Input Dims": [[64, 64]], "Input type": ["float"]}),
        call("cudaMemcpyAsync", at + 46, 20, first, external=first),
        copy("Memcpy HtoD (Pageable -> Device)", at + 50, 14, first, 16384),
        op("aten::linear", at + 80, 60, external=first + 1, **square),
        op("aten::mm", at + 85, 50, external=first + 2, **square, **{"Sequence number": step, "Concrete Inputs": ["", ""]}),
        call("cudaLaunchKernel", at + 90, 8, first + 1, external=first + 2),
        kernel("ampere_sgemm_128x64_nn", at + 110, 90, first + 1, grid=[1, 1, 1], block=[128, 1, 1], **{"registers per thread": 122}),
        {"ph": "s", "id": first + 1, "pid": PROCESS, "tid": MAIN, "ts": at + 90, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": first + 1, "pid": 0, "tid": 7, "ts": at + 110, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        op("aten::mul", at + 150, 30, external=first + 3, **square),
        call("cuLaunchKernelEx", at + 155, 8, first + 2, external=first + 3, category="cuda_driver"),
        kernel("triton_poi_fused_add_0", at + 205, 6, first + 2, grid=[16, 1, 1], block=[256, 1, 1]),
        op("aten::item", at + 200, 60, external=first + 4),
        op("aten::_local_scalar_dense", at + 202, 56, external=first + 5),
        call("cudaMemcpyAsync", at + 204, 10, first + 3, external=first + 5),
        copy("Memcpy DtoH (Device -> Pageable)", at + 214, 2, first + 3, 4),
        call("cudaStreamSynchronize", at + 216, 30, first + 4, external=first + 5),
        {"ph": "X", "cat": "cuda_sync", "name": "Stream Sync", "pid": 0, "tid": 7, "ts": at + 216, "dur": 30, "args": {"stream": 7, "correlation": first + 4, "device": 0}},
        op("autograd::engine::evaluate_function: MmBackward0", at + 300, 90, thread=AUTOGRAD, external=first + 6, **{"Sequence number": step, "Fwd thread id": 1}),
        op("aten::mm", at + 310, 60, thread=AUTOGRAD, external=first + 7, **square),
        call("cudaLaunchKernel", at + 320, 8, first + 5, thread=AUTOGRAD, external=first + 7),
        kernel("ampere_sgemm_128x64_nt", at + 340, 80, first + 5, grid=[1, 1, 1], block=[128, 1, 1]),
        annotation("Optimizer.step#Adam.step", at + 450, 150),
        op("aten::_foreach_add_", at + 460, 60, external=first + 8),
        call("cudaLaunchKernel", at + 465, 8, first + 6, external=first + 8),
        kernel("void at::native::multi_tensor_apply_kernel<at::native::TensorListMetadata<1>>(int)", at + 480, 20, first + 6),
        call("cudaGraphLaunch", at + 620, 20, first + 7),
        kernel("graph_kernel", at + 645, 50, first + 7, **{"graph id": 3, "graph node id": 8}),
        call("cudaEventRecord", at + 660, 3, first + 8),
        call("cudaMalloc", at + 670, 50, first + 9),
        call("cudaMemsetAsync", at + 730, 5, first + 10),
        memset(at + 740, 2, first + 10, stream=20),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 750, 60, first + 11, stream=20, **{"Collective name": "allreduce", "Group size": 2, "In msg nelems": 4096, "dtype": "Float"}),
        {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": PROCESS, "tid": MAIN, "ts": at + 90, "args": {"Total Reserved": 2097152, "Total Allocated": 512, "Bytes": 512, "Addr": 140193847377920, "Device Id": 0, "Device Type": 1}},
        {"ph": "X", "cat": "gpu_user_annotation", "name": f"ProfilerStep#{step}", "pid": 0, "tid": 7, "ts": at + 50, "dur": 700, "args": {}},
        {"ph": "X", "cat": "overhead", "name": "Buffer Flush", "pid": -1, "tid": 0, "ts": at + 900, "dur": 30, "args": {}},
    ]  # fmt: skip


def xla() -> dict[str, Any]:
    """A trace as JAX writes it."""
    events = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "Stream #13(Compute)"}},
        {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}},
        {"ph": "M", "pid": 701, "tid": 9, "name": "thread_name", "args": {"name": "python"}},
    ]
    for number in range(8):
        at = 100 * number
        events += [
            {"ph": "X", "pid": 701, "tid": 9, "ts": at, "dur": 80, "name": "PjitFunction(step)"},
            {"ph": "X", "pid": 701, "tid": 9, "ts": at + 5, "dur": 9, "name": "cuLaunchKernelEx", "args": {"correlation_id": str(number)}},
            {"ph": "X", "pid": 1, "tid": 1, "ts": at + 20, "dur": 40, "name": "loop_add_fusion", "args": {"correlation_id": str(number), "hlo_op": "fusion.1", "hlo_module": "jit_step"}},
        ]  # fmt: skip
    return {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}


@cache
def recordings() -> tuple[Path, ...]:
    """Some of our own recordings of planted faults, of every suite."""
    return tuple(sorted(SUITES.rglob("*.json.gz"))[::EVERY])


@cache
def recorded(file: Path) -> str:
    """A recording as JSON text, cut to a window of events in the order of time."""
    document = json.loads(gzip.decompress(file.read_bytes()))
    events = document["traceEvents"]
    timed = sorted((one for one in events if one.get("ph") == "X"), key=lambda one: one["ts"])
    flows = [one for one in events if one.get("ph") in {"s", "f"}][:4]
    names = [one for one in events if one.get("ph") == "M"][:6]
    document["traceEvents"] = [*timed[:EVENTS], *flows, *names]
    return json.dumps(document)


def steps_of_nsys(schema: str) -> Export:
    """Three ranges with launches, copies, waits, events, OS calls, an allocation and a page fault."""
    export = small(schema)
    place = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID}
    export.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=4321)
    export.add("ANALYSIS_DETAILS", globalVid=0, duration=10_000, startTime=0, stopTime=10_000)
    export.add("PROCESSES", globalPid=GLOBAL_PID, pid=4321, name="python")
    export.option("PROFILING_TOOL_VERSION", "2025.3").system("Hostname", "box").error_output("Killed")
    for step in range(3):
        at, first = 1000 * (step + 1), 10 * (step + 1)
        export.range(at, at + 900, "train_step").range(at + 5, at + 100, "forward")
        export.call(at + 10, at + 20, "cudaLaunchKernel_v7000", first)
        export.kernel(at + 30, at + 230, "void gemm<float>(T1)", first)
        export.call(at + 240, at + 300, "cudaStreamSynchronize_v3020", first + 1)
        export.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
            start=at + 240,
            end=at + 300,
            correlationId=first + 1,
            syncType=3,
            eventId=0,
            **place,
        )
        export.call(at + 310, at + 350, "cudaMemcpyAsync_v3020", first + 2)
        export.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            start=at + 320,
            end=at + 345,
            correlationId=first + 2,
            bytes=4096,
            copyKind=2,
            srcKind=2,
            dstKind=0,
            **place,
        )
        export.call(at + 360, at + 370, "cudaEventRecord_v3020", first + 3)
        export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", correlationId=first + 3, eventId=5, **place)
        export.add(
            "OSRT_API",
            start=at + 400,
            end=at + 500,
            globalTid=GLOBAL_WORKER,
            nameId=export.string("read"),
            returnValue=9,
            nestingLevel=0,
        )
        export.add(
            "PROFILER_OVERHEAD",
            start=at + 510,
            end=at + 520,
            globalTid=GLOBAL_TID,
            nameId=export.string("Buffer flush"),
        )
    export.add(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=4000, end=4100, correlationId=99, graphId=1, graphExecId=2, **place
    )
    export.add(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        start=4200,
        end=4210,
        globalPid=GLOBAL_PID,
        deviceId=0,
        address=4096,
        numberOfPageFaults=3,
    )
    export.add(
        "CUDA_GPU_MEMORY_USAGE_EVENTS",
        start=50,
        globalPid=GLOBAL_PID,
        deviceId=0,
        contextId=1,
        address=4096,
        bytes=64,
        memKind=2,
        memoryOperationType=0,
    )
    return export.remark("Installed CUDA driver version (535) is not supported")


def nvprof() -> NvprofFile:
    """Two launches and a wait."""
    file = NvprofFile()
    for number in range(3):
        at = 1000 * number
        file.call(LAUNCH, at + 10, at + 20, 10 * number + 1).kernel(
            at + 30, at + 200, 10 * number + 1, "void gemm<float>(T1)"
        )
        file.wait(at + 210, at + 300, 10 * number + 2)
    return file


@cache
def databases() -> dict[str, bytes]:
    """Exports by name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = {f"nsys {schema}": steps_of_nsys(schema).write(folder / schema).read_bytes() for schema in GENERATIONS}
        made["nvprof"] = nvprof().write(folder / "nvprof").read_bytes()
        made["rocpd"] = small_rocprofv3().write_database(folder / "rocpd").read_bytes()
    for file in sorted((DATA / "nsys").glob("*.sqlite.gz")):
        made[file.name] = _cut(gzip.decompress(file.read_bytes()))
    return made


def _cut(content: bytes) -> bytes:
    """The export with few rows in each table, and small."""
    database = sqlite3.connect(":memory:")
    database.deserialize(content)
    for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        if table.startswith("ENUM_"):
            database.execute(f'DROP TABLE "{table}"')
        elif table != "StringIds":
            database.execute(f'DELETE FROM "{table}" WHERE rowid NOT IN (SELECT rowid FROM "{table}" LIMIT {ROWS})')
    database.commit()
    database.execute("VACUUM")
    return database.serialize()


@cache
def reports() -> dict[str, bytes]:
    """Reports of Nsight Compute by name; their payloads are made up, which NVIDIA's reader refuses."""
    session = message({8: message({1: b"Nsight Compute Target", 2: b"2025.3.1.0"}), 11: b"ncu -o x python train.py"})
    return {
        "one": ncu_report(block(1, b"kernel" * 9, session, (4321, "/usr/bin/python3"))),
        "two": ncu_report(block(0, b"", session), block(2, bytes(200), process=(4321, "python"))),
        "none": ncu_report(block()),
    }


@cache
def baseline() -> bytes:
    """The baseline of the hand-made trace."""
    with tempfile.TemporaryDirectory() as name, contextlib.redirect_stderr(io.StringIO()):
        trace = Path(name) / "trace.json"
        trace.write_text(json.dumps(training()))
        assert run(["baseline", "save", "seed", str(trace), "--folder", name, "--no-cache"]) == 0
        return (Path(name) / "seed.json").read_bytes()


@cache
def history() -> bytes:
    """A local record with thirty runs of the gate, the last ten of them slower."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "record"
        for number in range(30):
            numbers = {"step_ms": 10.0 + number % 3 + 5 * (number >= 20), "launches": 40}
            values = (
                f"2026-11-{number + 1:02}",
                HISTORY,
                "train",
                "abc",
                "passed",
                "step",
                "H200",
                1,
                json.dumps(numbers),
            )
            append(file, f"insert into runs values (null{', ?' * len(values)})", values)
        with sqlite3.connect(file) as database:
            database.execute("pragma journal_mode = delete")
        database.close()
        return file.read_bytes()


@cache
def documents() -> dict[str, str]:
    """Hand-made JSON traces by name."""
    bare = training()["traceEvents"]
    made = {"training": json.dumps(training()), "list": json.dumps(bare), "xla": json.dumps(xla())}
    return {**made, "2021": OF_2021.decode(), "today": TODAY.replace(b": inf", b": 0").decode()}
