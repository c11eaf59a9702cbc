"""The table of chips: found from what a trace says, cited, dense, and consistent with itself."""

from __future__ import annotations

import pytest

from warpline.errors import UsageError
from warpline.hardware import Chip, chip_named, chips, find_device
from warpline.hardware.find import host_link
from warpline.hardware.roof import Roof

SEEN = [
    ("NVIDIA H200", 132, (9, 0), "H200-SXM"),
    ("NVIDIA H100 80GB HBM3", 132, (9, 0), "H100-SXM"),
    ("NVIDIA H100 PCIe", 114, (9, 0), "H100-PCIe"),
    ("NVIDIA H100 NVL", 132, (9, 0), "H100-NVL"),
    ("NVIDIA GH200 480GB", 132, (9, 0), "GH200-96GB"),
    ("NVIDIA A100-SXM4-80GB", 108, (8, 0), "A100-SXM4-80GB"),
    ("NVIDIA A100-SXM4-40GB", 108, (8, 0), "A100-SXM4-40GB"),
    ("NVIDIA A100 80GB PCIe", 108, (8, 0), "A100-PCIe-80GB"),
    ("NVIDIA A100-PCIE-40GB", 108, (8, 0), "A100-PCIe-40GB"),
    ("Tesla V100-SXM2-32GB", 80, (7, 0), "V100-SXM2"),
    ("Tesla T4", 40, (7, 5), "T4"),
    ("NVIDIA A10", 72, (8, 6), "A10"),
    ("NVIDIA A40", 84, (8, 6), "A40"),
    ("NVIDIA L4", 58, (8, 9), "L4"),
    ("NVIDIA L40S", 142, (8, 9), "L40S"),
    ("NVIDIA GeForce RTX 3090", 82, (8, 6), "RTX-3090"),
    ("NVIDIA GeForce RTX 4090", 128, (8, 9), "RTX-4090"),
    ("NVIDIA GeForce RTX 5090", 170, (12, 0), "RTX-5090"),
    ("NVIDIA RTX PRO 6000 Blackwell Workstation Edition", 188, (12, 0), "RTX-PRO-6000"),
    ("NVIDIA B200", 148, (10, 0), "B200"),
    ("NVIDIA GB200", 152, (10, 0), "GB200"),
    ("NVIDIA B300 SXM6 AC", 148, (10, 3), "B300"),
    ("NVIDIA GB10", 48, (12, 1), "GB10"),
    ("AMD Instinct MI210", 104, (9, 0), "MI210"),
    ("AMD Instinct MI250X", 110, (9, 0), "MI250X"),
    ("AMD Instinct MI300A", 228, (9, 4), "MI300A"),
    ("AMD Instinct MI300X", 304, (9, 4), "MI300X"),
    ("AMD Instinct MI300X VF", 304, (9, 4), "MI300X"),
    ("AMD Instinct MI325X", 304, (9, 4), "MI325X"),
    ("AMD Instinct MI355X", 256, (9, 5), "MI355X"),
]


@pytest.mark.parametrize(("name", "sms", "compute", "expected"), SEEN)
def test_a_driver_s_name_finds_the_chip(name: str, sms: int, compute: tuple[int, int], expected: str) -> None:
    found = find_device(name, sms, compute)
    assert found is not None
    assert found.name == expected
    assert find_device(name) == found


@pytest.mark.parametrize(
    ("name", "sms", "compute"),
    [
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", 14, (8, 0)),
        ("NVIDIA H200", 66, (9, 0)),
        ("NVIDIA H200", 132, (8, 0)),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", 76, (8, 9)),
        ("NVIDIA A10G", 80, (8, 6)),
        ("Test GPU", 132, None),
        ("", 132, (9, 0)),
        ("", 304, (9, 4)),
        (None, None, None),
    ],
)
def test_doubt_finds_nothing(name: str | None, sms: int | None, compute: tuple[int, int] | None) -> None:
    assert find_device(name, sms, compute) is None


CDNA_2 = {
    "tensor": {"fp64": 256, "fp32": 256, "bf16": 1024, "fp16": 1024, "int8": 1024},
    "vector": {"fp32": 128, "fp64": 128},
}
CDNA_3 = {
    "tensor": {"fp64": 256, "fp32": 256, "tf32": 1024, "bf16": 2048, "fp16": 2048, "fp8": 4096, "int8": 4096},
    "vector": {"fp32": 256, "fp64": 128},
}
CDNA_4 = {
    "tensor": {"fp64": 128, "fp32": 256, "bf16": 4096, "fp16": 4096, "fp8": 8192, "int8": 8192, "fp4": 16384},
    "vector": {"fp32": 256, "fp64": 128},
}
"""FLOPs per clock and compute unit, by the white papers."""


