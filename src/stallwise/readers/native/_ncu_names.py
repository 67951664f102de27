"""Which column or counter of Nsight Compute is which quantity, for the versions from 2019 to 2026.

A display name can stand for two things told apart by the unit ("Memory Throughput" in % and in bytes a second). Of
counters with several names over the years the first one present wins.
"""

from __future__ import annotations

import re

from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.quantity import Quantity

# (display name, class of unit): "%" for percentages, "/s" for rates, "" for anything else.
DISPLAY: dict[tuple[str, str], Quantity] = {
    ("Duration", ""): k.TIME,
    ("Compute (SM) Throughput", "%"): k.SM_SHARE,
    ("SOL SM", "%"): k.SM_SHARE,
    ("SM [%]", "%"): k.SM_SHARE,
    ("SM Throughput", "%"): k.SM_SHARE,
    ("Memory Throughput", "%"): k.MEMORY_SHARE,
    ("SOL Memory", "%"): k.MEMORY_SHARE,
    ("Memory [%]", "%"): k.MEMORY_SHARE,
    ("DRAM Throughput", "%"): k.DRAM_SHARE,
    ("SOL DRAM", "%"): k.DRAM_SHARE,
    ("Memory Throughput ", "/s"): k.DRAM_RATE,
    ("L1/TEX Cache Throughput", "%"): k.L1_SHARE,
    ("SOL L1/TEX Cache", "%"): k.L1_SHARE,
    ("SOL TEX", "%"): k.L1_SHARE,
    ("L2 Cache Throughput", "%"): k.L2_SHARE,
    ("SOL L2 Cache", "%"): k.L2_SHARE,
    ("SOL L2", "%"): k.L2_SHARE,
    ("SM Busy", "%"): k.SM_BUSY_SHARE,
    ("Issue Slots Busy", "%"): k.ISSUE_SHARE,
    ("L1/TEX Hit Rate", "%"): k.L1_HIT_SHARE,
    ("L1 Hit Rate", "%"): k.L1_HIT_SHARE,
    ("L2 Hit Rate", "%"): k.L2_HIT_SHARE,
    ("Achieved Occupancy", "%"): k.ACHIEVED_OCCUPANCY,
    ("Theoretical Occupancy", "%"): k.THEORETICAL_OCCUPANCY,
    ("Registers Per Thread", ""): k.REGISTERS,
    ("Block Size", ""): k.BLOCK_THREADS,
    ("Grid Size", ""): k.GRID_BLOCKS,
    ("# SMs", ""): k.SM_COUNT,
    ("Waves Per SM", ""): k.WAVES,
    ("Block Limit SM", ""): k.LIMIT_BLOCKS,
    ("Block Limit Registers", ""): k.LIMIT_REGISTERS,
    ("Block Limit Shared Mem", ""): k.LIMIT_SHARED,
    ("Block Limit Warps", ""): k.LIMIT_WARPS,
    ("Eligible Warps Per Scheduler", ""): k.ELIGIBLE_WARPS,
    ("Active Warps Per Scheduler", ""): k.ACTIVE_WARPS,
    ("Avg. Active Threads Per Warp", ""): k.ACTIVE_THREADS,
    ("Avg. Not Predicated Off Threads Per Warp", ""): k.UNMASKED_THREADS,
    ("Executed Instructions", ""): k.INSTRUCTIONS,
    ("Local Memory Spilling Requests", ""): k.SPILL_REQUESTS,
}


def _peak(stem: str, base: str = "elapsed") -> str:
    return f"{stem}.avg.pct_of_peak_sustained_{base}"


