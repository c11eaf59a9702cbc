"""The questions of the tree below the speed of light: memory, warps, instructions and launch."""

from __future__ import annotations

from warpline.dive.kernel_metrics import KernelMetrics
from warpline.dive.metrics import LAUNCH, METRICS, STALL_SECTION, STALL_WORDS, STALLS
from warpline.dive.model import Branch, Node
from warpline.dive.nodes import NOT_RECORDED, derived_node, metric_node
from warpline.dive.reasons.bank_conflicts import MIN_SHARE as MIN_CONFLICTS
from warpline.dive.reasons.divergence import MAX_THREADS
from warpline.dive.reasons.ends import NEAR_PEAK
from warpline.dive.reasons.geometry import wave_loss
from warpline.dive.reasons.occupancy import LIMITS, MAX_POSSIBLE, limiter
from warpline.dive.reasons.uncoalesced import MAX_USE
from warpline.dive.utilisation import Utilisation

MAX_STALLS = 4


def _per_request(metrics: KernelMetrics, kind: str) -> Node:
    """Sectors that a request of a warp touches on average."""
    question = f"Sectors per {kind} request?"
    ratio = metrics.ratio(f"{kind}_sectors", f"{kind}_requests")
    if ratio is None and metrics.get(f"{kind}_requests") == 0:
        return Node(question, metrics.name(f"{kind}_requests"), 0.0, "sector", f"no global {kind}s")
    metric = f"l1tex__t_sectors over l1tex__t_requests, global {kind}s"
    return derived_node(question, metric, ratio, "sector", "", METRICS["load_sectors"].section)


def _async_words(metrics: KernelMetrics) -> str:
    """A remark where asynchronous copies load, whose bytes this counter leaves out."""
    loads = metrics.get("load_sectors")
    share = metrics.async_sectors / loads if loads else 0.0
    return f"without cp.async, which loads {100 * share:.0f} % of the sectors" if share >= 0.005 else ""


def memory(metrics: KernelMetrics) -> Branch:
    """Global memory and the caches."""
    use, coalesced = metrics.sector_use, metrics.coalesced
    nodes = [
        _per_request(metrics, "load"),
        _per_request(metrics, "store"),
        metric_node(metrics, "Bytes used of each sector loaded?", "load_bytes_per_sector", _async_words(metrics)),
        metric_node(metrics, "Bytes used of each sector stored?", "store_bytes_per_sector", ""),
    ]
    if use is not None and coalesced is not None:
        answer = "no" if coalesced <= MAX_USE else "yes" if use > MAX_USE else "yes: values that many lanes share"
        nodes.append(Node("Are accesses coalesced?", "bytes used over bytes of the sectors", 100 * use, "%", answer))
    nodes += [
        metric_node(metrics, "How often do accesses hit L1?", "l1_hits", ""),
        metric_node(metrics, "How often do accesses hit L2?", "l2_hits", ""),
        metric_node(metrics, "How often do reads hit L2?", "l2_read_hits", ""),
        metric_node(metrics, "Bytes read from DRAM?", "dram_read", ""),
        metric_node(metrics, "Bytes written to DRAM?", "dram_write", ""),
    ]
    return Branch("memory", "Global memory and caches", tuple(nodes))


def shared(metrics: KernelMetrics) -> Branch:
    """Shared memory, local memory and atomics."""
    conflicts = metrics.ratio("shared_conflicts", "shared_wavefronts")
    nodes = [metric_node(metrics, "Shared-memory wavefronts?", "shared_wavefronts", "")]
    if conflicts is not None:
        answer = "yes" if conflicts >= MIN_CONFLICTS else "few"
        nodes.append(Node("Bank conflicts?", "bank conflicts over wavefronts", 100 * conflicts, "%", answer))
    else:
        nodes.append(metric_node(metrics, "Bank conflicts?", "shared_conflicts", "none"))
    spilled = metrics.total("local_load_instructions", "local_store_instructions")
    nodes.append(
        derived_node("Do registers spill?", "local loads and stores", spilled, "inst",
                   "no" if not spilled else "local memory is in use", METRICS["local_load_instructions"].section)
    )  # fmt: skip
    atomics = metrics.total("atomic_requests", "reduction_requests")
    nodes.append(
        derived_node("Global atomics?", "atomic and reduction requests", atomics, "request",
                   "none" if not atomics else "", METRICS["atomic_requests"].section)
    )  # fmt: skip
    if atomics:
        nodes.append(metric_node(metrics, "How busy is the L2 slice with most atomics?", "atomic_unit_max", ""))
    return Branch("shared", "Shared memory, spills, atomics", tuple(nodes))


