"""Artifacts that would answer an open question, with the exact command that captures each."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """Something to collect next."""

    artifact: str
    command: str
    cost: str = ""  # what collecting it costs the user: time, a restart, overhead
    minutes: float = 10.0  # of the user's time until it is there; a restart costs about a quarter of an hour


# A table: rows of one shape, one an artifact.
TORCH_TRACE = Capture(
    "a PyTorch profiler trace of 3 to 5 steady steps",
    "stallwise record -- python train.py",
    "one short run; traced steps are up to 2x slower",
    minutes=10,
)
RANK_TRACES = Capture(
    "profiler traces of every rank for the same steps",
    "torchrun --nproc-per-node 8 --no-python stallwise record -- python train.py",
    "one short run; about 5 MB a rank",
    minutes=15,
)
CLEAN_STEP = Capture(
    "the step time without a profiler attached",
    "stallwise record --light -- python train.py",
    "one short run",
    minutes=10,
)
NVIDIA_SMI = Capture(
    "clocks, throttle reasons, power and temperature under load",
    "nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,power.draw,power.limit,clocks.sm,clocks.max.sm,"
    "temperature.gpu,clocks_event_reasons.active,pcie.link.gen.current,pcie.link.gen.max,memory.used "
    "--format=csv -lms 200 > nvidia_smi.csv",
    "free; while the job runs",
    minutes=2,
)
NVIDIA_SMI_Q = Capture("the full state of each GPU", "nvidia-smi -q > nvidia_smi_q.txt", "free", minutes=1)
DMESG = Capture(
    "kernel messages with Xid codes", "sudo dmesg -T | grep -iE 'xid|nvrm|nvswitch' > dmesg.txt", "free", minutes=1
)
LSPCI = Capture(
    "the slot's link and the PCIe errors of the boot in which it failed",
    "sudo lspci -vvv > lspci.txt; journalctl -k -b -1 | grep -iE 'aer|pcieport|nvrm' > aer.txt",
    "free",
    minutes=2,
)
ROCM_SMI = Capture(
    "load, clocks, power and temperature of the AMD GPUs under load",
    "rocm-smi --showuse --showclocks --showpower --showmaxpower --showtemp --showmeminfo vram --json > rocm_smi.json",
    "free; while the job runs",
    minutes=2,
)
AMD_RAS = Capture(
    "error counters and retired pages of the AMD GPUs",
    "amd-smi metric --ecc; rocm-smi --showretiredpages",
    "free",
    minutes=1,
)
TOPOLOGY = Capture("which links join the GPUs and NICs", "nvidia-smi topo -m > topo.txt", "free", minutes=1)
NCCL_LOG = Capture(
    "NCCL's own account of transports and rings",
    "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH,NET,ENV NCCL_DEBUG_FILE=nccl.%h.%p.log python train.py",
    "a restart",
    minutes=15,
)
NCCL_TESTS = Capture(
    "bus bandwidth by size and by number of ranks",
    "all_reduce_perf -b 8 -e 4G -f 2 -g 8 -J out.json",
    "minutes, idle nodes",
    minutes=20,
)
FLIGHT_RECORDER = Capture(
    "flight-recorder dumps of all ranks",
    "TORCH_FR_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1 TORCH_NCCL_DEBUG_INFO_TEMP_FILE=fr/rank_ python train.py",
    "a restart; nothing while running",
    minutes=20,
)
STACKS = Capture("the stack of every rank's Python, now", "py-spy dump --pid PID", "seconds, no restart", minutes=1)
PY_SPY = Capture(
    "where the host spends its time", "py-spy record -d 20 -o host.svg --pid PID", "20 s, no restart", minutes=2
)
GC_LOG = Capture(
    "when garbage collection runs",
    "python -X importtime -c 'import gc; gc.set_debug(gc.DEBUG_STATS)'",
    "a restart",
    minutes=15,
)
MEMORY_SNAPSHOT = Capture(
    "a CUDA memory snapshot",
    "torch.cuda.memory._record_memory_history(stacks='python'); ...; torch.cuda.memory._dump_snapshot('snap.pickle')",
    "two lines and one run",
    minutes=10,
)
MEMORY_SUMMARY = Capture("the allocator's summary", "print(torch.cuda.memory_summary())", "one line", minutes=5)
NCU = Capture(
    "hardware counters of the kernel",
    "ncu --set full --csv --page details -k regex:KERNEL --launch-count 3 python script.py > details.csv",
    "minutes; needs counter permission",
    minutes=15,
)
NSYS = Capture(
    "a system timeline",
    "nsys profile -t cuda,nvtx,osrt -o run python train.py && nsys export --type sqlite run.nsys-rep",
    "a short run",
    minutes=15,
)
TRAIN_LOG = Capture("the training log with step times", "python train.py 2>&1 | tee train.log", "free", minutes=1)
SERVE_METRICS = Capture(
    "the engine's metrics twice, under load", "stallwise diagnose http://HOST:PORT/metrics --for 30s", "30 s", minutes=2
)
SERVE_LOG = Capture("the engine's log under load", "vllm serve MODEL 2>&1 | tee engine.log", "free", minutes=1)
SERVE_BENCH = Capture(
    "latency by request rate",
    "vllm bench serve --model MODEL --request-rate 8 --save-result",
    "minutes of load",
    minutes=15,
)
COMPILE_LOG = Capture(
    "recompiles and graph breaks",
    "TORCH_LOGS=recompiles,graph_breaks python train.py 2> compile.log",
    "a restart",
    minutes=15,
)
LAYER_STATS = Capture("per-layer amax and saturation", "stallwise numerics MODEL.py", "one forward pass", minutes=10)
DATA_PROBE = Capture("the loader's own rate", "stallwise measure loader train.py", "a minute; no GPU", minutes=2)
STEP_SHAPE = Capture("model, layout and batch", "stallwise facts --template > case.toml", "typing", minutes=3)
OOM_MESSAGE = Capture(
    "the whole out-of-memory message with its traceback", "python train.py 2>&1 | tee train.log", "free", minutes=1
)
RANK_LOGS = Capture(
    "the last lines of every rank's log",
    "torchrun --log-dir logs --redirects 3 --nproc-per-node 8 train.py; tail -n 50 logs/*/*/*/std*.log",
    "free where ranks are logged",
    minutes=2,
)
LOSS_LOG = Capture(
    "the training log with loss, gradient norm and learning rate",
    "python train.py 2>&1 | tee train.log",
    "free",
    minutes=1,
)
AUTOTUNE_SWEEP = Capture(
    "times of many configurations and of the library path",
    "TRITON_PRINT_AUTOTUNING=1 python bench.py 2>&1 | tee autotune.log",
    "minutes; time the unfused library path too",
)
RUN_BUNDLE = Capture("a recorded run", "stallwise run -- python train.py", "one run")
STAGE_RECORD = Capture(
    "stage timers of every rank", "stallwise record --light -- python train.py", "one run, almost no cost"
)
