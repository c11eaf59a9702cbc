"""ncu's CSV pages: both layouts, any locale, with messages between, packed, and damaged."""

from __future__ import annotations

import gzip
import lzma
import random
import re
from itertools import product
from pathlib import Path

import pytest
from ncu_files import DETAILS_HEADER, GEMM, RAW_HEADER, RAW_UNITS, details_row, details_rule, raw_page, raw_row
from paths import SHARED

from warpline.errors import UnreadableFile, WarplineError
from warpline.sources.ncu import read_report
from warpline.sources.ncu.model import NcuReport, Reading
from warpline.sources.ncu.names import function_of, metric_of
from warpline.sources.ncu.numbers import base_unit, decimal_mark, number

TWO = raw_page(raw_row(0, GEMM, "254.34", "1,086.35"), raw_row(1, "silu", "24.00", "2,000.5"))


def read(tmp_path: Path, content: str | bytes, name: str = "page.csv") -> NcuReport:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_report(path)


def test_a_raw_page_is_read_in_base_units(tmp_path: Path) -> None:
    report = read(tmp_path, TWO)
    assert (report.source, len(report.kernels), report.health) == ("csv-raw", 2, ())
    kernel = report.kernels[0]
    assert (kernel.name, kernel.function, kernel.launch) == (GEMM, "Kernel2", 0)
    assert (kernel.chip, kernel.grid, kernel.block) == ("sm_90", (2, 66, 1), (384, 1, 1))
    assert kernel.duration_ns == pytest.approx(254_340)
    assert kernel.metrics["dram__bytes.sum.per_second"] == Reading(pytest.approx(1.08635e12), "byte/s")
    assert kernel.metrics["launch__func_cache_config"] == Reading("PreferNone", "")
    assert kernel.number("sm__warps_active.avg.pct_of_peak_sustained_active") == 14.68
    assert kernel.number("launch__func_cache_config") is None
    assert set(kernel.metrics) == set(RAW_HEADER.replace('"', "").split(",")[11:])
    assert len(kernel.metrics) == 4


def test_what_was_not_measured_is_absent_and_said(tmp_path: Path) -> None:
    report = read(tmp_path, raw_page(raw_row(0, GEMM, "1.5", "n/a", "", "nan")))
    assert set(report.kernels[0].metrics) == {"gpu__time_duration.sum"}
    assert [entry.code for entry in report.health] == ["metrics-missing"]


def test_a_details_page_has_labels_which_become_names(tmp_path: Path) -> None:
    rows = [
        details_row(0, "GPU Speed Of Light Throughput", "Memory Throughput", "%", "77.36"),
        details_row(0, "GPU Speed Of Light Throughput", "Duration", "ms", "1.25"),
        details_row(0, "Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "1.09"),
        details_row(0, "Launch Statistics", "Function Cache Configuration", "", "CachePreferNone"),
        details_row(0, "Mine", "My own label", "", "3"),
        details_row(0, "Command line profiler metrics", "dram__bytes_read.sum", "Mbyte", "2.5"),
        details_rule(0, "SpeedOfLight", "SOLBottleneck", 'It says ""high"",\nin two lines', "global", "18.66"),
        details_row(1, "Occupancy", "Achieved Occupancy", "%", "n/a"),
    ]
    report = read(tmp_path, DETAILS_HEADER + "\n" + "\n".join(rows) + "\n")
    assert (report.source, [kernel.launch for kernel in report.kernels]) == ("csv-details", [0, 1])
    first, second = report.kernels
    assert first.number("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed") == 77.36
    assert first.number("dram__bytes.sum.per_second") == pytest.approx(1.09e12)
    assert first.duration_ns == 1_250_000
    assert first.number("dram__bytes_read.sum") == 2_500_000
    assert first.number("My own label") == 3
    assert first.metrics["launch__func_cache_config"].value == "CachePreferNone"
    assert (first.chip, first.grid) == ("sm_86", (10, 1, 1))
    assert len(first.metrics) == 6, "a rule is no metric"
    assert second.metrics == {}


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (("254,34", "1.086,35"), (254_340, 1.08635e12)),
        (("254,34", "1\u202f086,35"), (254_340, 1.08635e12)),
        (("254.34", "1,086.35"), (254_340, 1.08635e12)),
        (("254.34", "1'086.35"), (254_340, 1.08635e12)),
        (("254.34", "1,086"), (254_340, 1.086e12)),
        (("254,34", "1.086"), (254_340, 1.086e12)),
    ],
)
def test_numbers_of_any_locale(tmp_path: Path, cells: tuple[str, str], expected: tuple[float, float]) -> None:
    kernel = read(tmp_path, raw_page(raw_row(0, GEMM, *cells, warps="14"))).kernels[0]
    assert kernel.duration_ns == pytest.approx(expected[0])
    assert kernel.number("dram__bytes.sum.per_second") == pytest.approx(expected[1])


