# ruff: noqa: E501
"""Serving that is slow, told by the engine's own lines."""

from __future__ import annotations

import json

from stallwise.drill.artifacts.engine import START, lines
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


def _setup(rng: Rng, what: str) -> str:
    model = rng.pick("Llama-3-8B", "Llama-3-70B", "Qwen2.5-32B", "Mixtral-8x7B")
    return f"{model} is served by vLLM on {rng.pick(1, 2, 4, 8)} x {rng.pick('H100', 'H200', 'A100')}. {what} GPU utilisation shows {rng.whole(95, 100)}%. What is happening and what do you change?"


@planted("kv-cache-preemption")
def thrashing(rng: Rng) -> Plot:
    most = rng.whole(50, 90)
    log = lines((most - i, 10 + i, rng.between(99, 100), 0, 900 - 5 * i) for i in range(20))
    return Plot(
        _setup(rng, "Under load the output rate falls although more requests wait every minute."),
        (exhibit("engine-log", "engine.log", log),),
        number=Decisive("By how many does the number of running requests fall over the log?", 19, within=EXACT),
    )


@planted("kv-cache-too-small")
def few_fit(rng: Rng) -> Plot:
    few = rng.whole(2, 4)
    log = lines((few, 20 + i * rng.pick(1, 2), rng.between(96, 98), 300, 40) for i in range(10))
    return Plot(
        _setup(rng, "Only a handful of requests ever run at once, whatever the load."),
        (exhibit("engine-log", "engine.log", log),),
        number=Decisive("How many requests run at once?", few, within=EXACT),
    )


@planted("batch-cap-too-low")
def cap(rng: Rng) -> Plot:
    most = rng.pick(8, 16, 24, 32)
    log = START.format(model="m", cap=most) + lines(
        (most, 5 + (i * 7) % 4, rng.between(3, 9), 20, most * 38) for i in range(14)
    )
    return Plot(
        _setup(
            rng, f"Users wait in a queue at {rng.whole(4, 12)} requests a second, yet a bigger card changed nothing."
        ),
        (exhibit("engine-log", "engine.log", log),),
        number=Decisive("How many requests run at once, whatever waits?", most, within=EXACT),
    )


@planted("queue-saturated")
def past_the_knee(rng: Rng) -> Plot:
    grow = rng.whole(9, 15)
    log = lines((100 + 7 * (i % 5), 20 + grow * i, rng.between(57, 63), 4000, 2500) for i in range(20))
    return Plot(
        _setup(rng, "Time to first token grows for as long as the peak hour lasts and recovers at night."),
        (exhibit("engine-log", "engine.log", log),),
        number=Decisive("By how many requests does the queue grow from one line to the next?", grow, within=EXACT),
    )


@planted("prefill-decode-contention")
def stutter(rng: Rng) -> Plot:
    prompt, usual = rng.between(8000, 11000), rng.between(1000, 1500)
    log = lines((rng.whole(39, 41), 0, 35, prompt if i % 3 == 0 else 0, 30 if i % 3 == 0 else usual) for i in range(24))
    return Plot(
        _setup(
            rng,
            "Streams stutter: tokens stop for a moment for everybody, several times a minute, whenever long prompts arrive.",
        ),
        (exhibit("engine-log", "engine.log", log),),
        number=Decisive("Which generation rate is left in the lines with prompts?", 30, Unit.TOKEN_PER_S),
    )


@planted("prefill-decode-contention")
def mixed_iterations(rng: Rng) -> Plot:
    form = "INFO 02-18 16:21:{:02d} [core.py:387] Iteration({}): {} context requests, {} context tokens, 50 generation requests, 50 generation tokens, iteration elapsed time: {:.1f} ms, kv cache: 15.1%\n"
    slow, fast, tokens = rng.between(150, 260), rng.between(10, 16), rng.whole(3500, 6000)
    text = "".join(form.format(i, i, i % 2, tokens * (i % 2), slow if i % 2 else fast) for i in range(30))
    return Plot(
        _setup(rng, "The time between tokens is good in the median and ten times worse in the tail."),
        (exhibit("engine-log", "engine.log", text),),
        number=Decisive("How long is an iteration that carries a prompt?", slow * 1e-3, Unit.SECOND),
    )


@planted("head-of-line-blocking")
def one_giant(rng: Rng) -> Plot:
    first = rng.whole(8, 20)
    log = lines((1, first + i, rng.between(18, 25), rng.between(5000, 7000), 0) for i in range(10))
    return Plot(
        _setup(rng, "Every few minutes all users wait many seconds for a first token, then everything is fine again."),
        (exhibit("engine-log", "engine.log", log),),
        number=Decisive("How many requests run while the others wait?", 1, within=EXACT),
    )


