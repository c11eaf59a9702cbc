"""XSpace files of XLA's profiler: streams, threads, launches, and files that are none."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from protobuf_files import message

from warpline.cli.main import run
from warpline.errors import UnreadableFile
from warpline.sources.detect import detect
from warpline.sources.kinds import XPLANE
from warpline.trace.open import open_trace

pytest.importorskip("google.protobuf")

NAMES = {
    1: "fusion_1",
    2: "MemcpyD2H",
    3: "cuLaunchKernel",
    4: "$train.py:12 step",
    5: "PjitFunction(step)",
    6: "train",
    7: "copy.kd",
    8: "scale(float*) [clone .kd]",
}
STATS = {
    1: "correlation_id",
    2: "kernel_details",
    3: "memcpy_details",
    4: "step_num",
    5: "device_vendor",
    6: "core_count",
    7: "profile_start_time",
}
START_NS = 1_700_000_000_000_000_000
LAUNCH = "regs:40 static_shared:16 dynamic_shared:32 grid:8,2,1 block:256,1,1 occ_pct:50"


def stat(name: str, value: int | str) -> bytes:
    number = next(key for key, known in STATS.items() if known == name)
    return message((1, number), (4 if isinstance(value, int) else 5, value))


def event(name: str, offset_ps: int, length_ps: int, **stats: int | str) -> bytes:
    number = next(key for key, known in NAMES.items() if known == name)
    given = [(4, stat(key, value)) for key, value in stats.items()]
    return message((1, number), (2, offset_ps), (3, length_ps), *given)


def line(number: int, name: str, timestamp_ns: int, *events: bytes) -> bytes:
    return message((1, number), (2, name), (3, timestamp_ns), *((4, one) for one in events))


def plane(name: str, *lines: bytes, **stats: int | str) -> bytes:
    events = [(4, message((1, key), (2, message((1, key), (2, text))))) for key, text in NAMES.items()]
    stat_names = [(5, message((1, key), (2, message((1, key), (2, text))))) for key, text in STATS.items()]
    given = [(6, stat(key, value)) for key, value in stats.items()]
    return message((2, name), *((3, one) for one in lines), *events, *stat_names, *given)


def space(*planes: bytes) -> bytes:
    return message(*((1, one) for one in planes))


def jax_space() -> bytes:
    """A step: frame from 1,000 to 1,090 ns; launch from 1,010 to 1,015; kernel from 1,020.5 to 1,050.25 ns; a copy."""
    gpu = plane(
        "/device:GPU:0",
        line(
            13,
            "Stream #13(Compute)",
            1_000,
            event("fusion_1", 20_500, 29_750, correlation_id=7, kernel_details=LAUNCH),
            event("MemcpyD2H", 60_000, 5_000, correlation_id=8, memcpy_details="kind:D2H size:640 dest:0 async:1"),
            event("copy.kd", 70_000, 1_000),
        ),
        line(99, "XLA Modules", 1_000, event("fusion_1", 20_000, 30_000)),
        device_vendor="NVIDIA",
        core_count=132,
    )
    host = plane(
        "/host:CPU",
        line(
            5,
            "python",
            1_000,
            event("train", 0, 90_000, step_num=3),
            event("$train.py:12 step", 0, 90_000),
            event("PjitFunction(step)", 1_000, 60_000),
            event("cuLaunchKernel", 10_000, 5_000, correlation_id=7),
        ),
    )
    return space(plane("/host:metadata"), gpu, host, plane("Task Environment", profile_start_time=START_NS))


def written(folder: Path, content: bytes) -> Path:
    path = folder / "host.xplane.pb"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(("symbol", "name"), [("copy.kd", "copy"), ("scale(float*) [clone .kd]", "scale(float*)")])
def test_the_descriptor_is_no_part_of_a_kernels_name(symbol: str, name: str, tmp_path: Path) -> None:
    gpu = plane("/device:GPU:0", line(13, "Stream #13(Kernel)", 1_000, event(symbol, 0, 1_000)))
    trace = open_trace(written(tmp_path, space(gpu)), cache=False)
    assert trace.gpu.stored["name"].cast(pl.String).to_list() == [name]


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_streams_and_threads_are_read(packed: type[bytes], tmp_path: Path) -> None:
    path = written(tmp_path, packed(jax_space()))
    assert detect(path) is XPLANE
    trace = open_trace(path, cache=False)
    assert trace.source == "xla"
    columns = ("kind", "name", "device", "stream", "start_ns", "end_ns", "correlation", "bytes", "copy_kind")
    rows = trace.gpu.stored.select(columns).with_columns(pl.col("kind", "name", "copy_kind").cast(pl.String)).rows()
    assert rows == [
        ("kernel", "fusion_1", 0, 13, 20, 50, 7, None, None),
        ("memcpy", "MemcpyD2H", 0, 13, 60, 65, 8, 640, "DtoH"),
        ("kernel", "copy", 0, 13, 70, 71, None, None, None),
    ]
    launch = trace.gpu.stored.row(0, named=True)
    assert (launch["grid_x"], launch["grid_y"], launch["block_x"], launch["registers"]) == (8, 2, 256, 40)
    assert (launch["shared_bytes"], launch["api_id"]) == (48, 0)
    assert trace.api.stored["name"].cast(pl.String).to_list() == ["cuLaunchKernel"]
    assert trace.ops.stored["name"].cast(pl.String).to_list() == ["PjitFunction(step)"]
    assert trace.python.stored["name"].cast(pl.String).to_list() == ["train.py(12): step"]
    assert trace.ranges.stored["name"].cast(pl.String).to_list() == ["train"]
    assert trace.devices.stored.select("name", "sm_count").rows() == [("NVIDIA GPU", 132)]
    assert trace.facts["epoch_ns"] == str(START_NS + 1_000)


def test_events_that_have_no_name_are_left_out_and_counted(tmp_path: Path) -> None:
    empty = [b""] * 1000
    gpu = plane("/device:GPU:0", line(1, "Stream #1", 0, *empty, event("fusion_1", 5_000, 1_000)))
    host = plane("/host:CPU", line(2, "python", 0, *empty, event("train", 0, 9_000)))
    trace = open_trace(written(tmp_path, space(gpu, host)), cache=False)
    assert (len(trace.gpu), len(trace.ops)) == (1, 1)
    said = {entry.code: entry.message for entry in trace.health_entries}
    assert said["missing-values"] == "2,000 events without a name in the file were left out."


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (jax_space()[:300], "damaged-file", "damaged XSpace file"),
        (space(plane("/host:metadata")), "empty-trace", "no event with a name"),
        (space(plane("/device:GPU:0", line(1, "Stream #1", 0, b"", b""))), "empty-trace", "no event with a name"),
        (space(plane("/device:TPU:0", line(1, "XLA Ops", 0, event("fusion_1", 0, 1)))), "other-device", "TPU"),
    ],
    ids=["damaged", "empty", "empty events", "TPU"],
)
def test_what_cannot_be_read_is_one_clear_line(
    content: bytes, code: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diagnose", str(written(tmp_path, content))]) == 1
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"warpline: {code}: ")
    assert words in lines[0]


def test_the_planes_before_a_cut_are_read(tmp_path: Path) -> None:
    """The second GPU's plane is cut short; the planes of a host alone say nothing about a GPU."""
    gpus = [
        plane(f"/device:GPU:{number}", line(13, "Stream #13(Kernel)", 1_000, event("copy.kd", 0, 1_000)))
        for number in (0, 1)
    ]
    trace = open_trace(written(tmp_path, space(*gpus)[:-9]), cache=False)
    assert trace.gpu.stored["device"].to_list() == [0]
    (entry,) = (entry for entry in trace.health_entries if entry.code == "truncated-file")
    assert entry.message.endswith("only these planes are whole: /device:GPU:0.")
    host = plane("/host:CPU", line(1, "python", 1_000, event("PjitFunction(step)", 0, 60_000)))
    with pytest.raises(UnreadableFile, match="damaged XSpace"):
        open_trace(written(tmp_path, space(host, gpus[0])[:-9]), cache=False)


def test_impossible_numbers_are_no_numbers(tmp_path: Path) -> None:
    gpu = plane(
        "/device:GPU:0",
        line(1, "Stream #1", 0, event("fusion_1", 0, 1_000, correlation_id=-1), event("fusion_1", 2**63 - 1, 5_000)),
        core_count=2**62,
    )
    trace = open_trace(written(tmp_path, space(gpu)), cache=False)
    assert len(trace.gpu)
    assert trace.devices.stored["sm_count"].to_list() == [None]


def test_without_protobuf_the_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked: Any = None
    monkeypatch.setitem(sys.modules, "google.protobuf", blocked)
    with pytest.raises(UnreadableFile) as error:
        open_trace(written(tmp_path, jax_space()), cache=False)
    assert (error.value.code, error.value.hint) == ("no-protobuf", "pip install 'warpline[protobuf]'")