def test_a_number_is_read_by_the_file_it_is_in() -> None:
    assert decimal_mark(["1.234", "1,5", "n/a", "7"]) == ","
    assert decimal_mark(["1,234", "1.234,5", "0,125"]) == ","
    assert decimal_mark(["1,234", "12"]) == "."
    assert number("1.234", ",") == 1234
    assert number("128.000000", ",") == 128, "six digits behind a mark are no group"
    assert number("26,100,692 (1584; 1584)", ".") == 26_100_692, "instances follow in parentheses"
    assert [number(text, ".") for text in ("(2, 66, 1)", "", "all", "inf", "1e999")] == [None] * 5
    assert number("-1.5e-3", ".") == -0.0015


@pytest.mark.parametrize(
    ("printed", "unit", "factor"),
    [
        ("Kbyte", "byte", 1e3),
        ("Tbyte/s", "byte/s", 1e12),
        ("Gbyte/second", "byte/s", 1e9),
        ("usecond", "ns", 1e3),
        ("ms", "ns", 1e6),
        ("nsecond", "ns", 1),
        ("Ghz", "hz", 1e9),
        ("cycle/nsecond", "hz", 1e9),
        ("sector/us", "sector/s", 1e6),
        ("Kbyte/block", "byte/block", 1e3),
        ("%/Kbyte", "%/byte", 1e3),
        ("register/thread", "register/thread", 1),
        ("", "", 1),
        ("%", "%", 1),
        ("Tile", "Tile", 1),
    ],
)
def test_units_become_base_units(printed: str, unit: str, factor: float) -> None:
    assert base_unit(printed) == (unit, pytest.approx(factor))


def test_labels_and_functions() -> None:
    assert metric_of("SOL SM", "%") == "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    assert metric_of("Memory [%]", "%") == "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
    assert metric_of("Duration gpu__time_duration.sum", "ns") == "gpu__time_duration.sum"
    assert metric_of("Something new", "") == "Something new"
    assert function_of("void at::native::(anonymous namespace)::norm_kernel<float, (int)4>(int, T1 *)") == "norm_kernel"
    assert (
        function_of("void at::<unnamed>::fill<float, at::<unnamed>::f(int)::[lambda() (instance 1)]>(long)") == "fill"
    )
    assert function_of("nvjet_sm90_hsh_192x192") == "nvjet_sm90_hsh_192x192"
    assert function_of("void at::_GLOBAL__N__8f_cu::{anonymous}::fill(long)") == "fill"


def test_a_metric_in_a_label_is_found_as_one_slow_pattern_would() -> None:
    slow = re.compile(r"[\w.:]*\w+__[\w.:]+|\w+:\w+__[\w.]+")
    for length in range(7):
        for letters in product("a_.: ", repeat=length):
            label = "".join(letters)
            found = slow.search(label)
            assert metric_of(label, "") == (found.group() if found else label), label


def test_a_unit_at_the_end_of_a_label_is_no_part_of_it() -> None:
    for label in ("Duration", "Duration [us]", "Duration  [%]", "Duration [a [b]", "Duration[]"):
        assert metric_of(label, "us") == "gpu__time_duration.sum", label
    for label in ("Duration ]", "Duration [us] ", "[us] Duration", "Duration [a] [b]", "Duration us]"):
        assert metric_of(label, "us") == label


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_packed_page_is_read(tmp_path: Path, pack: object) -> None:
    assert len(read(tmp_path, pack(TWO.encode()), "page.csv.packed").kernels) == 2  # type: ignore[operator]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be"])
