"""What an inference engine says of itself: its load over time, its limits, its start, and what its users see.

Readers of logs and metrics fill a table of kind `engine_samples` (SAMPLE_COLUMNS, NaN where a log is silent) and the
facts below; measures turn the table into the facts of the second half. A fact scoped `run=...` speaks of one log file.
"""

from __future__ import annotations

from stallwise.evidence.capture import PY_SPY, SERVE_BENCH, SERVE_LOG, SERVE_METRICS
from stallwise.evidence.catalog import fabric
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

ENGINE_SAMPLES = "engine_samples"
SAMPLE_COLUMNS = (
    "time_s", "running", "waiting", "kv_share", "prompt_token_per_s", "generation_token_per_s", "hit_share",
    "iteration_s", "device_s", "paused", "line",
)  # fmt: skip
LATENCIES = "latency_histogram"  # table: upper edge (s), count; meta: name

_N, _S, _T, _F = Unit.COUNT, Unit.SHARE, Unit.TEXT, Unit.FLAG
# The engine and its limits
ENGINE = Quantity(
    "serve.engine",
    _T,
    "vllm, sglang, trtllm or another",
    SERVE_LOG,
    (
        "engine",
        "server",
    ),
)
VERSION = Quantity("serve.version", _T, "version of the engine", SERVE_LOG)
MODEL = Quantity("serve.model", _T, "the model as the engine was told", SERVE_LOG, ("model",))
WEIGHTS = Quantity("serve.weights", _T, "number format or quantisation of the weights", SERVE_LOG)
TP = fabric.TP_SIZE
MAX_SEQS = Quantity(
    "serve.max_seqs",
    _N,
    "cap on running requests that was set",
    SERVE_LOG,
    (
        "max_seqs",
        "max_num_seqs",
    ),
)
MAX_BATCHED_TOKENS = Quantity("serve.max_batched_tokens", Unit.TOKEN, "tokens one iteration may hold", SERVE_LOG)
MAX_LENGTH = Quantity("serve.max_length", Unit.TOKEN, "longest request the engine accepts", SERVE_LOG)
BLOCK_TOKENS = Quantity(
    "serve.block_tokens", Unit.TOKEN, "tokens of one KV block, as prefix matching sees it", SERVE_LOG
)
PREFIX_CACHING = Quantity("serve.prefix_caching", _F, "prefix caching is on", SERVE_LOG)
CHUNKED_PREFILL = Quantity("serve.chunked_prefill", _F, "prefill is cut into chunks", SERVE_LOG, ("chunked_prefill",))
EAGER = Quantity("serve.eager", _F, "CUDA graphs are off", SERVE_LOG)
KV_TOKENS = Quantity("serve.kv_tokens", Unit.TOKEN, "tokens the KV cache holds", SERVE_LOG)
KV_MEMORY = Quantity("serve.kv_memory", Unit.BYTE, "memory given to the KV cache", SERVE_LOG)
WEIGHT_MEMORY = Quantity("serve.weight_memory", Unit.BYTE, "memory the weights take on one GPU", SERVE_LOG)
MAX_CONCURRENCY = Quantity(
    "serve.max_concurrency", Unit.RATIO, "requests of the longest length that fit at once", SERVE_LOG
)
EVICTION = Quantity("serve.eviction", _T, "what the scheduler does when KV is short", SERVE_LOG)
ACCEPTANCE = Quantity("serve.acceptance", _S, "draft tokens that speculation got right", SERVE_LOG)

# The start
READY_TIME = Quantity("serve.ready_time", Unit.SECOND, "from the first line to ready", SERVE_LOG)
START_PHASE = Quantity("serve.start_phase", Unit.SECOND, "one phase of the start; its name is the layer", SERVE_LOG)
STUCK_SAMPLES = Quantity(
    "serve.stuck_samples", _N, "last samples in which requests run and no token comes or goes", SERVE_LOG
)
LAST_LINE = Quantity(
    "serve.last_line", _T, "what an engine's log ends in; its samples are the lines like it", SERVE_LOG
)
LATE_COMPILE = Quantity("serve.late_compile", _T, "a kernel that was compiled while requests waited", SERVE_LOG)

# Events
PREEMPTED = Quantity(
    "serve.preempted", _N, "requests preempted, retracted or rescheduled, in all", SERVE_METRICS, ("preemptions",)
)
RESCHEDULED = Quantity("serve.rescheduled", _N, "requests whose KV was lost and computed again", SERVE_LOG)
ABORTED = Quantity("serve.aborted", _N, "requests given up, mostly by their client", SERVE_LOG)
REQUESTS_DONE = Quantity("serve.requests_done", _N, "requests finished", SERVE_METRICS)
FAILED = Quantity("serve.failed", _N, "requests that failed or were refused", SERVE_METRICS)
RESTARTED = Quantity("serve.restarted", _N, "counters that started again from nothing", SERVE_METRICS)
IMPOSSIBLE = Quantity("serve.impossible", _T, "a reading that cannot be", SERVE_METRICS)

