"""What a training or benchmark log says of a run over its steps, and what the host says of itself meanwhile.

The same quantity may come as a Series (one value a step) and as a Fact (its median, or what the user stated). A fact
scoped `run="before"` speaks of the time, version or load when all was well.
"""

from __future__ import annotations

from stallwise.evidence.capture import COMPILE_LOG, GC_LOG, LOSS_LOG, NSYS, NVIDIA_SMI, PY_SPY, TRAIN_LOG
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

STEP_TIME = Quantity(
    "run.step_time",
    Unit.SECOND,
    "wall time of one training step as the log or the user gives it",
    TRAIN_LOG,
    ("step_time", "iteration_time", "iter_time", "time_per_step", "batch_time", "step"),
)
DATA_TIME = Quantity(
    "run.data_time",
    Unit.SECOND,
    "time of a step spent waiting for its batch, as the log prints it",
    TRAIN_LOG,
    ("data_time", "loader_wait", "dataloader_time", "input_wait"),
)
DATA_SHARE = Quantity(
    "run.data_share", Unit.SHARE, "share of wall time spent fetching batches", TRAIN_LOG, ("data_share", "loader_share")
)
SAMPLES_PER_S = Quantity(
    "run.samples_per_s", Unit.PER_S, "samples a second", TRAIN_LOG, ("throughput", "samples_per_s", "samples/s")
)
TOKENS_PER_S = Quantity(
    "run.tokens_per_s", Unit.TOKEN_PER_S, "training tokens a second", TRAIN_LOG, ("tps", "tokens_per_s", "tokens/s")
)
MFU = Quantity("run.mfu", Unit.SHARE, "useful model FLOP/s over the GPU's dense peak", TRAIN_LOG, ("mfu",))
HFU = Quantity("run.hfu", Unit.SHARE, "executed FLOP/s (recompute included) over the dense peak", TRAIN_LOG, ("hfu",))
FLOP_RATE = Quantity(
    "run.flop_rate", Unit.FLOP_PER_S, "model FLOP/s of one GPU", TRAIN_LOG, ("tflops", "flops", "achieved", "flop_rate")
)
LOSS = Quantity("run.loss", Unit.RATIO, "training loss", LOSS_LOG, ("loss", "train_loss"))
REWARD = Quantity("run.reward", Unit.RATIO, "mean reward of an episode", LOSS_LOG)
EVAL_LOSS = Quantity("run.eval_loss", Unit.RATIO, "validation loss", LOSS_LOG, ("eval_loss", "val_loss"))
GRAD_NORM = Quantity("run.grad_norm", Unit.RATIO, "norm of the whole gradient", LOSS_LOG, ("grad_norm", "gnorm"))
UPDATE_NORM = Quantity("run.update_norm", Unit.RATIO, "norm of the optimizer's update", LOSS_LOG, ("update_norm",))
LOSS_SCALE = Quantity("run.loss_scale", Unit.RATIO, "scale of the fp16 loss", LOSS_LOG, ("loss_scale", "scale"))
LEARNING_RATE = Quantity("run.learning_rate", Unit.RATIO, "learning rate", LOSS_LOG, ("lr", "learning_rate"))
SKIPPED_STEPS = Quantity("run.skipped_steps", Unit.COUNT, "steps skipped for inf or NaN gradients", LOSS_LOG)
NAN_STEPS = Quantity("run.nan_steps", Unit.COUNT, "logged steps whose loss is NaN or inf", LOSS_LOG, ("nan_steps",))
NAN_GRADIENTS = Quantity(
    "run.nan_gradients", Unit.COUNT, "logged steps up to the end whose gradient norm is no number", LOSS_LOG
)
FIRST_NAN_STEP = Quantity(
    "run.first_nan_step", Unit.COUNT, "the first step whose loss or gradient is no number", LOSS_LOG
)
ACTIVATION_MAX = Quantity(
    "run.activation_max",
    Unit.RATIO,
    "largest absolute activation seen",
    TRAIN_LOG,
    ("absmax", "amax", "activation_max"),
)
PRECISION = Quantity(
    "run.precision", Unit.TEXT, "arithmetic of the run: fp16, bf16, fp8, tf32, fp32", TRAIN_LOG, ("precision", "dtype")
)
GPU_MEMORY = Quantity(
    "run.gpu_memory",
    Unit.BYTE,
    "memory in use on one GPU as the log prints it",
    TRAIN_LOG,
    ("gpu_memory", "memory", "mem", "memory_used"),
)
HOST_MEMORY = Quantity(
    "run.host_memory", Unit.BYTE, "memory of the process or the host", TRAIN_LOG, ("host_memory", "rss", "ram")
)
GRAPH_NODES = Quantity("run.graph_nodes", Unit.COUNT, "nodes or objects kept alive, as logged", TRAIN_LOG)
ALLOC_RETRIES = Quantity(
    "run.alloc_retries", Unit.COUNT, "allocations retried after the cache was flushed", TRAIN_LOG, ("alloc_retries",)
)
STACKS_IN_LOADER = Quantity(
    "run.stacks_in_loader", Unit.SHARE, "of the stacks of main threads, those that stand in the data loader", PY_SPY
)
ALLOCS_PER_LAUNCH = Quantity(
    "run.allocs_per_launch",
    Unit.RATIO,
    "device memory taken from the driver and given back, times a kernel launch",
    NSYS,
)
ALLOC_CALL_SHARE = Quantity(
    "run.alloc_call_share", Unit.SHARE, "of the time in CUDA calls: in those that allocate or free device memory", NSYS
)
LOADER_WORKERS = Quantity(
    "run.loader_workers", Unit.COUNT, "loader worker processes a rank", TRAIN_LOG, ("workers", "num_workers")
)
CPU_CORES = Quantity("run.cpu_cores", Unit.COUNT, "CPU cores the job may use", None, ("cpu_cores", "cpus", "cores"))
HOST_BUSY_CORES = Quantity(
    "run.host_busy_cores", Unit.COUNT, "cores that the job's busiest process keeps busy", PY_SPY, ("cpu_busy_cores",)
)
HOST_IDLE_SHARE = Quantity("run.host_idle_share", Unit.SHARE, "idle share of all CPU cores", PY_SPY, ("cpu_idle",))
ON_THE_FLY = Quantity("run.on_the_fly", Unit.FLAG, "samples are tokenised or decoded while training", TRAIN_LOG)
NETWORK_STORAGE = Quantity(
    "run.network_storage", Unit.FLAG, "the data lies on a network or fuse mount", None, ("network_storage", "nfs")
)
GPU_BUSY = Quantity(
    "run.gpu_busy",
    Unit.SHARE,
    "GPU utilisation as nvidia-smi shows it",
    NVIDIA_SMI,
    ("gpu_util", "utilization", "util"),
)
GC_PAUSE = Quantity("run.gc_pause", Unit.SECOND, "one full garbage collection", GC_LOG, ("gc_pause",))
GC_COLLECTIONS = Quantity("run.gc_collections", Unit.COUNT, "full garbage collections logged", GC_LOG)
SAVE_TIME = Quantity("run.save_time", Unit.SECOND, "one checkpoint save", TRAIN_LOG, ("save_time", "checkpoint_time"))
SAVE_EVERY = Quantity("run.save_every", Unit.COUNT, "steps between checkpoints", TRAIN_LOG, ("save_every",))
SAVES = Quantity("run.saves", Unit.COUNT, "checkpoint saves begun in the log", TRAIN_LOG)
RECOMPILES = Quantity("run.recompiles", Unit.COUNT, "torch.compile recompilations logged", COMPILE_LOG, ("recompiles",))
RECOMPILE_LIMIT_HIT = Quantity(
    "run.recompile_limit_hit", Unit.COUNT, "functions that hit the recompile limit and run eagerly since", COMPILE_LOG
)
RECOMPILE_REASON = Quantity("run.recompile_reason", Unit.TEXT, "the guard that failed most often", COMPILE_LOG)
GRAPH_BREAKS = Quantity("run.graph_breaks", Unit.COUNT, "graph breaks logged", COMPILE_LOG, ("graph_breaks",))
GRAPHS = Quantity("run.graphs", Unit.COUNT, "graphs that one model was cut into", COMPILE_LOG)
GRAPH_BREAK_REASON = Quantity("run.graph_break_reason", Unit.TEXT, "the commonest reason of a break", COMPILE_LOG)
COMPILED_TIME = Quantity("run.compiled_time", Unit.SECOND, "step or iteration time when compiled", COMPILE_LOG)
EAGER_TIME = Quantity("run.eager_time", Unit.SECOND, "step or iteration time in eager mode", COMPILE_LOG)
SYNC_TIME = Quantity(
    "run.sync_time", Unit.SECOND, "time a step blocked in device synchronisation, as a table or log gives it", TRAIN_LOG
)
SYNC_SHARE = Quantity("run.sync_share", Unit.SHARE, "share of host time blocked in synchronisation", TRAIN_LOG)
SYNC_CALLER = Quantity("run.sync_caller", Unit.TEXT, "who calls the synchronisation", TRAIN_LOG)
SYNC_REMOVED_GAIN = Quantity(
    "run.sync_removed_gain", Unit.SHARE, "measured gain of a run without the synchronisation", TRAIN_LOG
)
HOST_UNEXPLAINED_SHARE = Quantity(
    "run.host_unexplained_share", Unit.SHARE, "wall time that no timed action accounts for", PY_SPY
)
HOST_HOT_SHARE = Quantity(
    "run.host_hot_share", Unit.SHARE, "part of the host's own time that its heaviest function takes", PY_SPY
)
DEVICE_SHARE = Quantity("run.device_share", Unit.SHARE, "wall time in which the device computed", TRAIN_LOG)
LAUNCH_COST = Quantity("run.launch_cost", Unit.SECOND, "host time of one kernel launch, as measured by a probe")
REPLAY_COST = Quantity("run.replay_cost", Unit.SECOND, "time of one kernel inside a replayed graph")
BENCH_SPEEDUP = Quantity("run.speedup", Unit.RATIO, "speed of a variant over its reference", None, ("speedup",))
GC_AUTOMATIC = Quantity(
    "run.gc_automatic", Unit.FLAG, "automatic garbage collection is on and nothing is frozen", GC_LOG
)
DIED_IN_SAVE = Quantity(
    "run.died_in_save", Unit.FLAG, "the log ends in an error right after a checkpoint began", TRAIN_LOG
)
EVALS = Quantity("run.evals", Unit.COUNT, "evaluations begun in the log", TRAIN_LOG)
EPOCH_TIME = Quantity("run.epoch_time", Unit.SECOND, "wall time of one epoch", TRAIN_LOG, ("epoch_time",))
LOG_INTERVAL = Quantity("run.log_interval", Unit.SECOND, "wall time between two logged points", TRAIN_LOG)
LOGGED_TIME = Quantity("run.logged_time", Unit.SECOND, "wall time from the first logged point to the last", TRAIN_LOG)
FASTEST_FORWARD = Quantity("run.fastest_forward", Unit.SECOND, "forward of a step on the fastest rank", TRAIN_LOG)
START_SHARE = Quantity(
    "run.start_share",
    Unit.SHARE,
    "of a profiled program's time spent on imports and on moving its model to the device",
    PY_SPY,
)
START_TIME = Quantity("run.start_time", Unit.SECOND, "the same in seconds", PY_SPY)
