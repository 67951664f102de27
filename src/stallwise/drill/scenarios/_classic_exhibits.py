# ruff: noqa: E501  (lines as the programs print them)
"""The exhibits of the eight classic incidents: files as the programs write them, with noise and with features that tempt."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from stallwise.drill.artifacts import fabric, gpu_state, oom
from stallwise.drill.artifacts.background import topology
from stallwise.drill.artifacts.counters import raw_csv
from stallwise.drill.artifacts.logs import START, flight_recorder, lines, megatron, scrape, smooth_loss
from stallwise.drill.artifacts.rank_traces import pipeline_traces
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import Exhibit, exhibit
from stallwise.physics.sim.pipeline import PassTimes, run_program
from stallwise.physics.sim.schedules import schedule_named

Exhibits = tuple[Exhibit, ...]
File = tuple[str, str, str | bytes]  # kind, name, content
H100 = gpu_state.CARDS[0]
HW_THERMAL = 0x40 | 0x8  # clocks_event_reasons: hardware thermal slowdown


def _files(settling: Sequence[File], beside: Sequence[File]) -> Exhibits:
    """Those that settle it, and those that are beside the point."""
    return (*(exhibit(*file) for file in settling), *(exhibit(*file, False) for file in beside))


def _sass(body: list[str], rng: Rng, loops: int = 24) -> str:
    """cuobjdump -sass of one kernel: addresses, instructions, and the noise of address arithmetic."""
    filler = (
        "IMAD.MOV.U32 R{a}, RZ, RZ, R{b} ;",
        "IADD3 R{a}, R{b}, 0x80, RZ ;",
        "LEA R{a}, R{b}, UR4, 0x4 ;",
        "ISETP.GE.AND P0, PT, R{a}, c[0x0][0x178], PT ;",
    )
    found = [
        "\tFunction : _Z11gemm_kernelPK6__halfS1_PS_iii",
        '\t.headerflags\t@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"',
    ]
    texts = [
        t for _ in range(loops) for line in body for t in ((rng.pick(*filler), line) if rng.chance(0.4) else (line,))
    ]
    for place, text in enumerate([*texts, "EXIT ;"]):
        named = text.format(a=rng.whole(2, 160), b=rng.whole(2, 160), c=rng.whole(2, 160))
        found.append(f"        /*{16 * place:04x}*/                   {named}")
    return "\n".join(found) + "\n"


def slow_gemm(
    rng: Rng, size: int = 4096, rate: float = 180.0, library: float = 650.0, tensor: float = 12.0
) -> Exhibits:
    """A product that loads its tiles synchronously; rates in TFLOP/s."""
    counters = {
        "time_ms": 2 * size**3 / rate * 1e-9, "sm": 94.0, "memory": 58.0, "dram": 45.0, "l1": 61.0, "l2": 52.0, "issue": 41.0, "tensor": tensor, "fma": 23.0, "alu": 19.0,
        "occupancy": 38.0, "registers": 168.0, "block": 256.0, "grid": 1024.0, "sms": 132.0, "waves": 7.76, "latency": 20.0,
        "long_scoreboard": 7.6, "mio": 4.2, "barrier": 1.4, "spills": 0.0, "threads": 32.0, "instructions": 9.1e8, "conflict_excess": 1.1e6, "wavefronts": 1.9e7,
    }  # fmt: skip
    sass = _sass(["LDG.E.128 R{a}, [R{b}.64] ;", "LDG.E.128 R{a}, [R{b}.64+0x10] ;", "STS.128 [R{a}], R{b} ;", "BAR.SYNC.DEFER_BLOCKING 0x0 ;",
                  "LDSM.16.M88.4 R{a}, [R{b}] ;", "HMMA.16816.F32 R{a}, R{b}, R{c}, R{a} ;", "HMMA.16816.F32 R{a}, R{b}, R{c}, R{a} ;", "FFMA R{a}, R{b}, R{c}, R{a} ;"], rng)  # fmt: skip
    shapes = ((size // 4, 0.55), (size // 2, 0.85), (size, 1.0))
    rows = (f"{n},{n},{n},{rng.near(rate * f, 0.01):.0f},{rng.near(library * f, 0.01):.0f}\n" for n, f in shapes)
    kernel = "gemm_kernel(const __half *, const __half *, __half *, int, int, int)"
    return _files(
        [("ncu", "gemm.ncu.csv", raw_csv("9.0", {kernel: counters})), ("sass", "gemm.sass", sass)],
        [("bench", "gemm_bench.csv", "m,n,k,kernel_tflops,cublas_tflops\n" + "".join(rows))],
    )


def mfu_collapse(rng: Rng) -> Exhibits:
    late, good, factor, group = 136, 6120.0, 48 / 22, [8 + 32 * k for k in range(16)]
    times = ((n, good * (factor if n > 1760 else 1.0)) for n in range(1600, 1960, 4))
    log = "".join(megatron(n, rng.near(ms, 0.006), 2.1 + 40 / n, rng.near(0.4, 0.08)) for n, ms in times)
    inside = (
        (n, r, rng.near(41_000, 0.05) if r == late else rng.near(7_150_000, 0.01)) for n in range(12) for r in group
    )
    waits = "".join(fabric.inspector(r, 512, n, 2**28, us) for n, r, us in inside)
    dumps = {
        r: flight_recorder(r, group, 2**27, [rng.near(41.0 if r == late else 7150.0, 0.02) for _ in range(12)])
        for r in (group[0], late)
    }
    hot: dict[str, Any] = {"heat": 91, "watt": 395, "clock": H100.clock_mhz * 0.46, "mask": HW_THERMAL}
    usual: dict[str, Any] = {"heat": 68, "watt": H100.watt * 0.62, "clock": H100.clock_mhz, "mask": 0x1}
    rows = (gpu_state.row(rng, H100, g, **(hot if g == late % 8 else usual)) for _ in range(6) for g in range(8))
    smi = gpu_state.HEADER + "".join(rows)
    flap = "".join(
        f"[ {at}.{rng.whole(100000, 999999)}] mlx5_core 0000:9a:00.0 ens9np0: Link {way}\n"
        for at, way in ((8123, "down"), (8125, "up"))
    )
    return _files(
        [("rank-times", "nccl_inspector.jsonl", waits), ("gpu-state", "nvidia_smi_node17.csv", smi)],
        [
            ("train-log", "train.log", log),
            *(("rank-logs", f"nccl_trace_rank_{r}.json", dump) for r, dump in dumps.items()),
            ("nccl-log", "nccl_init.log", fabric.init_log(fabric.hosts_of(rng, 4), 8)),
            ("kernel-log", "dmesg_node17.txt", flap + gpu_state.quiet_kernel_log(rng)),
        ],
    )


def collapse_at_load(rng: Rng) -> Exhibits:
    step = "INFO 11-04 16:{:02d}:{:02d} [core.py:387] Iteration({}): {} context requests, {} context tokens, {} generation requests, {} generation tokens, iteration elapsed time: {:.1f} ms, kv cache: {:.1f}%\n"
    rows = []
    for i in range(160):
        prompts, running = i % 5 in (1, 3), min(64, 40 + i // 4)
        ms = rng.near(160.0, 0.05) if prompts else rng.near(19.0, 0.04)
        clock, tokens = (20 + i // 60, i % 60), rng.whole(7200, 8100) * prompts
        rows.append(step.format(*clock, 90_000 + i, 2 * prompts, tokens, running, running, ms, 44 + 0.09 * i))
    how = "tensor_parallel_size=8, quantization=fp8, enable_chunked_prefill=False, "
    log = START.format(model="meta-llama/Llama-3-70B-FP8", more=how, cap=256) + lines(
        (58 + (i * 5) % 7, 60 + 2 * i % 9, 52 + 0.2 * i, rng.near(6100, 0.1), rng.near(1290, 0.05)) for i in range(24)
    )
    bench = [
        {"request_rate": rate, "completed": 400, "duration": 400 / rate, "mean_ttft_ms": ttft * 1.1, "median_ttft_ms": ttft, "p99_ttft_ms": ttft * 2.3,
         "mean_tpot_ms": tpot * 1.04, "median_tpot_ms": tpot, "p99_tpot_ms": tpot * 2.1, "output_throughput": tput}
        for rate, ttft, tpot, tput in ((4, 120.0, 5.56, 1010.0), (16, 4200.0, 45.5, 1290.0))
    ]  # fmt: skip
    smi = gpu_state.HEADER + "".join(
        gpu_state.row(rng, H100, g, heat=61, watt=470, use=99) for _ in range(6) for g in range(8)
    )
    return _files(
        [("engine-log", "iterations.log", "".join(rows))],
        [
            ("engine-log", "vllm.log", log),
            *(("bench", f"bench_{run['request_rate']}qps.json", json.dumps(run, indent=1)) for run in bench),
            *(("engine-metrics", f"metrics_{n}.txt", _metrics(n)) for n in (0, 1)),
            ("gpu-state", "nvidia_smi.csv", smi),
        ],
    )


def _metrics(minute: int) -> str:
    done = 900 + 950 * minute
    values = {
        "num_requests_running": 61.0, "num_requests_waiting": 64.0 + 2 * minute, "kv_cache_usage_perc": 0.55 + 0.01 * minute,
        "num_preemptions_total": 0.0, "prompt_tokens_total": 3800.0 * done, "generation_tokens_total": 240.0 * done, "request_success_total": float(done),
    }  # fmt: skip
    times = {
        "time_to_first_token_seconds": (4.2, done),
        "inter_token_latency_seconds": (0.0455, 240 * done),
        "request_queue_time_seconds": (3.6, done),
    }
    return scrape("meta-llama/Llama-3-70B-FP8", values, times)


def fp8_long_context(
    rng: Rng, calibrated: float = 96.0, observed: float = 310.0, was: float = 0.71, now: float = 0.54, last: int = 79
) -> Exhibits:
    """Static scales of short inputs; the last attention outputs grow with the length."""
    top = observed / calibrated
    head = "layer,context,amax,calibrated_amax,saturated_fraction,rel_error\n"
    rows = []
    for n in range(last + 1):
        for name in ("self_attn.qkv_proj", "self_attn.o_proj", "mlp.gate_up_proj", "mlp.down_proj"):
            hot = name.endswith("o_proj") and n > last - 12
            scale = calibrated if hot and n == last else rng.between(38, 90)
            reach = top * (1.0 - 0.03 * (last - n)) if hot else 0.95
            for context, share in ((2048, 0.0), (8192, 0.28), (32768, 1.0)):
                grown = 0.97 + share * (reach - 0.97) if hot else rng.between(0.86, 0.99)
                clipped = max(0.0, 0.0035 * (grown - 1)) if grown > 1.2 else 0.0
                rows.append(
                    f"model.layers.{n}.{name},{context},{scale * grown:.1f},{scale:.1f},{clipped:.5f},{0.026 + 0.05 * max(0.0, grown - 1):.4f}\n"
                )
    results = f"task,context,bf16,fp8\nmmlu,1024,0.792,0.789\ngsm8k,1024,0.931,0.929\nretrieval,4096,0.83,0.82\nretrieval,32768,{was:.2f},{now:.2f}\n"
    recipe = {"weights": "fp8_e4m3", "activations": "fp8_e4m3", "strategy": "tensor", "observer": "static_minmax", "dataset": "chat-mixture",
              "num_samples": 512, "max_seq_len": 2048}  # fmt: skip
    return _files(
        [("layer-stats", "amax_by_layer.csv", head + "".join(rows))],
        [("bench", "evals.csv", results), ("case", "quant_recipe.json", json.dumps(recipe, indent=1))],
    )


def smaller_tp(rng: Rng) -> Exhibits:
    place = oom.traceback(
        ("pretrain.py", "main", "loss = train_step(batch)"),
        (
            "/opt/conda/lib/python3.11/site-packages/torch/utils/checkpoint.py",
            "unpack_hook",
            "args = ctx.get_args(ctx.saved_tensors)",
        ),
        ("model/block.py", "forward", "h = x + self.attn(self.norm1(x), mask)"),
        ("model/attention.py", "forward", "attn_weights = torch.matmul(query, key.transpose(2, 3))"),
    )
    failed = place + oom.message(*(gib * oom.GIB for gib in (4.0, 79.15, 2.61, 76.54, 73.4, 1.2)))
    text = "".join(f"[rank{r}]: {line}\n" for r in (3, 0) for line in failed.splitlines())
    launch = "torchrun --nnodes 64 --nproc-per-node 8 pretrain.py --model 405b --num-layers 126 --hidden 16384 --num-attention-heads 128 --num-kv-heads 8 --ffn 53248 --seq-len 8192 --micro-batch-size 1 --tp {} --dp {} --fsdp full --reshard-after-forward --recompute full --dtype bf16 --attention eager\n"
    fits = "".join(
        f"step {n} loss {2.31 + rng.between(0, 0.03):.3f} max_memory_allocated_gib {rng.near(70.9, 0.002):.1f} max_memory_reserved_gib 74.6\n"
        for n in range(400, 440, 2)
    )
    owners = {"weights, gradients and optimizer (sharded over 512)": 12.7, "layer inputs kept": 33.8, "all-gather buffers": 1.5,
              "working set of one layer": 9.6, "cuBLAS workspaces, NCCL buffers": 3.9}  # fmt: skip
    summary = "".join(f"{name:52} {rng.near(value, 0.01):6.1f}\n" for name, value in owners.items())
    runs = f"# runs\n{launch.format(8, 64)}# out of memory in step 1\n{launch.format(4, 128)}"
    return _files(
        [("oom-message", "tp4_dp128.err", text), ("case", "launch.sh", runs)],
        [
            ("train-log", "tp8_dp64.log", fits),
            ("memory-snapshot", "memory_tp8_dp64.txt", f"memory by owner at the peak, rank 0 (GiB)\n{summary}"),
        ],
    )


def allreduce_cliff(rng: Rng) -> Exhibits:
    sizes = {64: 45.0, 128: 52.0, 256: 61.0, 512: 340.0}
    scaling = "ranks,time_ms,run\n" + "".join(f"{n},{rng.near(t, 0.004):.1f},0\n" for n, t in sizes.items())
    tests = {"256_in_group_a": 46.2, "256_half_a_half_b": 9.04}
    hosts = "".join(f"{f'leaf{1 + n // 16}':8} h100-{n:03d}  group-{'a' if n < 32 else 'b'}\n" for n in range(64))
    arrive = "".join(
        fabric.inspector(r, 512, n, 2**28, rng.near(338_000, 0.01)) for n in range(6) for r in range(0, 512, 16)
    )
    rings = fabric.nccl("h100-000", "Connected all rings, use ring PXN 0 GDR 1")
    return _files(
        [
            ("scaling", "allreduce_by_size.csv", scaling),
            *(
                ("nccl-tests", f"{name}.txt", fabric.perf_table(H100.name, 256, 32, busbw))
                for name, busbw in tests.items()
            ),
        ],
        [
            ("topology", "hosts.txt", f"switch   host      group\n{hosts}"),
            ("rank-times", "nccl_inspector_512.jsonl", arrive),
            ("nccl-log", "nccl_init.log", fabric.init_log(fabric.hosts_of(rng, 4), 8, extra=rings)),
        ],
    )


def slow_triton(
    rng: Rng, tried: Sequence[Sequence[int]] = ((128, 128, 32, 4, 2), (64, 64, 32, 4, 2)), speed: float = 0.7
) -> Exhibits:
    """An autotuner's configurations (blocks M, N, K, warps, stages), the first of them the best; speed against eager."""
    names = [
        "BLOCK_M: {}, BLOCK_N: {}, BLOCK_K: {}, num_warps: {}, num_ctas: 1, num_stages: {}, maxnreg: None".format(*c)
        for c in tried
    ]
    log = "".join(f"Autotuning kernel fused_norm_linear with config {name}\n" for name in names) + (
        f"Triton autotuning for function fused_norm_linear,\nwith key as (8192, 4096, 4096, 'torch.bfloat16'),\nfinished after {1.15 * len(names):.2f}s,\nbest config selected: {names[0]};\n"
    )
    bench = f"what,ms\neager rms_norm + linear,0.402\nrms_norm alone,0.032\nlinear alone (library),0.368\nfused_norm_linear,{0.402 / speed:.3f}\n"
    sass = _sass(["LDGSTS.E.BYPASS.128 [R{a}], [R{b}.64] ;", "LDGDEPBAR ;", "DEPBAR.LE SB0, 0x0 ;", "LDSM.16.M88.4 R{a}, [R{b}] ;",
                  "HMMA.16816.F32.BF16 R{a}, R{b}, R{c}, R{a} ;", "HMMA.16816.F32.BF16 R{a}, R{b}, R{c}, R{a} ;"], rng)  # fmt: skip
    return _files(
        [("autotune", "autotune.log", log)], [("bench", "bench.csv", bench), ("sass", "fused_norm_linear.sass", sass)]
    )


