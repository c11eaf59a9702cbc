"""The roof of one device: the ceiling of each unit and memory, and the minimum time of work under it.

A ceiling is the measured one if there is a measurement, otherwise the data sheet's, otherwise what others measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from warpline.errors import UsageError
from warpline.hardware.ceilings import Ceilings, measured_for
from warpline.hardware.chips import DRAM, L2, PCIE, TENSOR, VECTOR, Chip, CitedFigure, chip_named

Bound = Literal["memory", "compute", "link"]

_MEASURED_GEMM = {
    "fp64": "gemm.fp64",
    "tf32": "gemm.tf32",
    "bf16": "gemm.bf16",
    "fp16": "gemm.fp16",
    "fp8": "gemm.fp8",
    "int8": "gemm.int8",
}
_MEASURED_LINKS = {
    DRAM: "copy.dram",
    L2: "copy.l2",
    "h2d": "host.h2d_pinned",
    "d2h": "host.d2h_pinned",
    "h2d_pageable": "host.h2d_pageable",
    "d2h_pageable": "host.d2h_pageable",
}
_LINK_ON_PAPER = frozenset({"h2d", "d2h", "h2d_pageable", "d2h_pageable"})


@dataclass(frozen=True, slots=True)
class Roof:
    """The ceilings of one device."""

    chip: Chip
    ceilings: Ceilings | None

    def compute(self, dtype: str, unit: str, *, on_paper: bool = False) -> CitedFigure | None:
        """FLOP/s of a unit (`tensor` or `vector`) in a data type; None if unknown.

        `on_paper` selects the data sheet even if there is a measurement: only that is a physical limit.
        """
        if unit == VECTOR:
            # PyTorch's kernels do half-precision arithmetic outside matmuls in fp32.
            key = "fp64" if dtype == "fp64" else "fp32"
            measured = self._measured("gemm.fp32_vector") if key == "fp32" else None
            paper = self.chip.vector.get(key)
        else:
            measured = self._measured(_MEASURED_GEMM.get(dtype, ""))
            paper = self.chip.tensor.get(dtype)
            measured = measured or (None if paper else self.chip.reported.get(dtype))
        return paper if on_paper or measured is None else measured

    def bandwidth(self, link: str, *, on_paper: bool = False) -> CitedFigure | None:
        """Bytes/s of `dram`, `l2`, `nvlink`, or of a copy between host and device (`h2d`, `d2h`)."""
        measured = self._measured(_MEASURED_LINKS.get(link, ""))
        paper = self._copy_on_paper() if link in _LINK_ON_PAPER else self.chip.bandwidth.get(link)
        return paper if on_paper or measured is None else measured

    def _copy_on_paper(self) -> CitedFigure | None:
        """A copy between host and device: the link's rate, or half of the memory's if both have the same one and no
        slower link between them."""
        link = self.chip.bandwidth.get(PCIE) or self.chip.bandwidth.get("c2c")
        memory = self.chip.bandwidth.get(DRAM)
        if memory is None or not self.chip.shares_memory or (link is not None and link.value <= memory.value / 2):
            return link
        return CitedFigure(
            memory.value / 2, f"half of the memory's rate, which a copy reads and writes; {memory.source}"
        )

    def _measured(self, key: str) -> CitedFigure | None:
        return self.ceilings.figure(key) if self.ceilings is not None and key else None


@dataclass(frozen=True, slots=True)
class RooflinePoint:
    """Where one piece of work stands under the roof.

    >>> warpline.roofline(flops=2 * 8192**3, bytes=3 * 2 * 8192**2, seconds=1.6e-3, device="H200").roof_pct
    """

    device: str
    flops: float
    bytes: float
    seconds: float
    intensity: float | None
    """FLOPs per byte; None without bytes."""
    flops_per_second: float
    bytes_per_second: float
    ceiling_flops_per_second: float
    """The FLOP/s that the roof allows at this intensity."""
    ridge: float
    """FLOPs per byte from which arithmetic bounds the work, and no longer the memory."""
    floor_seconds: float
    roof_pct: float
    bound: Bound
    possible: bool
    """False if the time is shorter than the data sheet's peaks allow."""
    sources: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Every figure, by its name."""
        return asdict(self)

    def __repr__(self) -> str:
        return f"<RooflinePoint {self}>"

    def __str__(self) -> str:
        verdict = f"{self.bound}-bound, {self.roof_pct:.1f} % of the roof" if self.possible else "impossible"
        return (
            f"{self.flops_per_second / 1e12:.4g} TFLOP/s, {self.bytes_per_second / 1e12:.4g} TB/s on {self.device}: "
            f"{verdict} (floor {self.floor_seconds * 1e6:.4g} µs)"
        )


def roof_of(device: str | Chip) -> Roof:
    """The roof of a chip, with the available measurements."""
    chip = chip_named(device) if isinstance(device, str) else device
    return Roof(chip, measured_for(chip))


def roofline(
    flops: float,
    bytes: float,  # noqa: A002
    seconds: float,
    device: str | Chip,
    *,
    dtype: str = "bf16",
    unit: str = TENSOR,
) -> RooflinePoint:
    """Quick roofline check: how close `flops` and `bytes` in `seconds` come to the device's roof.

    The roofline of a trace is `trace.roofline()`.

    >>> print(warpline.roofline(flops=2 * 8192**3, bytes=3 * 2 * 8192**2, seconds=1.6e-3, device="H200"))
    """
    if flops < 0 or bytes < 0 or seconds <= 0:
        raise UsageError("bad-work", "flops and bytes must be non-negative, and seconds positive")
    roof = roof_of(device)
    compute, memory = roof.compute(dtype, unit), roof.bandwidth(DRAM)
    if compute is None or memory is None:
        known = ", ".join(sorted({**roof.chip.tensor, **roof.chip.reported} if unit == TENSOR else roof.chip.vector))
        raise UsageError("no-peak", f"the {unit} peak in {dtype} is unknown for {roof.chip.name}", f"known: {known}")
    paper, paper_memory = roof.compute(dtype, unit, on_paper=True), roof.bandwidth(DRAM, on_paper=True)
    compute_seconds, memory_seconds = flops / compute.value, bytes / memory.value
    floor = max(compute_seconds, memory_seconds)
    # Only the data sheet is a limit: a measured figure may be surpassed.
    hard_floor = max(flops / paper.value if paper else 0.0, bytes / paper_memory.value if paper_memory else 0.0)
    intensity = flops / bytes if bytes else None
    ceiling = compute.value if intensity is None else min(compute.value, intensity * memory.value)
    return RooflinePoint(
        device=roof.chip.name,
        flops=flops,
        bytes=bytes,
        seconds=seconds,
        intensity=intensity,
        flops_per_second=flops / seconds,
        bytes_per_second=bytes / seconds,
        ceiling_flops_per_second=ceiling,
        ridge=compute.value / memory.value,
        floor_seconds=floor,
        roof_pct=100 * floor / seconds,
        bound="compute" if compute_seconds >= memory_seconds else "memory",
        possible=seconds >= hard_floor,
        sources=(compute.source, memory.source),
    )
