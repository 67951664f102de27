"""Where the time of a step goes, as a trace shows it. Seconds are those of a mean step unless said otherwise."""

from __future__ import annotations

from stallwise.evidence.capture import CLEAN_STEP as CLEAN_STEP_CAPTURE
from stallwise.evidence.capture import TORCH_TRACE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_S, _N, _X, _P, _T, _B = Unit.SECOND, Unit.COUNT, Unit.RATIO, Unit.SHARE, Unit.TEXT, Unit.BYTE


def _of_trace(name: str, unit: Unit, meaning: str) -> Quantity:
    return Quantity(name, unit, meaning, TORCH_TRACE)


# Steps
STEP_TIME = _of_trace(
    "step.time",
    _S,
    "wall time of a mean step, on the device's clock; the profiler's cost is taken off where it is known",
)
STEP_MEDIAN = _of_trace("step.median_time", _S, "wall time of the median step")
STEP_COUNT = _of_trace("step.count", _N, "steps in the trace")
STEP_UNIT = _of_trace("step.unit", _T, "what the borders mark: step, iteration or window")
STEP_MARKS = _of_trace("step.marks", _T, "where the borders come from")
STEP_PATTERN = _of_trace("step.pattern", _T, "stable, bursty, periodic, warming up or varying")
STEP_PERIOD = _of_trace("step.period", _N, "steps from one slow step to the next")
TRACED_STEP = _of_trace("step.traced_time", _S, "wall time of a mean step while traced, before any correction")
REPLAYED_STEP = _of_trace("step.replayed_time", _S, "wall time of a mean step, replayed without what recording costs")
CLEAN_STEP = Quantity(
    "step.clean_time",
    _S,
    "wall time of a step with no profiler attached",
    CLEAN_STEP_CAPTURE,
    ("clean_step", "unprofiled_step"),
)

# The device's states
BUSY_TIME = _of_trace("step.busy_time", _S, "the device does anything")
COMPUTE_TIME = _of_trace("step.compute_time", _S, "kernels other than communication run")
EXPOSED_COMMUNICATION = _of_trace("step.exposed_communication", _S, "only communication runs")
EXPOSED_COPY = _of_trace("step.exposed_copy", _S, "only copies between host and device run")

# Idle time of the device, by what the host was doing
INPUT_WAIT = _of_trace("step.input_wait", _S, "idle while the host waits for the next batch")
CHECKPOINT_WAIT = _of_trace("step.checkpoint_wait", _S, "idle or only copying while a checkpoint is saved")
COMPILE_WAIT = _of_trace("step.compile_wait", _S, "idle while the host compiles")
PLAN_WAIT = _of_trace("step.plan_wait", _S, "idle while one operator prepares its first use of a shape")
FIRST_LAUNCH_WAIT = _of_trace(
    "step.first_launch_wait", _S, "idle while first launches load code or a library is set up"
)
CAPTURE_WAIT = _of_trace("step.capture_wait", _S, "idle while a graph is captured: kernels are recorded, not run")
CPU_WORK_WAIT = _of_trace("step.cpu_work_wait", _S, "idle while the host computes an operator on the CPU")
GC_WAIT = _of_trace("step.gc_wait", _S, "idle while the host collects garbage")
ALLOC_WAIT = _of_trace("step.alloc_wait", _S, "idle while the host allocates or frees device memory")
SYNC_WAIT = _of_trace("step.sync_wait", _S, "idle that a synchronisation caused by taking the host's lead")
COPY_CALL_WAIT = _of_trace("step.copy_call_wait", _S, "idle while the host is inside a copy call")
PROFILER_WAIT = _of_trace("step.profiler_wait", _S, "idle while the profiler does its own work")
LAUNCH_WAIT = _of_trace("step.launch_wait", _S, "idle while the host launches, kernel by kernel")
SILENT_WAIT = _of_trace("step.silent_wait", _S, "idle while the host is outside any recorded operator")
DISPATCH_WAIT = _of_trace("step.dispatch_wait", _S, "idle between pieces of work that were queued already")
UNRECORDED_WAIT = _of_trace(
    "step.unrecorded_wait", _S, "idle as far as the trace shows, while the host waits for the device"
)
UNKNOWN_WAIT = _of_trace("step.unknown_wait", _S, "idle for a reason that the trace does not hold")