# What is asked and what users see
OFFERED_RATE = Quantity(
    "serve.offered_rate",
    Unit.PER_S,
    "requests a second offered",
    SERVE_BENCH,
    (
        "qps",
        "request_rate",
        "rps",
    ),
)
ACHIEVED_RATE = Quantity("serve.achieved_rate", Unit.PER_S, "requests a second finished", SERVE_BENCH)
PLATEAU_RATE = Quantity("serve.plateau_rate", Unit.PER_S, "the rate that more load no longer raises", SERVE_BENCH)
PLATEAU_GPU_BUSY = Quantity("serve.plateau_gpu_busy", _S, "GPU utilisation at that plateau", SERVE_BENCH)
CONCURRENCY = Quantity("serve.concurrency", _N, "requests the client keeps in flight", SERVE_BENCH)
PROMPT_TOKENS = Quantity(
    "serve.prompt_tokens",
    Unit.TOKEN,
    "tokens of a prompt, mean",
    SERVE_BENCH,
    (
        "prompt_tokens",
        "input_len",
        "prompt_len",
    ),
)
OUTPUT_TOKENS = Quantity(
    "serve.output_tokens",
    Unit.TOKEN,
    "tokens of an answer, mean",
    SERVE_BENCH,
    (
        "output_tokens",
        "output_len",
    ),
)
SHARED_PREFIX = Quantity("serve.shared_prefix", Unit.TOKEN, "tokens that prompts have in common", SERVE_BENCH)
TTFT = Quantity(
    "serve.ttft",
    Unit.SECOND,
    "time to the first token, median or mean",
    SERVE_BENCH,
    (
        "ttft",
        "p50_ttft",
        "time_to_first_token",
    ),
)
TTFT_TAIL = Quantity("serve.ttft_tail", Unit.SECOND, "time to the first token, 99th percentile", SERVE_BENCH)
TPOT = Quantity(
    "serve.tpot",
    Unit.SECOND,
    "time between tokens, median or mean",
    SERVE_BENCH,
    (
        "tpot",
        "itl",
    ),
)
TPOT_TAIL = Quantity("serve.tpot_tail", Unit.SECOND, "time between tokens, 99th percentile", SERVE_BENCH)
OUTPUT_RATE = Quantity("serve.output_rate", Unit.TOKEN_PER_S, "tokens a second of the whole service", SERVE_BENCH)
REQUEST_TIME = Quantity("serve.request_time", Unit.SECOND, "a request from arrival to its end, mean", SERVE_METRICS)
QUEUE_TIME = Quantity("serve.queue_time", Unit.SECOND, "a request's wait for its first iteration, mean", SERVE_METRICS)
PREFILL_TIME = Quantity("serve.prefill_time", Unit.SECOND, "a request's prefill, mean", SERVE_METRICS)
DECODE_TIME = Quantity("serve.decode_time", Unit.SECOND, "a request's decode, mean", SERVE_METRICS)
PREEMPTED_TIME = Quantity(
    "serve.preempted_time", Unit.SECOND, "a request's time thrown out and waiting again, mean", SERVE_METRICS
)
PREFIX_QUERIES = Quantity("serve.prefix_queries", Unit.TOKEN, "tokens looked up in the prefix cache", SERVE_METRICS)
PREFIX_HITS = Quantity("serve.prefix_hits", Unit.TOKEN, "tokens found there", SERVE_METRICS)
CPU_LIMIT = Quantity("serve.cpu_limit", _N, "cores the container may use", PY_SPY)
CPU_USED = Quantity("serve.cpu_used", _N, "cores the container uses", PY_SPY)

