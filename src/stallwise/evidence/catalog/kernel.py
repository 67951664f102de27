"""What hardware counters and launch settings say of one kernel. Shares are of the device's peak, 0 to 1."""

from __future__ import annotations

from stallwise.evidence.capture import NCU, NSYS
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit


def _share(name: str, meaning: str, *aliases: str) -> Quantity:
    return Quantity(f"kernel.{name}", Unit.SHARE, meaning, NCU, aliases)


def _count(name: str, meaning: str, *aliases: str) -> Quantity:
    return Quantity(f"kernel.{name}", Unit.COUNT, meaning, NCU, aliases)


TIME = Quantity("kernel.time", Unit.SECOND, "time of one launch of the kernel", NCU, ("kernel duration",))
TOTAL_TIME = Quantity("kernel.total_time", Unit.SECOND, "time of all launches of the kernel together", NSYS)
TIME_SHARE = Quantity("kernel.time_share", Unit.SHARE, "this kernel's part of all kernel time", NSYS)
NARROW_SHARE = Quantity(
    "kernel.narrow_share",
    Unit.SHARE,
    "part of all kernel time in matrix kernels that load one or two elements at once",
    NSYS,
)
DEVICE = Quantity("kernel.device", Unit.TEXT, "the GPU that ran the kernel", NCU)
CAPABILITY = Quantity("kernel.compute_capability", Unit.TEXT, "compute capability of that GPU", NCU)
NAMED_PRECISION = Quantity("kernel.named_precision", Unit.TEXT, "arithmetic that the kernel's name tells", NSYS)
KIND = Quantity("kernel.kind", Unit.TEXT, "what the kernel's name or signature says it computes", NCU)
ARGUMENT_TYPES = Quantity("kernel.argument_types", Unit.TEXT, "number types in the kernel's signature", NCU)

# Speed of light: how close to the peak each unit ran.
SM_SHARE = _share("sm_share", "throughput of the busiest unit inside the SMs", "sm throughput", "compute throughput")
MEMORY_SHARE = _share("memory_share", "throughput of the busiest memory unit", "memory throughput")
DRAM_SHARE = _share("dram_share", "DRAM throughput over its peak", "dram throughput", "hbm utilisation")
L2_SHARE = _share("l2_share", "L2 throughput over its peak", "l2 throughput")
L1_SHARE = _share("l1_share", "L1 and shared-memory throughput over its peak", "l1 throughput")
SM_BUSY_SHARE = _share("sm_busy_share", "how busy the SMs looked", "sm busy", "sm utilisation")
ISSUE_SHARE = _share("issue_share", "issue slots in use", "issue slots busy")
L1_HIT_SHARE = _share("l1_hit_share", "hits in L1")
L2_HIT_SHARE = _share("l2_hit_share", "hits in L2")
DRAM_RATE = Quantity("kernel.dram_rate", Unit.BYTE_PER_S, "bytes a second moved from and to DRAM", NCU)
FP32_PEAK_SHARE = _share("fp32_peak_share", "part of the FP32 peak reached")
FP64_PEAK_SHARE = _share("fp64_peak_share", "part of the FP64 peak reached")
FP32_OVER_FP64 = Quantity("kernel.fp32_over_fp64_peak", Unit.RATIO, "FP32 peak over FP64 peak on this chip", NCU)

# Pipes.
TENSOR_SHARE = _share("tensor_pipe_share", "tensor pipe in use", "tensor pipe", "tensor core utilisation")
FMA_SHARE = _share("fma_pipe_share", "FMA pipe (fp32 and integer multiply) in use", "fma pipe")
FP64_SHARE = _share("fp64_pipe_share", "FP64 pipe in use", "fp64 pipe")
ALU_SHARE = _share("alu_pipe_share", "ALU pipe (integer and logic) in use", "alu pipe")
XU_SHARE = _share("xu_pipe_share", "transcendental and conversion pipe in use")
LSU_SHARE = _share("lsu_pipe_share", "load and store pipe in use", "lsu pipe")
FUSED_SHARE = _share("fused_share", "fp32 instructions that are fused multiply-adds")
TF32_SHARE = _share("tf32_share", "tensor work done in TF32")
TOP_PIPE = Quantity("kernel.top_pipe", Unit.TEXT, "the busiest compute pipe", NCU)
TOP_PIPE_SHARE = _share("top_pipe_share", "how busy the busiest compute pipe was")

# Occupancy and launch.
ACHIEVED_OCCUPANCY = _share("achieved_occupancy_share", "warps resident on average", "occupancy", "achieved occupancy")
THEORETICAL_OCCUPANCY = _share("theoretical_occupancy_share", "warps the launch allows", "theoretical occupancy")
REGISTERS = _count("registers_per_thread", "registers a thread", "registers per thread")
SHARED_BYTES = Quantity("kernel.shared_memory_per_block", Unit.BYTE, "shared memory a block", NCU)
BLOCK_THREADS = _count("block_threads", "threads a block", "block size")
GRID_BLOCKS = _count("grid_blocks", "blocks in the grid", "grid size")
SM_COUNT = _count("sm_count", "multiprocessors of the device", "sm count")
WAVES = _count("waves_per_sm", "waves of blocks over the device", "waves per sm")
LIMIT_BLOCKS = _count("limit_blocks", "resident blocks the SM allows")
LIMIT_REGISTERS = _count("limit_registers", "resident blocks that registers allow")
LIMIT_SHARED = _count("limit_shared", "resident blocks that shared memory allows")
LIMIT_WARPS = _count("limit_warps", "resident blocks that warp slots allow")
ELIGIBLE_WARPS = _count("eligible_warps", "warps ready to issue, a scheduler and cycle")
ACTIVE_WARPS = _count("active_warps", "warps resident, a scheduler")

