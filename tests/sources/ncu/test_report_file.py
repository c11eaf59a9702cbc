"""Reports of Nsight Compute: what their blocks say, damage, and NVIDIA's reader in a process of its own."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import random
from pathlib import Path

import pytest
from ncu_files import GEMM, block, message, raw_page, raw_row, report
from paths import SHARED

from warpline.errors import WarplineError
from warpline.sources.detect import detect
from warpline.sources.kinds import NCU_REPORT
from warpline.sources.ncu import read_report, report_file
from warpline.sources.ncu.child import MISSING_MODULE
from warpline.sources.ncu.container import read_container
from warpline.sources.ncu.report_file import _Answer

VERSION = message({8: message({1: b"Nsight Compute Target", 2: b"2025.3.1.0 (build 1)"})})
COMMAND = message({11: b"/opt/ncu --set full -o r python t.py"})
TWO_KERNELS = report(block(1, b"abc"), block(session=VERSION), block(session=COMMAND), block(1, b"defg"))
ANSWER = {
    "function": "Kernel2",
    "name": GEMM,
    "kind": "kernel",
    "metrics": [["gpu__time_duration.sum", 1500.0, "ns"], ["launch__grid_dim_x", 2.0, ""]],
    "breakdowns": {},
    "nvtx": [],
    "instructions": [[16, "LDG R1", "a.cu", 3, {"inst_executed": 4.0}]],
    "files": {},
}


def test_blocks_tell_kernels_version_and_command() -> None:
    found = read_container(io.BytesIO(TWO_KERNELS))
    assert (found.results, found.truncated, found.tool_version) == (2, False, "2025.3.1.0")
    assert found.command.endswith("python t.py")
    cut = read_container(io.BytesIO(TWO_KERNELS[:-1]))
    assert (cut.results, cut.truncated) == (1, True)


def test_any_bytes_have_blocks_or_none() -> None:
    noise = random.Random(5)
    for _ in range(300):
        data = bytearray(TWO_KERNELS)
        for _ in range(noise.choice([1, 4, 20])):
            data[noise.randrange(4, len(data))] = noise.randrange(256)
        read_container(io.BytesIO(bytes(data[: noise.randrange(4, len(data))])))


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_a_report_is_recognised_packed_or_not(tmp_path: Path, pack: object) -> None:
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(pack(TWO_KERNELS))  # type: ignore[operator]
    assert detect(path) is NCU_REPORT


def test_what_the_reader_says_becomes_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_file, "_ask_child", lambda file: _Answer([ANSWER], 0, ""))
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(TWO_KERNELS)
    found = read_report(path)
    assert (found.source, found.tool_version, len(found.kernels)) == ("ncu-rep", "2025.3.1.0", 1)
    assert [entry.code for entry in found.health] == ["damaged-report", "clocks-locked"], "one of two kernels"
    (kernel,) = found.kernels
    assert kernel.duration_ns == 1500
    assert kernel.source is not None
    assert (kernel.source.instructions[0].sass, kernel.source.instructions[0].line) == ("LDG R1", 3)


@pytest.mark.parametrize(
    ("data", "answer", "code"),
    [
        (TWO_KERNELS, _Answer([], -11, ""), "damaged-file"),
        (TWO_KERNELS, _Answer([], 1, "boom"), "damaged-file"),
        (report(block()), _Answer([], 0, ""), "no-kernels"),
        (report(block(1, b"abcdef"))[:-3], _Answer([], 0, ""), "damaged-file"),
        (gzip.compress(report(block(1, b"a" * 9)), mtime=0)[:-9], _Answer([], 0, ""), "damaged-file"),
        (TWO_KERNELS, _Answer([], MISSING_MODULE, ""), "ncu-report-missing"),
    ],
)
def test_an_unreadable_report_gives_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, answer: _Answer, code: str
) -> None:
    monkeypatch.setattr(report_file, "_ask_child", lambda file: answer)
    monkeypatch.setenv("PATH", "/nowhere")
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(data)
    with pytest.raises(WarplineError) as raised:
        read_report(path)
    assert raised.value.code == code


def test_without_the_package_ncu_itself_prints_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.csv"
    page.write_text(raw_page(raw_row(0, GEMM, "1.5", "2.5")))
    ncu = tmp_path / "ncu"
    ncu.write_text(f"#!/bin/sh\nexec /bin/cat {page}\n")
    ncu.chmod(0o755)
    monkeypatch.setattr(report_file, "_ask_child", lambda file: _Answer([], MISSING_MODULE, ""))
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "r.ncu-rep"
    path.write_bytes(TWO_KERNELS)
    found = read_report(path)
    assert (found.path, found.tool_version, len(found.kernels)) == (path, "2025.3.1.0", 1)
    assert "no-instruction-counters" in {entry.code for entry in found.health}


@pytest.mark.shared
def test_a_real_report_equals_its_raw_page() -> None:
    pytest.importorskip("ncu_report", reason="NVIDIA's ncu-report is not installed: pip install 'warpline[ncu]'")
    folder = SHARED / "h200" / "ncu"
    found, page = read_report(folder / "block_full.ncu-rep.xz"), read_report(folder / "block_full.raw.csv.gz")
    assert (len(found.kernels), found.health) == (8, ())
    for one, other in zip(found.kernels, page.kernels, strict=True):
        assert (one.grid, one.block, one.chip) == (other.grid, other.block, other.chip)
        for metric, reading in other.metrics.items():
            own = one.number(metric)
            if isinstance(reading.value, float) and own is not None and own >= 0:  # ncu prints a negative count as 0
                assert one.number(metric) == pytest.approx(reading.value, rel=0.05, abs=0.006), metric
        assert one.source is not None
        assert one.source.instructions


@pytest.mark.shared
def test_a_real_report_cut_short_is_read_up_to_the_cut(tmp_path: Path) -> None:
    pytest.importorskip("ncu_report", reason="NVIDIA's ncu-report is not installed: pip install 'warpline[ncu]'")
    data = lzma.decompress((SHARED / "h200" / "ncu" / "block_full.ncu-rep.xz").read_bytes())
    path = tmp_path / "cut.ncu-rep"
    path.write_bytes(data[: len(data) // 6])
    found = read_report(path)
    assert 0 < len(found.kernels) < 8
    assert "truncated-file" in {entry.code for entry in found.health}
    assert os.environ.get("PYTHONSAFEPATH") is None, "the child's environment is its own"
