"""A service under several loads, planted and written in many forms: the same cause or the same health, by its numbers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.own_subject.asked import words

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.evidence.catalog import serving

Point = tuple[int, float, float, float]  # users, first token (s), a token (s), requests a second
OUTPUT = 128


def scales(users: int) -> Point:
    ttft, tpot = 0.06 * (1 + users / 60), 0.019 * (1 + users / 110)
    return users, ttft, tpot, users / (ttft + OUTPUT * tpot)


def capped(users: int) -> Point:
    """No more than eight run; whoever else comes waits for them."""
    _, ttft, tpot, rate = scales(min(users, 8))
    return users, max(ttft, users / rate - OUTPUT * tpot), tpot, rate


def past_its_knee(users: int) -> Point:
    """From 16 on more users get no more answers; later tokens slow down a little, first ones wait."""
    _, ttft, tpot, rate = scales(min(users, 16))
    tpot *= min(users / 16, 1.5) if users > 16 else 1
    return users, max(ttft, users / rate - OUTPUT * tpot), tpot, rate


def in_each_others_way(users: int) -> Point:
    _, ttft, tpot, _ = scales(users)
    ttft, tpot = ttft * users**1.3, tpot * users**0.6
    return users, ttft, tpot, users / (ttft + OUTPUT * tpot)


def csv(points: list[Point]) -> tuple[str, str]:
    rows = "\n".join(f"{n},{r:.3f},{r * OUTPUT:.1f},{t * 1e3:.1f},{p * 1e3:.2f},0" for n, t, p, r in points)
    return "sweep.csv", f"concurrency,req_s,out_tok_s,ttft_p50_ms,tpot_p50_ms,errors\n{rows}\n"


def drawn(points: list[Point]) -> tuple[str, str]:
    head = "| users | agg tok/s | per stream tok/s | p50 TTFT (s) | p99 TTFT (s) |\n|---|---|---|---|---|\n"
    rows = "\n".join(f"| {n} | {r * OUTPUT:.0f} | {1 / p:.1f} | {t:.3f} | {1.6 * t:.3f} |" for n, t, p, r in points)
    return "sweep.md", head + rows + "\n"


def saved(points: list[Point]) -> tuple[str, str]:
    rows = [
        {"max_concurrency": n, "completed": 500, "failed": 0, "duration": 500 / r, "request_throughput": r,
         "output_throughput": r * OUTPUT, "median_ttft_ms": t * 1e3, "median_tpot_ms": p * 1e3}
        for n, t, p, r in points
    ]  # fmt: skip
    return "bench.jsonl", "".join(json.dumps(row) + "\n" for row in rows)


def printed(points: list[Point]) -> tuple[str, str]:
    """Triton's perf_analyzer knows whole requests alone."""
    blocks = [
        f"Request concurrency: {n}\n  Client: \n    Request count: {round(100 * r)}\n    Throughput: {r:.2f} infer/sec\n"
        f"    Avg latency: {round((t + OUTPUT * p) * 1e6)} usec (standard deviation 41 usec)\n"
        for n, t, p, r in points
    ]
    return "perf.txt", "*** Measurement Settings ***\n" + "".join(blocks)


def told(folder: Path, name: str, text: str, *more: tuple[str, str]) -> Diagnosis:
    for file, content in ((name, text), *more):
        (folder / file).write_text(content)
    return diagnose(str(folder), workers=1, cache=False)


