"""Whose platform a trace is of."""

from __future__ import annotations

from pathlib import Path

import pytest
from kineto_files import call, kernel, write

from warpline.analyses import platform
from warpline.analyses.platform import platform_of
from warpline.trace.open import open_trace

TENSILE = "Cijk_Ailk_Bljk_SB_MT128x128x16_MI32x32x1x2_SE_gfx90a"


@pytest.mark.parametrize(
    ("api", "name", "device", "found"),
    [
        ("cudaLaunchKernel", "gemm", "", "cuda"),
        ("hipLaunchKernel", "gemm", "", "hip"),
        ("cudaLaunchKernel", "gemm", "AMD Instinct MI300X", "hip"),
        ("", TENSILE, "", "hip"),
        ("", "gemm", "", "cuda"),
    ],
)
def test_the_device_or_a_call_or_else_a_kernel_names_it(
    api: str, name: str, device: str, found: str, tmp_path: Path
) -> None:
    events = [*([call(api, 0, 5, 1)] if api else []), kernel(name, 10, 5, 1)]
    trace = open_trace(write(tmp_path, events, deviceProperties=[{"id": 0, "name": device}] if device else []))
    assert platform_of(trace) == found


def test_kernels_are_not_decoded_where_a_call_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = open_trace(write(tmp_path, [call("cudaLaunchKernel", 0, 5, 1), kernel("gemm", 10, 5, 1)]))
    monkeypatch.setattr(platform, "identify", None)
    assert platform_of(trace) == "cuda"
