"""What people say about a run when they ask for help: the setup, the complaint, what changed, what was ruled out.

What engines, allocators and launchers show as well is the same quantity with another origin; it has its other name here.
"""

from __future__ import annotations

from stallwise.evidence.capture import (
    LAYER_STATS,
    MEMORY_SNAPSHOT,
    NCCL_TESTS,
    NCU,
    NVIDIA_SMI,
    RANK_TRACES,
    STEP_SHAPE,
    TOPOLOGY,
    TORCH_TRACE,
    TRAIN_LOG,
)
from stallwise.evidence.catalog import fabric, memory, serving
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_T, _N, _F, _S, _X = Unit.TEXT, Unit.COUNT, Unit.FLAG, Unit.SHARE, Unit.RATIO

# The complaint
SYMPTOM = Quantity("symptom", _T, "what is wrong, in a word or a sentence", None, ("complaint", "problem"))
DESCRIBED = Quantity("told", _T, "what somebody tells of a run in sentences, without a word for its trouble", None)
ASKED = Quantity("asked", _T, "the same, where it asks or is disappointed", None)
BETTER_ELSEWHERE = Quantity("better_elsewhere", _T, "another run of the same is told to be better", None)
CHANGED = Quantity(
    "changed", _T, "what changed before it began; 'nothing' is an answer", None, ("change", "what_changed")
)
AFTER_MEMORY_SAVING = Quantity(
    "after_memory_saving", _F, "it began after a memory-saving change (recompute, sharding, offload)", None
)
STEADY_FOR = Quantity("steady_for", Unit.SECOND, "how long all was well before", TRAIN_LOG, ("fine_for",))
LOSS_NORMAL = Quantity("loss_normal", _F, "the loss curve looks normal", TRAIN_LOG, ("loss_fine",))
BURSTY = Quantity("bursty", _F, "slow steps come in bursts rather than all being slow", TRAIN_LOG, ("spiky",))
PERIOD_STEPS = Quantity("period_steps", _N, "steps from one slow step to the next", TRAIN_LOG, ("period",))
RANK_LOCAL = Quantity(
    "rank_local", _F, "a few ranks are slow and the rest wait for them", RANK_TRACES, ("one_rank_slow",)
)
IN_GRADIENT_SYNC = Quantity("in_gradient_sync", _F, "the lost time is in the gradient exchange", TORCH_TRACE)
GPU_BUSY_UNCHANGED = Quantity(
    "gpu_busy_unchanged", _F, "steps grew longer but the GPU's busy time did not", TORCH_TRACE, ("host_side",)
)
STRAGGLERS = Quantity("stragglers", _F, "some ranks are slower than the rest", RANK_TRACES, ("straggler",))
NOT_SEEN = Quantity("not_seen", _T, "a cause whose signs were looked for and are not there", None, ("ruled_out",))
FABRIC_HEALTHY = Quantity("fabric_healthy", _F, "links and switches were checked and are fine", NCCL_TESTS)
CHECKPOINTING = Quantity("checkpointing", _F, "a checkpoint was being written", TRAIN_LOG, ("checkpoint_active",))
THROTTLED = Quantity("throttled", _F, "some GPU runs at reduced clocks with a throttle reason", NVIDIA_SMI)
SLOW_NODE = Quantity("slow_node", _T, "the node or rank that per-rank timing names", RANK_TRACES, ("slow_rank",))
SLOW_RANK_RATIO = Quantity(
    "slow_rank_ratio", _X, "compute time of the slowest rank over the median", RANK_TRACES, ("straggler_ratio",)
)
LINK_DOWN = Quantity(
    "link_down", _F, "a network rail or link is down or flapping", NCCL_TESTS, ("rail_down", "link_flap")
)

