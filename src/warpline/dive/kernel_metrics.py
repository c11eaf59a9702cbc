"""A kernel's report, asked by the tree's own names: values, sums of values, and what follows from several of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from warpline.dive.metrics import BYTES_PER_SECTOR, METRICS, NO_WAIT, STALL_WORDS, STALLS, WARP
from warpline.sources.ncu.model import KernelReport

MAX_COUNT = 1e24
"""No counter of a kernel gets here: the FLOPs of a year on the fastest chip are fewer."""


def _sound(value: float | None) -> float | None:
    return value if value is not None and 0 <= value < MAX_COUNT else None


class KernelMetrics:
    """The values of one kernel. What the report lacks is None, never zero."""

    def __init__(self, kernel: KernelReport, needed_bytes: float | None = None) -> None:
        self.kernel = kernel
        self.needed_bytes = needed_bytes
        """What the kernel's op must move, by its shapes; None where no trace tells."""

    def name(self, key: str) -> str:
        """The metric's name in this report; the preferred one where it has none."""
        names = METRICS[key].names
        return next((name for name in names if self.kernel.number(name) is not None), names[0])

    def get(self, key: str) -> float | None:
        """The value of a metric. All of them count something: a negative or infinite value is damage, and unknown."""
        return _sound(self.kernel.number(self.name(key)))

    def part(self, base: str) -> float | None:
        """A unit's utilisation by its base name, as a part of one."""
        value = _sound(self.kernel.number(base + ".avg.pct_of_peak_sustained_elapsed"))
        return None if value is None else value / 100

    def unit(self, key: str) -> str:
        """The unit in which the report has it."""
        reading = self.kernel.metrics.get(self.name(key))
        return reading.unit if reading is not None else ""

    def share(self, key: str) -> float | None:
        """A percentage as a part of one."""
        value = self.get(key)
        return None if value is None else value / 100

    def total(self, *keys: str) -> float | None:
        """The sum of those that are known; None if none is."""
        known = [value for value in map(self.get, keys) if value is not None]
        return sum(known) if known else None

    def ratio(self, part: str | Sequence[str], whole: str | Sequence[str]) -> float | None:
        """One sum over another; None where either is unknown or the whole is zero."""
        above = self.total(*([part] if isinstance(part, str) else part))
        below = self.total(*([whole] if isinstance(whole, str) else whole))
        return None if above is None or not below else above / below

    @cached_property
    def duration_ns(self) -> float | None:
        """The kernel's time; None where it is unknown or makes no sense."""
        return _sound(self.kernel.duration_ns) or None

    @cached_property
    def blocks(self) -> float | None:
        """Thread blocks of the launch."""
        known = self.get("grid")
        if known is None and self.kernel.grid is not None:
            x, y, z = self.kernel.grid
            known = float(x * y * z)
        return known

    @cached_property
    def threads_per_block(self) -> float | None:
        """Threads of a block."""
        known = self.get("block")
        if known is None and self.kernel.block is not None:
            x, y, z = self.kernel.block
            known = float(x * y * z)
        return known

    @cached_property
    def activity(self) -> float | None:
        """Mean over maximum of the SMs' active cycles: 1 where all SMs work equally long."""
        mean, most = self.get("active_avg"), self.get("active_max")
        return None if not mean or not most else min(1.0, max(mean / most, 1e-6))

    @cached_property
    def overhead(self) -> float:
        """Part of the duration in which no SM is active: launch and drain. It stays, whatever is fixed."""
        most, cycles = self.get("active_max"), self.get("cycles")
        return 0.0 if most is None or not cycles else min(max(0.0, 1 - most / cycles), 0.9)

    @cached_property
    def async_sectors(self) -> float:
        """Sectors of asynchronous copies to shared memory (cp.async): loads whose used bytes no counter tells."""
        loads, each = self.get("load_sectors") or 0.0, self.get("load_bytes_per_sector")
        known = self.total("async_sectors", "async_bypass_sectors") or 0.0
        return loads if each == 0 else min(known, loads)  # no bytes of any sector: no load was an ordinary one

    @cached_property
    def requested_bytes(self) -> float | None:
        """Bytes of global memory that the threads asked for; bytes that several lanes share count once a request.

        Asynchronous copies count as if they used all of their sectors.
        """
        known = []
        for kind, unseen in (("load", self.async_sectors), ("store", 0.0)):
            sectors, each = self.get(f"{kind}_sectors"), self.get(f"{kind}_bytes_per_sector")
            if sectors is not None and each is not None:
                known.append((sectors - unseen) * each + unseen * BYTES_PER_SECTOR)
        return sum(known) if known else None

    @cached_property
    def sector_use(self) -> float | None:
        """Part of the bytes of all global sectors that some thread asked for; None where no counter tells."""
        sectors = self.total("load_sectors", "store_sectors")
        if self.requested_bytes is None or not sectors or sectors <= self.async_sectors:
            return None
        return min(1.0, self.requested_bytes / (sectors * BYTES_PER_SECTOR))

    @cached_property
    def coalesced(self) -> float | None:
        """The same, where a sector that any addresses would need counts as used: that of a value for all lanes, say."""
        ideal = self.ratio("sectors_ideal", "sectors_theoretical")
        return self.sector_use if ideal is None or self.sector_use is None else min(1.0, max(self.sector_use, ideal))

    @cached_property
    def dram_bytes(self) -> float | None:
        """Bytes read from and written to DRAM."""
        return self.total("dram_read", "dram_write")

    @cached_property
    def l2_bytes(self) -> float | None:
        """Bytes between L1 and L2."""
        sectors = self.total("l2_read_sectors", "l2_write_sectors")
        return None if sectors is None else sectors * BYTES_PER_SECTOR

    def flops(self, *, precision: str) -> float | None:
        """Floating-point operations of the pipes of one precision (`single`, `half` or `double`)."""
        letter, width = {"single": ("f", 1), "half": ("h", 2), "double": ("d", 1)}[precision]
        cycles = self.get("cycles")
        fused, added, multiplied = (self.get(f"{letter}{kind}") for kind in ("fma", "add", "mul"))
        if cycles is None or fused is None:
            return None
        return cycles * width * (2 * fused + (added or 0.0) + (multiplied or 0.0))

    @cached_property
    def fma_share(self) -> float | None:
        """Fused multiply-adds of single and half precision among all instructions of the threads."""
        return self._instruction_share("ffma", "hfma")

    @cached_property
    def flop_share(self) -> float | None:
        """Floating-point arithmetic of the pipes among all instructions of the threads."""
        return self._instruction_share(*(letter + kind for letter in "fhd" for kind in ("fma", "add", "mul")))

    def _instruction_share(self, *keys: str) -> float | None:
        cycles, all_threads, counted = self.get("cycles"), self.get("thread_instructions"), self.total(*keys)
        if all_threads is None:
            warps = self.get("instructions")
            all_threads = None if warps is None else warps * (self.get("threads_per_instruction") or WARP)
        return None if cycles is None or counted is None or not all_threads else counted * cycles / all_threads

    @cached_property
    def stalls(self) -> dict[str, float]:
        """Mean cycles that a warp spends in each state between two instructions, longest first; empty if unknown."""
        known = {word: _sound(self.kernel.number(STALLS.format(word))) for word in STALL_WORDS}
        found = {word: value for word, value in known.items() if value}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @cached_property
    def waits(self) -> dict[str, float]:
        """The stalls that are waits, as parts of the time between two instructions of a warp."""
        whole = sum(self.stalls.values())
        return {word: value / whole for word, value in self.stalls.items() if word not in NO_WAIT} if whole else {}

    def opcodes(self) -> dict[str, float]:
        """Executed warp instructions by opcode; empty where the report does not split them."""
        for name in ("sass__inst_executed_per_opcode", "sass__inst_executed_per_opcode_with_modifier_selective"):
            if name in self.kernel.breakdowns:
                return dict(self.kernel.breakdowns[name])
        return {}

    def opcode_share(self, *prefixes: str) -> float | None:
        """Part of all instructions whose opcode begins so; None where it is unknown."""
        codes = self.opcodes()
        whole = sum(codes.values())
        if not whole:
            return None
        return sum(count for code, count in codes.items() if code.startswith(prefixes)) / whole
