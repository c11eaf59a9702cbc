"""The report fits its width, loses no number, and names kernels so that they can be told apart."""

from __future__ import annotations

import io

import pytest
from paths import RECORDINGS
from rich.console import Console

from warpline.findings.diagnosis import diagnose
from warpline.reports.terminal import compact_name, render
from warpline.trace.open import open_trace

FILES = RECORDINGS


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_report_fits_its_width(file: object, width: int) -> None:
    buffer = io.StringIO()
    Console(file=buffer, width=width, color_system=None).print(render(diagnose(open_trace(str(file))), width=width))
    report, commands = buffer.getvalue().split("\nNext\n")
    assert max(len(line.rstrip()) for line in report.splitlines()) <= width
    assert "…" not in "".join(line.split("   ")[0] for line in report.splitlines())
    assert "warpline sql" in commands


@pytest.mark.parametrize(
    ("name", "compact"),
    [
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>(cutlass_80_simt_sgemm::Params)",
            "cutlass::Kernel2<cutlass_80_simt_sgemm_256x128_8x4_nn_align1>",
        ),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)",
            "vectorized_elementwise_kernel<4, FillFunctor<int>, std::array<char*, 1ul> >",
        ),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("(odd", "(odd"),
        ("()", "()"),
        ("", ""),
    ],
)
def test_names_lose_only_what_all_have_in_common(name: str, compact: str) -> None:
    assert compact_name(name) == compact
