"""Compute, memory or latency: the bound as Nsight Compute's speed of light has it, and the unit that limits."""

from __future__ import annotations

import re

from warpline.dive.gains import MIN_BUSY_SHARE
from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import STALL_WORDS, STALLS
from warpline.dive.model import Bound, Branch, Node, RooflineLevel
from warpline.dive.nodes import derived_node, metric_node
from warpline.dive.reasons.ends import NEAR_PEAK
from warpline.dive.reasons.tensor_cores import MATMUL_CLASSES, MAX_TENSOR
from warpline.dive.utilisation import UNIT_WORDS, UNITS, Utilisation
from warpline.kernels import identify

EPILOGUE_PIPES = ("fma", "alu", "xu")
"""Where bias, activation and conversions are computed."""


def bound_of(utilisation: Utilisation) -> Bound:
    """Latency where neither side is busy, else the busier side."""
    if not utilisation.known:
        return "unknown"
    compute, memory = utilisation.compute or 0.0, utilisation.memory or 0.0
    if max(compute, memory) < MIN_BUSY_SHARE:
        return "latency"
    return "compute" if compute >= memory else "memory"


def limiter_of(utilisation: Utilisation) -> tuple[str, float | None]:
    """The busiest unit of the busier side, and how busy it was."""
    if not utilisation.known:
        return "", None
    side = "compute" if (utilisation.compute or 0.0) >= (utilisation.memory or 0.0) else "memory"
    unit = utilisation.limiter("compute" if side == "compute" else "memory")
    return unit, utilisation.shares.get(unit)


def branch(metrics: KernelMetrics, utilisation: Utilisation) -> Branch:
    """The questions of the speed of light."""
    bound = bound_of(utilisation)
    unit, busy = limiter_of(utilisation)
    near = busy is not None and busy >= NEAR_PEAK
    sides = {"latency": "neither side is busy", "compute": "compute is the higher", "memory": "memory is the higher"}
    nodes = [
        metric_node(metrics, "How long did it run?", "duration", ""),
        metric_node(metrics, "At which SM clock?", "sm_clock", ""),
        metric_node(metrics, "How busy is compute?", "sm", sides.get(bound, "")),
        metric_node(metrics, "How busy is memory?", "memory", ""),
        metric_node(metrics, "How busy is DRAM?", "dram", ""),
        metric_node(metrics, "How busy is the L2 cache, with traffic among its slices?", "l2", ""),
        metric_node(metrics, "How busy is L1, while SMs are active?", "l1", ""),
    ]
    if busy is not None:
        answer = UNIT_WORDS[unit] + (", near the peak" if near else "")
        nodes.append(derived_node("Which unit limits?", "highest part of the speed of light", 100 * busy, "%", answer))
    return Branch("speed_of_light", "Speed of light", tuple(nodes))


def pipes(metrics: KernelMetrics, utilisation: Utilisation) -> Branch:
    """How busy each pipe is."""
    words = {unit.name: unit.words for unit in UNITS}
    tensor = utilisation.shares.get("tensor")
    words_of_tensor = "" if tensor is None else _tensor_words(tensor, _is_matmul(metrics))
    nodes: list[Node] = [metric_node(metrics, "How busy are the tensor cores?", "tensor", words_of_tensor)]
    nodes += _tensor_path(metrics)
    nodes += [
        metric_node(metrics, f"How busy is the {words[key]}?", key, "") for key in ("fma", "fp64", "alu", "xu", "lsu")
    ]
    nodes.append(metric_node(metrics, "How many issue slots are used?", "issue", ""))
    return Branch("pipes", "Pipes", tuple(nodes))


def _tensor_words(share: float, is_matmul: bool) -> str:
    """Whether the tensor cores are as busy as the kernel's work asks for."""
    if share >= MIN_BUSY_SHARE:
        return "in use"
    if is_matmul:
        return "idle, in a matmul" if share <= MAX_TENSOR else "little, for a matmul"
    return "idle" if share <= MAX_TENSOR else "hardly; not a matmul"


def _is_matmul(metrics: KernelMetrics) -> bool:
    return identify(metrics.kernel.name).kernel_class in MATMUL_CLASSES