# The host
LOADER_TIME = _of_trace("step.loader_time", _S, "the host is in the loader, hidden or not")
LOADER_NAME = _of_trace("step.loader_name", _T, "the range that waits for input")
SILENT_PLACE = _of_trace("step.silent_place", _T, "the range or frame around the silence")
SILENT_REASON = _of_trace("step.silent_suspect", _T, "what the frame around the silence says it is")
PLAN_OPERATOR = _of_trace("step.plan_operator", _T, "the operator that prepares")
CPU_OPERATOR = _of_trace("step.cpu_operator", _T, "the operator computed on the CPU")
SYNC_COUNT = _of_trace("step.sync_count", _N, "synchronising calls a step")
SYNC_CALLER = _of_trace("step.sync_caller", _T, "the operator behind the costliest synchronisation")
SYNC_HARMLESS = _of_trace("step.sync_harmless", _S, "time in synchronisations that only waited for queued work")
LAUNCHES = _of_trace("step.launches", _N, "pieces of device work a step")
KERNEL_MEDIAN = _of_trace("step.kernel_median", _S, "median duration of a kernel")
LAUNCH_INTERVAL = _of_trace(
    "step.launch_interval", _S, "host time from one launch to the next where the host is the limit"
)
LAUNCH_DELAY = _of_trace("step.launch_delay", _S, "median time from launch to start")
QUEUE_DEPTH = _of_trace("step.queue_depth", _N, "mean number of launched pieces of work that wait")
COMPILED_SHARE = _of_trace("step.compiled_share", _P, "launches that come from compiled regions")
GRAPH_SHARE = _of_trace("step.graph_share", _P, "kernels that come from replayed graphs")
COMPILED_REGIONS = _of_trace("step.compiled_regions", _N, "entries into compiled regions a step")