# The setup
GPU = Quantity("gpu", _T, "GPU model", STEP_SHAPE, ("hardware", "device", "accelerator"))
GPUS = Quantity("gpus", _N, "GPUs in the job", STEP_SHAPE, ("num_gpus", "n_gpus", "world_size"))
GPUS_PER_NODE = fabric.GPUS_PER_NODE
POD_GPUS = Quantity("pod_gpus", _N, "GPUs under one leaf, rack or pod of full bandwidth", TOPOLOGY, ("gpus_per_pod",))
MODEL = serving.MODEL
PARAMETERS = Quantity("parameters", _N, "parameters of the model", STEP_SHAPE, ("params", "model_size"))
LAYERS = Quantity("layers", _N, "transformer layers", STEP_SHAPE, ("n_layers", "num_layers"))
HIDDEN = Quantity("hidden", _N, "hidden size", STEP_SHAPE, ("d_model", "hidden_size", "dim"))
HEADS = Quantity("heads", _N, "attention heads", STEP_SHAPE, ("n_heads", "num_heads"))
KV_HEADS = Quantity("kv_heads", _N, "key/value heads", STEP_SHAPE, ("n_kv_heads", "num_kv_heads"))
HEAD_DIM = Quantity("head_dim", _N, "size of one head", STEP_SHAPE, ("d_head",))
VOCAB = Quantity("vocab", _N, "vocabulary size", STEP_SHAPE, ("vocab_size",))
SEQUENCE = Quantity("sequence", Unit.TOKEN, "sequence length", STEP_SHAPE, ("seq_len", "seq", "context"))
MICROBATCH = Quantity("microbatch", _N, "samples in one micro-batch", STEP_SHAPE, ("micro_batch", "mbs"))
GLOBAL_BATCH = Quantity("global_batch", _N, "samples in one step", STEP_SHAPE, ("gbs", "global_batch_size"))
TP = fabric.TP_SIZE
PP = Quantity("pp", _N, "pipeline-parallel degree", STEP_SHAPE, ("pipeline_parallel", "stages"))
DP = Quantity("dp", _N, "data-parallel degree", STEP_SHAPE, ("data_parallel",))
CP = Quantity("cp", _N, "context-parallel degree", STEP_SHAPE, ("context_parallel",))
SHARDING = Quantity(
    "sharding", _T, "how states are sharded: none, zero1, zero2, zero3, fsdp", STEP_SHAPE, ("zero", "fsdp")
)
SEQUENCE_PARALLEL = Quantity(
    "sequence_parallel", _F, "norms and residuals are split along the sequence", STEP_SHAPE, ("sp",)
)
FLASH_ATTENTION = Quantity("flash_attention", _F, "attention never writes its scores", STEP_SHAPE, ("fused_attention",))
RECOMPUTE = Quantity(
    "recompute", _T, "activation checkpointing: none, selective, full", STEP_SHAPE, ("activation_checkpointing",)
)
GPU_CAPACITY = memory.CAPACITY
PEAK_MEMORY = memory.PEAK
OOM_IN_ATTENTION = Quantity(
    "oom_in_attention", _F, "the failing allocation is in attention or its recomputation", MEMORY_SNAPSHOT
)
OOM_IN_OPTIMIZER = Quantity("oom_in_optimizer", _F, "the failing allocation is in the optimizer step", MEMORY_SNAPSHOT)
OOM_REQUEST = memory.REQUEST

# One kernel
GEMM_M = Quantity("m", _N, "rows of the matrix product", STEP_SHAPE)
GEMM_N = Quantity("n", _N, "columns of the matrix product", STEP_SHAPE)
GEMM_K = Quantity("k", _N, "inner dimension of the matrix product", STEP_SHAPE)
LIBRARY_FLOP_RATE = Quantity(
    "library_flop_rate", Unit.FLOP_PER_S, "rate of the library on the same shape", NCU, ("cublas",)
)
WGMMA = Quantity(
    "wgmma", _F, "the SASS holds tensor-core instructions of this architecture", NCU, ("mma", "hmma", "sass_wgmma")
)
ASYNC_COPY = Quantity("async_copy", _F, "tiles come by asynchronous copy (cp.async, TMA)", NCU, ("tma", "cp_async"))
CUSTOM_SPEEDUP = Quantity(
    "custom_speedup", _X, "speed of the custom kernel over the library path", NCU, ("speedup_measured",)
)
EXPECTED_SPEEDUP = Quantity("expected_speedup", _X, "the speed-up that was hoped for", None, ("speedup_expected",))
AUTOTUNE_CONFIGS = Quantity("autotune_configs", _N, "configurations the autotuner tried", STEP_SHAPE, ("configs",))
BLOCK_K = Quantity("block_k", _N, "largest BLOCK_K tried", STEP_SHAPE)
NUM_STAGES = Quantity("num_stages", _N, "largest num_stages tried", STEP_SHAPE)
NUM_WARPS = Quantity("num_warps", _N, "largest num_warps tried", STEP_SHAPE)
CHEAP_OP_SHARE = Quantity(
    "cheap_op_share", _S, "share of the unfused time in the cheap op that was fused away", TORCH_TRACE
)
WIDE_SEARCH_SPEEDUP = Quantity(
    "wide_search_speedup", _X, "best speed over the library after a wide autotune search", NCU
)

