# ruff: noqa: E501
"""Engine lines of all years, start-up lines, metrics of every engine, benchmark results, and what is never copied."""

from __future__ import annotations

import json
import random

import pytest

from stallwise.doctor.gather import read_artifact
from stallwise.errors import StallwiseError
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.catalog import fabric, serving
from stallwise.evidence.evidence import Evidence
from stallwise.readers._scraped_facts import quantile
from stallwise.readers.serving_metrics import pages


def read(text: str, name: str = "engine.log") -> Evidence:
    evidence = Evidence()
    evidence.formats, items = read_artifact(Artifact(name, content=text.encode()))
    evidence.add(items)
    return evidence


def column(evidence: Evidence, name: str) -> list[float]:
    return [float(v) for v in evidence.table(serving.ENGINE_SAMPLES)[0].columns[name]]


V0 = (
    "INFO 03-01 23:59:55 metrics.py:295] Avg prompt throughput: 198.4 tokens/s, Avg generation throughput: 1,923.3 tokens/s, "
    "Running: 48 reqs, Swapped: 2 reqs, Pending: 7 reqs, GPU KV cache usage: 40.0%, CPU KV cache usage: 12.0%."
)
V1 = (
    "(APIServer pid=1) INFO 03-02 00:00:05 [loggers.py:271] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation "
    "throughput: 91.5 tokens/s, Running: 5 reqs, Waiting: 3 reqs, GPU KV cache usage: 6.4%, Prefix cache hit rate: 21.3%, "
    "External prefix cache hit rate: 0.4%, Preemptions: 4"
)


def test_lines_of_both_engines_and_a_midnight_between_them() -> None:
    evidence = read(f"{V0}\n{V1}\n{V1.replace('00:00:05', '00:00:15')}\n")
    assert column(evidence, "time_s") == [0, 10, 20]
    assert column(evidence, "running") == [48, 5, 5] and column(evidence, "waiting") == [7, 3, 3]
    assert column(evidence, "kv_share")[0] == 0.4 and column(evidence, "generation_token_per_s")[0] == 1923.3
    assert column(evidence, "hit_share")[1] == pytest.approx(0.213)  # not the external one
    assert evidence.value(serving.PREEMPTED) == 8  # since the line before, twice


def test_cumulative_preemptions_are_not_added_up() -> None:
    warning = "WARNING 02-12 10:23:00 scheduler.py:1057] Sequence group 2 is preempted by PreemptionMode.RECOMPUTE mode total_num_cumulative_preemption="
    assert read(f"{V0}\n{warning}51\n{warning}101\n").value(serving.PREEMPTED) == 101


def test_timed_iterations() -> None:
    line = (
        "(EngineCore pid=2) INFO 02-18 16:21:{:02d} [core.py:387] Iteration({}): {} context requests, {} context tokens, 50 generation "
        "requests, 50 generation tokens, iteration elapsed time: {} ms, kv cache: 5.1% (3500/68959 blocks, 56000 tokens)"
    )
    evidence = read("\n".join(line.format(i, i, i % 2, 2000 * (i % 2), 80 if i % 2 else 10) for i in range(10)))
    assert column(evidence, "iteration_s")[:2] == [0.01, 0.08]
    assert column(evidence, "running")[1] == 51


def test_sglang_lines_of_hybrid_models_and_retractions() -> None:
    text = (
        "[2026-05-24 03:51:44 TP0] Prefill batch, #new-seq: 1, #new-token: 100, #cached-token: 300, token usage: 0.90, #running-req: 3, #queue-req: 2,\n"
        "[2026-05-24 03:51:45 TP0] Decode batch, #running-req: 4, #full token: 2642688, full token usage: 1.00, #swa token: 14592, "
        "swa token usage: 0.06, cuda graph: True, gen throughput (token/s): 429.52, #queue-req: 3\n"
        "[2026-05-24 03:51:46 TP0] KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_token_ratio: 0.6 -> 0.9\n"
    )
    evidence = read(text)
    assert column(evidence, "kv_share") == [0.9, 1.0]
    assert evidence.value(serving.PREEMPTED) == 2
    assert evidence.value(serving.PREFIX_HITS) / evidence.value(serving.PREFIX_QUERIES) == 0.75