def idle_tensor_cores(metrics: KernelMetrics, utilisation: Utilisation) -> Branch | None:
    """What keeps a matmul's tensor cores waiting: the type, the operands' alignment, too few tiles, the data, or the
    epilogue; None where they are busy, and for other kernels."""
    tensor = utilisation.shares.get("tensor")
    if tensor is None or tensor >= MIN_BUSY_SHARE or not _is_matmul(metrics):
        return None
    known = identify(metrics.kernel.name)
    on_cores = {True: "tensor cores", False: "CUDA cores: change the type", None: "not known from the name"}
    nodes = [Node("Which cores is it written for?", "kernel name", None, "", on_cores[known.tensor_core])]
    if known.alignment is not None:
        odd = "sizes that are no multiple of 16 bytes need slow loads" if known.alignment <= 2 else "enough"
        nodes.append(Node("To how many elements are operands aligned?", "kernel name", known.alignment, "", odd))
    blocks, sms = metrics.blocks, metrics.get("sms")
    if blocks and sms:
        few = "fewer than SMs: the problem is small for this tile" if blocks < sms else "enough"
        nodes.append(Node("Tiles for each SM?", "blocks over SMs", blocks / sms, "", few))
    waits = next(iter(metrics.waits.items()), None)
    if waits is not None:
        part = f"{100 * waits[1]:.0f} % of a warp's time"
        nodes.append(
            Node("What do warps wait for most?", STALLS.format(waits[0]), None, "", f"{STALL_WORDS[waits[0]]}: {part}")
        )
    others = [share for share in map(utilisation.shares.get, EPILOGUE_PIPES) if share is not None]
    if known.tensor_core and others:
        more = "more than the tensor cores: conversions, or a long epilogue"
        answer = more if max(others) > tensor else "less than the tensor cores: no long epilogue"
        nodes.append(derived_node("How busy are the pipes of an epilogue?", "busiest of FMA, ALU and XU",
                                  100 * max(others), "%", answer))  # fmt: skip
    return Branch("tensor_cores", f"Tensor cores at {100 * tensor:.0f} %", tuple(nodes))


_PATH = re.compile(
    r"sm__ops_path_tensor_op_(\w{1,40}?)_src_(\w{1,40}?)(?:_dst_\w{1,40}?)?_sparsity_off\.sum\.pct_of_peak_sustained_elapsed"
)


def _tensor_path(metrics: KernelMetrics) -> list[Node]:
    """The matrix instruction in use, against the dense peak of that very instruction and data type."""
    found = [
        (reading.value, match, name)
        for name, reading in metrics.kernel.metrics.items()
        if (match := _PATH.fullmatch(name)) and isinstance(reading.value, float) and reading.value > 0
    ]
    if not found:
        return []
    value, match, name = max(found, key=lambda one: one[0])
    instruction, source = match[1], match[2]
    slower = "; mma.sync reaches two thirds of the WGMMA peak" if instruction == "hmma" and _is_hopper(metrics) else ""
    return [Node("Against the dense peak of the instruction?", name, value, "%", f"{instruction}, {source}{slower}")]


def _is_hopper(metrics: KernelMetrics) -> bool:
    return metrics.kernel.chip.startswith("sm_90")


def roofline(metrics: KernelMetrics, utilisation: Utilisation) -> tuple[RooflineLevel, ...]:
    """The hierarchical roofline: bytes, arithmetic intensity and share of the peak at L1, L2 and DRAM."""
    flops = total_flops(metrics)
    sectors = metrics.total("load_sectors", "store_sectors", "local_load_sectors", "local_store_sectors")
    moved = {
        "l1": None if sectors is None else 32 * sectors,
        "l2": metrics.l2_bytes,
        "dram": metrics.dram_bytes,
    }
    return tuple(
        RooflineLevel(name.upper(), value, flops / value if flops and value else None, utilisation.shares[name])
        for name, value in moved.items()
        if value is not None and name in utilisation.shares
    )


def total_flops(metrics: KernelMetrics) -> float | None:
    """All FLOPs that the report counts: the tensor cores' and the pipes'."""
    known = [metrics.flops(precision=precision) for precision in ("single", "half", "double")]
    tensor = [
        reading.value
        for name, reading in metrics.kernel.metrics.items()
        if name.startswith("sm__ops_path_tensor_op_")
        and name.endswith(".sum")
        and isinstance(reading.value, float)
        and "_sparsity_on" not in name
    ]
    values = [value for value in known if value is not None] + tensor
    return sum(values) if values else None
