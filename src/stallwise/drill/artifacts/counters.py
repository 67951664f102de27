"""Nsight Compute, `--page raw --csv`: one wide row a kernel."""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream", "Block Size",
           "Grid Size", "Device", "CC")  # fmt: skip
_PEAK = ".avg.pct_of_peak_sustained_elapsed"
# Short word: (counter, unit).
COUNTERS = {
    "time_ms": ("gpu__time_duration.sum", "ms"),
    "sm": ("sm__throughput" + _PEAK, "%"),
    "memory": ("gpu__compute_memory_throughput" + _PEAK, "%"),
    "dram": ("gpu__dram_throughput" + _PEAK, "%"),
    "l1": ("l1tex__throughput.avg.pct_of_peak_sustained_active", "%"),
    "l2": ("lts__throughput" + _PEAK, "%"),
    "issue": ("sm__inst_issued" + _PEAK, "%"),
    "tensor": ("sm__pipe_tensor_cycles_active" + _PEAK, "%"),
    "fma": ("sm__pipe_fma_cycles_active" + _PEAK, "%"),
    "fp64": ("sm__pipe_fp64_cycles_active" + _PEAK, "%"),
    "alu": ("sm__pipe_alu_cycles_active" + _PEAK, "%"),
    "occupancy": ("sm__warps_active.avg.pct_of_peak_sustained_active", "%"),
    "occupancy_limit": ("sm__maximum_warps_per_active_cycle_pct", "%"),
    "registers": ("launch__registers_per_thread", "register/thread"),
    "block": ("launch__block_size", ""),
    "grid": ("launch__grid_size", ""),
    "sms": ("launch__sm_count", ""),
    "waves": ("launch__waves_per_multiprocessor", ""),
    "limit_blocks": ("launch__occupancy_limit_blocks", "block"),
    "limit_registers": ("launch__occupancy_limit_registers", "block"),
    "limit_shared": ("launch__occupancy_limit_shared_mem", "block"),
    "limit_warps": ("launch__occupancy_limit_warps", "block"),
    "threads": ("smsp__thread_inst_executed_per_inst_executed.ratio", ""),
    "instructions": ("smsp__inst_executed.sum", "inst"),
    "spills": ("derived__local_spilling_requests", ""),
    "cycles": ("sm__cycles_elapsed.max", "cycle"),
    "active": ("sm__cycles_active.avg", "cycle"),
    "most_active": ("sm__cycles_active.max", "cycle"),
    "long_scoreboard": ("smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio", "inst"),
    "mio": ("smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio", "inst"),
    "barrier": ("smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "inst"),
    "latency": ("smsp__average_warp_latency_per_inst_issued.ratio", "cycle"),
    "excess": ("derived__memory_l2_theoretical_sectors_global_excessive", "byte"),
    "sectors": ("memory_l2_theoretical_sectors_global", "byte"),
    "conflict_excess": ("derived__memory_l1_wavefronts_shared_excessive", "byte"),
    "wavefronts": ("memory_l1_wavefronts_shared", "byte"),
    "atomics": ("l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "request"),
    "slice_mean": ("lts__t_sectors.avg", "sector"),
    "slice_most": ("lts__t_sectors.max", "sector"),
}


def raw_csv(capability: str, kernels: Mapping[str, Mapping[str, float]]) -> str:
    """Kernels by name, counters by short word."""
    used = [w for w in COUNTERS if any(w in values for values in kernels.values())]
    head = [*COLUMNS, *(COUNTERS[w][0] for w in used)]
    lines = [head, [*[""] * len(COLUMNS), *(COUNTERS[w][1] for w in used)]]
    for number, (kernel, values) in enumerate(kernels.items()):
        block, grid = f"({values['block']:.0f}, 1, 1)", f"({values['grid']:.0f}, 1, 1)"
        row = [str(number), "4242", "bench", "127.0.0.1", kernel, "1", "7", block, grid, "0", capability]
        lines.append(row + [f"{values[w]:.6g}" if w in values else "" for w in used])
    return "".join(",".join(f'"{cell}"' for cell in line) + "\n" for line in lines)