def test_tensorrt_llm_of_both_backends() -> None:
    new = (
        "[04/28/2025-09:56:44] [TRT-LLM] [I] iter = 198, global_rank = 0, rank = 0, currank_total_requests = 20/64, host_step_time = 20.0ms, "
        "prev_device_step_time = 5.0ms, timestamp = 2025-04-28 09:56:44, num_scheduled_requests: 10, kv_cache_util = N/A, "
        "states = {'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 16}"
    )
    evidence = read(new)
    assert column(evidence, "iteration_s") == [0.02] and column(evidence, "device_s") == [0.005]
    assert column(evidence, "waiting") == [10]
    old = (
        'I1218 03:35:37.688135 20559 libtensorrtllm.cc:1205] {"Active Request Count":12,"Context Requests":1,"Free KV cache blocks":13,'
        '"Iteration Counter":0,"Max KV cache blocks":513,"Scheduled Requests":8,"Timestamp":"12-18-2023 03:35:37","Used KV cache blocks":500}'
    )
    evidence = read(old)
    assert column(evidence, "waiting") == [4] and column(evidence, "kv_share")[0] == pytest.approx(500 / 513)
    stats = [{"iter": i, "hostStepTimeMS": 12.0, "numActiveRequests": 30, "numQueuedRequests": 5, "timestamp": f"07-22-2026 11:20:0{i}",
              "kvCacheStats": {"maxNumBlocks": 100, "usedNumBlocks": 99},
              "inflightBatchingStats": {"numScheduledRequests": 24, "numGenRequests": 24, "numCtxTokens": 0, "numPausedRequests": 6}}
             for i in range(3)]  # fmt: skip
    evidence = read(json.dumps(stats), "metrics.json")
    assert column(evidence, "paused") == [6, 6, 6] and column(evidence, "generation_token_per_s")[0] == 2000


def test_start_up_lines_and_launch_commands() -> None:
    text = """vllm serve Qwen/Qwen3-32B-FP8 --tensor-parallel-size 2 --max-num-seqs 64 --no-enable-prefix-caching --enforce-eager
INFO 01-14 08:00:00 [core.py:76] Initializing a V1 LLM engine (v0.15.1) with config: max_seq_len=40960
INFO 01-14 08:01:00 [gpu_model_runner.py:3900] Model loading took 58.91 GiB memory and 79.40 seconds
INFO 01-14 08:02:10 [kv_cache_utils.py:1087] GPU KV cache size: 265,216 tokens
INFO 01-14 08:02:10 [kv_cache_utils.py:1091] Maximum concurrency for 40,960 tokens per request: 6.47x
INFO 01-14 08:02:40 [monitor.py:34] torch.compile takes 24.00 s in total
INFO 01-14 08:03:00 [launcher.py:44] Application startup complete.
"""
    value = read(text).value
    assert (value(fabric.TP_SIZE), value(serving.MAX_SEQS), value(serving.EAGER)) == (2, 64, 1)
    assert value(serving.PREFIX_CACHING) == 0 and value(serving.MAX_LENGTH) == 40960
    assert value(serving.KV_TOKENS) == 265_216 and value(serving.MAX_CONCURRENCY) == 6.47
    assert value(serving.WEIGHT_MEMORY) == pytest.approx(58.91 * 2**30)
    assert value(serving.READY_TIME) == 180
    assert read(text).text(serving.VERSION) == "0.15.1"


@pytest.mark.parametrize(
    ("text", "engine"),
    [
        ('vllm:num_requests_running{model_name="m"} 3.0\nvllm:gpu_cache_usage_perc{model_name="m"} 0.5\n', "vllm"),
        ('vllm:num_requests_running{engine="0"} 1\nvllm:num_requests_running{engine="1"} 2\nvllm:kv_cache_usage_perc{engine="0"} 0.4\n'
         'vllm:kv_cache_usage_perc{engine="1"} 0.6\n', "vllm"),
        ("sglang:num_running_reqs 3\nsglang:token_usage 0.5\n", "sglang"),
    ],
)  # fmt: skip
def test_metric_names_of_every_version_mean_the_same(text: str, engine: str) -> None:
    (scrape,) = pages(text)
    assert scrape.gauges["running"] == 3 and scrape.gauges["kv_share"] == 0.5 and scrape.engine == engine


def test_histograms_give_means_and_tails() -> None:
    text = "\n".join(
        [
            f'vllm:time_to_first_token_seconds_bucket{{le="{edge}"}} {count}'
            for edge, count in (("0.1", 50), ("1.0", 98), ("+Inf", 100))
        ]
        + ["vllm:time_to_first_token_seconds_sum 60", "vllm:time_to_first_token_seconds_count 100"]
    )
    (scrape,) = pages(text)
    histogram = scrape.histograms["ttft"]
    assert histogram.mean == 0.6 and quantile(histogram, 0.5) == pytest.approx(0.1)
    assert quantile(histogram, 0.99) == 1.0


