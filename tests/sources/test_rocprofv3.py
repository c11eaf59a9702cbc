"""rocprofv3's database (rocpd), its JSON and its Perfetto trace say the same: kernels, copies, HIP calls, markers, devices."""

from __future__ import annotations

import functools
import gzip
import json
import lzma
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from protobuf_files import message
from rocprofv3_files import CPU, GPU0, GPU1, PID, TID, UUID, Packets, RocprofFile, small

from warpline.analyses.breakdown import device_times
from warpline.cli.main import run
from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.rocprofv3 import PERFETTO, ROCPD, ROCPROFV3_JSON
from warpline.trace.open import open_trace
from warpline.trace.trace import Trace

Writer = Callable[[RocprofFile, Path], Path]
WRITERS = [RocprofFile.write_database, RocprofFile.write_json, RocprofFile.write_pftrace]
both = pytest.mark.parametrize("write", WRITERS[:2])
each = pytest.mark.parametrize("write", WRITERS)


def opened(file: RocprofFile, write: Writer, tmp_path: Path) -> Trace:
    return open_trace(write(file, tmp_path / "1_results"), cache=False)


def texts(trace: Trace, table: str, column: str) -> list[str]:
    return trace.tables[table].stored[column].cast(pl.String).to_list()


@each
def test_every_nanosecond_is_accounted_for(write: Writer, tmp_path: Path) -> None:
    """Kernels from 2 to 5 and from 9 to 10 µs, a copy from 4 to 7: busy for 6 of 8 µs, 2 of them with the copy alone."""
    trace = opened(small(), write, tmp_path)
    (times,) = device_times(trace)
    assert (times.device, times.window_ns, times.busy_ns, times.idle_ns) == (0, 8_000, 6_000, 2_000)
    assert (times.compute_ns, times.copy_ns) == (4_000, 2_000)


@both
def test_kernels_copies_and_calls_are_linked(write: Writer, tmp_path: Path) -> None:
    trace = opened(small(), write, tmp_path)
    assert trace.source == "rocprofv3"
    assert texts(trace, "gpu", "name") == ["gemm", "Memcpy HtoD", "relu"]
    assert texts(trace, "api", "name") == ["hipLaunchKernel", "hipMemcpyAsync", "hipLaunchKernel"]
    gpu = trace.gpu.stored
    assert gpu["api_id"].to_list() == [0, 1, 2]
    assert gpu["start_ns"].to_list() == [1_000, 3_000, 8_000]  # the first call is at zero
    assert trace.facts["epoch_ns"] == "1000"
    kernel = gpu.row(0, named=True)
    # 1,000 x 2 work-items in blocks of 256 are 4 x 2 blocks; registers are 32 architectural and 4 accumulation VGPRs.
    assert (kernel["grid_x"], kernel["grid_y"], kernel["block_x"]) == (4, 2, 256)
    assert (kernel["registers"], kernel["shared_bytes"], kernel["stream"], kernel["device"]) == (36, 512, 3, 0)
    copy = gpu.row(1, named=True)
    assert (copy["bytes"], copy["copy_kind"], copy["device"]) == (4096, "HtoD", 0)
    assert trace.threads.stored.row(0, named=True) | {"name": None, "priority": None} == {
        **{"process": PID, "tid": TID, "name": None, "priority": None, "process_name": "train"}
    }


@both
def test_devices_are_gpus_as_hip_counts_them(write: Writer, tmp_path: Path) -> None:
    trace = opened(small().kernel(2_000, 3_000, 1, gpu=GPU1), write, tmp_path)
    devices = trace.devices.stored
    assert devices["device"].to_list() == [0, 1]
    assert devices["name"].to_list() == ["AMD Instinct MI300X", "gfx942"]
    row = devices.row(0, named=True)
    assert (row["sm_count"], row["warp_size"], row["max_threads_per_sm"]) == (304, 64, 2048)
    assert (row["shared_bytes_per_sm"], row["memory_bytes"]) == (65_536, None)


@both
@pytest.mark.parametrize(
    ("source", "target", "kind", "device"),
    [(CPU, GPU1, "HtoD", 1), (GPU1, CPU, "DtoH", 1), (GPU0, GPU0, "DtoD", 0), (GPU0, GPU1, "PtoP", 1)],
)
def test_the_direction_of_a_copy(
    source: int, target: int, kind: str, device: int, write: Writer, tmp_path: Path
) -> None:
    trace = opened(RocprofFile().copy(10, 20, 1, source, target), write, tmp_path)
    assert texts(trace, "gpu", "copy_kind") == [kind]
    assert trace.gpu.stored["device"].to_list() == [device]


@each
def test_a_copy_within_host_memory_takes_no_gpu(write: Writer, tmp_path: Path) -> None:
    assert len(opened(small().copy(0, 20_000, 1, CPU, CPU), write, tmp_path).gpu) == 3


