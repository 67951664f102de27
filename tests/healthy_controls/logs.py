# ruff: noqa: E501  (lines as programs print them)
"""Runs and services that are well, in the words of many programs: what nobody would ask a doctor about.

Composed in each program's own format, with the noise that steps and requests have by themselves. Public incidents all come from
somebody's trouble; without these nothing would count how often a clue, or a likeness, is met where there is none.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable

Files = dict[str, str]
LOGS: dict[str, Callable[[random.Random], Files]] = {}


def calm(make: Callable[[random.Random], Files]) -> Callable[[random.Random], Files]:
    """On the list."""
    LOGS[make.__name__] = make
    return make


def healthy_logs() -> dict[str, Files]:
    """All of them, the same every time."""
    return {name: make(random.Random(name)) for name, make in LOGS.items()}


def healthy_of_rules() -> dict[str, Files]:
    """And those that tests of single rules hold up to them, each with something that tempts."""
    from tests.causes.distributed.test_fabric import HEALTHY as FABRIC
    from tests.causes.hang.test_hangs import HEALTHY as HANGS
    from tests.causes.serving.test_from_logs import HEALTHY as SERVICES
    from tests.doctor.test_log_incidents import CALM

    tempting = {**FABRIC, **HANGS, **SERVICES}
    found = {name: {"run.log": text} if isinstance(text, str) else dict(text) for name, text in tempting.items()}
    return {**found, **{make.__name__: make() for make, _ in CALM}}


def falling(step: int, start: float = 10.8, floor: float = 2.6, pace: float = 180.0) -> float:
    """A loss as it falls."""
    return floor + (start - floor) * math.exp(-step / pace)


def lines(count: int, line: Callable[[int], str]) -> str:
    """One after the other."""
    return "\n".join(line(i) for i in range(count)) + "\n"


@calm
def nanogpt(r: random.Random) -> Files:
    return {"train.out": "tokens per iteration will be: 491,520\nnumber of parameters: 124.34M\ncompiling the model... (takes a ~minute)\n" + lines(60, lambda i: f"iter {i * 10}: loss {falling(i * 10) + r.gauss(0, 0.02):.4f}, time {r.gauss(135.2, 0.9):.2f}ms, mfu {r.gauss(41.8, 0.2):.2f}%")}  # fmt: skip


@calm
def hf_trainer(r: random.Random) -> Files:
    return {"log.txt": lines(40, lambda i: str({"loss": round(falling(i * 25) + r.gauss(0, 0.02), 4), "grad_norm": round(abs(r.gauss(0.8, 0.08)), 4), "learning_rate": 2e-5 * (1 - i / 40), "epoch": round(i / 40, 2)})) + "{'train_runtime': 812.4, 'train_samples_per_second': 39.4, 'train_steps_per_second': 1.231, 'train_loss': 3.21, 'epoch': 1.0}\n"}  # fmt: skip


@calm
def megatron(r: random.Random) -> Files:
    return {"megatron.log": lines(50, lambda i: f" [2025-03-04 10:{i:02d}:11] iteration {(i + 1) * 10:8d}/ 500000 | consumed samples: {(i + 1) * 2560:12d} | elapsed time per iteration (ms): {r.gauss(2412, 12):.1f} | throughput per GPU (TFLOP/s/GPU): {r.gauss(421, 2):.1f} | learning rate: 1.5E-04 | global batch size: 256 | lm loss: {falling(i * 10) + r.gauss(0, 0.02):.6E} | loss scale: 1.0 | grad norm: {abs(r.gauss(0.5, 0.05)):.3f} | number of skipped iterations: 0 | number of nan iterations: 0 |")}  # fmt: skip


@calm
def torchtitan(r: random.Random) -> Files:
    return {"titan.log": lines(40, lambda i: f"[rank0]:2025-05-01 12:{i:02d}:01,123 - root - INFO - step: {i * 10 + 1:3d}  loss: {falling(i * 10) + r.gauss(0, 0.02):7.4f}  grad_norm: {abs(r.gauss(1.1, 0.1)):.4f}  memory: 47.28GiB(59.78%)  tps: {r.gauss(7412, 20):,.0f}  tflops: {r.gauss(379, 1):.2f}  mfu: {r.gauss(38.3, 0.1):.2f}%")}  # fmt: skip


@calm
def lightning_bar(r: random.Random) -> Files:
    return {"console.txt": "GPU available: True (cuda), used: True\nTPU available: False, using: 0 TPU cores\nLOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]\n" + lines(12, lambda i: f"Epoch {i}: 100%|██████████| 782/782 [01:{r.randint(11, 13)}<00:00, {r.gauss(10.8, 0.1):.2f}it/s, v_num=3, train_loss={falling(i * 60, 2.3, 0.4):.3f}, val_loss={falling(i * 60, 2.4, 0.5):.3f}]") + "`Trainer.fit` stopped: `max_epochs=12` reached.\n"}  # fmt: skip


@calm
def deepspeed(r: random.Random) -> Files:
    return {"ds.log": lines(40, lambda i: f"[2025-02-11 09:{i:02d}:40,001] [INFO] [logging.py:96:log_dist] [Rank 0] step={(i + 1) * 10}, skipped=0, lr=[0.0001], mom=[(0.9, 0.95)]\n[2025-02-11 09:{i:02d}:40,002] [INFO] [timer.py:258:stop] epoch=0/micro_step={(i + 1) * 10}/global_step={(i + 1) * 10}, RunningAvgSamplesPerSec={r.gauss(51.2, 0.2):.4f}, CurrSamplesPerSec={r.gauss(51.2, 0.4):.4f}, MemAllocated=18.1GB, MaxMemAllocated=41.7GB")}  # fmt: skip


@calm
def fp16_scale_settles(r: random.Random) -> Files:
    def line(i: int) -> str:
        scale = 2.0 ** max(14, 32 - i)
        return f"step {i} loss {falling(i * 4) + r.gauss(0, 0.02):.4f} grad_norm {abs(r.gauss(1.2, 0.1)):.3f} loss_scale {scale:.0f} step_time {r.gauss(0.412, 0.003):.3f}s"

    return {"amp.log": lines(120, line)}


@calm
def keras(r: random.Random) -> Files:
    return {"keras.txt": lines(10, lambda i: f"Epoch {i + 1}/10\n1563/1563 ━━━━━━━━━━━━━━━━━━━━ {r.randint(11, 12)}s 7ms/step - accuracy: {0.9 - falling(i * 60, 0.5, 0.0):.4f} - loss: {falling(i * 60, 1.6, 0.3):.4f} - val_accuracy: {0.88 - falling(i * 60, 0.5, 0.0):.4f} - val_loss: {falling(i * 60, 1.7, 0.4):.4f}")}  # fmt: skip


@calm
def maxtext(r: random.Random) -> Files:
    return {"maxtext.log": lines(40, lambda i: f"completed step: {i}, seconds: {r.gauss(3.214, 0.006):.3f}, TFLOP/s/device: {r.gauss(451.2, 0.8):.3f}, Tokens/s/device: {r.gauss(10195, 20):.3f}, total_weights: 524288, loss: {falling(i * 10):.3f}")}  # fmt: skip


@calm
def mmengine(r: random.Random) -> Files:
    return {"mm.log": lines(40, lambda i: f"2025/04/02 11:{i:02d}:20 - mmengine - INFO - Epoch(train)  [1][{(i + 1) * 50:4d}/7330]  lr: 2.0000e-02  eta: 1 day, 2:11:02  time: {r.gauss(0.354, 0.003):.4f}  data_time: {abs(r.gauss(0.006, 0.001)):.4f}  memory: 8412  loss: {falling(i * 15, 2.1, 0.7):.4f}  loss_cls: 0.31")}  # fmt: skip


@calm
def yolo(r: random.Random) -> Files:
    return {"yolo.txt": "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size\n" + lines(20, lambda i: f"     {i + 1:2d}/100      9.1G     {falling(i * 20, 2.1, 0.9):.3f}      {falling(i * 20, 3.1, 0.7):.3f}     {falling(i * 20, 1.9, 1.0):.3f}        212        640: 100%|██████████| 925/925 [01:{r.randint(38, 39)}<00:00,  {r.gauss(9.4, 0.05):.2f}it/s]")}  # fmt: skip


@calm
def imagenet_meter(r: random.Random) -> Files:
    return {"imagenet.log": lines(60, lambda i: f"Epoch: [3][{i * 20:4d}/1252]\tTime  {r.gauss(0.301, 0.004):.3f} ( 0.301)\tData  {abs(r.gauss(0.003, 0.0008)):.3f} ( 0.003)\tLoss {falling(i * 10, 5.1, 3.0):.4e} (4.1e+00)\tAcc@1  {20 + i * 0.1:.2f} ( 19.1)")}  # fmt: skip


@calm
def steps_csv(r: random.Random) -> Files:
    return {"steps.csv": "step,loss,step_time_s,data_time_s,samples_per_s\n" + lines(200, lambda i: f"{i},{falling(i * 3) + r.gauss(0, 0.03):.4f},{r.gauss(0.512, 0.006):.4f},{abs(r.gauss(0.004, 0.001)):.4f},{r.gauss(250, 3):.1f}")}  # fmt: skip


@calm
def wandb_jsonl(r: random.Random) -> Files:
    return {"history.jsonl": lines(150, lambda i: json.dumps({"_step": i, "train/loss": round(falling(i * 4) + r.gauss(0, 0.03), 4), "train/lr": 3e-4, "perf/tokens_per_sec": round(r.gauss(98_300, 400)), "perf/step_ms": round(r.gauss(333.1, 2.0), 2)}))}  # fmt: skip


@calm
def noisy_small_batch(r: random.Random) -> Files:
    return {"run.log": lines(400, lambda i: f"step {i} | loss {falling(i) + r.gauss(0, 0.35):.3f} | gnorm {abs(r.gauss(1.5, 0.5)):.2f} | {r.gauss(88, 1.5):.1f} ms")}  # fmt: skip


@calm
def axolotl(r: random.Random) -> Files:
    return {"axolotl.log": "[2025-01-20 08:00:01,001] [INFO] [axolotl.utils.data] merging datasets\n[2025-01-20 08:00:09,114] [INFO] [axolotl.train] Starting trainer...\n" + lines(30, lambda i: f"{{'loss': {falling(i * 30, 1.9, 0.9):.4f}, 'grad_norm': {abs(r.gauss(0.4, 0.04)):.3f}, 'learning_rate': 0.0002, 'epoch': {i / 30:.2f}}}\n {i * 3 + 3:3d}%|███       | {i * 10 + 10}/300 [{i:02d}:10<10:00,  {r.gauss(1.98, 0.01):.2f}s/it]")}  # fmt: skip


@calm
def saves_that_cost_little(r: random.Random) -> Files:
    return {"train.log": lines(300, lambda i: f"INFO step={i} loss={falling(i * 2) + r.gauss(0, 0.02):.4f} time={r.gauss(1.204, 0.008):.3f}s" + (f"\nINFO saved checkpoint to ckpt/step_{i} in 1.1 s (async)" if i % 100 == 99 else ""))}  # fmt: skip


def engine_line(r: random.Random, i: int) -> str:
    return f"INFO 06-11 14:{i % 60:02d}:10 [loggers.py:118] Engine 000: Avg prompt throughput: {abs(r.gauss(812, 60)):.1f} tokens/s, Avg generation throughput: {abs(r.gauss(1450, 40)):.1f} tokens/s, Running: {r.randint(22, 30)} reqs, Waiting: 0 reqs, GPU KV cache usage: {r.uniform(31, 42):.1f}%, Prefix cache hit rate: {r.uniform(61, 64):.1f}%"


@calm
def vllm_steady(r: random.Random) -> Files:
    return {"server.log": "INFO 06-11 14:00:01 [api_server.py:1043] vLLM API server version 0.9.1\nINFO 06-11 14:01:40 [kv_cache_utils.py:715] GPU KV cache size: 512,432 tokens\nINFO 06-11 14:02:11 [gpu_model_runner.py:2048] Graph capturing finished in 21 secs, took 0.55 GiB\n" + lines(50, lambda i: engine_line(r, i))}  # fmt: skip


@calm
def sglang_steady(r: random.Random) -> Files:
    return {"sglang.log": "[2025-06-02 10:00:01] max_total_num_tokens=419214, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=2048, context_len=32768\n" + lines(50, lambda i: f"[2025-06-02 10:{i:02d}:11 TP0] Decode batch. #running-req: {r.randint(20, 26)}, #token: {r.randint(88_000, 99_000)}, token usage: {r.uniform(0.21, 0.24):.2f}, cuda graph: True, gen throughput (token/s): {r.gauss(1810, 30):.2f}, #queue-req: 0, ")}  # fmt: skip


@calm
def vllm_metrics(r: random.Random) -> Files:
    return {"metrics.txt": "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\"} 12.0\nvllm:num_requests_waiting{model_name=\"m\"} 0.0\nvllm:gpu_cache_usage_perc{model_name=\"m\"} 0.33\nvllm:num_preemptions_total{model_name=\"m\"} 0.0\nvllm:prefix_cache_queries_total{model_name=\"m\"} 812331\nvllm:prefix_cache_hits_total{model_name=\"m\"} 511090\nvllm:time_to_first_token_seconds_sum{model_name=\"m\"} 812.1\nvllm:time_to_first_token_seconds_count{model_name=\"m\"} 9021\nvllm:time_per_output_token_seconds_sum{model_name=\"m\"} 9921.4\nvllm:time_per_output_token_seconds_count{model_name=\"m\"} 801233\n"}  # fmt: skip


@calm
def llamacpp(r: random.Random) -> Files:
    return {"llama.log": "llama_model_loader: loaded meta data with 29 key-value pairs\nllm_load_tensors: offloaded 33/33 layers to GPU\nllama_new_context_with_model: n_ctx = 8192\n" + lines(10, lambda i: f"prompt eval time =     {r.gauss(212, 4):.2f} ms /   612 tokens (    0.35 ms per token,  {r.gauss(2886, 30):.2f} tokens per second)\n       eval time =    {r.gauss(2310, 12):.2f} ms /   256 tokens (    9.02 ms per token,   {r.gauss(110.8, 0.4):.2f} tokens per second)")}  # fmt: skip


@calm
def tgi(r: random.Random) -> Files:
    return {"tgi.log": lines(40, lambda i: f'2025-03-03T10:{i:02d}:11.120Z  INFO compat_generate{{default_return_full_text=true}}:generate: text_generation_router::server: router/src/server.rs:407: Success total_time="{r.gauss(2.31, 0.05):.3f}s" validation_time="{r.gauss(412, 20):.1f}µs" queue_time="{abs(r.gauss(61, 8)):.1f}µs" inference_time="{r.gauss(2.31, 0.05):.3f}s" time_per_token="{r.gauss(23.1, 0.3):.2f}ms" seed="None"')}  # fmt: skip


@calm
def load_test(r: random.Random) -> Files:
    return {"bench.txt": "============ Serving Benchmark Result ============\nSuccessful requests:                     500\nBenchmark duration (s):                  131.02\nTotal input tokens:                      256000\nTotal generated tokens:                  64000\nRequest throughput (req/s):              3.82\nOutput token throughput (tok/s):         488.47\n---------------Time to First Token----------------\nMean TTFT (ms):                          88.12\nMedian TTFT (ms):                        81.40\nP99 TTFT (ms):                           171.20\n-----Time per Output Token (excl. 1st token)------\nMean TPOT (ms):                          11.91\nMedian TPOT (ms):                        11.82\nP99 TPOT (ms):                           13.90\n==================================================\n"}  # fmt: skip


@calm
def smi_training(r: random.Random) -> Files:
    return {"smi.csv": "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W], clocks.sm [MHz], temperature.gpu\n" + lines(80, lambda i: f"2025/06/01 10:{i // 8:02d}:{(i // 8) % 60:02d}.000, {i % 8}, {r.randint(97, 100)} %, {r.randint(70_100, 70_400)} MiB, {r.gauss(652, 6):.2f} W, 1980 MHz, {r.randint(58, 63)}")}  # fmt: skip


@calm
def smi_table(r: random.Random) -> Files:
    return {"nvidia-smi.txt": "+-----------------------------------------------------------------------------------------+\n| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n|-----------------------------------------+------------------------+----------------------+\n|   0  NVIDIA H100 80GB HBM3          On  |   00000000:1B:00.0 Off |                    0 |\n| N/A   52C    P0             601W /  700W |   68112MiB /  81559MiB |     99%      Default |\n|                                         |                        |             Disabled |\n+-----------------------------------------+------------------------+----------------------+\n"}  # fmt: skip


@calm
def nccl_init(r: random.Random) -> Files:
    ranks = range(8)
    return {"nccl.log": "n1:100:100 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\nn1:100:100 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.1<0>\n" + "".join(f"n1:{100 + k}:{200 + k} [{k}] NCCL INFO Channel 00/0 : {k}[{k}] -> {(k + 1) % 8}[{(k + 1) % 8}] via P2P/CUMEM\nn1:{100 + k}:{200 + k} [{k}] NCCL INFO comm 0x5{k} rank {k} nranks 8 cudaDev {k} busId {k}a000 commId 0x77 - Init COMPLETE\n" for k in ranks)}  # fmt: skip


@calm
def nccl_tests(r: random.Random) -> Files:
    sizes = [2**k for k in range(20, 34)]
    return {"all_reduce.txt": "# nThread 1 nGpus 8 minBytes 1048576 maxBytes 8589934592 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0\n#       size         count      type   redop    root     time   algbw   busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n" + "".join(f"{s:>12d} {s // 4:>12d}     float     sum      -1 {(t := 30e-6 + s * 1.75 / 470e9) * 1e6:9.1f} {s / t / 1e9:7.2f} {s * 1.75 / t / 1e9:7.2f}      0\n" for s in sizes) + "# Out of bounds values : 0 OK\n"}  # fmt: skip


@calm
def torchrun_ranks(r: random.Random) -> Files:
    return {f"rank{k}.log": lines(60, lambda i, k=k: f"[rank{k}] step {i} fwd {r.gauss(101, 0.8):.1f} ms bwd {r.gauss(202, 1.2):.1f} ms opt {r.gauss(18, 0.3):.1f} ms total {r.gauss(322, 1.5):.1f} ms") for k in range(4)}  # fmt: skip


@calm
def grouped_timers(r: random.Random) -> Files:
    return {"timers.log": lines(20, lambda i: f" [2025-03-04 10:{i:02d}:11] iteration {i + 1:4d}/ 1000 | elapsed time per iteration (ms): {r.gauss(2412, 9):.1f} |\n(min, max) time across ranks (ms):\n    forward-backward ...............................: ({r.gauss(2190, 4):.2f}, {r.gauss(2201, 4):.2f})\n    optimizer ......................................: ({r.gauss(101, 1):.2f}, {r.gauss(102, 1):.2f})\n    batch-generator ................................: ({r.gauss(3.1, 0.2):.2f}, {r.gauss(4.0, 0.2):.2f})")}  # fmt: skip


@calm
def memory_that_is_flat(r: random.Random) -> Files:
    return {"mem.csv": "step,allocated_gib,reserved_gib,host_rss_gib\n" + lines(200, lambda i: f"{i * 10},{r.gauss(31.2, 0.02):.2f},38.40,{r.gauss(14.1, 0.05):.2f}")}  # fmt: skip


@calm
def slurm_done(r: random.Random) -> Files:
    return {"sacct.txt": "JobID           JobName  Partition      State ExitCode    Elapsed  MaxRSS\n------------ ---------- ---------- ---------- -------- ---------- --------\n81231             llama        gpu  COMPLETED      0:0   04:11:22\n81231.batch       batch             COMPLETED      0:0   04:11:22  41.2G\n"}  # fmt: skip


@calm
def jax_loop(r: random.Random) -> Files:
    return {"jax.log": lines(80, lambda i: f"I0601 10:{i % 60:02d}:01.000001 train.py:211] [{i * 100}] steps_per_sec={r.gauss(8.12, 0.03):.3f}, train_loss={falling(i * 10, 6.9, 1.8):.4f}, train_accuracy={0.7 - falling(i * 10, 0.7, 0.02):.4f}")}  # fmt: skip


@calm
def ray_train(r: random.Random) -> Files:
    return {"ray.log": lines(20, lambda i: f"(RayTrainWorker pid=4411, ip=10.0.0.{k}) epoch {i} train_loss {falling(i * 40, 2.3, 0.4):.3f} epoch_time {r.gauss(41.2, 0.3):.1f}s" if (k := i % 4 + 1) else "")}  # fmt: skip


@calm
def py_timer(r: random.Random) -> Files:
    return {"phases.txt": lines(50, lambda i: f"batch {i}: data {abs(r.gauss(2.0, 0.3)):.1f} ms, h2d {r.gauss(1.1, 0.05):.2f} ms, forward {r.gauss(61, 0.5):.1f} ms, backward {r.gauss(121, 0.8):.1f} ms, step {r.gauss(9.8, 0.1):.1f} ms")}  # fmt: skip


@calm
def evaluations_now_and_then(r: random.Random) -> Files:
    return {"train.log": lines(400, lambda i: f"step {i} loss {falling(i * 2) + r.gauss(0, 0.03):.4f} dt {r.gauss(0.250, 0.002):.3f}s" + (f"\nvalidation loss {falling(i * 2) + 0.05:.4f} took 0.9s" if i % 200 == 199 else ""))}  # fmt: skip


@calm
def warm_up_then_even(r: random.Random) -> Files:
    return {"warm.log": lines(300, lambda i: f"step {i}: {(9.1 if i == 0 else r.gauss(0.31, 0.003)):.3f} s, loss {falling(i * 3) + r.gauss(0, 0.02):.3f}")}  # fmt: skip
