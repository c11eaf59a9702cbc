"""The metrics that people ask for: what each counts, what to compare it with, and what a good value is.

The thresholds are those of Nsight Compute's own rules where there is one (see the Profiling Guide), and physics else.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct


class Known(Struct, frozen=True):
    """A metric, or a family of them, in words."""

    what: str
    compare: str
    good: str


_SHARE = "above 80 % the unit limits the kernel; below 60 % in both, compute and memory, latency does"
_STALL_COMPARE = (
    "smsp__average_warp_latency_per_inst_issued.ratio, the cycles between two instructions of a warp: "
    "its share of them is what counts"
)
_STALL_GOOD = "below 30 % of those cycles, or any value where the schedulers issue in over 80 % of cycles"
_LIMIT = "the other launch__occupancy_limit_… metrics: the smallest is the limit"

_KNOWN: Final[tuple[tuple[str, Known], ...]] = (
    (
        r"sm__throughput",
        Known(
            "how busy the busiest part of the SMs is: the largest of their pipes and issue slots",
            "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed, the same for memory",
            _SHARE,
        ),
    ),
    (
        r"gpu__compute_memory_throughput",
        Known(
            "how busy the busiest part of the memory system is: L1, L2 or DRAM",
            "sm__throughput.avg.pct_of_peak_sustained_elapsed, the same for compute; and l1tex__, lts__ and "
            "gpu__dram_throughput, which say what part it is",
            _SHARE,
        ),
    ),
    (
        r"(?:gpu__dram|dram)__?throughput|gpu__dram_throughput",
        Known(
            "how busy DRAM is",
            "the bandwidth that a copy reaches on the same chip: about 90 to 93 % of the data sheet",
            "80 % and more for a kernel that streams data; low is fine where caches serve the reads",
        ),
    ),
    (
        r"dram__bytes(?:_(?:op_)?(?:read|write))?",
        Known(
            "bytes between L2 and DRAM",
            "the bytes that the op must move once (warpline roofline lists them): more is traffic for nothing",
            "1.0 to 1.1 times the bytes that the op must move",
        ),
    ),
    (
        r"sm__pipe_tensor_cycles_active|sm__pipe_tensor_(?:op|subpipe)_\w+_cycles_active(?:_v2)?",
        Known(
            "cycles in which the tensor cores worked",
            "100 %; on sm_90 mma.sync reaches at most 2/3 of what wgmma reaches",
            "70 to 90 % for a large GEMM; 0 means that no tensor core was used",
        ),
    ),
    (
        r"(?:sm|smsp)__inst_executed_pipe_tensor\w*",
        Known(
            "instructions sent to the tensor cores",
            "0: a GEMM or an attention kernel without any runs on the FMA pipe",
            "above 0 for GEMM, convolution and attention in fp16, bf16, fp8, tf32 or int8",
        ),
    ),
    (
        r"sm__pipe_fma_cycles_active",
        Known(
            "cycles in which the FP32 multiply-add pipe worked",
            "sm__pipe_tensor_cycles_active: a GEMM that is busy here does not use the tensor cores",
            "high in elementwise FP32 work; low in a GEMM that uses the tensor cores",
        ),
    ),
    (
        r"sm__warps_active",
        Known(
            "achieved occupancy: resident warps, in percent of the most that an SM holds",
            "sm__maximum_warps_per_active_cycle_pct, the theoretical occupancy of this launch",
            "within 10 points of the theoretical; low is no fault where a pipe or memory is above 80 %",
        ),
    ),
    (
        r"sm__maximum_warps_per_active_cycle_pct",
        Known(
            "theoretical occupancy: what registers, shared memory and block size allow",
            "sm__warps_active.avg.pct_of_peak_sustained_active, the achieved occupancy",
            "over 80 % helps where latency limits; 12 to 25 % is normal for tensor-core GEMMs",
        ),
    ),
    (
        r"launch__occupancy_limit_registers",
        Known(
            "blocks per SM that the registers of the kernel allow", _LIMIT, "as large as launch__occupancy_limit_warps"
        ),
    ),
    (
        r"launch__occupancy_limit_shared_mem",
        Known("blocks per SM that its shared memory allows", _LIMIT, "as large as launch__occupancy_limit_warps"),
    ),
    (
        r"launch__occupancy_limit_(?:warps|blocks|barriers)",
        Known("blocks per SM that the hardware allows for this block size", _LIMIT, "the smallest limit, ideally"),
    ),
    (
        r"launch__waves_per_multiprocessor",
        Known(
            "the grid over the blocks that fit on all SMs at once",
            "whole numbers: 1.1 waves take as long as 2",
            "many, or just under a whole number; below 1 some SMs get no block",
        ),
    ),
    (
        r"launch__registers_per_thread",
        Known(
            "registers that a thread holds",
            "255, the most; more are spilled to local memory",
            "what occupancy can afford",
        ),
    ),
    (
        r"smsp__(?:average_)?warps?_(?:latency_)?issue_stalled_long_scoreboard\w*|smsp__average_warp_latency_issue_stalled_long\w*",
        Known("warps that wait for a load from global or local memory (L1, L2 or DRAM)", _STALL_COMPARE, _STALL_GOOD),
    ),
    (
        r"smsp__\w*issue_stalled_short_scoreboard\w*",
        Known("warps that wait for shared memory or for special functions (exp, rsqrt)", _STALL_COMPARE, _STALL_GOOD),
    ),
    (
        r"smsp__\w*issue_stalled_math_pipe_throttle\w*",
        Known("warps that wait for a math pipe that is taken", _STALL_COMPARE, "high is good news: the pipe is full"),
    ),
    (
        r"smsp__\w*issue_stalled_wait\w*",
        Known("warps that wait the fixed time between two dependent instructions", _STALL_COMPARE, _STALL_GOOD),
    ),
    (
        r"smsp__\w*issue_stalled_barrier\w*",
        Known("warps that wait at __syncthreads for the others of their block", _STALL_COMPARE, _STALL_GOOD),
    ),
    (
        r"smsp__\w*issue_stalled_(?:gmma|warpgroup_arrive)\w*",
        Known(
            "warps that wait for a warpgroup's matrix instruction (wgmma)",
            _STALL_COMPARE,
            "high in a GEMM near its peak",
        ),
    ),
    (
        r"smsp__\w*issue_stalled_(?:mio_throttle|lg_throttle|tex_throttle)\w*",
        Known("warps that wait for room in the queue of memory instructions", _STALL_COMPARE, _STALL_GOOD),
    ),
    (
        r"smsp__\w*issue_stalled_not_selected\w*",
        Known(
            "warps that could issue while another one did", _STALL_COMPARE, "high is good news: there are warps enough"
        ),
    ),
    (
        r"smsp__\w*issue_stalled_\w+",
        Known("warps that cannot issue, for the reason in the name", _STALL_COMPARE, _STALL_GOOD),
    ),
    (
        r"smsp__issue_active|smsp__inst_issued|sm__inst_issued",
        Known(
            "cycles in which a scheduler issued an instruction",
            "1 per cycle and scheduler, the most",
            "above 0.8 the issue slots limit; below 0.6 look at the stall reasons",
        ),
    ),
    (
        r"l1tex__data_bank_conflicts_pipe_lsu_mem_shared\w*",
        Known(
            "extra passes through shared memory because threads of a warp hit the same bank",
            "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum, all passes",
            "below 10 % of all passes; 0 is possible with padding or a swizzle",
        ),
    ),
    (
        r"l1tex__t_sectors_pipe_lsu_mem_global_op_(?:ld|st)(?:_lookup_\w+)?",
        Known(
            "32-byte sectors that accesses to global memory touch in L1",
            "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum (or _st): sectors per request",
            "4 sectors per request for 4-byte elements side by side, 16 for 16-byte vectors; 32 means one per thread",
        ),
    ),
    (
        r"smsp__sass_average_data_bytes_per_sector_mem_global\w*",
        Known(
            "bytes that threads use of each 32-byte sector",
            "32, all of a sector",
            "32; below it accesses are uncoalesced",
        ),
    ),
    (
        r"l1tex__t_sector_hit_rate",
        Known(
            "share of 32-byte sectors found in L1",
            "how often the kernel reads the same data",
            "0 is normal for streams",
        ),
    ),
    (
        r"lts__t_sector_hit_rate",
        Known(
            "share of 32-byte sectors found in L2",
            "how often the kernel reads the same data: 50 % is normal where it writes as much as it reads",
            "high where the data is reused and smaller than L2",
        ),
    ),
    (
        r"(?:lts|l1tex)__throughput",
        Known("how busy the busiest part of the cache is", "the other levels of memory", _SHARE),
    ),
    (
        r"gpu__time_duration",
        Known(
            "the kernel's time",
            "the timeline's time of the same kernel: ncu locks the clock to base unless --clock-control none is given, "
            "and flushes caches between passes",
            "the roofline's floor for the op (warpline roofline)",
        ),
    ),
    (
        r"smsp__thread_inst_executed_per_inst_executed|smsp__thread_inst_executed_pred_on_per_inst_executed",
        Known(
            "threads that take part in an instruction, on average", "32, a whole warp", "above 24; less is divergence"
        ),
    ),
    (
        r"derived__local_spilling_requests\w*|smsp__sass_inst_executed_op_local\w*|l1tex__t_\w+_mem_local\w*",
        Known("accesses to local memory: spilled registers, or arrays indexed by a variable", "0", "0"),
    ),
    (
        r"sm__cycles_active",
        Known(
            "cycles in which an SM had at least one warp",
            "the largest over the average (.max over .avg): more than 1.1 is imbalance between SMs",
            "close to sm__cycles_elapsed",
        ),
    ),
    (
        r"(?:sm|smsp)__sass_thread_inst_executed_op_d\w+|sm__inst_executed_pipe_fp64\w*|sm__pipe_fp64_cycles_active",
        Known(
            "instructions in double precision",
            "0 in a program that means to use FP32 or less",
            "0, unless FP64 is wanted",
        ),
    ),
    (
        r"sm__ops_path_tensor_src_\w+",
        Known(
            "multiplications and additions by the tensor cores, by type of input and result",
            "its .peak_sustained: the unsuffixed name uses the peak with sparsity, twice the dense one",
            "half of peak_sustained is all that dense work can reach where the peak is the sparse one",
        ),
    ),
)


def known(base: str) -> Known | None:
    """What is written about a metric, given without suffixes."""
    return next((entry for pattern, entry in _KNOWN if re.fullmatch(pattern, base)), None)