COUNTERS: tuple[tuple[Quantity, tuple[str, ...]], ...] = (
    (k.TIME, ("gpu__time_duration.sum", "gpu__time_duration.avg", "gpu__time_duration_measured_wallclock")),
    (k.SM_SHARE, (_peak("sm__throughput"),)),
    (k.MEMORY_SHARE, (_peak("gpu__compute_memory_throughput"), _peak("gpu__compute_memory_access_throughput"))),
    (k.DRAM_SHARE, (_peak("gpu__dram_throughput"), _peak("dram__throughput"))),
    (k.L1_SHARE, (_peak("l1tex__throughput", "active"), _peak("l1tex__throughput"))),
    (k.L2_SHARE, (_peak("lts__throughput"),)),
    (k.SM_BUSY_SHARE, (_peak("sm__instruction_throughput", "active"), _peak("sm__instruction_throughput"))),
    (k.ISSUE_SHARE, (_peak("sm__inst_issued"), _peak("sm__inst_issued", "active"),
                     _peak("smsp__issue_active", "active"))),
    (k.L1_HIT_SHARE, ("l1tex__t_sector_hit_rate.pct",)),
    (k.L2_HIT_SHARE, ("lts__t_sector_hit_rate.pct",)),
    (k.DRAM_RATE, ("dram__bytes.sum.per_second",)),
    (k.TENSOR_SHARE, (
        _peak("sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active"),
        _peak("sm__pipe_tensor_cycles_active"), _peak("sm__pipe_tensor_cycles_active", "active"),
        _peak("sm__pipe_tc_cycles_active"), _peak("sm__pipe_tc_cycles_active", "active"),
        _peak("sm__pipe_tensor_op_hmma_cycles_active"), _peak("sm__pipe_tensor_op_hmma_cycles_active", "active"),
        _peak("sm__inst_executed_pipe_tensor", "active"), _peak("sm__inst_executed_pipe_tensor"),
        _peak("sm__inst_executed_pipe_tensor_op_hmma", "active"), _peak("sm__inst_executed_pipe_tensor_op_hmma"))),
    (k.FMA_SHARE, (_peak("sm__pipe_fma_cycles_active"), _peak("sm__pipe_fma_cycles_active", "active"),
                   _peak("sm__inst_executed_pipe_fma", "active"), _peak("sm__inst_executed_pipe_fma"),
                   _peak("sm__inst_executed_pipe_fmaheavy", "active"))),
    (k.FP64_SHARE, (_peak("sm__pipe_fp64_cycles_active"), _peak("sm__pipe_fp64_cycles_active", "active"),
                    _peak("sm__inst_executed_pipe_fp64", "active"), _peak("sm__inst_executed_pipe_fp64"))),
    (k.ALU_SHARE, (_peak("sm__pipe_alu_cycles_active"), _peak("sm__pipe_alu_cycles_active", "active"),
                   _peak("sm__inst_executed_pipe_alu", "active"))),
    (k.XU_SHARE, (_peak("sm__inst_executed_pipe_xu"), _peak("sm__inst_executed_pipe_xu", "active"))),
    (k.LSU_SHARE, (_peak("sm__inst_executed_pipe_lsu"), _peak("sm__inst_executed_pipe_lsu", "active"))),
    (k.ACHIEVED_OCCUPANCY, (_peak("sm__warps_active", "active"),)),
    (k.THEORETICAL_OCCUPANCY, ("sm__maximum_warps_per_active_cycle_pct",)),
    (k.REGISTERS, ("launch__registers_per_thread",)),
    (k.BLOCK_THREADS, ("launch__block_size",)),
    (k.GRID_BLOCKS, ("launch__grid_size",)),
    (k.SM_COUNT, ("launch__sm_count", "device__attribute_multiprocessor_count")),
    (k.WAVES, ("launch__waves_per_multiprocessor",)),
    (k.LIMIT_BLOCKS, ("launch__occupancy_limit_blocks",)),
    (k.LIMIT_REGISTERS, ("launch__occupancy_limit_registers",)),
    (k.LIMIT_SHARED, ("launch__occupancy_limit_shared_mem",)),
    (k.LIMIT_WARPS, ("launch__occupancy_limit_warps",)),
    (k.ELIGIBLE_WARPS, ("smsp__warps_eligible.avg.per_cycle_active",)),
    (k.ACTIVE_WARPS, ("smsp__warps_active.avg.per_cycle_active",)),
    (k.ACTIVE_THREADS, ("smsp__thread_inst_executed_per_inst_executed.ratio",)),
    (k.UNMASKED_THREADS, ("smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",)),
    (k.INSTRUCTIONS, ("smsp__inst_executed.sum", "sm__inst_executed.sum")),
    (k.SPILL_REQUESTS, ("derived__local_spilling_requests",)),
    (k.SHARED_ATOMICS, ("smsp__inst_executed_op_shared_atom.sum",)),
)  # fmt: skip

STALL_COUNTER = re.compile(
    r"^smsp__average_warp(?:s_issue_stalled|_latency_issue_stalled)_(\w+?)(?:_per_issue_active)?\.ratio$"
)