# Device work by purpose
GEMM_TIME = _of_trace("work.gemm_time", _S, "matrix products")
CONV_TIME = _of_trace("work.conv_time", _S, "convolutions")
ATTENTION_TIME = _of_trace("work.attention_time", _S, "fused attention")
POINTWISE_TIME = _of_trace("work.pointwise_time", _S, "unfused elementwise, cast and layout kernels")
LAYOUT_TIME = _of_trace("work.layout_time", _S, "copies that change a layout, outside attention scores")
LAYOUT_CALLER = _of_trace("work.layout_caller", _T, "the operator behind most layout copies")
NORM_TIME = _of_trace("work.norm_time", _S, "normalisation")
OPTIMIZER_TIME = _of_trace("work.optimizer_time", _S, "optimizer kernels")
COMMUNICATION_TIME = _of_trace("work.communication_time", _S, "communication kernels, hidden or not")
FUSED_TIME = _of_trace("work.fused_time", _S, "kernels that a compiler fused")
MEMORY_BOUND_TIME = _of_trace("work.memory_bound_time", _S, "kernels that move data and hardly compute")
FUSION_SAVING = _of_trace("work.fusion_saving", _S, "time that fusing chains of pointwise kernels would save")
CHAIN_LENGTH = _of_trace("work.chain_length", _N, "pointwise kernels in a row, weighted by time")
CHAIN_OPERATORS = _of_trace("work.chain_operators", _T, "the operators that dominate the chains")
SCORES_TIME = _of_trace("work.scores_time", _S, "kernels that write or read attention scores in memory")
SCORES_GEMM_TIME = _of_trace("work.scores_product_time", _S, "matrix products around those scores")
RECOMPUTE_TIME = _of_trace("work.recompute_time", _S, "forward work repeated inside the backward pass")
FORWARD_TIME = _of_trace("work.forward_time", _S, "forward work before the backward pass")
EVALUATION_TIME = _of_trace("work.evaluation_time", _S, "forward work that no backward pass uses")
EVALUATION_NAMED = _of_trace("work.evaluation_named", _T, "the range that says it evaluates")
OPTIMIZER_KERNELS = _of_trace("work.optimizer_kernels", _N, "optimizer kernels a step")
OPTIMIZER_SPAN = _of_trace("work.optimizer_span", _S, "from the optimizer's first kernel to its last, gaps included")
OPTIMIZER_IDLE = _of_trace("work.optimizer_idle", _S, "idle time of the device inside the optimizer")
OPTIMIZER_FUSED_SHARE = _of_trace("work.optimizer_fused_share", _P, "optimizer time in kernels that take many tensors")
WALKED_KERNELS = _of_trace("work.walked_kernels", _N, "kernels a step of loops that update tensors one by one")
WALKED_SPAN = _of_trace("work.walked_span", _S, "from the first kernel of such loops to the last, gaps included")
WALKED_IDLE = _of_trace("work.walked_idle", _S, "idle time of the device inside such loops")
MICROBATCHES = _of_trace("work.microbatches", _N, "backward passes a step")
MATRIX_MEDIAN = _of_trace("work.matrix_median", _S, "median duration of a matrix kernel")
MATRIX_ROWS = _of_trace(
    "work.matrix_rows", _N, "median of the smaller outer dimension of matrix products, weighted by time"
)
MATRIX_RATE_SHARE = _of_trace("work.matrix_rate_share", _P, "rate of matrix products over the dense peak of their type")
SIMT_TIME = _of_trace("work.simt_time", _S, "matrix work on CUDA cores")
SIMT_KERNEL = _of_trace("work.simt_kernel", _T, "the kernel behind most of it")
SIMT_SAVING = _of_trace("work.simt_saving", _S, "what tensor cores would save of it")
WIDE_TIME = _of_trace("work.wide_time", _S, "matrix work in TF32 or fp32 on matrix units")
WIDE_SAVING = _of_trace("work.wide_saving", _S, "what 16-bit arithmetic would save of it")
DOUBLE_TIME = _of_trace("work.double_time", _S, "matrix work in double precision")
NARROW_TIME = _of_trace("work.narrow_time", _S, "matrix work whose rows do not start on 16 bytes")
NARROW_SAVING = _of_trace("work.narrow_saving", _S, "what aligned shapes would save of it")
NARROW_SHAPE = _of_trace("work.narrow_shape", _T, "the shapes or kernels that are not aligned")

# Copies, allocations, memory
TO_DEVICE_BYTES = _of_trace("copy.to_device_bytes", _B, "bytes from host to device a step")
TO_HOST_BYTES = _of_trace("copy.to_host_bytes", _B, "bytes from device to host a step")
TO_DEVICE_TIME = _of_trace("copy.to_device_time", _S, "time of copies to the device, hidden or not")
TO_HOST_TIME = _of_trace("copy.to_host_time", _S, "time of copies to the host, hidden or not")
PAGEABLE_SHARE = _of_trace("copy.pageable_share", _P, "bytes to the device that come from pageable memory")
COPY_STALL = _of_trace("copy.stall", _S, "time lost to copies: exposed, inside the call, or by the wait it forces")
TO_HOST_STEPS = _of_trace("copy.to_host_steps", _P, "steps with bulk copies to the host")
ALLOC_CALLS = _of_trace("alloc.calls", _N, "allocations and frees of device memory a step")
ALLOC_TIME = _of_trace("alloc.time", _S, "host time in them")
FREE_WAIT = _of_trace("alloc.free_wait", _S, "idle inside frees of device memory, which synchronise")
MALLOC_WAIT = _of_trace("alloc.malloc_wait", _S, "idle inside allocations of device memory")
MEMORY_PEAK = _of_trace("step.memory_peak", _B, "most memory the allocator held while traced")
MEMORY_CAPACITY = _of_trace("step.memory_capacity", _B, "memory of the device")

# Serving
ITERATION_KIND = _of_trace("iteration.kind", _T, "decode, prefill or mixed")
DECODE_WEIGHT_TIME = _of_trace(
    "iteration.weight_time", _S, "time of matrix kernels with few rows, which read weights once a token"
)
DECODE_KV_TIME = _of_trace(
    "iteration.attention_time", _S, "time of attention kernels, which read the KV cache once a token"
)
