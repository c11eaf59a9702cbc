"""The metrics that the tree reads: each with its names, the first one of a report counts, and its section."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

SOL = "SpeedOfLight"
LAUNCH = "LaunchStats"
OCCUPANCY = "Occupancy"
DISTRIBUTION = "WorkloadDistribution"
COMPUTE = "ComputeWorkloadAnalysis"
MEMORY = "MemoryWorkloadAnalysis"
TABLES = "MemoryWorkloadAnalysis_Tables"
SCHEDULER = "SchedulerStats"
STATES = "WarpStateStats"
INSTRUCTIONS = "InstructionStats"
SOURCE = "SourceCounters"
ROOFLINE = "SpeedOfLight_HierarchicalSingleRooflineChart"

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
_ACTIVE = ".avg.pct_of_peak_sustained_active"


class Metric(Struct, frozen=True):
    """One quantity."""

    names: tuple[str, ...]
    """Equivalent metric names, the preferred one first: chips and versions of ncu differ."""
    section: str
    """The section of Nsight Compute that records it."""


def _metric(section: str, *names: str) -> Metric:
    return Metric(names, section)


def _pipe(name: str) -> Metric:
    both = (f"sm__pipe_{name}_cycles_active", f"sm__inst_executed_pipe_{name}")
    return Metric(tuple(base + suffix for suffix in (_ELAPSED, _ACTIVE) for base in both), COMPUTE)


def _instructions(name: str) -> Metric:
    return _metric(ROOFLINE, f"smsp__sass_thread_inst_executed_op_{name}_pred_on.sum.per_cycle_elapsed")


METRICS: Mapping[str, Metric] = {
    "duration": _metric(SOL, "gpu__time_duration.sum"),
    "sm": _metric(SOL, "sm__throughput" + _ELAPSED),
    "memory": _metric(SOL, "gpu__compute_memory_throughput" + _ELAPSED),
    "dram": _metric(SOL, "gpu__dram_throughput" + _ELAPSED, "dram__throughput" + _ELAPSED),
    "l2": _metric(SOL, "lts__throughput" + _ELAPSED),
    "l1": _metric(SOL, "l1tex__throughput" + _ACTIVE, "l1tex__throughput" + _ELAPSED),
    "sm_clock": _metric(
        SOL,
        "sm__cycles_elapsed.avg.per_second",
        "smsp__cycles_elapsed.avg.per_second",
        "gpc__cycles_elapsed.avg.per_second",
    ),
    "cycles": _metric(SOL, "sm__cycles_elapsed.max", "gpc__cycles_elapsed.max", "sm__cycles_elapsed.avg"),
    "active_avg": _metric(DISTRIBUTION, "sm__cycles_active.avg"),
    "active_max": _metric(DISTRIBUTION, "sm__cycles_active.max"),
    "l2_slice_avg": _metric(DISTRIBUTION, "lts__t_sectors.avg"),
    "l2_slice_max": _metric(DISTRIBUTION, "lts__t_sectors.max"),
    # Pipes
    "tensor": _pipe("tensor"),
    "fma": _pipe("fma"),
    "fp64": _pipe("fp64"),
    "alu": _pipe("alu"),
    "xu": _pipe("xu"),
    "lsu": _pipe("lsu"),
    "cbu": _pipe("cbu"),
    "adu": _pipe("adu"),
    "uniform": _pipe("uniform"),
    "issue": _metric(
        COMPUTE,
        "sm__inst_issued" + _ELAPSED,
        "sm__issue_active" + _ELAPSED,
        "sm__inst_executed" + _ELAPSED,
        "smsp__issue_active" + _ACTIVE,
    ),
    # Launch
    "grid": _metric(LAUNCH, "launch__grid_size"),
    "block": _metric(LAUNCH, "launch__block_size"),
    "sms": _metric(LAUNCH, "launch__sm_count", "device__attribute_multiprocessor_count"),
    "waves": _metric(LAUNCH, "launch__waves_per_multiprocessor"),
    "registers": _metric(LAUNCH, "launch__registers_per_thread"),
    "shared_per_block": _metric(LAUNCH, "launch__shared_mem_per_block_allocated", "launch__shared_mem_per_block"),
    # Occupancy
    "occupancy_possible": _metric(OCCUPANCY, "sm__maximum_warps_per_active_cycle_pct"),
    "occupancy": _metric(OCCUPANCY, "sm__warps_active" + _ACTIVE),
    "limit_registers": _metric(OCCUPANCY, "launch__occupancy_limit_registers"),
    "limit_shared": _metric(OCCUPANCY, "launch__occupancy_limit_shared_mem"),
    "limit_warps": _metric(OCCUPANCY, "launch__occupancy_limit_warps"),
    "limit_blocks": _metric(OCCUPANCY, "launch__occupancy_limit_blocks"),
    "limit_barriers": _metric(OCCUPANCY, "launch__occupancy_limit_barriers"),
    # Schedulers and warps
    "issue_active": _metric(SCHEDULER, "smsp__issue_active" + _ACTIVE),
    "eligible": _metric(SCHEDULER, "smsp__warps_eligible.avg.per_cycle_active"),
    "warp_latency": _metric(
        STATES, "smsp__average_warp_latency_per_inst_issued.ratio", "smsp__average_warps_active_per_issue_active.ratio"
    ),
    "threads_per_instruction": _metric(STATES, "smsp__thread_inst_executed_per_inst_executed.ratio"),
    "branch_uniform": _metric(SOURCE, "smsp__sass_average_branch_targets_threads_uniform.pct"),
    "instructions": _metric(INSTRUCTIONS, "smsp__inst_executed.sum", "smsp__inst_executed.avg"),
    # Global memory
    "load_requests": _metric(TABLES, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    "load_sectors": _metric(TABLES, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    "store_requests": _metric(TABLES, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
    "store_sectors": _metric(TABLES, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    "load_bytes_per_sector": _metric(TABLES, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
    "store_bytes_per_sector": _metric(TABLES, "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"),
    "sectors_theoretical": _metric(SOURCE, "memory_l2_theoretical_sectors_global"),
    "sectors_ideal": _metric(SOURCE, "memory_l2_theoretical_sectors_global_ideal"),
    "async_sectors": _metric(TABLES, "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_access.sum"),
    "async_bypass_sectors": _metric(TABLES, "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum"),
    "l1_hits": _metric(MEMORY, "l1tex__t_sector_hit_rate.pct"),
    "l1_load_hits": _metric(TABLES, "l1tex__t_sector_pipe_lsu_mem_global_op_ld_hit_rate.pct"),
    "l2_hits": _metric(MEMORY, "lts__t_sector_hit_rate.pct"),
    "l2_read_hits": _metric(TABLES, "lts__t_sector_op_read_hit_rate.pct"),
    "l2_read_sectors": _metric(TABLES, "lts__t_sectors_srcunit_tex_op_read.sum"),
    "l2_write_sectors": _metric(TABLES, "lts__t_sectors_srcunit_tex_op_write.sum"),
    "l2_sectors": _metric(TABLES, "lts__t_sectors.sum"),
    "l2_requests": _metric(TABLES, "lts__t_requests_srcunit_tex.sum"),
    "l2_tags": _metric(TABLES, "lts__t_tag_requests" + _ELAPSED),
    "l2_data": _metric(TABLES, "lts__d_sectors" + _ELAPSED, "lts__t_sectors" + _ELAPSED),
    "l2_read_missed": _metric(TABLES, "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum"),
    "dram_read": _metric(TABLES, "dram__bytes_read.sum", "dram__bytes_op_read.sum"),
    "dram_write": _metric(TABLES, "dram__bytes_write.sum", "dram__bytes_op_write.sum"),
    "dram_rate": _metric(MEMORY, "dram__bytes.sum.per_second"),
    # Local memory
    "local_load_instructions": _metric(
        TABLES, "smsp__sass_inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_ld.sum"
    ),
    "local_store_instructions": _metric(
        TABLES, "smsp__sass_inst_executed_op_local_st.sum", "smsp__inst_executed_op_local_st.sum"
    ),
    "local_load_sectors": _metric(TABLES, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum"),
    "local_store_sectors": _metric(TABLES, "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum"),
    "local_load_missed": _metric(TABLES, "l1tex__t_sectors_pipe_lsu_mem_local_op_ld_lookup_miss.sum"),
    "local_store_missed": _metric(TABLES, "l1tex__t_sectors_pipe_lsu_mem_local_op_st_lookup_miss.sum"),
    "spill_requests": _metric(MEMORY, "derived__local_spilling_requests", "sass__inst_executed_register_spilling"),
    "global_load_instructions": _metric(
        TABLES, "smsp__sass_inst_executed_op_global_ld.sum", "sass__inst_executed_global_loads"
    ),
    "global_store_instructions": _metric(
        TABLES, "smsp__sass_inst_executed_op_global_st.sum", "sass__inst_executed_global_stores"
    ),
    # Shared memory
    "shared_wavefronts": _metric(TABLES, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    "shared_conflicts": _metric(TABLES, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    "shared_atomic_conflicts": _metric(TABLES, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom.sum"),
    "shared_load_instructions": _metric(
        TABLES, "smsp__sass_inst_executed_op_shared_ld.sum", "sass__inst_executed_shared_loads"
    ),
    "shared_store_instructions": _metric(
        TABLES, "smsp__sass_inst_executed_op_shared_st.sum", "sass__inst_executed_shared_stores"
    ),
    "shared_needed": _metric(SOURCE, "memory_l1_wavefronts_shared"),
    "shared_ideal": _metric(SOURCE, "memory_l1_wavefronts_shared_ideal"),
    "data_wavefronts": _metric(TABLES, "l1tex__data_pipe_lsu_wavefronts" + _ELAPSED),
    "shared_wavefronts_pct": _metric(
        TABLES, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"
    ),
    # Atomics
    "atomic_requests": _metric(TABLES, "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum"),
    "reduction_requests": _metric(TABLES, "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"),
    "shared_atomics": _metric(TABLES, "smsp__inst_executed_op_shared_atom.sum"),
    "atomic_unit": _metric(TABLES, "lts__d_atomic_input_cycles_active" + _ELAPSED),
    "atomic_unit_max": _metric(TABLES, "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"),
    "atomic_wavefronts": _metric(TABLES, "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_atom.sum"),
    "reduction_wavefronts": _metric(TABLES, "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_red.sum"),
    "load_wavefronts": _metric(TABLES, "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld.sum"),
    "store_wavefronts": _metric(TABLES, "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_st.sum"),
    "atomic_sectors": _metric(TABLES, "lts__t_sectors_srcunit_tex_op_atom.sum"),
    "reduction_sectors": _metric(TABLES, "lts__t_sectors_srcunit_tex_op_red.sum"),
    # Instruction mix, threads per cycle
    "ffma": _instructions("ffma"),
    "fadd": _instructions("fadd"),
    "fmul": _instructions("fmul"),
    "hfma": _instructions("hfma"),
    "hadd": _instructions("hadd"),
    "hmul": _instructions("hmul"),
    "dfma": _metric(
        "SpeedOfLight_RooflineChart", "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum.per_cycle_elapsed"
    ),
    "dadd": _instructions("dadd"),
    "dmul": _instructions("dmul"),
    "thread_instructions": _metric(SOURCE, "thread_inst_executed_true", "thread_inst_executed"),
    "ffma_peak": _metric(ROOFLINE, "derived__sm__sass_thread_inst_executed_op_ffma_pred_on_x2"),
    "dfma_peak": _metric(ROOFLINE, "derived__sm__sass_thread_inst_executed_op_dfma_pred_on_x2"),
}
"""By the name that the tree uses."""

BYTES_PER_SECTOR = 32
"""A sector is the unit in which L1, L2 and DRAM move data on every chip since Maxwell (CUDA C++ Programming Guide)."""
WARP = 32

STALLS = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALL_WORDS: Mapping[str, str] = {
    "long_scoreboard": "waiting for global, local or texture memory",
    "short_scoreboard": "waiting for shared memory or a special function",
    "barrier": "waiting at a block barrier (__syncthreads)",
    "gmma": "waiting for a warpgroup matrix instruction",
    "membar": "waiting for a memory fence",
    "math_pipe_throttle": "waiting for a busy arithmetic pipe",
    "mio_throttle": "waiting for the queue of shared memory and special functions",
    "lg_throttle": "waiting for the queue of global and local memory",
    "tex_throttle": "waiting for the queue of textures",
    "wait": "waiting for a fixed latency between instructions",
    "branch_resolving": "waiting for a branch",
    "dispatch_stall": "waiting for the dispatcher",
    "drain": "waiting for stores to finish at exit",
    "imc_miss": "waiting for a constant that missed its cache",
    "no_instruction": "waiting for instructions (instruction cache)",
    "sleeping": "sleeping (nanosleep)",
    "misc": "other",
    "not_selected": "ready, while another warp was issued",
    "selected": "issuing",
}
"""What a warp waits for. `selected` and `not_selected` are no waits."""
NO_WAIT = frozenset({"selected", "not_selected"})
STALL_SECTION = STATES
