"""Real exports: the causes that broken ones are sick of, and the totals that nsys itself prints for healthy ones."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import polars as pl
import pytest

from warpline.sources.nsys import read_nsys
from warpline.sources.rows import Rows
from warpline.trace.schema import conform

SHARED = Path(os.environ.get("WARPLINE_SHARED", Path(__file__).parents[3] / "shared"))
PUBLIC, H200 = SHARED / "data/public/nsys", SHARED / "data/h200/nsys"
RECORDED = ["bad_training", "block_fp32", "compiled_graph", "layer_eager"]

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not PUBLIC.is_dir(), reason="the folder of shared profiles is not here (WARPLINE_SHARED)"),
]

# Found by reading ProcessStreams and DIAGNOSTIC_EVENT of each file by hand.
CAUSES = {
    "gemm_profile": {
        "no-kernels": "the installed one is 13.3; and the recording was stopped by its time limit of 10 s",
        "driver-newer-than-nsys": "13.3",
        "cupti-buffers-lost": "49 of 50",
    },
    "gtls_report1": {},
    "gtls_report2": {"program-failed": "can't open file '…/test2.py'", "no-kernels": "no CUDA call in 0.18 s"},
    "pipit_cloverleaf": {"driver-newer-than-nsys": "kernels were still recorded"},
    "pipit_saxpy-mpi": {},
    "python_c_nvidia_report1": {
        "program-failed": "ImportError: dynamic module does not define module export function (PyInit_basic)",
        "no-kernels": "no CUDA call",
    },
    "weatherbench2_report1": {"program-failed": "STOP with status 1", "no-kernels": "23 CUDA calls and no launch"},
}


@pytest.mark.parametrize("name", CAUSES)
def test_public_files_are_sick_of_what_they_are_sick_of(name: str) -> None:
    rows = read_nsys(PUBLIC / f"{name}.sqlite.gz")
    found = {entry.code: entry for entry in rows.health}
    assert set(found) == set(CAUSES[name])
    for code, words in CAUSES[name].items():
        assert words in found[code].message
    if rows.tables["gpu"].height > 1:
        assert all(entry.severity == "info" for entry in rows.health)


@pytest.mark.parametrize("folder", [PUBLIC, H200], ids=["public", "h200"])
def test_no_user_host_or_environment_gets_through(folder: Path) -> None:
    for path in sorted(folder.glob("*.sqlite.gz")):
        rows = read_nsys(path)
        for name, frame in rows.tables.items():
            conform(name, frame)
        text = json.dumps(rows.meta) + str([entry.message for entry in rows.health])
        for word in ("farxi", "syoyo", "fraser", "b550", "vengeance", "/home", "PATH=", "quadd_session"):
            assert word not in text, (path.name, word)


def printed(name: str, report: str) -> list[dict[str, str]]:
    """The rows of one report of ``nsys stats``."""
    lines = (H200 / f"{name}.nsys-stats.csv").read_text().splitlines()
    begin = next((i for i, line in enumerate(lines) if f"[reports/{report}.py]" in line), None)
    if begin is None or not lines[begin + 1] or lines[begin + 1].startswith("SKIPPED"):
        return []
    end = next((i for i in range(begin + 1, len(lines)) if not lines[i]), len(lines))
    return list(csv.DictReader(lines[begin + 1 : end]))


def totals(frame: pl.DataFrame, names: dict[str, str] | None = None) -> dict[str, tuple[int, int]]:
    """Count and total duration by name."""
    length = (pl.col("end_ns") - pl.col("start_ns")).sum().alias("total")
    summed = frame.group_by(pl.col("name").cast(pl.String)).agg(pl.len().alias("count"), length)
    suffix = names or {}
    return {name + suffix.get(name, ""): (count, total) for name, count, total in summed.iter_rows()}


def compare(rows: dict[str, tuple[int, int]], table: list[dict[str, str]], count: str, name: str) -> None:
    assert rows == {row[name]: (int(row[count]), int(row["Total Time (ns)"])) for row in table}


@pytest.fixture(scope="module", params=RECORDED)
def recorded(request: pytest.FixtureRequest) -> tuple[str, Rows]:
    return request.param, read_nsys(H200 / f"{request.param}.sqlite.gz")


def test_totals_are_those_that_nsys_prints(recorded: tuple[str, Rows]) -> None:
    name, rows = recorded
    gpu = rows.tables["gpu"]
    suffixes = json.loads(rows.meta["api_suffixes"])
    compare(totals(rows.tables["api"], suffixes), printed(name, "cuda_api_sum"), "Num Calls", "Name")
    kind = pl.col("kind").cast(pl.String)
    compare(totals(gpu.filter(kind == "kernel")), printed(name, "cuda_gpu_kern_sum"), "Instances", "Name")
    memory = totals(gpu.filter(kind.is_in(["memcpy", "memset"])))
    compare(memory, printed(name, "cuda_gpu_mem_time_sum"), "Count", "Operation")
    compare(totals(rows.tables["osrt"]), printed(name, "osrt_sum"), "Num Calls", "Name")


def test_ranges_are_those_that_nsys_prints(recorded: tuple[str, Rows]) -> None:
    name, rows = recorded
    ranges = rows.tables["ranges"]
    domain = pl.col("domain").cast(pl.String).fill_null("")
    named = ranges.with_columns((domain + ":" + pl.col("name").cast(pl.String)).alias("name"))
    compare(totals(named), printed(name, "nvtx_sum"), "Instances", "Range")


def test_recordings_of_an_h200_are_healthy(recorded: tuple[str, Rows]) -> None:
    name, rows = recorded
    expected = {"helper-processes"} if name == "compiled_graph" else set()
    assert {entry.code for entry in rows.health} == expected
    assert rows.tables["devices"].row(0, named=True) | {"name": "NVIDIA H200", "sm_count": 132} == rows.tables[
        "devices"
    ].row(0, named=True)
