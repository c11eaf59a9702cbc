"""`device measure` without a GPU: what it imports, how it summarises, and what it says where it cannot run."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from warpline.bench import ceilings as measuring
from warpline.bench.ceilings import summarise
from warpline.hardware.ceilings import parse_ceilings


def test_a_summary_is_the_median_and_the_middle_half() -> None:
    result = summarise([1.0, 2.0, 3.0, 4.0, 100.0], "s", "five samples")
    assert (result.value, result.repeats) == (3.0, 5)
    assert 1.0 <= result.low <= 3.0 <= result.high
    assert summarise([7.0], "s", "one").value == 7.0
    with pytest.raises(ValueError, match="no samples"):
        summarise([], "s", "none")


def test_without_a_gpu_it_says_so_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: False)))
    assert measuring.main([]) == 1
    assert capsys.readouterr().err.startswith("warpline: no-gpu: ")


class FakeCuda:
    """As much of torch.cuda as measuring asks for."""

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def get_device_properties(_: int) -> Any:
        return SimpleNamespace(
            name="NVIDIA H200", multi_processor_count=132, major=9, minor=0, total_memory=1, L2_cache_size=1
        )

    @staticmethod
    def empty_cache() -> None:
        pass


def test_what_fails_is_listed_and_the_rest_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = SimpleNamespace(cuda=FakeCuda, __version__="2.13", version=SimpleNamespace(cuda="13.0", hip=None))
    monkeypatch.setitem(sys.modules, "torch", fake)

    def broken() -> Any:
        raise RuntimeError("no such kernel")

    good = {"gemm.bf16": lambda: summarise([8e14], "FLOP/s", "test")}
    monkeypatch.setattr(measuring, "compute_benchmarks", lambda torch: good)
    monkeypatch.setattr(measuring, "host_benchmarks", lambda torch: {"cpu.launch": broken})
    output = tmp_path / "out.json"
    assert measuring.main(["-o", str(output)]) == 0
    ceilings = parse_ceilings(output.read_text(), "out.json")
    assert ceilings.values == {"gemm.bf16": 8e14}
    assert (ceilings.device, ceilings.sm_count, ceilings.compute) == ("NVIDIA H200", 132, (9, 0))
    assert "RuntimeError: no such kernel" in output.read_text()


@pytest.mark.gpu
def test_measuring_for_real(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    output = tmp_path / "out.json"
    assert measuring.main(["-o", str(output)]) == 0
    assert parse_ceilings(output.read_text(), "out.json").values["copy.dram"] > 1e11