def warps(metrics: KernelMetrics, utilisation: Utilisation) -> Branch:
    """Occupancy, eligible warps, and what warps wait for."""
    possible = metrics.share("occupancy_possible")
    limit = limiter(metrics)
    words = "" if limit is None else f"limited by {LIMITS[limit]}"
    if possible is not None and possible <= MAX_POSSIBLE and utilisation.top >= NEAR_PEAK:
        words += "; no fault: a unit is near its peak"
    nodes = [
        metric_node(metrics, "How many warps fit on an SM (theoretical occupancy)?", "occupancy_possible", words),
        metric_node(metrics, "How many are active (achieved occupancy)?", "occupancy", ""),
        metric_node(metrics, "Issue slots in use while SMs are active?", "issue_active", ""),
        metric_node(metrics, "Warps ready to issue?", "eligible", ""),
        metric_node(metrics, "Threads per instruction?", "threads_per_instruction",
              "diverging" if (metrics.get("threads_per_instruction") or 32) <= MAX_THREADS else "full warps"),
    ]  # fmt: skip
    waits = [word for word in metrics.stalls if word in metrics.waits][:MAX_STALLS]
    if not metrics.stalls:
        nodes.append(
            Node("What do warps wait for?", STALLS.format("*"), None, "", NOT_RECORDED.format(section=STALL_SECTION))
        )
    for word in waits:
        part = f"{100 * metrics.waits[word]:.0f} % of a warp's time"
        nodes.append(
            Node(f"{STALL_WORDS[word].capitalize()}?", STALLS.format(word), metrics.stalls[word], "cycle", part)
        )
    return Branch("warps", "Warps", tuple(nodes))


def launch(metrics: KernelMetrics) -> Branch:
    """Grid, waves and balance."""
    loss, activity = wave_loss(metrics), metrics.activity
    waves, threads = metrics.get("waves"), metrics.threads_per_block
    tail = "" if loss is None or waves is None or waves <= 1 else f"{100 * loss:.0f} % of the places stay empty"
    partial = "not a multiple of 32" if (threads or 32) % 32 else ""
    balance = None if activity is None else 100 * activity
    return Branch(
        "launch",
        "Launch",
        (
            derived_node("How many blocks?", metrics.name("grid"), metrics.blocks, "block", "", LAUNCH),
            derived_node("Threads per block?", metrics.name("block"), threads, "thread", partial, LAUNCH),
            metric_node(metrics, "Registers per thread?", "registers", ""),
            metric_node(metrics, "How many SMs?", "sms", ""),
            metric_node(metrics, "How many waves of blocks?", "waves", tail),
            derived_node("Do the SMs work equally long?", "sm__cycles_active.avg over sm__cycles_active.max",
                       balance, "%", "", METRICS["active_max"].section),
        ),
    )  # fmt: skip


def instruction_mix(metrics: KernelMetrics) -> Branch:
    """What the instructions do."""
    nodes = [metric_node(metrics, "How many warp instructions?", "instructions", "")]
    share = metrics.fma_share
    nodes.append(
        derived_node("Share of fused multiply-adds?", "FFMA and HFMA over all thread instructions",
                   None if share is None else 100 * share, "%", "", METRICS["ffma"].section)
    )  # fmt: skip
    double = metrics.flops(precision="double")
    nodes.append(
        derived_node("Double-precision FLOPs?", "DFMA, DADD and DMUL", double, "flop", "none" if double == 0 else "",
                   METRICS["dfma"].section)
    )  # fmt: skip
    return Branch("instructions", "Instructions", tuple(nodes))