@planted("cpu-bound-engine")
def host_slower(rng: Rng) -> Plot:
    form = "[04/28/2025-09:56:{:02d}] [TRT-LLM] [I] iter = {}, rank = 0, currank_total_requests = 16/16, host_step_time = {:.1f}ms, prev_device_step_time = {:.1f}ms, num_scheduled_requests: 16, kv_cache_util = 0.2, states = {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 16}}\n"
    host = rng.between(17, 28)
    text = "".join(form.format(i, i, rng.near(host), rng.near(host * 0.3)) for i in range(20))
    return Plot(
        "A small model on a fast card decodes at a rate that a card of half the bandwidth reaches too. Batch and lengths are modest. Why?",
        (exhibit("engine-log", "engine.log", text),),
        gpu_use=30,
        number=Decisive("How many times longer is the host's step than the device's?", 1 / 0.3, Unit.RATIO),
    )


@planted("client-limited")
def serial_client(rng: Rng) -> Plot:
    asked = rng.pick(16, 32, 64)
    bench = json.dumps(
        {
            "max_concurrency": asked,
            "completed": 50,
            "duration": 100.0,
            "output_throughput": 90.0,
            "median_ttft_ms": 40.0,
        }
    )
    log = lines((1, 0, 0.5, 20, rng.between(85, 95)) for _ in range(10))
    return Plot(
        f"A load test with {asked} clients reports a fraction of the throughput that others publish for this card. Each answer comes quickly. Why?",
        (exhibit("engine-log", "engine.log", log), exhibit("bench", "bench.json", bench)),
        gpu_use=60,
        number=Decisive("How many requests does the engine have at once?", 1, within=EXACT),
    )


@planted("queue-saturated")
def sweep(rng: Rng) -> Plot:
    knee = rng.between(6, 7.6)
    rows = [(2.0, 2.0, 90.0), (8.0, min(8.0, knee) * 0.97, 400.0), (16.0, knee, rng.between(7000, 12000))]
    files = [
        exhibit(
            "bench",
            f"bench_{int(r)}.json",
            json.dumps({"request_rate": r, "request_throughput": a, "median_ttft_ms": t, "median_tpot_ms": 20.0}),
        )
        for r, a, t in rows
    ]
    return Plot(
        "A sweep over request rates: at 2 a second the first token takes 90 ms, at 16 many seconds; the time per token stays at 20 ms. What limits?",
        tuple(files),
        number=Decisive("Which request rate does the service finish at most?", knee, Unit.PER_S),
    )


@planted("prefix-cache-miss")
def shorter_than_a_block(rng: Rng) -> Plot:
    block, shared = rng.pick(784, 528, 1056), rng.whole(200, 400)
    log = f"INFO 07-01 09:59:00 [config.py:5] Setting attention block size to {block} tokens to ensure that attention page size is >= mamba page size.\nvllm v1 engine EngineCore\n"
    metrics = f"vllm:prefix_cache_queries_total {rng.whole(300000, 900000)}\nvllm:prefix_cache_hits_total 0\nvllm:num_requests_running 8\n"
    table = "request_id,shared_system_prompt_tokens,prompt_tokens\n" + "".join(
        f"r{i},{shared},{460 + i}\n" for i in range(20)
    )
    return Plot(
        f"All users share a system prompt of {shared} tokens, and prefix caching is on, yet the first token is as slow as without. Why?",
        (
            exhibit("engine-log", "engine.log", log),
            exhibit("engine-metrics", "metrics.txt", metrics),
            exhibit("bench", "requests.csv", table),
        ),
        number=Decisive("How many tokens has the unit that is matched?", block, within=EXACT),
    )


@planted("cold-start")
def slow_start(rng: Rng) -> Plot:
    compile_s, minutes = rng.between(300, 500), rng.whole(8, 12)
    text = (
        "(APIServer pid=1) INFO 06-30 08:00:00 [api_server.py:1200] vLLM API server version 0.19.0\n"
        f"(EngineCore pid=2) INFO 06-30 08:00:33 [monitor.py:34] torch.compile takes {compile_s:.2f} s in total\n"
        f"(APIServer pid=1) INFO 06-30 08:{minutes:02d}:30 [launcher.py:44] Application startup complete.\n"
    )
    return Plot(
        f"Scaling out takes {minutes} minutes a replica although the weights load in one; once up, replicas are fast. Where does the time go?",
        (exhibit("engine-log", "engine.log", text),),
        gpu_use=20,
        number=Decisive("How long is the longest part of the start?", compile_s, Unit.SECOND),
    )
