"""Compute, memory or latency: the bound as Nsight Compute's speed of light has it, and the unit that limits."""

from __future__ import annotations

import re

from warpline.dive.gains import WAITING
from warpline.dive.measured import Measured
from warpline.dive.model import Bound, Branch, Level, Node
from warpline.dive.nodes import asked, worked_out
from warpline.dive.reasons.ends import NEAR_PEAK
from warpline.dive.utilisation import UNITS, WORDS, Load


def bound_of(load: Load) -> Bound:
    """Latency where neither side is busy, else the busier side."""
    if not load.known:
        return "unknown"
    compute, memory = load.compute or 0.0, load.memory or 0.0
    if max(compute, memory) < WAITING:
        return "latency"
    return "compute" if compute >= memory else "memory"


def limiter_of(load: Load) -> tuple[str, float | None]:
    """The busiest unit of the busier side, and how busy it was."""
    if not load.known:
        return "", None
    side = "compute" if (load.compute or 0.0) >= (load.memory or 0.0) else "memory"
    unit = load.limiter("compute" if side == "compute" else "memory")
    return unit, load.shares.get(unit)


def branch(measured: Measured, load: Load) -> Branch:
    """The questions of the speed of light."""
    bound = bound_of(load)
    unit, busy = limiter_of(load)
    near = busy is not None and busy >= NEAR_PEAK
    sides = {"latency": "neither side is busy", "compute": "compute is the higher", "memory": "memory is the higher"}
    nodes = [
        asked(measured, "How long did it run?", "duration", ""),
        asked(measured, "At which SM clock?", "sm_clock", ""),
        asked(measured, "How busy is compute?", "sm", sides.get(bound, "")),
        asked(measured, "How busy is memory?", "memory", ""),
        asked(measured, "How busy is DRAM?", "dram", ""),
        asked(measured, "How busy is the L2 cache, with traffic among its slices?", "l2", ""),
        asked(measured, "How busy is L1, while SMs are active?", "l1", ""),
    ]
    if busy is not None:
        answer = WORDS[unit] + (", near the peak" if near else "")
        nodes.append(worked_out("Which unit limits?", "highest part of the speed of light", 100 * busy, "%", answer))
    return Branch("speed_of_light", "Speed of light", tuple(nodes))


def pipes(measured: Measured, load: Load) -> Branch:
    """How busy each pipe is."""
    words = {unit.name: unit.words for unit in UNITS}
    tensor = load.shares.get("tensor")
    used = "" if tensor is None else "in use" if tensor > 0.01 else "idle"
    nodes: list[Node] = [asked(measured, "How busy are the tensor cores?", "tensor", used)]
    nodes += _tensor_path(measured)
    nodes += [asked(measured, f"How busy is the {words[key]}?", key, "") for key in ("fma", "fp64", "alu", "xu", "lsu")]
    nodes.append(asked(measured, "How many issue slots are used?", "issue", ""))
    return Branch("pipes", "Pipes", tuple(nodes))


_PATH = re.compile(
    r"sm__ops_path_tensor_op_(\w{1,40}?)_src_(\w{1,40}?)(?:_dst_\w{1,40}?)?_sparsity_off\.sum\.pct_of_peak_sustained_elapsed"
)


def _tensor_path(measured: Measured) -> list[Node]:
    """The matrix instruction in use, against the dense peak of that very instruction and data type."""
    found = [
        (reading.value, match, name)
        for name, reading in measured.kernel.metrics.items()
        if (match := _PATH.fullmatch(name)) and isinstance(reading.value, float) and reading.value > 0
    ]
    if not found:
        return []
    value, match, name = max(found, key=lambda one: one[0])
    instruction, source = match[1], match[2]
    slower = "; mma.sync reaches two thirds of the WGMMA peak" if instruction == "hmma" and _is_hopper(measured) else ""
    return [Node("Against the dense peak of the instruction?", name, value, "%", f"{instruction}, {source}{slower}")]


def _is_hopper(measured: Measured) -> bool:
    return measured.kernel.chip.startswith("sm_90")


def roofline(measured: Measured, load: Load) -> tuple[Level, ...]:
    """The hierarchical roofline: bytes, arithmetic intensity and share of the peak at L1, L2 and DRAM."""
    flops = total_flops(measured)
    sectors = measured.total("load_sectors", "store_sectors", "local_load_sectors", "local_store_sectors")
    moved = {
        "l1": None if sectors is None else 32 * sectors,
        "l2": measured.l2_bytes,
        "dram": measured.dram_bytes,
    }
    return tuple(
        Level(name.upper(), value, flops / value if flops and value else None, load.shares[name])
        for name, value in moved.items()
        if value is not None and name in load.shares
    )


def total_flops(measured: Measured) -> float | None:
    """All FLOPs that the report counts: the tensor cores' and the pipes'."""
    known = [measured.flops(precision=precision) for precision in ("single", "half", "double")]
    tensor = [
        reading.value
        for name, reading in measured.kernel.metrics.items()
        if name.startswith("sm__ops_path_tensor_op_")
        and name.endswith(".sum")
        and isinstance(reading.value, float)
        and "_sparsity_on" not in name
    ]
    values = [value for value in known if value is not None] + tensor
    return sum(values) if values else None