LIGHT = [1, 4, 8, 16, 32]
HEAVY = [1, 2, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("form", [csv, drawn, saved])
@pytest.mark.parametrize(
    ("service", "cause"),
    [
        (capped, "batch-cap-too-low"),
        (past_its_knee, "queue-saturated"),
        (in_each_others_way, "prefill-decode-contention"),
    ],
)
def test_numbers_alone_name_what_a_service_meets(
    service: Callable[[int], Point], cause: str, form: Callable[[list[Point]], tuple[str, str]], tmp_path: Path
) -> None:
    answer = told(tmp_path, *form([service(n) for n in HEAVY]))
    assert (answer.state, answer.ranked[0]) == (State.SICK, cause)
    assert answer.evidence.value(serving.LOAD_GROWTH) == pytest.approx(64)
    known = [h.probability for h in answer.hypotheses]
    assert sum(known) == pytest.approx(1.0)  # what another cause explains stands not beside it


@pytest.mark.parametrize("form", [csv, drawn, saved, printed])
@pytest.mark.parametrize("note", ["", "the sweep for the capacity plan of spring"])
def test_a_service_that_scales_is_in_line_and_says_its_limit(
    form: Callable[[list[Point]], tuple[str, str]], note: str, tmp_path: Path
) -> None:
    answer = told(tmp_path, *form([scales(n) for n in LIGHT]), *([("note.txt", note)] if note else []))
    assert answer.state is State.HEALTHY
    assert "32x the load gave" in words(answer) and "what more load does is not in this file" in words(answer)


@pytest.mark.parametrize(
    "note",
    ["our users are angry, everything takes forever", "why is this so bad?", "answers come far too late since monday"],
)
def test_a_note_that_complains_or_asks_is_no_remark(note: str, tmp_path: Path) -> None:
    assert told(tmp_path, *csv([scales(n) for n in LIGHT]), ("note.txt", note)).state is not State.HEALTHY


@pytest.mark.parametrize("seed", range(6))
def test_sentences_prove_what_a_table_does(seed: int) -> None:
    rng = random.Random(seed)
    few, times, quick, slow = rng.randint(4, 20), rng.randint(2, 5), rng.randint(80, 400), rng.randint(25, 60)
    late = quick * slow / 1000
    text = rng.choice(
        (
            f"p99 TTFT went from {quick}ms to {late:.1f}s when we went from {few} to {few * times} concurrent users.",
            f"TTFT is {quick} ms with {few} concurrent users and {late:.1f} s with {few * times} concurrent users.",
            f"With {few} users the first token takes {quick} ms, with {few * times} users it takes {late:.1f} s.",
        )
    )
    answer = diagnose(f"Llama 70B on vLLM, 4xH100. {text} GPU util 95%.", workers=1, cache=False)
    assert (answer.state, answer.ranked[0], answer.findings[0].basis) == (State.SICK, "queue-saturated", "stated")
    assert answer.evidence.value(serving.TTFT_GROWTH) == pytest.approx(slow, rel=0.05)


def test_a_summary_within_its_target_is_in_line_and_beyond_it_is_not(tmp_path: Path) -> None:
    summary = {"requests": 1204411, "ttft_p50_ms": 142, "ttft_p99_ms": 431, "itl_p50_ms": 19.2, "itl_p99_ms": 33.0,
               "queue_p99_ms": 6, "kv_usage_p95": 0.61, "preemptions": 0, "slo": {"ttft_p99_ms": 800, "itl_p99_ms": 50}}  # fmt: skip
    well = told(tmp_path, "summary.json", json.dumps(summary))
    assert well.state is State.HEALTHY and "tail 431 ms, 0.8 s wanted" in words(well)
    assert told(tmp_path, "summary.json", json.dumps({**summary, "ttft_p99_ms": 900})).state is not State.HEALTHY
    assert told(tmp_path, "summary.json", json.dumps({**summary, "queue_p99_ms": 90})).state is not State.HEALTHY


@pytest.mark.parametrize(("queue_ms", "healthy"), [(2, True), (900, False)])
def test_records_of_requests_are_in_line_while_nobody_waits(queue_ms: int, healthy: bool, tmp_path: Path) -> None:
    head = "request_id,queue_ms,prefill_ms,decode_ms,prompt_tokens,output_tokens\n"
    rows = "".join(f"{i},{queue_ms + i % 3},{50 + i % 9},{2500 + i % 17},{900 + i},{200 + i % 20}\n" for i in range(40))
    assert (told(tmp_path, "requests.csv", head + rows).state is State.HEALTHY) is healthy


def test_a_table_of_statistics_is_a_load_test(tmp_path: Path) -> None:
    table = """Metric,avg,min,max,p99,p90,p50
Time To First Token (ms),72.1,40.2,160.3,140.0,105.2,68.3
Inter Token Latency (ms),12.4,11.0,19.5,{tail},14.8,12.2
Request Latency (ms),"3,220.0","2,980.0","4,100.2","3,910.1","3,600.0","3,190.3"

Metric,Value
Request Throughput (per sec),9.80
Request Count (count),"1,588.00"
"""
    well = told(tmp_path, "profile_export_genai_perf.csv", table.format(tail=17.1))
    assert well.state is State.HEALTHY and "1,588 served" in words(well)
    assert told(tmp_path, "profile_export_genai_perf.csv", table.format(tail=171)).state is not State.HEALTHY


def test_turns_of_a_conversation_show_what_the_cache_could_have_held(tmp_path: Path) -> None:
    def rows(hit: float) -> str:
        prompts = [900 + 100 * n for n in range(6)]
        found = [0, *(round(hit * n) for n in prompts[:-1])]
        lines = "".join(
            f"{n + 1},{p},{c},{(p - c) / 250:.2f}\n" for n, (p, c) in enumerate(zip(prompts, found, strict=True))
        )
        return "turn,prompt_tokens,cached_tokens,ttft_s\n" + lines

    missed = told(tmp_path, "turns.csv", rows(0.01))
    assert missed.ranked[0] == "prefix-cache-miss" and missed.evidence.value(serving.SHARED_PREFIX) == pytest.approx(
        1100
    )
    assert "prefix-cache-miss" not in told(tmp_path, "turns.csv", rows(0.95)).ranked[:1]


def test_two_pages_of_two_services_are_one_service_under_two_loads(tmp_path: Path) -> None:
    def page(running: int, waiting: int, done: int, ttft_s: float, tpot_s: float) -> str:
        name = '{model_name="llama-70b"}'
        return f"""vllm:num_requests_running{name} {running}
vllm:num_requests_waiting{name} {waiting}
vllm:kv_cache_usage_perc{name} {running / 700}
vllm:request_success_total{name} {done}
vllm:time_to_first_token_seconds_sum{name} {done * ttft_s}
vllm:time_to_first_token_seconds_count{name} {done}
vllm:inter_token_latency_seconds_sum{name} {done * 300 * tpot_s}
vllm:inter_token_latency_seconds_count{name} {done * 300}
"""

    quiet = ("quiet.txt", page(6, 0, 4000, 0.12, 0.0055))
    answer = told(tmp_path, "busy.txt", page(187, 66, 3900, 4.2, 0.0455), quiet)
    assert (answer.state, answer.ranked[0]) == (State.SICK, "prefill-decode-contention")
    assert answer.evidence.value(serving.TTFT_GROWTH) == pytest.approx(35, rel=0.01)
    same = told(tmp_path, "busy.txt", page(6, 0, 3900, 0.13, 0.0055), quiet)
    assert not same.evidence.all(serving.TTFT_GROWTH) and same.state is not State.SICK


def test_a_page_whose_mean_batch_is_what_runs_beside_a_queue_is_a_cap(tmp_path: Path) -> None:
    page = (
        "llamacpp:requests_processing {}\nllamacpp:requests_deferred 3\n"
        "llamacpp:n_busy_slots_per_decode {}\nllamacpp:tokens_predicted_total 96411\n"
    )
    assert told(tmp_path, "metrics.txt", page.format(1, 1)).ranked[0] == "batch-cap-too-low"
    assert told(tmp_path, "metrics.txt", page.format(4, 1.7)).ranked[:1] != ("batch-cap-too-low",)


def test_decode_at_the_memory_s_rate_answers_who_wants_more(tmp_path: Path) -> None:
    table = """  Device 0: NVIDIA GeForce RTX 4090, compute capability 8.9, VMM: yes
| model                    |       size |   params | backend | ngl |  test |             t/s |
| ------------------------ | ---------: | -------: | ------- | --: | ----: | --------------: |
| qwen 27B Q4_K - Medium   |  15.58 GiB |  26.90 B | CUDA    |  99 | pp512 | 2611.40 ± 14.02 |
| qwen 27B Q4_K - Medium   |  15.58 GiB |  26.90 B | CUDA    |  99 | tg128 |    {} ± 0.05 |
"""
    ask = ("ask.txt", "27B on an RTX 4090. Writing is slow, whatever I set. Can I get 80 tokens/s?")
    answer = told(tmp_path, "bench.txt", table.format("40.11"), ask)
    assert (answer.state, answer.ranked[0]) == (State.SICK, "decode-bandwidth-bound")
    assert answer.evidence.value(serving.BYTES_SHARE) == pytest.approx(15.58 * 2**30 * 40.11 / 1008e9, rel=0.01)
    assert not told(tmp_path, "bench.txt", table.format("9.11"), ask).evidence.value(serving.BYTES_SHARE) > 0.2


@pytest.mark.parametrize(("rate", "at_the_roof"), [(19, True), (9, False)])
def test_a_single_user_s_rate_is_compared_with_the_memory_s(rate: int, at_the_roof: bool) -> None:
    text = f"Single user, Llama-3-70B fp16 on 2xA100, TP=2. I get only {rate} tokens/s per user with batch size 1. Is that the limit?"
    answer = diagnose(text, workers=1, cache=False)
    assert answer.ranked[0] == "decode-bandwidth-bound"
    assert any(f.basis == "stated" for f in answer.findings) is at_the_roof


@pytest.mark.parametrize(("sampling", "is_it"), [(124.4, True), (4.0, False)])
def test_sampling_that_outlasts_the_gpu_is_the_host(sampling: float, is_it: bool, tmp_path: Path) -> None:
    rows = f"1,12.1,1.4,14.1\n8,13.0,{sampling / 4},{14 + sampling / 4}\n32,16.9,{sampling},{18 + sampling}\n"
    answer = told(tmp_path, "step.csv", "batch,gpu_forward_ms,sample_cpu_ms,step_ms\n" + rows)
    assert (answer.ranked[:1] == ("cpu-bound-engine",)) is is_it
