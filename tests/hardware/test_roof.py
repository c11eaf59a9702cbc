"""Ceilings and the back-of-envelope roofline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from warpline.errors import UnreadableFile, UsageError
from warpline.hardware import chip_named, chips, roof_of, roofline
from warpline.hardware.ceilings import SCHEMA, measured_for, parse_ceilings, read_ceilings


@pytest.fixture
def own_ceilings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of measurements of one's own, on an A100."""
    path = tmp_path / "a100.json"
    document = {
        "schema": SCHEMA,
        "device": {"name": "NVIDIA A100-SXM4-80GB", "sm_count": 108, "compute": "8.0"},
        "date": "2026-01-01",
        "origin": "a test",
        "measurements": {"gemm.bf16": {"value": 250e12, "unit": "FLOP/s"}},
    }
    path.write_text(json.dumps(document))
    monkeypatch.setenv("WARPLINE_CEILINGS", str(path))
    return path


def test_the_shipped_measurements_are_of_an_h200() -> None:
    ceilings = measured_for(chip_named("H200"))
    assert ceilings is not None
    for key in ("copy.dram", "gemm.bf16", "gemm.fp16", "gemm.tf32", "gemm.fp32_vector", "gemm.fp8", "host.h2d_pinned"):
        assert ceilings.values[key] > 0


def test_no_measurement_exceeds_the_data_sheet() -> None:
    roof = roof_of("H200")
    for dtype in ("bf16", "fp16", "tf32", "fp8"):
        measured, paper = roof.compute(dtype, "tensor"), roof.compute(dtype, "tensor", on_paper=True)
        assert measured is not None
        assert paper is not None
        assert measured.measured
        assert 0.5 * paper.value < measured.value < paper.value
    for link in ("dram", "h2d"):
        measured, paper = roof.bandwidth(link), roof.bandwidth(link, on_paper=True)
        assert measured is not None
        assert paper is not None
        assert measured.value < paper.value


def test_own_measurements_come_first_and_are_named(own_ceilings: Path) -> None:
    roof = roof_of("A100-SXM4-80GB")
    bf16, memory = roof.compute("bf16", "tensor"), roof.bandwidth("dram")
    assert bf16 is not None
    assert memory is not None
    assert (bf16.value, bf16.measured) == (250e12, True)
    assert "a test" in bf16.source
    assert not memory.measured


def test_a_chip_that_nobody_measured_has_its_data_sheet() -> None:
    roof = roof_of("MI300X")
    assert roof.ceilings is None
    bf16 = roof.compute("bf16", "tensor")
    assert bf16 is not None
    assert bf16.value == pytest.approx(1307.4e12)


def test_types_that_a_chip_lacks_have_no_peak() -> None:
    assert roof_of("V100-SXM2").compute("bf16", "tensor") is None
    assert roof_of("GB10").compute("fp8", "tensor") is None


def test_a_figure_that_others_measured_is_a_ceiling_and_no_limit() -> None:
    roof = roof_of("GB10")
    tf32 = roof.compute("tf32", "tensor")
    assert tf32 is not None
    assert (tf32.value, tf32.origin) == (42.5e12, "measured by others")
    assert roof.compute("tf32", "tensor", on_paper=True) is None
    assert roofline(2 * 8192**3, 0, 1e-3, "GB10", dtype="tf32").possible, "no data sheet says that it is not"
    assert not roofline(0, 1e9, 1e-3, "GB10", dtype="tf32").possible, "1 TB/s from a memory of 273 GB/s"


def test_a_copy_on_a_chip_with_one_memory_reads_and_writes_it() -> None:
    gb10 = roof_of(chip_named("GB10"))
    copy, link = gb10.bandwidth("h2d"), gb10.chip.bandwidth["c2c"]
    assert copy is not None and (copy.value, link.value) == (136.5e9, 300e9)
    assert copy.source.startswith("half of the memory's rate") and "Hot Chips" in link.source
    grace = roof_of(chip_named("GH200-96GB")).bandwidth("d2h")
    assert grace is not None and grace.value == 450e9


def test_a_name_without_its_form_factor_is_the_sxm_module() -> None:
    assert chip_named("H100").name == "H100-SXM"
    assert chip_named("H800").compute == (9, 0)
    with pytest.raises(UsageError, match="several"):
        chip_named("A100")


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": "other/1"}'])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(UnreadableFile):
        parse_ceilings(text, "x.json")


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="cannot be read"):
        read_ceilings(tmp_path / "none.json")


def test_a_large_product_is_bound_by_compute() -> None:
    point = roofline(2 * 8192**3, 3 * 2 * 8192**2, 1.4e-3, "A100-SXM4-80GB")
    assert point.bound == "compute"
    assert not point.possible, "785 TFLOP/s is more than an A100 has"
    point = roofline(2 * 8192**3, 3 * 2 * 8192**2, 4e-3, "A100-SXM4-80GB")
    assert point.possible
    assert point.roof_pct == pytest.approx(100 * 2 * 8192**3 / 312e12 / 4e-3)


def test_a_vector_product_is_bound_by_memory() -> None:
    flops, size = 2 * 4096 * 11008, 2 * 4096 * 11008
    point = roofline(flops, size, 2 * size / 2039e9, "A100-SXM4-80GB")
    assert point.bound == "memory"
    assert point.roof_pct == pytest.approx(50)
    assert point.intensity == 1
    assert point.ceiling_flops_per_second == pytest.approx(2039e9)
    assert "memory-bound, 50.0 % of the roof" in str(point)


def test_the_seeds_layer_at_383_us_is_impossible_on_an_h100() -> None:
    # fp16, hidden 4096, FFN 11008, 2,048 tokens: QKV, output, gate, up and down.
    flops = 2 * 2048 * 4096 * (12288 + 4096 + 3 * 11008)
    assert not roofline(flops, 0, 383e-6, "H100-SXM", dtype="fp16").possible
    assert roofline(flops, 0, 1436e-6, "H100-SXM", dtype="fp16").possible


@pytest.mark.parametrize(("flops", "size", "seconds"), [(-1, 0, 1), (1, -1, 1), (1, 1, 0)])
def test_nonsense_is_refused(flops: float, size: float, seconds: float) -> None:
    with pytest.raises(UsageError):
        roofline(flops, size, seconds, "H200")


def test_a_missing_peak_names_those_that_exist() -> None:
    with pytest.raises(UsageError, match="fp16"):
        roofline(1, 1, 1, "V100-SXM2", dtype="fp8")


def test_every_chip_has_a_roof() -> None:
    for chip in chips():
        assert roof_of(chip).bandwidth("dram") is not None
