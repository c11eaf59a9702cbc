"""Names and labels: the bare function of a kernel's name, and the metric behind a label of the details page."""

from __future__ import annotations

import re
from functools import lru_cache

_UNNAMED = ("(anonymous namespace)::", "<unnamed>::")
"""Namespaces with the marks that end a function's name."""
_WORD = re.compile(r"[\w.:]++")
_METRIC = re.compile(r"\w__[\w.:]")
"""What a word has that is the name of a metric."""

_LABELS = {
    # GPU Speed Of Light Throughput
    "Compute (SM) Throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "SOL SM": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "SM": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "SoL SM": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "Compute (SM)": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "Memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "SOL Memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "DRAM Throughput": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "SOL DRAM": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "SOL FB": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "L1/TEX Cache Throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "SOL L1/TEX Cache": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "SOL TEX": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "L2 Cache Throughput": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "SOL L2 Cache": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "SOL L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "Duration": "gpu__time_duration.sum",
    "Elapsed Cycles": "gpc__cycles_elapsed.max",
    "SM Active Cycles": "sm__cycles_active.avg",
    "SM Frequency": "gpc__cycles_elapsed.avg.per_second",
    "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
    "Memory Frequency": "dram__cycles_elapsed.avg.per_second",
    # PM Sampling
    "Maximum Buffer Size": "profiler__pmsampler_buffer_size_bytes",
    "Maximum Sampling Interval": "profiler__pmsampler_interval_time",
    "Sampling Interval": "profiler__pmsampler_interval_time",
    "# Pass Groups": "profiler__pmsampler_pass_groups",
    # Compute Workload Analysis
    "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
    "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
    "Issued Ipc Active": "sm__inst_issued.avg.per_cycle_active",
    "SM Busy": "sm__instruction_throughput.avg.pct_of_peak_sustained_elapsed",
    "Issue Slots Busy": "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
    # Memory Workload Analysis
    "Mem Busy": "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed",
    "Max Bandwidth": "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed",
    "Mem Pipes Busy": "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
    "L1 Hit Rate": "l1tex__t_sector_hit_rate.pct",
    "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
    "L2 Persisting Size": "launch__persisting_l2_cache_size",
    "L2 Compression Success Rate": "lts__average_gcomp_input_sector_success_rate.pct",
    "L2 Compression Input Sectors": "lts__gcomp_input_sectors.sum",
    "Local Memory Spilling Requests": "derived__local_spilling_requests",
    "Local Memory Spilling Request Overhead": "derived__local_spilling_requests_pct",
    "Shared Memory Spilling Requests": "derived__shared_spilling_requests",
    "Shared Memory Spilling Request Overhead": "derived__shared_spilling_requests_pct",
    # Scheduler Statistics
    "One or More Eligible": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "No Eligible": "smsp__issue_inst0.avg.pct_of_peak_sustained_active",
    "Issued Warp Per Scheduler": "smsp__issue_active.avg.per_cycle_active",
    "Active Warps Per Scheduler": "smsp__warps_active.avg.per_cycle_active",
    "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
    # Warp State Statistics
    "Warp Cycles Per Issued Instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
    "Warp Cycles Per Executed Instruction": "smsp__average_warps_active_per_inst_executed.ratio",
    "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "Avg. Not Predicated Off Threads Per Warp": "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    # Instruction Statistics
    "Executed Instructions": "smsp__inst_executed.sum",
    "Avg. Executed Instructions Per Scheduler": "smsp__inst_executed.avg",
    "Issued Instructions": "smsp__inst_issued.sum",
    "Avg. Issued Instructions Per Scheduler": "smsp__inst_issued.avg",
    # Launch Statistics
    "Block Size": "launch__block_size",
    "Grid Size": "launch__grid_size",
    "Cluster Size": "launch__cluster_size",
    "Cluster Scheduling Policy": "launch__cluster_scheduling_policy",
    "Function Cache Configuration": "launch__func_cache_config",
    "Registers Per Thread": "launch__registers_per_thread",
    "Shared Memory Configuration Size": "launch__shared_mem_config_size",
    "Driver Shared Memory Per Block": "launch__shared_mem_per_block_driver",
    "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
    "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
    "# SMs": "launch__sm_count",
    "# TPCs": "launch__tpc_count",
    "Enabled TPC IDs": "launch__tpc_enabled",
    "Stack Size": "launch__stack_size",
    "Threads": "launch__thread_count",
    "Uses Green Context": "launch__uses_green_context",
    "Waves Per SM": "launch__waves_per_multiprocessor",
    # Occupancy
    "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "Theoretical Active Warps per SM": "sm__maximum_warps_avg_per_active_cycle",
    "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "Achieved Active Warps Per SM": "sm__warps_active.avg.per_cycle_active",
    "Block Limit Barriers": "launch__occupancy_limit_barriers",
    "Block Limit SM": "launch__occupancy_limit_blocks",
    "Block Limit Registers": "launch__occupancy_limit_registers",
    "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
    "Block Limit Warps": "launch__occupancy_limit_warps",
    "Cluster Occupancy": "launch__occupancy_cluster_pct",
    "Overall GPU Occupancy": "launch__occupancy_cluster_gpu_pct",
    "Max Active Clusters": "launch__cluster_max_active",
    "Max Cluster Size": "launch__cluster_max_potential_size",
    # GPU and Memory Workload Distribution
    "Average SM Active Cycles": "sm__cycles_active.avg",
    "Average L1 Active Cycles": "l1tex__cycles_active.avg",
    "Average L2 Active Cycles": "lts__cycles_active.avg",
    "Average SMSP Active Cycles": "smsp__cycles_active.avg",
    "Average DRAM Active Cycles": "dram__cycles_active.avg",
    "Total SM Elapsed Cycles": "sm__cycles_elapsed.sum",
    "Total L1 Elapsed Cycles": "l1tex__cycles_elapsed.sum",
    "Total L2 Elapsed Cycles": "lts__cycles_elapsed.sum",
    "Total SMSP Elapsed Cycles": "smsp__cycles_elapsed.sum",
    "Total DRAM Elapsed Cycles": "dram__cycles_elapsed.sum",
    # Source Counters
    "Branch Instructions": "smsp__inst_executed_op_branch.sum",
    "Branch Instructions Ratio": "derived__smsp__inst_executed_op_branch_pct",
    "Branch Efficiency": "smsp__sass_average_branch_targets_threads_uniform.pct",
    "Avg. Divergent Branches": "smsp__sass_branch_targets_threads_divergent.avg",
}
_MEMORY_THROUGHPUT = {
    True: "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    False: "dram__bytes.sum.per_second",
}
"""Two sections have a metric of this label: a share of the peak in one, bytes per second in the other."""


@lru_cache(maxsize=10_000)
def metric_of(label: str, unit: str) -> str:
    """The metric that a line of the details page shows; the label itself where it is not known."""
    for word in _WORD.findall(label):
        if _METRIC.search(word):  # ncu --print-metric-name name, or label-name
            return str(word)
    plain = _without_unit(label)
    if plain == "Memory Throughput":
        return _MEMORY_THROUGHPUT[unit == "%"]
    return _LABELS.get(plain, label)


def _without_unit(label: str) -> str:
    """The label without a unit in brackets at its end."""
    opened = label.find("[", label.rfind("]", 0, -1) + 1)
    return label[:opened].rstrip() if opened >= 0 and label.endswith("]") else label


@lru_cache(maxsize=10_000)
def function_of(name: str) -> str:
    """The bare function of a demangled name, without return type, namespaces, template and call arguments."""
    plain = name
    for namespace in _UNNAMED:
        plain = plain.replace(namespace, "")
    head = re.split(r"[<(]", plain, maxsplit=1)[0].strip()
    return head.rpartition(" ")[2].rpartition("::")[2] or name
