"""Busy time of every profile at hand, held against a second opinion that shares no code with the reader.

The second opinion reads JSON with the standard library and exact decimals, or SQL with sqlite3, and merges
intervals in a plain loop.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import sqlite3
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
from paths import RECORDINGS, ROOT, SHARED

from warpline.analyses.breakdown import device_times
from warpline.findings.diagnosis import diagnose
from warpline.trace.open import open_trace

Intervals = dict[int, list[tuple[int, int]]]

GPU_CATEGORIES = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"}
NSYS_TABLES = ("KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE")

OWN = [ROOT / "src" / "warpline" / "data" / "demo.json.xz", *RECORDINGS]
OTHERS = sorted(SHARED.glob("*/kineto/*.gz")) + sorted(SHARED.glob("*/nsys/*.gz"))


def kineto_intervals(path: Path) -> Intervals:
    unpack = lzma.decompress if path.suffix == ".xz" else gzip.decompress
    text = unpack(path.read_bytes()).decode("utf-8", "replace")
    document = json.loads(text, parse_float=Decimal, strict=False)
    found: Intervals = defaultdict(list)
    for event in document["traceEvents"]:
        if event.get("ph") == "X" and event.get("cat") in GPU_CATEGORIES:
            start, length = Decimal(event["ts"]) * 1000, Decimal(event["dur"]) * 1000
            assert start == int(start)
            assert length == int(length)
            found[event["args"]["device"]].append((int(start), int(start) + int(length)))
    return found


def nsys_intervals(path: Path, folder: Path) -> Intervals:
    plain = folder / "plain.sqlite"
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    database = sqlite3.connect(plain)
    tables = {row[0] for row in database.execute("select name from sqlite_master")}
    found: Intervals = defaultdict(list)
    for table in (f"CUPTI_ACTIVITY_KIND_{kind}" for kind in NSYS_TABLES):
        if table in tables:
            for device, start, end in database.execute(f'select deviceId, start, "end" from {table}'):
                found[device].append((start, end))
    database.close()
    return found


def merged_length(intervals: list[tuple[int, int]]) -> int:
    total, reach = 0, -(2**62)
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reach))
        reach = max(reach, end)
    return total


def check(path: Path, folder: Path) -> None:
    trace = open_trace(path)
    expected = kineto_intervals(path) if trace.source == "kineto" else nsys_intervals(path, folder)
    devices = device_times(trace)
    assert {device.device for device in devices} == set(expected)
    everything = [interval for intervals in expected.values() for interval in intervals]
    for device in devices:
        assert device.busy_ns == merged_length(expected[device.device])
        assert device.window_ns == max(end for _, end in everything) - min(start for start, _ in everything)
        assert device.compute_ns + device.comm_ns + device.copy_ns + device.memset_ns == device.busy_ns
        assert device.busy_ns + device.idle_ns == device.window_ns
    assert len(trace.gpu) == len(everything)


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_our_recordings(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)


@pytest.mark.shared
@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_all_other_profiles(path: Path, tmp_path: Path) -> None:
    check(path, tmp_path)


BROKEN = {
    "gemm_profile": ("no-kernels", r"up to 12\.9 and the installed one is 13\.3"),
    "gtls_report2": ("program-failed", r"can't open file"),
    "python_c_nvidia_report1": ("program-failed", r"ImportError"),
    "weatherbench2_report1": ("program-failed", r"ieee_inexact"),
}


@pytest.mark.shared
@pytest.mark.parametrize("name", BROKEN)
def test_broken_profiles_name_their_cause(name: str) -> None:
    code, reason = BROKEN[name]
    health = diagnose(open_trace(SHARED / "public" / "nsys" / f"{name}.sqlite.gz")).to_dict()["trace"]["health"]
    entry = next(entry for entry in health if entry["code"] == code)
    assert entry["severity"] == "error"
    assert re.search(reason, entry["message"])


@pytest.mark.shared
def test_the_files_that_others_drop_kernels_of_are_read_whole() -> None:
    counts = {
        "tbplugin_v100_resnet50_workers0_2021": 8772 + 12 + 312,
        "tbplugin_v100_resnet50_workers4_2021": 8868 + 12 + 378,
        "hta_a100_cudagraph_ddp_rank0of16": 7747,
    }
    for name, count in counts.items():
        trace = open_trace(SHARED / "public" / "kineto" / f"{name}.json.gz")
        assert len(trace.gpu) == count
        assert "malformed-events" not in {entry.code for entry in trace.health_entries}
