"""Costs of devices: each chip has its own, and what was measured on another chip is known less well."""

from __future__ import annotations

import numpy as np
import pytest

from warpline.hardware import roof_of
from warpline.hardware.chips import VECTOR
from warpline.hardware.find import chips_like
from warpline.replay.costs.cost import Cost
from warpline.replay.costs.device import MATMUL_SIZES, MATMULS, ODD_MATMULS, OTHER_CHIP, DeviceCosts, device_costs

CHIPS = ("H200", "A100-SXM4-80GB", "L4", "MI300X")


def costs(chip: str) -> DeviceCosts:
    return device_costs(roof_of(chip))


def known(cost: Cost | None) -> Cost:
    assert cost is not None
    return cost


def test_every_chip_has_its_own_rates() -> None:
    found = [costs(chip) for chip in CHIPS]
    assert len({known(one.memory_byte).expected for one in found}) == len(CHIPS)
    assert len({known(one.flop("bf16")).expected for one in found}) == len(CHIPS)
    assert len({known(one.flop("fp32", VECTOR)).expected for one in found}) == len(CHIPS)
    assert len({one.addition.expected for one in found}) == len(CHIPS)


def test_a_byte_costs_what_the_memory_takes_for_it() -> None:
    """The shipped ceilings of an H200 say 4.26 TB/s; an L4's data sheet says 300 GB/s, of which 85 % are usual."""
    assert known(costs("H200").memory_byte).expected == pytest.approx(1 / 4259.5, rel=1e-3)
    assert known(costs("L4").memory_byte).expected == pytest.approx(1 / (0.85 * 300), rel=1e-3)
    assert known(costs("L4").memory_byte).low == pytest.approx(1 / 300, rel=1e-3)


def test_pinned_copies_go_by_the_generation_of_the_link() -> None:
    """Measured on an H200 (PCIe 5); on paper 31.5 GB/s for an A100 and 63 for an MI300X."""
    assert 1 / costs("H200").pinned_byte.expected == pytest.approx(55.2, rel=0.01)
    assert 1 / costs("A100-SXM4-80GB").pinned_byte.expected == pytest.approx(0.87 * 31.5, rel=0.01)
    assert 1 / costs("MI300X").pinned_byte.expected == pytest.approx(0.87 * 63, rel=0.01)


def test_constants_of_one_chip_are_known_less_well_on_another() -> None:
    own, other = costs("H200"), costs("A100-SXM4-80GB")
    for name in ("block", "launch_to_start", "kernel_gap", "smallest_kernel", "smallest_copy"):
        mine, theirs = getattr(own, name), getattr(other, name)
        assert theirs.high / theirs.low == pytest.approx(mine.high / mine.low * OTHER_CHIP**2), name
        assert mine.source == "measured on an H200"
        assert theirs.source == "measured on an H200; not scaled to this chip"


def test_a_product_converts_as_it_was_measured_on_the_chip_of_the_measurements() -> None:
    """Square products of 4,096: 2,669 µs in fp32, 349 in TF32, 177 in bf16."""
    convert = device_costs(None).converted_ns
    assert convert(np.array([2_668_957.0]), "fp32", "tf32") == pytest.approx([349_184], rel=1e-6)
    assert convert(np.array([349_184.0]), "tf32", "bf16") == pytest.approx([177_082], rel=1e-6)
    assert costs("H200").converted_ns(np.array([2_668_957.0]), "fp32", "tf32") == pytest.approx([349_184], rel=0.01)


def test_a_product_converts_by_the_roof_of_its_own_chip() -> None:
    """Far above the latencies, by the ratio of the peaks: 19.5 to 156 TFLOP/s on an A100, 30.3 to 60 on an L4."""
    large = np.array([1e9])
    assert costs("A100-SXM4-80GB").converted_ns(large, "fp32", "tf32") == pytest.approx([1e9 * 19.5 / 156], rel=0.01)
    assert costs("L4").converted_ns(large, "fp32", "tf32") == pytest.approx([1e9 * 30.3 / 60], rel=0.02)
    assert costs("MI300X").converted_ns(large, "fp32", "bf16") == pytest.approx([1e9 * 163.4 / 1307.4], rel=0.01)


@pytest.mark.parametrize(
    ("name", "compute", "faster"),
    [
        ("NVIDIA GeForce RTX 3070 Ti", (8, 6), 1.0),
        ("NVIDIA RTX A4000", (8, 6), 2.0),
        ("NVIDIA A800-SXM4-80GB", (8, 0), 8.0),
        ("NVIDIA Quadro RTX 8000", (7, 5), 1.0),
    ],
)
def test_a_product_on_an_unknown_chip_converts_as_on_the_chips_like_it(
    name: str, compute: tuple[int, int], faster: float
) -> None:
    """TF32 has the peak of FP32 on GeForce cards, twice that on professional ones, eight times on an A100; Turing has
    none."""
    unknown = device_costs(None, peers=tuple(map(roof_of, chips_like(name, compute))))
    assert unknown.converted_ns(np.array([1e9]), "fp32", "tf32") == pytest.approx([1e9 / faster], rel=0.02)


def test_a_chip_without_a_precision_gains_nothing_from_it() -> None:
    times = np.array([5e3, 5e6])
    assert costs("V100-SXM2").converted_ns(times, "fp32", "tf32").tolist() == times.tolist()


def test_small_products_are_far_from_the_roof_and_none_gets_slower() -> None:
    for dtype in ("bf16", "tf32"):
        series = MATMULS[dtype]
        assert series.time_ns(series.floors_ns) == pytest.approx(series.times_ns)
        assert series.floor_ns(series.times_ns) == pytest.approx(series.floors_ns)
    times = np.geomspace(1e3, 1e8, 40)
    for chip in CHIPS:
        assert (costs(chip).converted_ns(times, "fp32", "bf16") <= times).all()


def test_padding_takes_an_odd_product_to_the_time_of_an_even_one() -> None:
    aligned = device_costs(None).aligned_ns(ODD_MATMULS.times_ns)
    assert aligned == pytest.approx(MATMULS["bf16"].times_ns[1:], rel=1e-6)
    assert len(MATMUL_SIZES) == len(aligned) + 1


def test_an_unknown_device_has_no_memory_rate_and_wide_ranges() -> None:
    unknown = device_costs(None)
    assert unknown.memory_byte is None
    assert unknown.some_memory_byte.high > 10 * unknown.some_memory_byte.low
    assert unknown.flop("bf16") is None
    assert unknown.pinned_byte.high / unknown.pinned_byte.low > 4
