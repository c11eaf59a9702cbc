"""nvprof's metrics, and what Nsight Compute calls them (NVIDIA's documentation compares the two)."""

from __future__ import annotations

from typing import Final

_OF_WARPS = "in percent of the most warps that an SM holds"
NVPROF: Final[dict[str, tuple[str, str]]] = {
    "achieved_occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", _OF_WARPS),
    "branch_efficiency": ("smsp__sass_average_branch_targets_threads_uniform.pct", ""),
    "dram_read_bytes": ("dram__bytes_read.sum", ""),
    "dram_write_bytes": ("dram__bytes_write.sum", ""),
    "dram_read_throughput": ("dram__bytes_read.sum.per_second", ""),
    "dram_write_throughput": ("dram__bytes_write.sum.per_second", ""),
    "dram_utilization": ("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", ""),
    "eligible_warps_per_cycle": ("smsp__warps_eligible.avg.per_cycle_active", "per scheduler: four per SM"),
    "flop_count_dp": ("smsp__sass_thread_inst_executed_op_dfma_pred_on.sum", "fused multiply-adds; add dadd and dmul"),
    "flop_count_hp": ("smsp__sass_thread_inst_executed_op_hfma_pred_on.sum", "fused multiply-adds; add hadd and hmul"),
    "flop_count_sp": ("smsp__sass_thread_inst_executed_op_ffma_pred_on.sum", "fused multiply-adds; add fadd and fmul"),
    "gld_efficiency": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct", ""),
    "gst_efficiency": ("smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", ""),
    "gld_throughput": ("l1tex__t_bytes_pipe_lsu_mem_global_op_ld.sum.per_second", ""),
    "gst_throughput": ("l1tex__t_bytes_pipe_lsu_mem_global_op_st.sum.per_second", ""),
    "gld_transactions": ("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", ""),
    "gst_transactions": ("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", ""),
    "global_hit_rate": ("l1tex__t_sector_hit_rate.pct", "of all accesses to L1"),
    "tex_cache_hit_rate": ("l1tex__t_sector_hit_rate.pct", ""),
    "l2_tex_hit_rate": ("lts__t_sector_hit_rate.pct", "of all accesses to L2"),
    "inst_issued": ("smsp__inst_issued.sum", ""),
    "inst_per_warp": ("smsp__average_inst_executed_per_warp.ratio", ""),
    "ipc": ("sm__inst_executed.avg.per_cycle_active", ""),
    "issued_ipc": ("sm__inst_issued.avg.per_cycle_active", ""),
    "issue_slot_utilization": ("smsp__issue_active.avg.pct_of_peak_sustained_active", ""),
    "shared_efficiency": ("smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct", ""),
    "shared_load_transactions": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", ""),
    "shared_store_transactions": ("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", ""),
    "sm_efficiency": ("sm__cycles_active.avg.pct_of_peak_sustained_elapsed", ""),
    "single_precision_fu_utilization": ("sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active", ""),
    "double_precision_fu_utilization": ("sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active", ""),
    "tensor_precision_fu_utilization": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", ""),
    "stall_memory_dependency": ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", ""),
    "stall_exec_dependency": ("smsp__average_warps_issue_stalled_wait_per_issue_active.ratio", ""),
    "stall_sync": ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", ""),
    "stall_pipe_busy": ("smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio", ""),
    "warp_execution_efficiency": ("smsp__thread_inst_executed_per_inst_executed.pct", ""),
    "local_load_transactions": ("l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", ""),
    "local_store_transactions": ("l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", ""),
}
"""By nvprof's name: the metric, and how it differs."""