def test_byte_order_marks(tmp_path: Path, encoding: str) -> None:
    mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
    assert len(read(tmp_path, mark + TWO.encode(encoding)).kernels) == 2


def test_other_lines_and_a_second_page_do_not_disturb(tmp_path: Path) -> None:
    noise = 'loss 0.5 "unfinished\n==WARNING== Found outstanding GPU clock reset\n3 blind mice\n'
    text = raw_page(
        raw_row(0, GEMM, "1.5", "2.5"), noise.rstrip("\n"), RAW_HEADER, RAW_UNITS, raw_row(1, "b", "2.5", "1")
    )
    report = read(tmp_path, noise + text)
    assert [kernel.launch for kernel in report.kernels] == [0, 1]
    assert {entry.code for entry in report.health} == {"ncu-message"}


def test_semicolons_of_a_spreadsheet(tmp_path: Path) -> None:
    assert len(read(tmp_path, TWO.replace('","', '";"')).kernels) == 2


def test_damage_is_counted_and_the_rest_read(tmp_path: Path) -> None:
    rows = raw_row(0, GEMM, "1.5", "2.5"), raw_row(1, "b", "1.5", "2")[:60], raw_row(2, "c", "1.5", "2"), '"3","7","py'
    report = read(tmp_path, raw_page(*rows).rstrip("\n"))
    assert [kernel.launch for kernel in report.kernels] == [0, 2]
    assert [entry.code for entry in report.health] == ["truncated-file", "damaged-rows"]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_packed_page_that_ends_early(tmp_path: Path, pack: object) -> None:
    noise = random.Random(1)
    rows = [raw_row(at, f"k{noise.random()}", f"{noise.random()}", "1.5") for at in range(3000)]
    packed = pack(raw_page(*rows).encode())  # type: ignore[operator]
    report = read(tmp_path, packed[: len(packed) * 9 // 10], "cut")
    assert 0 < len(report.kernels) < 3000
    assert "truncated-file" in {entry.code for entry in report.health}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n", "no-csv-header"),
        (RAW_HEADER + "\n", "no-kernels"),
        (raw_page(raw_row(0, "x" * 200_000, "1", "1")), "no-kernels"),
        (RAW_HEADER + "\n" + '"0",' * 3_000_000, "line-too-long"),
        ("hello\n", "not-an-ncu-report"),
    ],
)
def test_hostile_pages_give_one_line(tmp_path: Path, content: str, code: str) -> None:
    with pytest.raises(UnreadableFile) as raised:
        read(tmp_path, content)
    assert raised.value.code == code
    assert "\n" not in raised.value.line()
    if code == "no-csv-header":
        assert "ERR_NVGPUCTRPERM" in raised.value.message


def test_random_damage_never_escapes(tmp_path: Path) -> None:
    noise = random.Random(3)
    for _ in range(200):
        data = bytearray(TWO.encode())
        for _ in range(noise.choice([1, 5, 50])):
            data[noise.randrange(len(data))] = noise.randrange(256)
        try:
            read(tmp_path, bytes(data))
        except WarplineError as error:
            assert error.line()


@pytest.mark.shared
@pytest.mark.parametrize("name", ["layer_full", "block_full"])
def test_both_pages_of_a_report_agree(name: str) -> None:
    folder = SHARED / "h200" / "ncu"
    raw, details = (read_report(folder / f"{name}.{page}.csv.gz") for page in ("raw", "details"))
    unmapped = {"L2 Compression Ratio", "lts__gcomp_input_sectors.sum"}
    assert len(raw.kernels) == len(details.kernels)
    for one, other in zip(raw.kernels, details.kernels, strict=True):
        for metric, reading in other.metrics.items():
            if metric not in unmapped and isinstance(reading.value, float):
                assert one.metrics[metric].unit == reading.unit, metric
                assert one.number(metric) == pytest.approx(reading.value, rel=0.006, abs=0.006), metric
