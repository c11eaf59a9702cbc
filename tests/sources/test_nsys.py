"""Rows of hand-made nsys exports, one layout a generation."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from nsys_files import EPOCH_NS, GENERATIONS, GLOBAL_PID, GLOBAL_TID, GLOBAL_WORKER, PID, TID, Export, small

from warpline.sources.nsys import read_nsys
from warpline.sources.rows import Rows
from warpline.trace.schema import TABLES, conform

PLACE = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID}


def rows_of(export: Export, folder: Path) -> Rows:
    return read_nsys(export.write(folder / "export.sqlite"))


@pytest.mark.parametrize("schema", GENERATIONS)
def test_every_generation_gives_the_same_gpu_rows(schema: str, tmp_path: Path) -> None:
    gpu = rows_of(small(schema), tmp_path).tables["gpu"]
    assert gpu["kind"].to_list() == ["kernel", "memcpy", "kernel", "memset"]
    assert gpu["name"].to_list() == [
        "void gemm<float>(T1)",
        "[CUDA memcpy Host-to-Device]",
        "triton_add",
        "[CUDA memset]",
    ]
    assert gpu["short_name"].to_list() == ["void gemm", None, "triton_add", None]
    assert gpu["start_ns"].to_list() == [20, 52, 70, 80]
    assert gpu["end_ns"].to_list() == [50, 58, 75, 81]
    assert gpu["process"].to_list() == [PID] * 4
    assert gpu["correlation"].to_list() == [1, 2, 3, 4]
    assert gpu["shared_bytes"].to_list() == [3072, None, 3072, None]
    assert gpu["grid_y"].to_list() == [3, None, 3, None]
    assert gpu["bytes"].to_list() == [None, 4096, None, 64]
    assert gpu["copy_kind"].to_list() == [None, "HtoD", None, None]
    assert gpu["source_memory"].to_list() == [None, "Pageable", None, None]
    assert gpu["target_memory"].to_list() == [None, "Device", None, "Device"]
    assert gpu["graph_id"].to_list() == [None] * 4


@pytest.mark.parametrize("schema", GENERATIONS)
def test_every_generation_gives_the_same_calls(schema: str, tmp_path: Path) -> None:
    rows = rows_of(small(schema), tmp_path)
    api = rows.tables["api"]
    assert api["name"].to_list() == ["cudaLaunchKernel", "cudaMemcpyAsync", "cuLaunchKernelEx", "cudaMemsetAsync"]
    assert api["layer"].to_list() == ["runtime", "runtime", "driver", "runtime"]
    assert api["start_ns"].to_list() == [10, 16, 61, 76]
    assert api["return_code"].to_list() == [0] * 4
    assert api["thread"].to_list() == [0] * 4
    assert rows.tables["threads"].row(0, named=True) == {
        "process": PID,
        "tid": TID,
        "name": "python3",
        "process_name": "python3",
        "priority": 20,
    }
    assert rows.meta["epoch_ns"] == str(EPOCH_NS)
    assert rows.meta["schema_version"] == schema
    assert rows.health == []


@pytest.mark.parametrize("schema", GENERATIONS)
def test_columns_and_types_are_those_of_the_trace(schema: str, tmp_path: Path) -> None:
    rows = rows_of(small(schema), tmp_path)
    for name, frame in rows.tables.items():
        conformed = conform(name, frame)
        for column in frame.columns:
            assert frame.schema[column] == TABLES[name].columns[column].dtype, f"{name}.{column}"
        assert conformed.height == frame.height


def test_gzip_reads_like_plain_and_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = small().write(tmp_path / "export.sqlite")
    packed = tmp_path / "whatever"
    packed.write_bytes(gzip.compress(plain.read_bytes()[:5000]) + gzip.compress(plain.read_bytes()[5000:]))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    rows = read_nsys(packed)
    assert rows.tables["gpu"].equals(read_nsys(plain).tables["gpu"])
    assert rows.health == []
    assert list(scratch.iterdir()) == []


def test_version_suffixes_that_nsys_prints_are_remembered(tmp_path: Path) -> None:
    export = small().call(90, 91, "cudaLaunchKernelExC_v11060", 9).call(92, 93, "cuMemAlloc_v2", 10)
    rows = rows_of(export, tmp_path)
    assert rows.tables["api"]["name"].to_list()[-2:] == ["cudaLaunchKernelExC", "cuMemAlloc"]
    assert rows.meta["api_suffixes"] == '{"cuMemAlloc": "_v2", "cudaLaunchKernelExC": "_v11060"}'


def test_a_call_with_a_backtrace_is_counted_once(tmp_path: Path) -> None:
    export = small("2.9.1").call(9, 16, "cudaLaunchKernel", 1, eventClass=67)
    assert rows_of(export, tmp_path).tables["api"].height == 4


def test_graph_replays_are_bars_and_those_without_times_are_left_out(tmp_path: Path) -> None:
    export = small()
    export.add(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=100, end=130, correlationId=8, graphId=4, graphExecId=5, **PLACE
    )
    export.add("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=0, end=0, correlationId=9, graphId=4, graphExecId=5, **PLACE)
    rows = rows_of(export, tmp_path)
    graph = rows.tables["gpu"].row(-1, named=True)
    assert (graph["kind"], graph["start_ns"], graph["end_ns"], graph["graph_id"]) == ("graph", 100, 130, 5)
    assert [(entry.code, entry.severity) for entry in rows.health] == [("graphs-without-times", "warning")]


def test_kernels_of_a_graph_keep_their_node(tmp_path: Path) -> None:
    export = Export("3.24.0").kernel(1, 2, graphNodeId=77, graphId=6, greenContextId=3)
    row = rows_of(export, tmp_path).tables["gpu"].row(0, named=True)
    assert (row["graph_id"], row["graph_node_id"], row["green_context"]) == (6, 77, 3)


def test_unified_memory_and_decompression_are_gpu_work(tmp_path: Path) -> None:
    export = small()
    for kind, start in ((11, 200), (12, 210), (13, 220)):
        export.add(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            start=start,
            end=start + 1,
            copyKind=kind,
            bytes=1,
            virtualAddress=4096,
            **PLACE,
        )
    export.add("CUPTI_ACTIVITY_KIND_MEM_DECOMPRESS", start=230, end=240, sourceBytes=9, **PLACE)
    gpu = rows_of(export, tmp_path).tables["gpu"]
    assert gpu["copy_kind"].to_list()[-4:] == ["UnifiedHtoD", "UnifiedDtoH", "UnifiedDtoD", None]
    assert gpu["name"].to_list()[-4] == "[CUDA memcpy Unified Host-to-Device]"
    assert gpu["kind"].to_list()[-1] == "decompress"
    assert gpu["address"].to_list()[1:4] == [None, None, None]
    assert gpu["address"].to_list()[-4:] == [4096, 4096, 4096, None]


def test_ranges_keep_domain_style_and_open_ends(tmp_path: Path) -> None:
    export = small()
    export.range(None, None, "nccl", kind=75, domainId=2)
    export.range(1, 90, "step").range(5, None, "never closed")
    export.range(2, 8, None, textId=export.string("AllReduce"), domainId=2)
    export.range(30, 60, "request", kind=60, rangeId=9, endGlobalTid=GLOBAL_WORKER).range(40, None, "saved", kind=34)
    rows = rows_of(export, tmp_path)
    ranges = rows.tables["ranges"].select("name", "domain", "style", "start_ns", "end_ns").rows()
    assert ranges == [
        ("step", None, "pushpop", 1, 90),
        ("AllReduce", "nccl", "pushpop", 2, 8),
        ("never closed", None, "pushpop", 5, None),
        ("request", None, "startend", 30, 60),
        ("saved", None, "mark", 40, 40),
    ]
    request = rows.tables["ranges"].row(3, named=True)
    assert request["range_id"] == 9
    assert rows.tables["threads"]["tid"].to_list()[request["end_thread"]] == 4330
    assert rows.health == []


def test_the_strongest_thread_name_wins_and_strangers_are_left_out(tmp_path: Path) -> None:
    export = small()
    export.add("ThreadNames", nameId=export.string("MPI Rank 0"), priority=0, globalTid=GLOBAL_TID)
    export.add("ThreadNames", nameId=export.string("cuda-EvtHandlr"), priority=20, globalTid=GLOBAL_WORKER)
    export.add("ThreadNames", nameId=export.string("browser"), priority=20, globalTid=(1 << 48) | (99 << 24) | 99)
    export.add("PROCESSES", globalPid=GLOBAL_PID, pid=PID, name="train")
    threads = rows_of(export, tmp_path).tables["threads"]
    assert threads["name"].to_list() == ["MPI Rank 0", "cuda-EvtHandlr"]
    assert threads["process_name"].to_list() == ["train", "train"]


@pytest.mark.parametrize("schema", ["3.1.2", "3.24.0"])
def test_syncs_events_and_overhead(schema: str, tmp_path: Path) -> None:
    export = small(schema)
    for kind in (1, 2, 3, 4):
        export.add(
            "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=kind, end=9, syncType=kind, eventId=5, correlationId=2, **PLACE
        )
    export.add("CUPTI_ACTIVITY_KIND_CUDA_EVENT", correlationId=3, eventId=5, **PLACE)
    export.add("PROFILER_OVERHEAD", start=1, end=3, globalTid=GLOBAL_TID, nameId=export.string("TLS allocation"))
    export.add("CUPTI_ACTIVITY_KIND_OVERHEAD", start=2, end=6, globalTid=GLOBAL_TID, overheadType=7)
    tables = rows_of(export, tmp_path).tables
    assert tables["syncs"]["kind"].to_list() == ["event", "stream_wait_event", "stream", "context"]
    assert tables["events"].row(0, named=True)["event_id"] == 5
    assert tables["overhead"]["name"].to_list() == ["TLS allocation", "Lazy function loading"]


def test_os_calls_faults_memory_and_counters(tmp_path: Path) -> None:
    export = small()
    export.add(
        "OSRT_API", start=3, end=7, globalTid=GLOBAL_TID, nameId=export.string("poll"), returnValue=-1, nestingLevel=0
    )
    export.add("CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=4, globalPid=GLOBAL_PID, address=4096)
    export.add(
        "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
        **{"start": 5, "end": 8, "globalPid": GLOBAL_PID, "deviceId": 0, "address": 8192, "numberOfPageFaults": 12},
    )
    usage = {"globalPid": GLOBAL_PID, "deviceId": 0, "address": 512, "bytes": 1000}
    export.add("CUDA_GPU_MEMORY_USAGE_EVENTS", start=1, memoryOperationType=0, **usage)
    export.add("CUDA_GPU_MEMORY_USAGE_EVENTS", start=2, memoryOperationType=1, **usage)
    export.add("TARGET_INFO_GPU_METRICS", typeId=256, metricId=3, metricName="SM Active")
    export.add("GPU_METRICS", timestamp=6, typeId=256, metricId=3, value=42)
    tables = rows_of(export, tmp_path).tables
    assert tables["osrt"].row(0, named=True)["return_code"] == -1
    assert tables["faults"].select("kind", "start_ns", "end_ns", "count").rows() == [
        ("cpu", 4, 4, 1),
        ("gpu", 5, 8, 12),
    ]
    assert tables["memory"]["bytes"].to_list() == [1000, -1000]
    assert tables["counters"].select("time_ns", "name", "device", "value").rows() == [(6, "SM Active", 0, 42.0)]


def test_device_numbers_follow_cuda_unless_processes_disagree(tmp_path: Path) -> None:
    agreeing = small()
    agreeing.add("TARGET_INFO_GPU", id=3, name="other", cuDevice=1)
    agreeing.add("TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=PID)
    rows = rows_of(agreeing, tmp_path)
    assert rows.tables["gpu"]["device"].unique().to_list() == [0]
    assert rows.tables["devices"].filter(device=0)["name"].to_list() == ["other"]
    assert rows.health == []

    other = (1 << 48) | (77 << 24)
    ranks = Export().kernel(1, 2).kernel(1, 3, globalPid=other)
    ranks.add("TARGET_INFO_CUDA_DEVICE", gpuId=0, cudaId=0, pid=PID)
    ranks.add("TARGET_INFO_CUDA_DEVICE", gpuId=1, cudaId=0, pid=77)
    rows = read_nsys(ranks.write(tmp_path / "ranks.sqlite"))
    assert rows.tables["gpu"].select("process", "device").rows() == [(PID, 0), (77, 1)]
    assert [entry.code for entry in rows.health] == ["devices-renumbered"]


def test_an_export_of_2021_names_its_gpu_in_the_table_of_cuda(tmp_path: Path) -> None:
    export = Export().kernel(1, 2).add("TARGET_INFO_GPU", name="NVIDIA GeForce RTX 3080")  # without an id
    row = {"deviceId": 0, "name": "NVIDIA GeForce RTX 3080", "numMultiprocessors": 68, "computeCapabilityMajor": 8}
    rates = {"globalMemoryBandwidth": 760_080_000, "coreClockRate": 1_740_000}
    for _process in range(2):
        export.add("TARGET_INFO_CUDA_GPU", **row, **rates, numThreadsPerWarp=32, maxWarpsPerMultiprocessor=48)
    (device,) = rows_of(export, tmp_path).tables["devices"].to_dicts()
    assert (device["device"], device["name"], device["sm_count"]) == (0, "NVIDIA GeForce RTX 3080", 68)
    assert (device["memory_bandwidth"], device["clock_hz"]) == (760_080_000_000, 1_740_000_000)
    assert (device["compute_major"], device["max_threads_per_sm"]) == (8, 1536)


def test_meta_tells_the_capture_but_no_environment_user_or_host(tmp_path: Path) -> None:
    export = small()
    export.option("PROCESS_0:COMMAND", "/home/ada/venv/bin/python").option("PROCESS_0:ARGUMENT_1", "--hf-token")
    export.option("PROCESS_0:ARGUMENT_0", "train.py").option("PROCESS_0:ARGUMENT_2", "hf_verysecret")
    export.option("PROCESS_0:ENVIRONMENT_VARIABLE", "AWS_SECRET_ACCESS_KEY=abc").option(
        "DEVICE_DISPLAY_NAME", "adas-box"
    )
    export.option("CAPTURE_EVENT_TYPE", "Cuda").option("CAPTURE_EVENT_TYPE", "NvtxEvents")
    export.option("PROCESS_0:CUDA_GRAPH_TRACE_OPTIONS:MODE", "Node")
    export.system("Hostname", "adas-box").system("NvDriverVersion", "580.1").system("CudaDriverVersion", "13030")
    export.system("DeviceEnvironment", "HOME=/home/ada")
    meta = rows_of(export, tmp_path).meta
    assert meta["command"] == "…/python train.py --hf-token …"
    assert meta["program"] == "python"
    assert meta["collected"] == "Cuda,NvtxEvents"
    assert meta["graph_trace"] == "node"
    assert (meta["driver_version"], meta["cuda_driver_version"]) == ("580.1", "13.3")
    assert not any(word in str(meta) for word in ("ada", "secret", "SECRET", "box", "HOME"))
