# ruff: noqa: E501
"""Serving that is slow: services played by the serving simulator, and the engines' own lines."""

from __future__ import annotations

import json
from typing import Any

from stallwise.drill.artifacts.logs import START, lines
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted
from stallwise.physics.sim.requests import Traffic, lognormal, poisson
from stallwise.physics.sim.service import Served, Settings, simulate
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.hardware import gpu
from stallwise.physics.specs.models import find_model

SMALL = Deployment(find_model("llama-3-8b"), gpu("h100-sxm"))
MOST_LINES = 40
ITERATION = "INFO 02-18 16:21:{:02d} [core.py:387] Iteration({}): {} context requests, {} context tokens, 50 generation requests, 50 generation tokens, iteration elapsed time: {:.1f} ms, kv cache: 15.1%\n"
HOST_STEP = "[04/28/2025-09:56:{:02d}] [TRT-LLM] [I] iter = {}, rank = 0, currank_total_requests = 16/16, host_step_time = {:.1f}ms, prev_device_step_time = {:.1f}ms, num_scheduled_requests: 16, kv_cache_util = 0.2, states = {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 16}}\n"


def _played(served: Served, value: float, **words: Any) -> Drawn:
    """The engine's own lines of the busy part of the simulation."""
    busy = [s for s in served.meter.samples if s[1] > 0][:MOST_LINES]
    log = lines((run, wait, 100 * kv, prompt, out) for _, run, wait, kv, prompt, out in busy)
    return drawn(
        value,
        exhibit("engine-log", "engine.log", START.format(model="m", more="", cap=served.settings.max_seqs) + log),
        **words,
    )


@planted("batch-cap-too-low")
def capped(rng: Rng) -> Drawn:
    cap, rate = rng.pick(8, 12, 16), rng.between(9, 12)
    load = poisson(rate, Traffic(lognormal(300), lognormal(250)), 700, seed=rng.whole(1, 999))
    return _played(simulate(SMALL, load, Settings(max_seqs=cap, sample_s=2.0)), cap, rate=rate)


@planted("kv-cache-preemption")
def crowded(rng: Rng) -> Drawn:
    load = poisson(14, Traffic(lognormal(300), lognormal(900)), 900, seed=rng.whole(1, 999))
    served = simulate(SMALL, load, Settings(max_seqs=512, blocks=rng.whole(4200, 5000), sample_s=4.0))
    return _played(served, max(s[1] for s in served.meter.samples))


@planted("kv-cache-too-small")
def few_fit(rng: Rng) -> Drawn:
    few = rng.whole(2, 4)
    log = lines((few, 20 + i * rng.pick(1, 2), rng.between(96, 98), 300, 40) for i in range(10))
    return drawn(few, exhibit("engine-log", "engine.log", log))


@planted("prefill-decode-contention")
def mixed_iterations(rng: Rng) -> Drawn:
    slow, fast, tokens = rng.between(150, 260), rng.between(10, 16), rng.whole(3500, 6000)
    log = "".join(ITERATION.format(i, i, i % 2, tokens * (i % 2), slow if i % 2 else fast) for i in range(30))
    return drawn(slow * 1e-3, exhibit("engine-log", "engine.log", log))


@planted("head-of-line-blocking")
def one_giant(rng: Rng) -> Drawn:
    first = rng.whole(8, 20)
    log = lines((1, first + i, rng.between(18, 25), rng.between(5000, 7000), 0) for i in range(10))
    return drawn(1, exhibit("engine-log", "engine.log", log))


@planted("cpu-bound-engine")
def host_slower(rng: Rng) -> Drawn:
    host = rng.between(17, 28)
    log = "".join(HOST_STEP.format(i, i, rng.near(host), rng.near(host * 0.3)) for i in range(20))
    return drawn(1 / 0.3, exhibit("engine-log", "engine.log", log), gpu_use=30)


@planted("client-limited")
def serial_client(rng: Rng) -> Drawn:
    asked = rng.pick(16, 32, 64)
    bench = {
        "max_concurrency": asked,
        "completed": 50,
        "duration": 100.0,
        "output_throughput": 90.0,
        "median_ttft_ms": 40.0,
    }
    log = lines((1, 0, 0.5, 20, rng.between(85, 95)) for _ in range(10))
    files = exhibit("engine-log", "engine.log", log), exhibit("bench", "bench.json", json.dumps(bench))
    return drawn(1, *files, gpu_use=60, asked=asked)


@planted("queue-saturated")
def sweep(rng: Rng) -> Drawn:
    knee = rng.between(6, 7.6)
    rows = [(2, 2.0, 90.0), (8, min(8.0, knee) * 0.97, 400.0), (16, knee, rng.between(7000, 12000))]
    runs = {
        r: {"request_rate": float(r), "request_throughput": a, "median_ttft_ms": t, "median_tpot_ms": 20.0}
        for r, a, t in rows
    }
    return drawn(knee, *(exhibit("bench", f"bench_{r}.json", json.dumps(run)) for r, run in runs.items()))


@planted("prefix-cache-miss")
def shorter_than_a_block(rng: Rng) -> Drawn:
    block, shared = rng.pick(784, 528, 1056), rng.whole(200, 400)
    log = f"INFO 07-01 09:59:00 [config.py:5] Setting attention block size to {block} tokens to ensure that attention page size is >= mamba page size.\nvllm v1 engine EngineCore\n"
    metrics = f"vllm:prefix_cache_queries_total {rng.whole(300000, 900000)}\nvllm:prefix_cache_hits_total 0\nvllm:num_requests_running 8\n"
    table = "request_id,shared_system_prompt_tokens,prompt_tokens\n" + "".join(
        f"r{i},{shared},{460 + i}\n" for i in range(20)
    )
    files = (
        ("engine-log", "engine.log", log),
        ("engine-metrics", "metrics.txt", metrics),
        ("bench", "requests.csv", table),
    )
    return drawn(block, *(exhibit(*file) for file in files), shared=shared)


@planted("cold-start")
def slow_start(rng: Rng) -> Drawn:
    compile_s, minutes = rng.between(300, 500), rng.whole(8, 12)
    log = (
        "(APIServer pid=1) INFO 06-30 08:00:00 [api_server.py:1200] vLLM API server version 0.19.0\n"
        f"(EngineCore pid=2) INFO 06-30 08:00:33 [monitor.py:34] torch.compile takes {compile_s:.2f} s in total\n"
        f"(APIServer pid=1) INFO 06-30 08:{minutes:02d}:30 [launcher.py:44] Application startup complete.\n"
    )
    return drawn(compile_s, exhibit("engine-log", "engine.log", log), gpu_use=20, minutes=minutes)