# Measured from the samples
SAMPLES = Quantity("serve.samples", _N, "samples of the engine's state", SERVE_LOG)
PHASE = Quantity("serve.phase", _T, "the phase of load that is judged, with its clock time", SERVE_LOG)
PHASE_SHARE = Quantity("serve.phase_share", _S, "share of the samples that this phase takes", SERVE_LOG)
RUNNING = Quantity(
    "serve.running",
    _N,
    "running requests while any ran, median",
    SERVE_LOG,
    (
        "running",
        "batch",
        "running_requests",
    ),
)
RUNNING_MAX = Quantity("serve.running_max", _N, "most running requests", SERVE_LOG)
WAITING = Quantity(
    "serve.waiting",
    _N,
    "waiting requests at the end, median of the last quarter",
    SERVE_LOG,
    (
        "waiting",
        "waiting_requests",
        "queue_length",
    ),
)
WAITING_SHARE = Quantity("serve.waiting_share", _S, "samples with a queue", SERVE_LOG)
WAITING_GROWTH = Quantity("serve.waiting_growth", Unit.PER_S, "requests a second by which the queue grows", SERVE_LOG)
KV_MAX = Quantity(
    "serve.kv_max",
    _S,
    "KV cache in use at its fullest",
    SERVE_LOG,
    (
        "kv_use",
        "kv_usage",
        "kv_cache_usage",
    ),
)
KV_MEDIAN = Quantity("serve.kv_median", _S, "KV cache in use, median", SERVE_LOG)
KV_QUEUED = Quantity("serve.kv_queued", _S, "KV cache in use while requests wait, median", SERVE_LOG)
KV_FULL_SHARE = Quantity("serve.kv_full_share", _S, "samples in which the KV cache is full", SERVE_LOG)
QUEUE_DRAINED = Quantity(
    "serve.queue_drained", Unit.FLAG, "after the longest wait in the queue requests came that hardly waited", SERVE_LOG
)
RUNNING_LOST = Quantity("serve.running_lost", _N, "running requests lost to the queue while KV was full", SERVE_LOG)
PAUSED = Quantity("serve.paused", _N, "requests paused for lack of KV, mean", SERVE_LOG)
PER_REQUEST_RATE = Quantity(
    "serve.per_request_rate",
    Unit.TOKEN_PER_S,
    "tokens a second of one running request",
    SERVE_LOG,
    (
        "user_rate",
        "tokens_per_s_per_user",
        "tok_s_user",
    ),
)
FULL_RATE_RATIO = Quantity("serve.full_rate_ratio", Unit.RATIO, "generation rate with KV full over before", SERVE_LOG)
PREPROCESS_TIME = Quantity(
    "serve.preprocess_time", Unit.SECOND, "the host's work on a request or batch before the model has it", SERVE_LOG
)
MODEL_TIME = Quantity("serve.model_time", Unit.SECOND, "the model's own time for a request or batch", SERVE_LOG)
PINNED_AT = Quantity("serve.pinned_at", _N, "running count that never moved while requests waited", SERVE_LOG)
PREFILL_STALLS = Quantity("serve.prefill_stalls", _N, "samples in which prefill starved running decodes", SERVE_LOG)
PREFILL_STALL_RATIO = Quantity(
    "serve.prefill_stall_ratio", Unit.RATIO, "generation in them over generation without prefill", SERVE_LOG
)
PREFILL_STALL_SHARE = Quantity("serve.prefill_stall_share", _S, "share of the time that they take", SERVE_LOG)
SLOW_TOKEN_SHARE = Quantity(
    "serve.slow_token_share", _S, "tokens that took over five times the median one", SERVE_METRICS
)
SLOW_TOKEN_TIME = Quantity("serve.slow_token_time", Unit.SECOND, "how long such a token took, mean", SERVE_METRICS)
HIT_SHARE = Quantity("serve.hit_share", _S, "prompt tokens found in the prefix cache", SERVE_METRICS)
PREFILL_RATE = Quantity(
    "serve.prefill_rate", Unit.TOKEN_PER_S, "prompt tokens a second, median while prefilling", SERVE_LOG
)
LONE_PREFILL_SHARE = Quantity(
    "serve.lone_prefill_share", _S, "samples where at most two requests run, none generates and others wait", SERVE_LOG
)
GENERATION_RATE = Quantity("serve.generation_rate", Unit.TOKEN_PER_S, "generation, median of steady samples", SERVE_LOG)
IDLE_ARTIFACTS = Quantity("serve.idle_artifacts", _N, "rates averaged over idle time, which mean nothing", SERVE_LOG)

# Expected, from costs
DECODE_EXPECTED = Quantity(
    "serve.decode_expected", Unit.SECOND, "what one decode iteration should take here", SERVE_LOG
)
DECODE_FLOOR = Quantity(
    "serve.decode_floor", Unit.SECOND, "reading the weights once, at the bandwidth of the data sheet", SERVE_LOG
)
DECODE_SEEN = Quantity(
    "serve.decode_seen", Unit.SECOND, "what one decode iteration takes, from the rate of one request", SERVE_LOG
)
BYTES_SHARE = Quantity(
    "serve.bytes_share", _S, "of the decode iteration, reading weights and KV at the memory roof", SERVE_LOG
)
COMPUTE_BATCH = Quantity("serve.compute_batch", _N, "batch at which decode turns compute-bound", SERVE_LOG)
KV_PER_TOKEN = Quantity("serve.kv_per_token", Unit.BYTE, "KV bytes one token takes on one GPU", SERVE_LOG)
PREFILL_LOAD = Quantity(
    "serve.prefill_load", _S, "share of the engine's time that the prompts' prefill needs, computed", SERVE_LOG
)
TOKEN_PART = Quantity(
    "serve.token_part", Unit.SECOND, "one part of a decode iteration, computed; its name is the layer", SERVE_LOG
)
ITERATION_DECODE = Quantity(
    "serve.iteration_decode",
    Unit.SECOND,
    "an iteration of decodes alone, median",
    SERVE_LOG,
    ("iteration_decode_only",),
)
ITERATION_PREFILL = Quantity(
    "serve.iteration_prefill",
    Unit.SECOND,
    "an iteration that carries prompts, median",
    SERVE_LOG,
    ("iteration_with_prefill",),
)
ITERATION_PREFILL_SHARE = Quantity(
    "serve.iteration_prefill_share", _S, "share of the iterations' time in those that carry prompts", SERVE_LOG
)
DEVICE_SHARE = Quantity("serve.device_share", _S, "of an iteration's time that the GPU worked, median", SERVE_LOG)

