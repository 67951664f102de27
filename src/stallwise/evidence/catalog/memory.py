"""What an out-of-memory message, an allocator summary or a memory snapshot says."""

from __future__ import annotations

from stallwise.evidence.capture import MEMORY_SNAPSHOT, MEMORY_SUMMARY, NVIDIA_SMI, OOM_MESSAGE, SERVE_LOG
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit


def _bytes(name: str, meaning: str, *aliases: str) -> Quantity:
    return Quantity(f"memory.{name}", Unit.BYTE, meaning, MEMORY_SNAPSHOT, aliases)


# Kind of the table that holds bytes alive by kind over time: `time_s` and a column a kind.
OVER_TIME = "memory.course"

# The failed allocation
FAILED = Quantity("memory.failed", Unit.FLAG, "an allocation on the device failed", OOM_MESSAGE, ("oom",))
HOST_KILLED = Quantity(
    "memory.host_killed", Unit.FLAG, "the kernel killed a process for lack of host memory", OOM_MESSAGE
)
REQUEST = _bytes("request", "size of the allocation that failed", "request_bytes", "oom_request", "tried_to_allocate")
SHAPE = Quantity("memory.shape", Unit.TEXT, "shape of the tensor that could not be allocated", OOM_MESSAGE)
FREE = _bytes("free", "free on the device at that moment", "free_bytes")
CAPACITY = _bytes(
    "capacity",
    "memory of the device or the limit set for the process",
    "total_capacity",
    "gpu_capacity",
    "capacity",
    "hbm",
)
ALLOCATED = _bytes("allocated", "held by live tensors")
RESERVED = _bytes("reserved", "taken from the device by the allocator")
UNUSED_RESERVED = _bytes("reserved_unallocated", "taken from the device but not held by a tensor")
PROCESS_USE = _bytes("process_use", "in use by this process, CUDA context and libraries included")
PRIVATE_POOLS = _bytes("private_pools", "held in private pools of CUDA graphs")
PHASE = Quantity("memory.phase", Unit.TEXT, "what the program was doing when it failed", OOM_MESSAGE)
PLACE = Quantity("memory.place", Unit.TEXT, "the source line that asked for the memory", OOM_MESSAGE)
WORDING = Quantity("memory.wording", Unit.TEXT, "which program's message it is", OOM_MESSAGE)
RETRIES = Quantity(
    "memory.retries", Unit.COUNT, "allocations that succeeded only after the cache was flushed", MEMORY_SUMMARY
)
OOMS = Quantity("memory.ooms", Unit.COUNT, "allocations that failed for good", MEMORY_SUMMARY)
DEVICE_USED = Quantity("memory.device_used", Unit.BYTE, "in use on the device by all processes", NVIDIA_SMI)
LISTED_USE = Quantity("memory.listed_use", Unit.BYTE, "in use by the processes that are listed", NVIDIA_SMI)
DEAD_HOLDER = Quantity(
    "memory.dead_holder", Unit.TEXT, "a dead or foreign process that still holds the device", NVIDIA_SMI
)

# Serving engines at start-up
KV_NEEDED = _bytes("kv_needed", "KV cache that the longest request needs")
KV_AVAILABLE = _bytes("kv_available", "KV cache that is left")
KV_TOKENS = Quantity("memory.kv_tokens", Unit.TOKEN, "tokens that the KV cache can hold", SERVE_LOG)
KV_NO_ROOM = Quantity("memory.kv_no_room", Unit.FLAG, "no room is left for KV-cache blocks", SERVE_LOG)
MAX_LENGTH = Quantity("memory.max_length", Unit.TOKEN, "the longest request the engine was asked to serve", SERVE_LOG)
MEMORY_FRACTION = Quantity("memory.fraction", Unit.SHARE, "part of the device the engine may use", SERVE_LOG)

# From a snapshot or an accounting of the log
PEAK = _bytes("peak", "largest total of live tensors in the record", "peak_memory", "peak_mem")
WEIGHTS = _bytes("weights", "of the peak: weights")
GRADIENTS = _bytes("gradients", "of the peak: gradients")
OPTIMIZER = _bytes("optimizer", "of the peak: optimizer states")
ACTIVATIONS = _bytes("activations", "of the peak: activations kept for backward")
LOGITS = _bytes("logits", "of the peak: logits and the loss")
TEMPORARY = _bytes("temporary", "of the peak: workspace of a running operation or of backward")
OTHER = _bytes("other", "of the peak: allocated by other code of the program")
UNEXPLAINED = _bytes("unexplained", "of the peak: recorded without a stack")
LARGEST_HOLE = _bytes("largest_hole", "largest free piece inside reserved memory")
LARGEST_TENSOR = _bytes("largest_tensor", "largest live tensor when the allocation failed")
LARGEST_PLACE = Quantity("memory.largest_place", Unit.TEXT, "where that tensor was made", MEMORY_SNAPSHOT)
NEXT_TENSOR = _bytes("next_tensor", "largest live tensor made elsewhere")
AFTER_INIT = _bytes("after_init", "allocated when the model was loaded")
AFTER_BACKWARD = _bytes("after_backward", "allocated after the first backward pass")

# Derived
ELSEWHERE = _bytes("elsewhere", "held on the device by other processes")
SHORTFALL = _bytes("shortfall", "what the failed allocation lacked")
TENSOR = Quantity("memory.tensor", Unit.TEXT, "what tensor the failed request is, by its size", MEMORY_SNAPSHOT)
EVAL_GROWTH = _bytes("eval_growth", "gained over the batches of one validation")
LIVE_BYTES = _bytes("live", "live tensors over time")
END_ALLOCATED = _bytes("end_allocated", "held by live tensors at the end of the record")
END_RESERVED = _bytes("end_reserved", "taken from the device by the allocator at the end of the record")
SEGMENT_ALLOCS = Quantity("memory.segment_allocs", Unit.COUNT, "segments taken from the device", MEMORY_SNAPSHOT)
SEGMENT_FREES = Quantity("memory.segment_frees", Unit.COUNT, "segments given back to the device", MEMORY_SNAPSHOT)
RECORD_TIME = Quantity("memory.record_time", Unit.SECOND, "time that the record of allocations spans", MEMORY_SNAPSHOT)
PASSES = Quantity("memory.passes", Unit.COUNT, "times that live memory rose and came down again", MEMORY_SNAPSHOT)
FIRST_FLOOR = _bytes("first_floor", "live tensors after the first such pass")
LAST_FLOOR = _bytes("last_floor", "live tensors after the last such pass")