@each
def test_hsa_calls_are_left_out_and_their_kernels_belong_to_the_hip_call(write: Writer, tmp_path: Path) -> None:
    file = RocprofFile().region("HIP", "hipLaunchKernel", 10, 50, 5)
    file.region("HSA", "hsa_signal_store_screlease", 20, 30, 6, parent=5).kernel(60, 90, 6)
    trace = opened(file, write, tmp_path)
    assert texts(trace, "api", "name") == ["hipLaunchKernel"]
    assert trace.gpu.stored["api_id"].to_list() == [0]


@both
def test_markers_and_rccl_calls_are_ranges(write: Writer, tmp_path: Path) -> None:
    file = small().region("MARKER", "roctxThreadRangeA", 900, 9_000, 20, message="step 1")
    file.region("MARKER", "roctxProcessRangeA", 950, 8_000, 21, message="epoch")
    file.region("MARKER", "roctxGetThreadId", 960, 970, 22).region("RCCL", "ncclAllReduce", 980, 990, 23)
    ranges = opened(file, write, tmp_path).ranges.stored.sort("start_ns")
    assert ranges["name"].cast(pl.String).to_list() == ["step 1", "epoch", "ncclAllReduce"]
    assert ranges["style"].cast(pl.String).to_list() == ["pushpop", "startend", "pushpop"]
    assert ranges["domain"].cast(pl.String).to_list() == [None, None, "RCCL_API"]


@both
def test_without_streams_the_queue_orders_kernels(write: Writer, tmp_path: Path) -> None:
    file = RocprofFile().kernel(0, 10, 1, queue=16, stream=0).kernel(5, 15, 2, queue=17, stream=0)
    assert opened(file, write, tmp_path).gpu.stored["stream"].to_list() == [16, 17]


@each
def test_versions_of_a_call_have_one_name(write: Writer, tmp_path: Path) -> None:
    file = small().region("HIP", "hipGetDevicePropertiesR0600", 10, 20, 9)
    assert texts(opened(file, write, tmp_path), "api", "name")[0] == "hipGetDeviceProperties"


@each
def test_counters_are_a_warning(write: Writer, tmp_path: Path) -> None:
    file = small()
    assert "counters-recorded" not in {entry.code for entry in opened(file, write, tmp_path).health_entries}
    file.counters = 1
    again = tmp_path / "counters"
    again.mkdir()
    assert "counters-recorded" in {entry.code for entry in opened(file, write, again).health_entries}


def test_two_processes_in_one_database(tmp_path: Path) -> None:
    """The same correlation ids in both, which belong to different calls: same process id here, as on two machines."""
    path = small().write_database(tmp_path / "1_results.db")
    other = UUID.replace("3fdc", "4aaa")
    RocprofFile().region("HIP", "hipLaunchKernel", 1_100, 1_200, 40).kernel(20_000, 21_000, 40, "tanh").write_database(
        path, other
    )
    trace = open_trace(path, cache=False)
    assert texts(trace, "gpu", "name") == ["gemm", "Memcpy HtoD", "relu", "tanh"]
    assert trace.gpu.stored["api_id"].null_count() == 0


def test_two_processes_in_one_json(tmp_path: Path) -> None:
    path, first, second = tmp_path / "a.json", small().content(), small().content()
    second["metadata"]["pid"] = PID + 1
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [first, second]}))
    trace = open_trace(path, cache=False)
    assert len(trace.gpu) == 6
    assert sorted(trace.gpu.stored["api_id"].to_list()) == [0, 1, 2, 3, 4, 5]


def test_gpus_of_two_machines_are_counted_on(tmp_path: Path) -> None:
    path, first, second = tmp_path / "a.json", small().content(), small().content()
    second["metadata"]["node"]["hostname"] = "other"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [first, second]}))
    assert set(open_trace(path, cache=False).gpu.stored["device"]) == {0, 2}


