# ruff: noqa: E501
"""Causes named from engine lines that only differ in their mechanism; and services that are fine and stay unnamed."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from stallwise.doctor.examine import examine
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.gather import read_artifact
from stallwise.evidence.artifact import Artifact
from stallwise.evidence.evidence import Evidence


def lines(samples: Iterable[tuple[float, float, float, float, float]], hit: float = 0.0) -> str:
    """(running, waiting, KV %, prompt rate, generation rate) every ten seconds."""
    return "\n".join(
        f"(APIServer pid=1) INFO 07-01 {10 + i // 360:02d}:{i // 6 % 60:02d}:{i % 6 * 10:02d} [loggers.py:271] Engine 000: Avg prompt throughput: {p:.1f} tokens/s, "
        f"Avg generation throughput: {g:.1f} tokens/s, Running: {r:.0f} reqs, Waiting: {w:.0f} reqs, GPU KV cache usage: {k:.1f}%, Prefix cache hit rate: {hit:.1f}%"
        for i, (r, w, k, p, g) in enumerate(samples)
    )


def diagnosed(*texts: str, names: tuple[str, ...] = ()) -> Diagnosis:
    evidence = Evidence()
    for i, text in enumerate(texts):
        name = names[i] if names else f"file{i}"
        formats, items = read_artifact(Artifact(name, content=text.encode()))
        assert formats, f"nobody reads {name}"
        evidence.inputs.append(name)
        evidence.formats += formats
        evidence.add(items)
    return examine(evidence)


START = (
    "INFO 07-01 09:59:00 [core.py:76] Initializing a V1 LLM engine (v0.15.1) with config: model='m', max_num_seqs={}\n"
)


CASES = {
    "kv-cache-preemption": [
        lines((64 - i, 10 + i, 99.5, 0, 900 - 5 * i) for i in range(20)),  # running falls as waiting rises
        lines(
            [*((7, 0, 90, 0, 60) for _ in range(6)), *((8, 0, 99, 0, 18) for _ in range(6))]
        ),  # the same batch crawls
    ],
    "kv-cache-too-small": [lines((3, 20 + i, 97, 300, 40) for i in range(10))],
    "batch-cap-too-low": [
        START.format(8) + lines((8, 5 + i % 3, 4, 20, 300) for i in range(12)),
        lines((16, 9, 11, 50, 700) for _ in range(12)),
    ],
    "queue-saturated": [lines((100 + 7 * (i % 5), 20 + 12 * i, 60, 4000, 2500) for i in range(20))],
    "prefill-decode-contention": [
        lines((40, 0, 35, 9000 if i % 3 == 0 else 0, 30 if i % 3 == 0 else 1200) for i in range(24))
    ],
    "head-of-line-blocking": [lines((1, 12 + i, 20, 6000, 0) for i in range(10))],
}


@pytest.mark.parametrize(("cause", "text"), [(c, t) for c, texts in CASES.items() for t in texts])
def test_the_mechanism_names_the_cause(cause: str, text: str) -> None:
    diagnosis = diagnosed(text)
    assert diagnosis.ranked[0] == cause
    assert diagnosis.first is not None and diagnosis.first.fixes and diagnosis.first.because[0].sources


HEALTHY = {
    "a well-used cache": lines((60 + i % 2, 0, 97 + i % 3, 500, 2400) for i in range(20)),
    "a burst that drains": lines((120, max(0, 40 - 8 * i), 50, 3000, 3000) for i in range(20)),
    "steady traffic": lines((30 + i % 4, 0, 30, 800, 1500) for i in range(20)),
    "an idle server": lines((0, 0, 0, 0, 0) for _ in range(10)),
    "one quiet user": lines((1, 0, 0.5, 20, 90) for _ in range(10)),
    "a low hit rate and no known prefix": lines(((20, 0, 30, 800, 1500) for _ in range(20)), hit=1.5),
    "a long prompt now and then": lines((40, 0, 35, 3000 if i == 5 else 0, 300 if i == 5 else 1200) for i in range(24)),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_services_that_are_fine(name: str) -> None:
    assert diagnosed(HEALTHY[name]).state is not State.SICK


def test_one_preemption_in_a_good_day_is_an_aside() -> None:
    warning = "WARNING 07-01 10:00:30 scheduler.py:1] Sequence group 4 is preempted by PreemptionMode.RECOMPUTE mode total_num_cumulative_preemption=1\n"
    answer = diagnosed(HEALTHY["a well-used cache"] + "\n" + warning)
    assert answer.first is not None and answer.first.confidence < 0.7


def test_an_idle_average_is_not_a_slowdown() -> None:
    text = "\n".join(
        f"[2025-09-05 10:0{i}:40 TP0] Prefill batch, #new-seq: 1, #new-token: 121, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0,\n"
        f"[2025-09-05 10:0{i}:40 TP0] Decode batch, #running-req: 1, #token: 154, token usage: 0.00, cuda graph: True, gen throughput (token/s): 1.06, #queue-req: 0,\n"
        f"[2025-09-05 10:0{i}:41 TP0] Decode batch, #running-req: 1, #token: 194, token usage: 0.00, cuda graph: True, gen throughput (token/s): 84.20, #queue-req: 0,"
        for i in range(5)
    )
    assert diagnosed(text).state is not State.SICK


def test_a_prefix_shorter_than_a_block_never_matches() -> None:
    block = "INFO 07-01 09:59:00 [config.py:5] Setting attention block size to 784 tokens to ensure that attention page size is >= mamba page size.\nvllm v1 engine EngineCore\n"
    metrics = "vllm:prefix_cache_queries_total 487000\nvllm:prefix_cache_hits_total {}\nvllm:num_requests_running 8\n"
    table = "request_id,shared_system_prompt_tokens,prompt_tokens\n" + "".join(
        f"r{i},240,{460 + i}\n" for i in range(20)
    )
    names = ("engine.log", "metrics.txt", "requests.csv")
    missed = diagnosed(block, metrics.format(0), table, names=names)
    assert missed.ranked[0] == "prefix-cache-miss" and missed.first and "784" in missed.first.headline
    assert diagnosed(block, metrics.format(200_000), table, names=names).state is not State.SICK


def test_a_core_or_a_quota_used_up_beside_an_idle_gpu() -> None:
    load = lines((20, 0, 8, 0, 280) for _ in range(10))
    pods = "NAME  CPU(cores)  MEMORY(bytes)\n" + "vllm-0  {}m  9215Mi\n" * 3
    limits = 'spec:\n  resources:\n    limits:\n      cpu: "4"\n'
    assert diagnosed(load, pods.format(3990, 3995, 3999), limits).ranked[0] == "cpu-bound-engine"
    assert diagnosed(load, pods.format(1700, 1690, 1710), limits).state is not State.SICK


def test_a_host_that_takes_longer_than_the_gpu() -> None:
    line = (
        "[04/28/2025-09:56:{:02d}] [TRT-LLM] [I] iter = {}, rank = 0, currank_total_requests = 16/16, host_step_time = 20.0ms, prev_device_step_time = {}ms, "
        "num_scheduled_requests: 16, kv_cache_util = 0.2, states = {{'num_ctx_requests': 0, 'num_ctx_tokens': 0, 'num_generation_tokens': 16}}"
    )
    assert diagnosed("\n".join(line.format(i, i, 6.0) for i in range(20))).ranked[0] == "cpu-bound-engine"
    assert diagnosed("\n".join(line.format(i, i, 19.0) for i in range(20))).state is not State.SICK


def test_iterations_that_carry_prompts() -> None:
    line = (
        "INFO 02-18 16:21:{:02d} [core.py:387] Iteration({}): {} context requests, {} context tokens, 50 generation requests, 50 generation tokens, "
        "iteration elapsed time: {} ms, kv cache: 15.1%"
    )
    text = "\n".join(line.format(i, i, i % 2, 4000 * (i % 2), 180 if i % 2 else 12) for i in range(30))
    assert diagnosed(text).ranked[0] == "prefill-decode-contention"
    text = "\n".join(line.format(i, i, i % 2, 256 * (i % 2), 20 if i % 2 else 12) for i in range(30))
    assert diagnosed(text).state is not State.SICK


def test_a_client_that_sends_one_at_a_time_while_it_claims_more() -> None:
    bench = json.dumps(
        {"max_concurrency": 32, "completed": 50, "duration": 100.0, "output_throughput": 90.0, "median_ttft_ms": 40.0}
    )
    diagnosis = diagnosed(lines((1, 0, 0.5, 20, 90) for _ in range(10)), bench)
    assert diagnosis.ranked[0] == "client-limited"


def test_a_sweep_past_the_knee() -> None:
    def result(rate: float, achieved: float, ttft_ms: float) -> str:
        return json.dumps(
            {"request_rate": rate, "request_throughput": achieved, "median_ttft_ms": ttft_ms, "median_tpot_ms": 20.0}
        )

    assert diagnosed(result(2, 2, 90), result(8, 7, 400), result(16, 7.1, 9000)).ranked[0] == "queue-saturated"
    assert diagnosed(result(2, 2, 90), result(8, 7.9, 120)).state is not State.SICK


def test_a_slow_start_and_an_ordinary_one() -> None:
    text = (
        "(APIServer pid=1) INFO 06-30 08:00:00 [api_server.py:1200] vLLM API server version 0.19.0\n"
        "(EngineCore pid=2) INFO 06-30 08:00:33 [monitor.py:34] torch.compile takes {:.2f} s in total\n"
        "(APIServer pid=1) INFO 06-30 08:{:02d}:30 [launcher.py:44] Application startup complete.\n"
    )
    assert diagnosed(text.format(400, 8)).ranked[0] == "cold-start"
    assert diagnosed(text.format(30, 1)).state is not State.SICK
