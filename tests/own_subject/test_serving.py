"""Metrics pages, engine logs and load tests: in line under load with their numbers, idle said as idle, trouble never well."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from stallwise.doctor.findings.diagnosis import State
from tests.own_subject.asked import asked, words


def page(
    running: int,
    waiting: int,
    kv: float,
    served: int,
    *,
    preempted: int = 0,
    queue_s: float = 0.001,
    name: str = "vllm",
) -> str:
    """A page as vLLM prints it; LMDeploy took its names over."""
    ttft = "\n".join(
        f'{name}:time_to_first_token_seconds_bucket{{le="{edge}"}} {int(served * part)}'
        for edge, part in (("0.05", 0.4), ("0.1", 0.95), ("0.5", 1.0), ("+Inf", 1.0))
    )
    return f"""{name}:num_requests_running {running}
{name}:num_requests_waiting {waiting}
{name}:gpu_cache_usage_perc {kv}
{name}:num_preemptions_total {preempted}
{name}:request_success_total {served}
{ttft}
{name}:time_to_first_token_seconds_sum {0.06 * served}
{name}:time_to_first_token_seconds_count {served}
{name}:e2e_request_latency_seconds_sum {3.0 * served}
{name}:e2e_request_latency_seconds_count {served}
{name}:request_queue_time_seconds_sum {queue_s * served}
{name}:request_queue_time_seconds_count {served}
"""


@pytest.mark.parametrize("name", ["vllm", "lmdeploy"])
def test_a_loaded_page_without_queue_is_in_line_with_its_quantiles(tmp_path: Path, name: str) -> None:
    answer = asked(tmp_path, "metrics.txt", page(30, 0, 0.4, 5000, name=name))
    said = words(answer)
    assert answer.state is State.HEALTHY and "30 running" in said and "0 waiting" in said and "0 preempted" in said
    assert "60 ms (median 59.1 ms" in said and "not in this file" in said


def test_an_idle_page_is_called_idle_with_its_numbers(tmp_path: Path) -> None:
    answer = asked(tmp_path, "metrics.txt", page(0, 0, 0.0, 0))
    assert answer.state is State.UNCLEAR and "idle (0 running, 0 waiting" in words(answer)


@pytest.mark.parametrize(("served", "state"), [(24, State.HEALTHY), (1, State.UNCLEAR)])
def test_a_few_even_requests_say_how_it_serves_alone_and_one_says_nothing(
    tmp_path: Path, served: int, state: State
) -> None:
    late = page(0, 0, 0.0, served)  # one first token in twenty comes within half a second
    even = re.sub(r'(le="0.1"}) \d+', rf"\1 {served}", late)
    answer = asked(tmp_path, "metrics.txt", even)
    assert answer.state is state and f"{served} served" in words(answer) and "under load" in words(answer)
    assert asked(tmp_path, "metrics.txt", late).state is State.UNCLEAR


@pytest.mark.parametrize(
    "text",
    [
        page(30, 12, 0.5, 5000),
        page(30, 0, 0.97, 5000),
        page(30, 0, 0.4, 5000, preempted=40),
        page(30, 0, 0.4, 5000, queue_s=2.0),
    ],
)
def test_a_queue_a_full_cache_or_preemptions_are_never_in_line(tmp_path: Path, text: str) -> None:
    assert asked(tmp_path, "metrics.txt", text).state is not State.HEALTHY


def test_buckets_that_cannot_hold_the_sum_give_no_quantile(tmp_path: Path) -> None:
    text = page(3, 0, 0.3, 800).replace("time_to_first_token", "e2e_request_latency")
    text = "\n".join(line for line in text.splitlines() if "_seconds_sum 48" not in line) + "\n"
    assert "median" not in words(asked(tmp_path, "metrics.txt", text))


def test_a_cut_page_is_no_crash_and_not_well(tmp_path: Path) -> None:
    text = page(3, 0, 0.4, 5000)
    assert asked(tmp_path, "metrics.txt", text[:130]).state is not State.HEALTHY


def test_triton_tells_its_queue_batch_and_failures(tmp_path: Path) -> None:
    text = """nv_inference_request_success{model="m"} 2000