def test_benchmark_results_of_four_tools() -> None:
    vllm = {"request_rate": 4.0, "completed": 10, "duration": 5.0, "total_input_tokens": 5000, "total_output_tokens": 1000,
            "output_throughput": 200.0, "median_ttft_ms": 120.0, "p99_tpot_ms": 41.0, "generated_texts": ["secret words"]}  # fmt: skip
    evidence = read(json.dumps(vllm), "bench.json")
    assert evidence.value(serving.TTFT) == 0.12 and evidence.value(serving.PROMPT_TOKENS) == 500
    assert evidence.value(serving.ACHIEVED_RATE) == 2.0
    assert "secret" not in repr(evidence.facts)
    aiperf = {"time_to_first_token": {"unit": "ms", "avg": 80.0, "p50": 75.0, "p99": 200.0},
              "inter_token_latency": {"unit": "ms", "avg": 9.0, "p99": 20.0}, "request_throughput": {"unit": "requests/sec", "avg": 3.0}}  # fmt: skip
    evidence = read(json.dumps(aiperf), "profile_export_aiperf.json")
    assert evidence.value(serving.TTFT) == 0.075 and evidence.value(serving.TPOT_TAIL) == 0.02
    guide = {"benchmarks": [{"metrics": {"time_to_first_token_ms": {"successful": {"median": 50.0, "percentiles": {"p99": 90.0}}},
                                         "requests_per_second": {"successful": {"mean": rate}}}} for rate in (1.0, 2.0)]}  # fmt: skip
    evidence = read(json.dumps(guide), "benchmarks.json")
    assert [f.number for f in evidence.all(serving.ACHIEVED_RATE)] == [1.0, 2.0]
    printed = """============ Serving Benchmark Result ============
Successful requests:                     32
Total input tokens:                      65536
Request throughput (req/s):              0.21
Median TTFT (ms):                        7099.88
-----Time per Output Token (excl. 1st token)------
Median TPOT (ms):                        70.23
P99 TPOT (ms):                           72.63
"""
    evidence = read(printed, "bench.txt")
    assert evidence.value(serving.TTFT) == pytest.approx(7.09988) and evidence.value(serving.PROMPT_TOKENS) == 2048


def test_sweeps_requests_and_containers() -> None:
    sweep = "offered_rps,achieved_rps,gpu_util_pct\n4,4.0,21\n12,12.0,57\n24,12.1,57\n"
    assert read(sweep, "sweep.csv").value(serving.PLATEAU_RATE) == 12.1
    requests = "request_id,shared_system_prompt_tokens,prompt_tokens\na,240,510\nb,240,460\n"
    assert read(requests, "r.csv").value(serving.SHARED_PREFIX) == 240
    pods = "NAME  CPU(cores)  MEMORY(bytes)\nvllm-0  3997m  9215Mi\nvllm-0  3993m  9215Mi\n"
    assert read(pods, "pods.txt").value(serving.CPU_USED) == pytest.approx(3.995)
    limits = 'resources:\n  requests:\n    cpu: "2"\n  limits:\n    cpu: "4"\n    nvidia.com/gpu: 1\n'
    assert read(limits, "pod.yaml").value(serving.CPU_LIMIT) == 4


def test_damaged_bytes_raise_only_our_errors() -> None:
    rng = random.Random(7)
    whole = [
        f"{V0}\n{V1}\n".encode(), json.dumps({"median_ttft_ms": 1.0, "output_throughput": 3, "records": []}).encode(),
        b'{"kvCacheStats": {"maxNumBlocks": 0}, "inflightBatchingStats": 3, "numActiveRequests": "x"}',
        b'vllm:num_requests_running{a="} 3\nvllm:kv_cache_usage_perc NaN\nvllm:x_bucket{le="q"} 1\n',
        b"[2025-09-05 10:00:12 TP0] Decode batch, #running-req: 1, token usage: 9.9.9\n",
        b"offered_rps,achieved_rps\n,\nx,y\n1,1\n",
    ]  # fmt: skip
    for base in whole:
        for _ in range(60):
            data = bytearray(base)
            for _ in range(rng.randrange(1, 8)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            cut = bytes(data[: rng.randrange(1, len(data) + 1)])
            try:
                read_artifact(Artifact("x", content=cut))
            except StallwiseError:
                continue