@pytest.mark.parametrize("packed", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize(("write", "kind"), [*zip(WRITERS, [ROCPD, ROCPROFV3_JSON, PERFETTO], strict=True)])
def test_packed_files(write: Writer, kind: object, packed: Callable[[bytes], bytes], tmp_path: Path) -> None:
    path = write(small(), tmp_path / "plain")
    path.write_bytes(packed(path.read_bytes()))
    assert detect(path) is kind
    assert len(open_trace(path, cache=False).gpu) == 3


@each
def test_a_recording_without_events_is_one_line(
    write: Writer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(RocprofFile(), tmp_path / "1_results")
    assert run(["diagnose", str(path)]) == 1
    assert capsys.readouterr().err.startswith("warpline: empty-trace: ")


@pytest.mark.parametrize("kept", [0.15, 0.5, 0.9])
def test_json_that_is_cut_short_is_one_line(kept: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = small().write_json(tmp_path / "a.json")
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    assert run(["diagnose", str(path)]) == 1
    line = capsys.readouterr().err
    assert line.startswith("warpline: damaged-file: ")
    assert line.count("\n") == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda process: process["buffer_records"].update(kernel_dispatch="none"),
        lambda process: process["buffer_records"]["kernel_dispatch"][0].update(start_timestamp="soon"),
        lambda process: process["buffer_records"]["kernel_dispatch"][0].update(end_timestamp=1 << 70),
        lambda process: process["buffer_records"]["kernel_dispatch"][0].pop("dispatch_info"),
        lambda process: process.update(agents={"a": 1}),
        lambda process: process.update(strings=None),
    ],
)
def test_json_of_wrong_types_is_one_line(
    change: Callable[[dict[str, object]], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    process = small().content()
    change(process)
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    assert run(["diagnose", str(path)]) == 1
    line = capsys.readouterr().err
    assert line.startswith("warpline: damaged-file: ")
    assert line.count("\n") == 1


def test_a_database_that_is_cut_short_keeps_what_can_be_read(tmp_path: Path) -> None:
    file = RocprofFile()
    for number in range(5_000):
        file.kernel(100 * number, 100 * number + 50, number)
    path = file.write_database(tmp_path / "1_results.db")
    content = path.read_bytes()
    path.write_bytes(content[: 9 * len(content) // 10])
    trace = open_trace(path, cache=False)
    assert 0 < len(trace.gpu) < 5_000
    assert {"truncated-file", "damaged-table"} & {entry.code for entry in trace.health_entries}


def test_values_of_wrong_types_count_as_missing(tmp_path: Path) -> None:
    path = small().write_database(tmp_path / "1_results.db")
    with sqlite3.connect(path) as database:
        database.execute(
            f"UPDATE \"rocpd_kernel_dispatch{UUID}\" SET kernel_id = x'00', agent_id = 'none' WHERE id = 1"
        )
        database.execute(f"UPDATE \"rocpd_info_agent{UUID}\" SET extdata = '[', type_index = NULL WHERE id = 2")
        database.execute(f'UPDATE "rocpd_region{UUID}" SET name_id = 10000 WHERE id = 1')
    trace = open_trace(path, cache=False)
    assert texts(trace, "gpu", "name") == ["(no name)", "Memcpy HtoD", "relu"]
    assert trace.gpu.stored["device"].to_list() == [None, 0, 0]


def test_a_perfetto_trace_has_launches_calls_and_ranges(tmp_path: Path) -> None:
    """2,000 work-items in blocks of 256 are 8 blocks: the file has products over the axes only."""
    file = small().region("MARKER", "roctxThreadRangeA", 900, 9_000, 20, message="step 1")
    trace = opened(file.region("RCCL", "ncclAllReduce", 980, 990, 23), RocprofFile.write_pftrace, tmp_path)
    assert texts(trace, "gpu", "name") == ["gemm", "Memcpy HtoD", "relu"]
    assert trace.gpu.stored["api_id"].to_list() == [0, 1, 2]
    kernel = trace.gpu.stored.row(0, named=True)
    assert (kernel["grid_x"], kernel["grid_y"], kernel["block_x"]) == (8, 1, 256)
    assert (kernel["registers"], kernel["shared_bytes"], kernel["stream"], kernel["device"]) == (36, 512, 3, 0)
    assert texts(trace, "ranges", "name") == ["step 1", "ncclAllReduce"]
    assert texts(trace, "threads", "process_name") == ["train"]


@pytest.mark.parametrize(
    ("source", "target", "kind"), [(CPU, GPU1, "HtoD"), (GPU1, CPU, "DtoH"), (GPU0, GPU0, "DtoD"), (GPU0, GPU1, "PtoP")]
)
def test_the_direction_of_a_copy_in_a_perfetto_trace(source: int, target: int, kind: str, tmp_path: Path) -> None:
    """CPUs and GPUs are counted together there: GPUs that take part count from the first."""
    trace = opened(RocprofFile().copy(10, 20, 1, source, target), RocprofFile.write_pftrace, tmp_path)
    assert texts(trace, "gpu", "copy_kind") == [kind]
    assert trace.gpu.stored["device"].to_list() == [int(kind == "PtoP")]


def test_a_compressed_perfetto_trace(tmp_path: Path) -> None:
    path = tmp_path / "1_results.pftrace"
    path.write_bytes(message((1, message((50, zlib.compress(small().pftrace()))))))
    assert detect(path) is PERFETTO
    assert len(open_trace(path, cache=False).gpu) == 3


@pytest.mark.parametrize(
    "hostile",
    [
        message((1, message((50, zlib.compress(bytes(1 << 22)))))),
        functools.reduce(lambda inner, _: message((1, message((50, zlib.compress(inner))))), range(2_000), b""),
    ],
    ids=["expands", "nests"],
)
def test_compressed_packets_that_expand_or_nest_without_end_are_damage_at_most(tmp_path: Path, hostile: bytes) -> None:
    path = tmp_path / "1_results.pftrace"
    path.write_bytes(small().pftrace() + hostile)
    assert len(open_trace(path, cache=False).gpu) == 3


def test_a_perfetto_trace_that_is_cut_short_is_read_up_to_the_cut(tmp_path: Path) -> None:
    """The last bar, a kernel, has lost its end, and then its beginning."""
    path, content = tmp_path / "1_results.pftrace", small().pftrace()
    for kept, kernels in ((len(content) - 1, 3), (len(content) - 40, 2)):
        path.write_bytes(content[:kept])
        trace = open_trace(path, cache=False)
        assert len(trace.gpu) == kernels
        assert "truncated-file" in {entry.code for entry in trace.health_entries}


@pytest.mark.parametrize("place", range(20, 400, 19))
def test_a_perfetto_trace_with_a_wrong_byte_is_read_or_one_line(
    place: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, content = tmp_path / "1_results.pftrace", bytearray(small().pftrace())
    content[place] ^= 0xFF
    path.write_bytes(content)
    assert run(["diagnose", str(path)]) in (0, 1, 4)
    assert "Traceback" not in capsys.readouterr().err


def test_lost_events_of_a_perfetto_trace_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "1_results.pftrace"
    stats = message((1, message((10, 2), (35, message((1, message((18, 5))))))))
    path.write_bytes(small().pftrace() + stats)
    assert "dropped-events" in {entry.code for entry in open_trace(path, cache=False).health_entries}


def test_a_perfetto_trace_of_another_program_is_named(tmp_path: Path) -> None:
    packets = Packets()
    for start in (10, 20, 30):
        packets.bar("gfx", "draw", begin_ns=start, end_ns=start + 5)
    path = tmp_path / "phone.pftrace"
    path.write_bytes(packets.content)
    with pytest.raises(UnreadableFile, match=r'of another program: 3 events \("gfx"\), and none of rocprofv3'):
        open_trace(path, cache=False)


def test_a_perfetto_trace_without_an_event_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "1_results.pftrace"
    path.write_bytes(RocprofFile().pftrace())
    with pytest.raises(UnreadableFile, match="pftrace is a Perfetto trace without an event") as error:
        open_trace(path, cache=False)
    assert error.value.code == "empty-trace"


def test_a_perfetto_trace_whose_first_packet_is_damaged_is_one_line(tmp_path: Path) -> None:
    """A packet of 3 bytes, whose field ends after it, and after it those of a whole recording."""
    path = tmp_path / "1_results.pftrace"
    path.write_bytes(b"\x0a\x03\x5a\x7f\x00" + small().pftrace())
    with pytest.raises(UnreadableFile, match="damaged Perfetto trace: no event can be read") as error:
        open_trace(path, cache=False)
    assert error.value.code == "damaged-file"


def test_bytes_of_json_that_are_no_text_are_one_line(tmp_path: Path) -> None:
    path = RocprofFile().kernel(0, 10, 1, "scale").write_json(tmp_path / "a.json")
    path.write_bytes(path.read_bytes().replace(b"scale", b"scal\xe1"))
    with pytest.raises(UnreadableFile, match="JSON of rocprofv3 that cannot be read") as error:
        open_trace(path, cache=False)
    assert error.value.code == "damaged-file"


@each
@pytest.mark.parametrize("name", ["scale.kd", "scale [clone .kd]", "scale"])
def test_the_descriptor_is_no_part_of_a_kernels_name(name: str, write: Writer, tmp_path: Path) -> None:
    assert texts(opened(RocprofFile().kernel(0, 10, 1, name), write, tmp_path), "gpu", "name") == ["scale"]


def test_a_schema_without_times_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1_results.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE rocpd_kernel_dispatch_1(id INTEGER, start_id INTEGER, end_id INTEGER)")
    with pytest.raises(UnreadableFile, match="unknown schema"):
        open_trace(path, cache=False)


@each
def test_fills_and_copies_that_hip_runs_as_kernels(write: Writer, tmp_path: Path) -> None:
    """4 µs of a fill, and 2 µs of a copy within the device."""
    file = RocprofFile().kernel(0, 4_000, 1, "__amd_rocclr_fillBufferAligned")
    trace = opened(file.kernel(4_000, 6_000, 2, "__amd_rocclr_copyBuffer"), write, tmp_path)
    assert texts(trace, "gpu", "kind") == ["memset", "memcpy"]
    (times,) = device_times(trace)
    assert (times.compute_ns, times.copy_ns, times.memset_ns) == (0, 2_000, 4_000)