def bubble_mystery(rng: Rng) -> Exhibits:
    per_stage, body = (31.0, 24.0, 24.0, 24.0, 24.0, 24.0, 24.0, 42.0), 12.0
    own = tuple(rng.near(t, 0.004) for t in per_stage)
    # Two chunks a device: the embedding is in the first of all, the head and the loss in the last of all.
    chunks = (own[0] - body, *(t / 2 for t in own[1:-1]), body, body, *(t / 2 for t in own[1:-1]), own[-1] - body)
    forward = tuple(t / 3e3 for t in chunks)
    times = PassTimes(forward, forward, forward, p2p_s=2e-4)
    run = run_program(schedule_named("interleaved").program(8, 32, 2, times), times)
    timers = "".join(f"{n},{s},{rng.near(own[s], 0.003):.2f}\n" for n in range(700, 703) for s in range(8))
    traces = [("trace", f"pp{r}.json", text) for r, text in enumerate(pipeline_traces(run, 2))]
    return _files(
        [*traces, ("stage-times", "stage_times.csv", f"step,stage,microbatch_ms\n{timers}")],
        [
            ("nccl-log", "nccl_init.log", fabric.init_log(fabric.hosts_of(rng, 2), 8)),
            ("loss-curve", "loss.csv", smooth_loss(rng)),
            ("topology", "topo.txt", topology()),
        ],
    )


EXHIBITS: tuple[Callable[[Rng], Exhibits], ...] = (
    slow_gemm, mfu_collapse, collapse_at_load, fp8_long_context, smaller_tp, allreduce_cliff, slow_triton, bubble_mystery,
)  # fmt: skip