# What goes wrong inside.
ACTIVE_THREADS = _count("active_threads_per_warp", "lanes at work in an executed instruction", "active threads")
UNMASKED_THREADS = _count("unmasked_threads_per_warp", "lanes at work and not predicated off")
INSTRUCTIONS = _count("instructions", "warp instructions executed")
EXCESS_SECTORS = _share("excess_sector_share", "global-memory sectors beyond what perfect coalescing needs")
SECTOR_BYTES_USED = Quantity("kernel.sector_bytes_used", Unit.BYTE, "useful bytes of each 32-byte sector", NCU)
CONFLICT_SHARE = _share("shared_conflict_share", "shared-memory wavefronts beyond the ideal", "bank conflicts")
CONFLICT_WAYS = _count("shared_conflict_ways", "wavefronts a shared-memory request needs")
SPILL_REQUESTS = _count("spill_requests", "local-memory requests of spilled registers or local arrays")
SPILL_BYTES_PER_THREAD = Quantity("kernel.spill_bytes_per_thread", Unit.BYTE, "bytes a thread spills, by the compiler")
LOCAL_TRAFFIC = _share("local_traffic_share", "part of the L1 sectors that is local memory")
LOCAL_SECTOR_BYTES = Quantity(
    "kernel.local_sector_bytes_used", Unit.BYTE, "useful bytes of each sector of local memory", NCU
)
ATOMIC_REQUESTS = _count("atomic_requests", "atomic and reduction requests to global memory")
SHARED_ATOMICS = _count("shared_atomic_requests", "atomic requests to shared memory")
SM_IMBALANCE = _share("sm_imbalance_share", "how far the mean SM stays under the busiest one", "sm imbalance")
SM_ACTIVE = _share("sm_active_share", "part of the kernel's time a mean SM had work")
L2_IMBALANCE = _share("l2_imbalance_share", "how far the mean L2 slice stays under the busiest one")
TAIL_SHARE = _share("tail_share", "time that a last, partial wave may take")
WARP_LATENCY = _count("warp_cycles_per_issue", "cycles between two instructions of a warp")

# Why warps wait: part of the cycles between two instructions of a warp.
STALL_LONG_SCOREBOARD = _share("stall.long_scoreboard", "waiting for data of a global, local or texture access")
STALL_SHORT_SCOREBOARD = _share("stall.short_scoreboard", "waiting for shared memory or special functions")
STALL_MIO_THROTTLE = _share("stall.mio_throttle", "the queue to shared memory and special units is full")
STALL_LG_THROTTLE = _share("stall.lg_throttle", "the queue of global and local accesses is full")
STALL_TEX_THROTTLE = _share("stall.tex_throttle", "the texture queue is full")
STALL_BARRIER = _share("stall.barrier", "waiting for sibling warps at a barrier")
STALL_MATH_THROTTLE = _share("stall.math_pipe_throttle", "the math pipe is busy")
STALL_WAIT = _share("stall.wait", "fixed latency between dependent instructions")
STALL_NOT_SELECTED = _share("stall.not_selected", "ready, but another warp was picked")
STALL_SELECTED = _share("stall.selected", "issuing")
STALL_BRANCH = _share("stall.branch_resolving", "waiting for a branch target")
STALL_NO_INSTRUCTION = _share("stall.no_instruction", "waiting for instructions to be fetched")
STALL_IMC_MISS = _share("stall.imc_miss", "waiting for a constant that missed its cache")
STALL_DRAIN = _share("stall.drain", "waiting for stores to leave at the end")
STALL_MEMBAR = _share("stall.membar", "waiting at a memory fence")
STALL_GMMA = _share("stall.gmma", "waiting for tensor-core instructions to finish")
STALL_SLEEPING = _share("stall.sleeping", "asleep on purpose")
STALL_DISPATCH = _share("stall.dispatch_stall", "the dispatcher holds the instruction back")

STALLS: dict[str, Quantity] = {
    q.name.removeprefix("kernel.stall."): q
    for q in list(globals().values())
    if isinstance(q, Quantity) and q.name.startswith("kernel.stall.")
}
NOT_A_LOSS = ("selected", "not_selected")  # the warp could issue; nothing is lost

# What the tool itself advises, kept to show beside our answer; never used to judge.
VENDOR_RULE = Quantity("kernel.vendor_rule", Unit.TEXT, "the vendor's rule with the largest estimated speedup", NCU)
VENDOR_SPEEDUP = _share("vendor_speedup", "the speedup that rule estimates")

# Derived by measures.
CONTRACTION = _share("contraction", "how much the work looks like a matrix product: 0 no, 1 surely")
ATTAINABLE_SHARE = _share("attainable_share", "time the kernel would need at its own roof, over its time")
MATRIX_PEAK_RATIO = Quantity("kernel.matrix_peak_ratio", Unit.RATIO, "tensor peak over CUDA-core peak on this chip")
OCCUPANCY_LIMITER = Quantity("kernel.occupancy_limiter", Unit.TEXT, "what keeps more blocks off an SM")
TOP_STALL = Quantity("kernel.top_stall", Unit.TEXT, "the largest reason for which warps wait", NCU)
TOP_STALL_SHARE = _share("top_stall_share", "its part of the cycles between two instructions")
BLOCKS_PER_SM = _count("blocks_per_sm", "blocks resident on an SM at once")
INTENSITY = Quantity("kernel.intensity", Unit.RATIO, "operations a byte of DRAM traffic", NCU)