# Measured over the results of a sweep
TTFT_GROWTH = Quantity(
    "serve.ttft_growth", Unit.RATIO, "first-token time at the highest load over the lowest", SERVE_BENCH
)
TPOT_GROWTH = Quantity(
    "serve.tpot_growth", Unit.RATIO, "time per token at the highest load over the lowest", SERVE_BENCH
)
LOAD_GROWTH = Quantity("serve.load_growth", Unit.RATIO, "the highest load of a sweep over the lowest", SERVE_BENCH)
RATE_GROWTH = Quantity(
    "serve.rate_growth", Unit.RATIO, "requests a second at the highest load over the lowest", SERVE_BENCH
)

KV_FORMAT = Quantity("serve.kv_format", _T, "number format of the KV cache", SERVE_LOG, ("kv_cache_dtype", "kv_dtype"))

# Simulated at the operating point that was seen
TARGET_TTFT = Quantity("serve.target_ttft", Unit.SECOND, "first-token time that is asked for", SERVE_BENCH)
TARGET_TPOT = Quantity("serve.target_tpot", Unit.SECOND, "time per token that is asked for", SERVE_BENCH)
TRIAL_TTFT = Quantity(
    "serve.trial_ttft", Unit.SECOND, "first-token time in a simulation; its name is the layer", SERVE_BENCH
)
TRIAL_TPOT = Quantity("serve.trial_tpot", Unit.SECOND, "time per token in the same simulation", SERVE_BENCH)
TRIAL_RATE = Quantity("serve.trial_rate", Unit.TOKEN_PER_S, "tokens a second of the whole service there", SERVE_BENCH)
STORY_PART = Quantity(
    "serve.story_part", Unit.SECOND, "one part of the observed token time; its name is the layer", SERVE_BENCH
)
WAIT_PART = Quantity("serve.wait_part", Unit.SECOND, "one part of the observed first-token time", SERVE_BENCH)
ASSUMED = Quantity("serve.assumed", _T, "what the simulation assumes because nobody said it", SERVE_BENCH)
GPUS_NOW = Quantity("serve.gpus_now", _N, "GPUs of the service", SERVE_BENCH)
GPUS_NEEDED = Quantity(
    "serve.gpus_needed", _N, "GPUs that hold the target after every change that needs none", SERVE_BENCH
)

# What a page or a table of requests says beside the means
TTFT_MEDIAN = Quantity(
    "serve.ttft_median", Unit.SECOND, "time to the first token, median of a histogram", SERVE_METRICS
)
TPOT_MEDIAN = Quantity("serve.tpot_median", Unit.SECOND, "time between tokens, median of a histogram", SERVE_METRICS)
REQUEST_MEDIAN = Quantity("serve.request_median", Unit.SECOND, "a request's time, median of a histogram", SERVE_METRICS)
REQUEST_TAIL = Quantity("serve.request_tail", Unit.SECOND, "a request's time, 99th percentile", SERVE_METRICS)
QUEUE_TAIL = Quantity("serve.queue_tail", Unit.SECOND, "a request's wait, 99th percentile", SERVE_METRICS)
BATCH_MEAN = Quantity("serve.batch_mean", _N, "requests that one execution takes together, mean", SERVE_METRICS)
GPU_BUSY = Quantity("serve.gpu_busy", _S, "GPU utilisation as the server's page gives it", SERVE_METRICS)
GENERATION_MAX = Quantity("serve.generation_max", Unit.TOKEN_PER_S, "generation, highest sample", SERVE_LOG)
TTFT_MEAN = Quantity("serve.ttft_mean", Unit.SECOND, "time to the first token, mean of a load test", SERVE_BENCH)
TPOT_MEAN = Quantity("serve.tpot_mean", Unit.SECOND, "time between tokens, mean of a load test", SERVE_BENCH)
