"""The questions of the tree below the speed of light: memory, warps, instructions and launch."""

from __future__ import annotations

from warpline.dive.measured import Measured
from warpline.dive.metrics import LAUNCH, METRICS, STALL_SECTION, STALL_WORDS, STALLS
from warpline.dive.model import Branch, Node
from warpline.dive.nodes import NOT_RECORDED, asked, worked_out
from warpline.dive.reasons.bank_conflicts import MIN_SHARE as MIN_CONFLICTS
from warpline.dive.reasons.divergence import MAX_THREADS
from warpline.dive.reasons.ends import NEAR_PEAK
from warpline.dive.reasons.geometry import wave_loss
from warpline.dive.reasons.occupancy import LIMITS, MAX_POSSIBLE, limiter
from warpline.dive.reasons.uncoalesced import MAX_USE
from warpline.dive.utilisation import Load

SHOWN_STALLS = 4


def _per_request(measured: Measured, kind: str) -> Node:
    """Sectors that a request of a warp touches on average."""
    question = f"Sectors per {kind} request?"
    ratio = measured.ratio(f"{kind}_sectors", f"{kind}_requests")
    if ratio is None and measured.get(f"{kind}_requests") == 0:
        return Node(question, measured.name(f"{kind}_requests"), 0.0, "sector", f"no global {kind}s")
    metric = f"l1tex__t_sectors over l1tex__t_requests, global {kind}s"
    return worked_out(question, metric, ratio, "sector", "", METRICS["load_sectors"].section)


def _async_words(measured: Measured) -> str:
    """A remark where asynchronous copies load, whose bytes this counter leaves out."""
    loads = measured.get("load_sectors")
    share = measured.async_sectors / loads if loads else 0.0
    return f"without cp.async, which loads {100 * share:.0f} % of the sectors" if share >= 0.005 else ""


def memory(measured: Measured) -> Branch:
    """Global memory and the caches."""
    use, coalesced = measured.sector_use, measured.coalesced
    nodes = [
        _per_request(measured, "load"),
        _per_request(measured, "store"),
        asked(measured, "Bytes used of each sector loaded?", "load_bytes_per_sector", _async_words(measured)),
        asked(measured, "Bytes used of each sector stored?", "store_bytes_per_sector", ""),
    ]
    if use is not None and coalesced is not None:
        answer = "no" if coalesced <= MAX_USE else "yes" if use > MAX_USE else "yes: values that many lanes share"
        nodes.append(Node("Are accesses coalesced?", "bytes used over bytes of the sectors", 100 * use, "%", answer))
    nodes += [
        asked(measured, "How often do accesses hit L1?", "l1_hits", ""),
        asked(measured, "How often do accesses hit L2?", "l2_hits", ""),
        asked(measured, "How often do reads hit L2?", "l2_read_hits", ""),
        asked(measured, "Bytes read from DRAM?", "dram_read", ""),
        asked(measured, "Bytes written to DRAM?", "dram_write", ""),
    ]
    return Branch("memory", "Global memory and caches", tuple(nodes))


def shared(measured: Measured) -> Branch:
    """Shared memory, local memory and atomics."""
    conflicts = measured.ratio("shared_conflicts", "shared_wavefronts")
    nodes = [asked(measured, "Shared-memory wavefronts?", "shared_wavefronts", "")]
    if conflicts is not None:
        answer = "yes" if conflicts >= MIN_CONFLICTS else "few"
        nodes.append(Node("Bank conflicts?", "bank conflicts over wavefronts", 100 * conflicts, "%", answer))
    else:
        nodes.append(asked(measured, "Bank conflicts?", "shared_conflicts", "none"))
    spilled = measured.total("local_load_instructions", "local_store_instructions")
    nodes.append(
        worked_out("Do registers spill?", "local loads and stores", spilled, "inst",
                   "no" if not spilled else "local memory is in use", METRICS["local_load_instructions"].section)
    )  # fmt: skip
    atomics = measured.total("atomic_requests", "reduction_requests")
    nodes.append(
        worked_out("Global atomics?", "atomic and reduction requests", atomics, "request",
                   "none" if not atomics else "", METRICS["atomic_requests"].section)
    )  # fmt: skip
    if atomics:
        nodes.append(asked(measured, "How busy is the L2 slice with most atomics?", "atomic_unit_max", ""))
    return Branch("shared", "Shared memory, spills, atomics", tuple(nodes))