nv_inference_request_failure{model="m"} 0
nv_inference_count{model="m"} 16000
nv_inference_exec_count{model="m"} 2000
nv_inference_request_duration_us{model="m"} 10000000
nv_inference_queue_duration_us{model="m"} 400000
nv_inference_compute_infer_duration_us{model="m"} 9000000
nv_inference_pending_request_count{model="m"} 0
nv_gpu_utilization{gpu_uuid="GPU-1"} 0.88
"""
    answer = asked(tmp_path, "metrics.txt", text)
    said = words(answer)
    assert (
        answer.state is State.HEALTHY
        and "mean batch 8" in said
        and "GPU 88% busy" in said
        and "(4.0%) in the queue" in said
    )
    waiting = text.replace('queue_duration_us{model="m"} 400000', 'queue_duration_us{model="m"} 7000000')
    assert asked(tmp_path, "metrics2.txt", waiting).state is not State.HEALTHY


def test_ray_serve_pages_are_read_in_milliseconds(tmp_path: Path) -> None:
    rows = [
        f'ray_serve_deployment_processing_latency_ms_bucket{{le="{e}"}} {c}'
        for e, c in (("10", 100), ("100", 990), ("+Inf", 1000))
    ]
    rows += [
        "ray_serve_deployment_processing_latency_ms_sum 40000",
        "ray_serve_deployment_processing_latency_ms_count 1000",
    ]
    rows += ["ray_serve_deployment_request_counter_total 1000", "ray_serve_replica_processing_queries 12"]
    assert "a request in 40 ms" in words(asked(tmp_path, "metrics.txt", "\n".join(rows) + "\n"))


def vllm(running: int, waiting: int, kv: float, lines: int = 40) -> str:
    return "".join(
        f"INFO 09-14 08:{at // 6:02d}:{at % 6}2 [loggers.py:118] Engine 000: Avg prompt throughput: 900.0 tokens/s, Avg generation "
        f"throughput: {25 * running + at % 3}.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {kv}%, "
        "Prefix cache hit rate: 40.0%\n"
        for at in range(lines)
    )


def test_an_engine_log_under_load_is_in_line(tmp_path: Path) -> None:
    answer = asked(tmp_path, "engine.log", vllm(40, 0, 45.0))
    said = words(answer)
    assert answer.state is State.HEALTHY and "40 running, 0 waiting" in said and "1,001 tokens/s" in said


def test_one_request_at_a_time_is_the_clients_pace(tmp_path: Path) -> None:
    assert asked(tmp_path, "engine.log", vllm(1, 0, 0.5)).ranked[0] == "client-limited"


@pytest.mark.parametrize("lines", [vllm(40, 25, 60.0), vllm(40, 0, 96.0), vllm(3, 0, 2.0)])
def test_a_queue_a_full_cache_or_hardly_any_load_is_not_called_well(tmp_path: Path, lines: str) -> None:
    assert asked(tmp_path, "engine.log", lines).state is not State.HEALTHY


def test_a_start_that_is_cut_says_how_far_it_came(tmp_path: Path) -> None:
    text = (
        "[2026-03-27 09:31:01] server_args=ServerArgs(model_path='m', mem_fraction_static=0.8, context_length=4096, tp_size=2)\n"
        "[2026-03-27 09:31:04 TP0] Init torch distributed ends. elapsed=0.97 s, mem usage=0.23 GB\n"
        "[2026-03-27 09:31:29 TP0] Load weight end. elapsed=24.36 s, type=Q, dtype=torch.float16, avail mem=9.9 GB, mem usage=1.50 GB.\n"
        "[2026-03-27 09:31:49 TP0] KV Cache is allocated. #tokens: 139814, K size: 5.33 GB, V size: 5.33 GB\n"
        "[2026-03-27 09:31:50 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=5.89 GB\n"
    )
    answer = asked(tmp_path, "sglang.log", text)
    said = words(answer)
    assert (
        answer.state is State.UNCLEAR
        and "start without a request" in said
        and "139,814" in said
        and "Capture cuda graph" in said
    )
    assert "leak" not in said


def test_a_pool_smaller_than_one_request_is_arithmetic(tmp_path: Path) -> None:
    text = (
        "[2026-02-09 14:38:24] server_args=ServerArgs(model_path='m', mem_fraction_static=0.2, context_length=35000)\n"
    )
    text += "[2026-02-09 14:38:25] KV Cache is allocated. #tokens: 25169, K size: 1.3 GB, V size: 1.3 GB\n"
    text += "".join(
        f"[2026-02-09 14:39:{at:02d}] Decode batch. #running-req: 1, #token: 24316, token usage: 0.97, gen throughput (token/s): 75.3, "
        f"#queue-req: {at % 2}\n"
        for at in range(12)
    )
    answer = asked(tmp_path, "sglang.log", text)
    assert answer.ranked[0] == "kv-cache-too-small" and "25,169" in words(answer) and "0.2" in words(answer)


def test_requests_of_tgi_and_llamacpp_are_read_one_by_one(tmp_path: Path) -> None:
    spans = "".join(
        json.dumps({"timestamp": f"2026-09-14T08:00:{at % 60:02d}Z", "level": "INFO", "message": "Success",
                    "target": "text_generation_router::server",
                    "span": {"total_time": "1.900s", "validation_time": "400µs", "queue_time": "38µs", "inference_time": "1.890s",
                             "time_per_token": "14.80ms", "seed": "None"}}) + "\n"
        for at in range(60)
    )  # fmt: skip
    said = words(asked(tmp_path, "tgi.log", spans))
    assert "60 served, 0 failed" in said and "14.8 ms" in said and "1.9 s" in said and "38 us" in said
    slots = "".join(
        f"slot print_timing: id 0 | task {at} | prompt eval time = 208.58 ms / 1024 tokens ( 0.20 ms per token, 4800.00 tokens per second)\n"
        f"slot print_timing: id 0 | task {at} |        eval time = 6860.00 ms / 256 tokens ( 26.80 ms per token, 37.30 tokens per second)\n"
        for at in range(60)
    )
    said = words(asked(tmp_path, "llama.log", slots))
    assert "60 served" in said and "37.3 tokens/s each" in said and "26.8 ms" in said


BENCH = """============ Serving Benchmark Result ============
Successful requests:                     {done}
Failed requests:                         {failed}
Request rate configured (RPS):           20.00
Benchmark duration (s):                  100.42
Total input tokens:                      1024000
Total generated tokens:                  512000
Request throughput (req/s):              {rate}
Output token throughput (tok/s):         5098.59
---------------Time to First Token----------------
Mean TTFT (ms):                          58.21
Median TTFT (ms):                        55.90
P99 TTFT (ms):                           {tail}
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          13.12
Median TPOT (ms):                        13.08
P99 TPOT (ms):                           14.41
==================================================
"""


def test_a_load_test_that_served_what_was_asked_is_in_line(tmp_path: Path) -> None:
    answer = asked(tmp_path, "bench.txt", BENCH.format(done=2000, failed=0, rate=19.92, tail=91.3))
    said = words(answer)
    assert answer.state is State.HEALTHY and "2,000 served, 0 failed" in said and "19.92 a second of 20" in said


@pytest.mark.parametrize("change", [{"failed": 300}, {"rate": 12.1}, {"tail": 4100.0}])
def test_a_load_test_with_failures_a_missed_rate_or_a_long_tail_is_not(
    tmp_path: Path, change: dict[str, float]
) -> None:
    numbers = {"done": 2000, "failed": 0, "rate": 19.92, "tail": 91.3} | change
    assert asked(tmp_path, "bench.txt", BENCH.format(**numbers)).state is not State.HEALTHY