@pytest.mark.parametrize(
    ("name", "clock_ghz", "rates"),
    [
        ("MI210", 1.7, CDNA_2),
        ("MI250", 1.7, CDNA_2),
        ("MI250X", 1.7, CDNA_2),
        ("MI300A", 2.1, CDNA_3),
        ("MI300X", 2.1, CDNA_3),
        ("MI325X", 2.1, CDNA_3),
        ("MI350X", 2.2, CDNA_4),
        ("MI355X", 2.4, CDNA_4),
    ],
)
def test_peaks_of_amd_are_units_times_clock_times_rate(
    name: str, clock_ghz: float, rates: dict[str, dict[str, int]]
) -> None:
    chip = chip_named(name)
    for kind, expected in rates.items():
        figures = getattr(chip, kind)
        assert set(figures) == set(expected)
        for dtype, rate in expected.items():
            assert figures[dtype].value == pytest.approx(chip.sm_count * clock_ghz * 1e9 * rate, rel=0.002), dtype


def test_amd_s_generic_name_is_no_name() -> None:
    found = find_device("AMD Radeon Graphics", 110, (9, 0))
    assert found is not None
    assert found.name == "MI250X"
    assert find_device("AMD Radeon Graphics", 304, (9, 4)) is None  # an MI300X or an MI325X


def test_a_chip_that_holds_the_cpu_has_no_link_to_it() -> None:
    assert host_link("AMD Instinct MI300A", (9, 4)) is None
    copied = Roof(chip_named("MI300A"), None).bandwidth("h2d")
    assert copied is not None
    assert copied.value == pytest.approx(2650e9)


def test_without_a_name_the_numbers_must_fit_one_chip() -> None:
    found = find_device("", 128, (8, 9))
    assert found is not None
    assert found.name == "RTX-4090"


@pytest.mark.parametrize("chip", chips(), ids=lambda chip: chip.name)
def test_every_figure_is_cited_and_sensible(chip: Chip) -> None:
    figures = [*chip.tensor.values(), *chip.vector.values(), *chip.bandwidth.values()]
    assert all(figure.value > 0 and figure.source and not figure.measured for figure in figures)
    assert "fp32" in chip.vector
    assert "dram" in chip.bandwidth
    # A factor of two between neighbouring types is the hardware; another factor is a sparse figure among dense ones.
    tensor = {dtype: figure.value for dtype, figure in chip.tensor.items()}
    if {"bf16", "tf32"} <= tensor.keys():
        assert tensor["bf16"] / tensor["tf32"] == pytest.approx(2, rel=0.03)
    if {"bf16", "fp8"} <= tensor.keys():
        assert tensor["fp8"] / tensor["bf16"] == pytest.approx(2, rel=0.03)
    if {"fp16", "bf16"} <= tensor.keys():
        assert tensor["fp16"] == tensor["bf16"]


def test_hopper_s_peak_follows_from_its_tensor_cores() -> None:
    # 4,096 dense operations a clock and SM (ncu's peak of WGMMA) at 1.83 GHz on 132 SMs.
    chip = chip_named("H100-SXM")
    assert chip.tensor["bf16"].value == pytest.approx(4096 * 132 * 1.83e9, rel=0.01)


def test_names_are_unique_and_every_pattern_finds_its_own_chip() -> None:
    names = [chip.name for chip in chips()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", ["H200", "h200-sxm", "NVIDIA H200"])
def test_chips_are_named_as_people_name_them(name: str) -> None:
    assert chip_named(name).name == "H200-SXM"


@pytest.mark.parametrize("name", ["A100", "GH200", "nonsense"])
def test_an_ambiguous_name_lists_the_candidates(name: str) -> None:
    with pytest.raises(UsageError, match="one of"):
        chip_named(name)


def test_memory_tells_chips_apart_that_have_no_name() -> None:
    """An MI300X has 192 GiB, of which ROCm lists 191.98; an MI325X has 256."""
    facts = (304, (9, 4))
    assert find_device("", *facts) is None
    assert [
        chip and chip.name
        for memory in (206_141_652_992, 274_877_906_944, 64 << 30)
        for chip in [find_device("", *facts, memory)]
    ] == ["MI300X", "MI325X", None]


def test_a_part_of_a_name_means_the_only_chip_that_has_it() -> None:
    assert chip_named("4090").name == "RTX-4090"