def warps(measured: Measured, load: Load) -> Branch:
    """Occupancy, eligible warps, and what warps wait for."""
    possible = measured.share("occupancy_possible")
    limit = limiter(measured)
    words = "" if limit is None else f"limited by {LIMITS[limit]}"
    if possible is not None and possible <= MAX_POSSIBLE and load.top >= NEAR_PEAK:
        words += "; no fault: a unit is near its peak"
    nodes = [
        asked(measured, "How many warps fit on an SM (theoretical occupancy)?", "occupancy_possible", words),
        asked(measured, "How many are active (achieved occupancy)?", "occupancy", ""),
        asked(measured, "Issue slots in use while SMs are active?", "issue_active", ""),
        asked(measured, "Warps ready to issue?", "eligible", ""),
        asked(measured, "Threads per instruction?", "threads_per_instruction",
              "diverging" if (measured.get("threads_per_instruction") or 32) <= MAX_THREADS else "full warps"),
    ]  # fmt: skip
    waits = [word for word in measured.stalls if word in measured.waits][:SHOWN_STALLS]
    if not measured.stalls:
        nodes.append(
            Node("What do warps wait for?", STALLS.format("*"), None, "", NOT_RECORDED.format(section=STALL_SECTION))
        )
    for word in waits:
        part = f"{100 * measured.waits[word]:.0f} % of a warp's time"
        nodes.append(
            Node(f"{STALL_WORDS[word].capitalize()}?", STALLS.format(word), measured.stalls[word], "cycle", part)
        )
    return Branch("warps", "Warps", tuple(nodes))


def launch(measured: Measured) -> Branch:
    """Grid, waves and balance."""
    loss, activity = wave_loss(measured), measured.activity
    waves, threads = measured.get("waves"), measured.threads_per_block
    tail = "" if loss is None or waves is None or waves <= 1 else f"{100 * loss:.0f} % of the places stay empty"
    partial = "not a multiple of 32" if (threads or 32) % 32 else ""
    balance = None if activity is None else 100 * activity
    return Branch(
        "launch",
        "Launch",
        (
            worked_out("How many blocks?", measured.name("grid"), measured.blocks, "block", "", LAUNCH),
            worked_out("Threads per block?", measured.name("block"), threads, "thread", partial, LAUNCH),
            asked(measured, "Registers per thread?", "registers", ""),
            asked(measured, "How many SMs?", "sms", ""),
            asked(measured, "How many waves of blocks?", "waves", tail),
            worked_out("Do the SMs work equally long?", "sm__cycles_active.avg over sm__cycles_active.max",
                       balance, "%", "", METRICS["active_max"].section),
        ),
    )  # fmt: skip


def instruction_mix(measured: Measured) -> Branch:
    """What the instructions do."""
    nodes = [asked(measured, "How many warp instructions?", "instructions", "")]
    share = measured.fma_share
    nodes.append(
        worked_out("Share of fused multiply-adds?", "FFMA and HFMA over all thread instructions",
                   None if share is None else 100 * share, "%", "", METRICS["ffma"].section)
    )  # fmt: skip
    double = measured.flops(precision="double")
    nodes.append(
        worked_out("Double-precision FLOPs?", "DFMA, DADD and DMUL", double, "flop", "none" if double == 0 else "",
                   METRICS["dfma"].section)
    )  # fmt: skip
    return Branch("instructions", "Instructions", tuple(nodes))