# Collectives and pipelines
ALLREDUCE_TIME = Quantity(
    "allreduce_time",
    Unit.SECOND,
    "one gradient all-reduce; as a table {gpus = time} for scaling",
    NCCL_TESTS,
    ("all_reduce_time", "allreduce"),
)
MESSAGE_SIZE = Quantity("message_size", Unit.BYTE, "bytes reduced on each rank", NCCL_TESTS, ("message_bytes",))
COLLECTIVE_ALGORITHM = Quantity(
    "collective_algorithm", _T, "ring, tree, nvls, hierarchical", NCCL_TESTS, ("algorithm",)
)
CROSS_POD_BANDWIDTH = Quantity(
    "cross_pod_bandwidth", Unit.BYTE_PER_S, "measured bandwidth a GPU between pods", NCCL_TESTS, ("interpod_bandwidth",)
)
IN_POD_BANDWIDTH = Quantity(
    "in_pod_bandwidth", Unit.BYTE_PER_S, "measured bandwidth a GPU inside a pod", NCCL_TESTS, ("intrapod_bandwidth",)
)
SAME_FABRIC = Quantity("same_fabric", _F, "the same fabric at every scale", TOPOLOGY)
SCHEDULE = Quantity(
    "schedule", _T, "pipeline schedule: gpipe, 1f1b, interleaved, zb-h1, zb-h2", STEP_SHAPE, ("pipeline_schedule",)
)
MICROBATCHES = Quantity("microbatches", _N, "micro-batches a step", STEP_SHAPE, ("num_microbatches",))
VIRTUAL_STAGES = Quantity(
    "virtual_stages", _N, "model chunks a pipeline rank", STEP_SHAPE, ("vpp", "num_virtual_stages")
)
BUBBLE = Quantity(
    "bubble", _S, "measured idle share of the pipeline's step", RANK_TRACES, ("bubble_share", "bubble_measured")
)
BUBBLE_EXPECTED = Quantity("bubble_expected", _S, "bubble the user expected", None)
STAGE_TIME = Quantity(
    "stage_time",
    Unit.SECOND,
    "compute time of one micro-batch by stage, as a table {stage = time}",
    RANK_TRACES,
    ("stage_times",),
)
P2P_SHARE = Quantity(
    "p2p_share", _S, "send and receive time over the compute of a micro-batch", RANK_TRACES, ("send_recv_share",)
)

# Serving
ENGINE = serving.ENGINE
QPS = serving.OFFERED_RATE
TTFT = serving.TTFT
TPOT = serving.TPOT
USER_RATE = serving.PER_REQUEST_RATE
CHUNKED_PREFILL = serving.CHUNKED_PREFILL
KV_USE = serving.KV_MAX
PREEMPTIONS = serving.PREEMPTED
RUNNING = serving.RUNNING
WAITING = serving.WAITING
MAX_SEQS = serving.MAX_SEQS
PROMPT_TOKENS = serving.PROMPT_TOKENS
OUTPUT_TOKENS = serving.OUTPUT_TOKENS
ITERATION_WITH_PREFILL = serving.ITERATION_PREFILL
ITERATION_DECODE_ONLY = serving.ITERATION_DECODE

# Numerics
ACCURACY = Quantity("accuracy", _S, "accuracy on the task", LAYER_STATS, ("score",))
ACCURACY_SHORT_DROP = Quantity(
    "accuracy_short_drop", _S, "accuracy lost on short inputs", LAYER_STATS, ("short_context_drop",)
)
FORMAT = Quantity("format", _T, "number format: fp8-e4m3, fp8-e5m2, int8", LAYER_STATS, ("quantization",))
SCALING = Quantity("scaling", _T, "granularity of scales: per-tensor, per-row, per-block", LAYER_STATS)
TASK_CONTEXT = Quantity("task_context", Unit.TOKEN, "context length of the failing task", LAYER_STATS)
CALIBRATION_CONTEXT = Quantity("calibration_context", Unit.TOKEN, "context length of the calibration data", LAYER_STATS)
CALIBRATED_MAX = Quantity(
    "calibrated_max", _X, "largest activation the scales were set for", LAYER_STATS, ("calibrated_amax",)
)
OBSERVED_MAX = Quantity(
    "observed_max", _X, "largest activation seen on the failing task", LAYER_STATS, ("observed_amax",)
)
SATURATED_SHARE = Quantity(
    "saturated_share", _S, "values clipped at the format's limit in the worst layer", LAYER_STATS, ("clipped_share",)
)
WORST_LAYER = Quantity("worst_layer", _T, "the layer with the largest error", LAYER_STATS)
