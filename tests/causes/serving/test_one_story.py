"""The collapse under load, told as facts, pages over time, printouts and a mail: one cause, sums that add up, one simulator."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stallwise.doctor.examine import examine
from stallwise.doctor.gather import gather
from stallwise.doctor.measures._serving_point import seen_of
from stallwise.doctor.measures.serving_story import _closest
from stallwise.evidence.catalog import serving, stated
from stallwise.evidence.evidence import Evidence
from stallwise.physics.costs.engine_defaults import defaults_of
from stallwise.physics.sim.what_if import outcome, trials
from stallwise.planner.serving import Question, size_service

FACTS = """
symptom = "latency collapses at higher load"
engine = "vllm"
model = "Llama-70B"
precision = "fp8"
gpu = "h100"
gpus = 8
qps = 16
user_rate = "22 tok/s"
ttft = "4.2s"
[before]
qps = 4
user_rate = "180 tok/s"
ttft = "120ms"
"""
SETUP = 'model = "Llama-70B"\nprecision = "fp8"\ngpu = "h100"\ngpus = 8\nengine = "vllm"\n'


def printout(rate: float, ttft_ms: float, tpot_ms: float, finished: float) -> str:
    n = int(finished * 120)
    return f"""============ Serving Benchmark Result ============
Successful requests:                     {n}
Request rate configured (RPS):           {rate:.2f}
Benchmark duration (s):                  120.00
Total input tokens:                      {n * 1000}
Total generated tokens:                  {n * 300}
Request throughput (req/s):              {finished:.2f}
Output token throughput (tok/s):         {finished * 300:.2f}
---------------Time to First Token----------------
Median TTFT (ms):                        {ttft_ms:.2f}
P99 TTFT (ms):                           {2.5 * ttft_ms:.2f}
-----Time per Output Token (excl. 1st token)------
Median TPOT (ms):                        {tpot_ms:.2f}
P99 TPOT (ms):                           {1.5 * tpot_ms:.2f}
==================================================
"""


def watched() -> str:
    """A calm half and a stormy half of pages, with the clock that a loop of curl and date leaves between them."""
    pages, done, first_s, later_s = [], 0.0, 0.0, 0.0
    for i in range(20):
        rate, ttft_s, tpot_s, running, waiting = (
            (4, 0.12, 1 / 180, 7 + i % 2, 0) if i < 8 else (15, 4.2, 1 / 22, 228 + i % 5, 58 + i % 7)
        )
        done += rate * 15
        first_s, later_s = first_s + rate * 15 * ttft_s, later_s + rate * 15 * 299 * tpot_s
        name = '{engine="0",model_name="meta-llama/Llama-3.1-70B-Instruct-FP8"}'
        pages.append(f"""# 2026-03-02T14:{i // 4:02d}:{i % 4 * 15:02d}Z
vllm:num_requests_running{name} {running}
vllm:num_requests_waiting{name} {waiting}
vllm:kv_cache_usage_perc{name} {0.03 if i < 8 else 0.42}
vllm:num_preemptions_total{name} 0
vllm:prompt_tokens_total{name} {done * 1000}
vllm:generation_tokens_total{name} {done * 300}
vllm:request_success_total{name} {done}
vllm:time_to_first_token_seconds_sum{name} {first_s}
vllm:time_to_first_token_seconds_count{name} {done}
vllm:inter_token_latency_seconds_sum{name} {later_s}
vllm:inter_token_latency_seconds_count{name} {done * 299}
""")
    return "".join(pages)


def _histogram(name: str, phases: list[tuple[float, int]]) -> list[str]:
    """Counts by upper edge of observations spread evenly over half and one and a half of each phase's mean."""
    labels, total = 'model_name="meta-llama/Llama-3.1-70B-Instruct-FP8"', sum(n for _, n in phases)
    edges = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0]
    rows = [(f"{edge}", sum(n * min(1.0, max(0.0, (edge / mean - 0.5))) for mean, n in phases)) for edge in edges] + [
        ("+Inf", float(total))
    ]
    return [
        f"# TYPE {name} histogram",
        *(f'{name}_bucket{{le="{edge}",{labels}}} {round(count)}' for edge, count in rows),
        f"{name}_sum{{{labels}}} {sum(mean * n for mean, n in phases)}",
        f"{name}_count{{{labels}}} {total}",
    ]


def scraped(at: int, quiet: int, busy: int, running: int, waiting: int, kv: float) -> str:
    """A whole page as `(date +%s; curl ...)` saves it: `quiet` requests served at 4 a second and `busy` at 16."""
    name = '{model_name="meta-llama/Llama-3.1-70B-Instruct-FP8"}'
    done = quiet + busy
    lines = [
        f"{at}", "process_start_time_seconds 1763400000.0", f"vllm:num_requests_running{name} {running}",
        f"vllm:num_requests_waiting{name} {waiting}", f"vllm:kv_cache_usage_perc{name} {kv}",
        f"vllm:num_preemptions_total{name} 0", f"vllm:prompt_tokens_total{name} {done * 1000}",
        f"vllm:generation_tokens_total{name} {done * 300}", f"vllm:request_success_total{name} {done}",
        *_histogram("vllm:time_to_first_token_seconds", [(0.12, quiet), (4.2, busy)]),
        *_histogram("vllm:inter_token_latency_seconds", [(1 / 180, quiet * 299), (1 / 22, busy * 299)]),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def logged() -> str:
    """An engine's log: two minutes at 4 requests a second, three at 16, of 1,000 tokens in and 300 out."""
    lines = [
        "INFO 11-18 10:00:00 [config.py:500] Initializing a V1 LLM engine (v0.9.1) with config: "
        "model='meta-llama/Llama-3.1-70B-Instruct-FP8', dtype=torch.bfloat16, tensor_parallel_size=8, quantization=fp8, "
        "max_num_seqs=256, enable_chunked_prefill=False",
        "INFO 11-18 10:00:30 [kv_cache_utils.py:634] GPU KV cache size: 1,672,138 tokens",
    ]
    for i in range(30):
        running, waiting, rate, speed, kv = (
            (6 + i % 2, 0, 4, 180, 0.5) if i < 12 else (216 + i % 5, 64 + i % 7, 16, 22, 15.0)
        )
        lines.append(
            f"INFO 11-18 10:{1 + i // 6:02d}:{10 * (i % 6):02d} [loggers.py:118] Engine 000: Avg prompt throughput: {rate * 1000:.1f} "
            f"tokens/s, Avg generation throughput: {running * speed:.1f} tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, "
            f"GPU KV cache usage: {kv}%, Prefix cache hit rate: 0.0%"
        )
    return "\n".join(lines) + "\n"


MAIL = """Hello,

we run Llama 70B in FP8 on one node of eight H100 behind vLLM. With 4 queries per second users see 180 tokens per second and the
median time to first token is 120 ms. When we go to 16 queries per second they get 22 tokens per second each, and the first token
takes 4.2 seconds. nvidia-smi says 99% the whole time. What should we change first? My boss wants to buy a second node.
"""
DEPLOYED = """model: meta-llama/Llama-3.1-70B-Instruct
quantization: fp8
tensor_parallel_size: 8
gpu: NVIDIA H100 80GB HBM3
engine: vLLM
"""
SWEPT = f"""$ bench --request-rate 4
{printout(4, 120, 5.55, 3.95)}
$ bench --request-rate 16
{printout(16, 4200, 45.45, 14.2)}"""
FORMS = {
    "facts": {"case.toml": FACTS},
    "pages": {"metrics.prom": watched(), "setup.toml": SETUP},
    "printouts": {"both.log": SWEPT, "deploy.yaml": DEPLOYED},
    "mail": {"mail.txt": MAIL},
    "two scrapes": {
        "before.txt": scraped(1763400300, 1192, 0, 8, 0, 0.005),
        "after.txt": scraped(1763400420, 1192, 1636, 231, 61, 0.16),
        "setup.toml": SETUP,
    },
    "engine log": {"engine.log": logged(), "setup.toml": SETUP},
    "table": {"table.csv": "qps,tok_per_s_user,ttft_p50_ms,gpu_util\n4,180,120,99\n16,22,4200,99\n", "setup.toml": SETUP},
}  # fmt: skip


@pytest.fixture(params=FORMS, scope="module")
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    folder = tmp_path_factory.mktemp(request.param)
    for name, text in FORMS[request.param].items():
        (folder / name).write_text(text)
    return gather([str(folder)], cache=False, workers=1)


def test_cause_sums_fixes_and_plan_are_one_story(told: Evidence) -> None:
    diagnosis = examine(told)
    assert diagnosis.ranked[0] == "prefill-decode-contention" and diagnosis.first is not None
    parts = told.all(serving.STORY_PART)
    assert sum(f.number for f in parts) == pytest.approx(1 / 22, rel=0.02)
    assert sum(f.number for f in told.all(serving.WAIT_PART)) == pytest.approx(4.2, rel=0.05)  # a log: by Little's law
    assert all(f.number >= 0 for f in (*parts, *told.all(serving.WAIT_PART))) and told.all(serving.ASSUMED)
    # Every fix's number is the simulator's own.
    seen = seen_of(told)
    assert seen is not None
    point = _closest(seen)
    again = {t.action: t.outcome for t in trials(point, chunked=seen.chunked, shared_share=seen.shared_share)}
    simulated = [f for f in diagnosis.first.fixes if f.worth.startswith("simulated")]
    assert len(simulated) == 3 and all(f.action in again for f in simulated)
    # In the order of what they leave, under the target; what does not help is no fix.
    target = told.value(serving.TARGET_TTFT), told.value(serving.TARGET_TPOT)
    before = outcome(point)
    left = [again[f.action].pain(*target) for f in simulated]
    assert left == sorted(left) and all(helped < before.pain(*target) for helped in left)
    null = {f.scope.layer for f in told.all(serving.TRIAL_NULL)}
    assert "heads" in null and "Does not help here" in diagnosis.first.avoid
    for fact in told.all(serving.TRIAL_TTFT):
        if fact.note in again:
            assert fact.number == pytest.approx(again[fact.note].ttft_s, rel=1e-6)
    # The plan for the same load and target agrees with the advice about GPUs.
    needed, now = told.value(serving.GPUS_NEEDED), told.value(serving.GPUS_NOW)
    question = Question(
        point.deployment.model, (point.deployment.gpu,), point.isl, point.osl, point.rate_per_s, *target,
        weights=("fp8",), headroom_share=0.0, sort="gpus",
    )  # fmt: skip
    best = size_service(question).options[0]
    assert best.gpus <= needed == 8.0
    words = " ".join(r.text for r in diagnosis.first.because)
    assert ("can be met on the 8 GPUs" in words) == (needed <= now)
    assert re.search(r"GPUs", diagnosis.first.avoid)


@pytest.mark.parametrize(
    "text",
    [
        "llama 70b fp8 / vllm / 8xh100. 4 rps: ttft .12s, 180 t/s per user. 16 rps: ttft 4.2s, 22 t/s per user. gpu 99%. help?",
        "When our traffic quadruples from 4 to 16 QPS, TTFT p50 goes from 120 ms to 4.2 s and per-user decode speed from 180 tok/s "
        "to 22 tok/s. Llama-70B-FP8, vLLM, 8×H100, util 99%. Why?",
        "vLLM + Llama 70B FP8 on 8 H100s\n\n- at 4 QPS: 180 tok/s/user, p50 TTFT 120ms\n- at 16 QPS: 22 tok/s/user, p50 TTFT 4.2s\n",
        "Llama-70B FP8, vLLM, 8 x H100\n\n| | quiet | busy |\n|---|---|---|\n| requests per second | 4 | 16 |\n"
        "| TTFT p50 | 120 ms | 4.2 s |\n| tokens/s per user | 180 | 22 |\n",
    ],
)  # fmt: skip
def test_other_words_give_the_same_numbers(tmp_path: Path, text: str) -> None:
    (tmp_path / "note.md").write_text(text)
    evidence = gather([str(tmp_path / "note.md")], cache=False, workers=1)
    for quantity, calm, now in (
        (serving.OFFERED_RATE, 4, 16),
        (serving.TTFT, 0.12, 4.2),
        (serving.PER_REQUEST_RATE, 180, 22),
    ):
        assert evidence.value(quantity, run="before") == pytest.approx(calm), quantity.name
        assert evidence.value(quantity, run=None) == pytest.approx(now), quantity.name
    assert evidence.value(stated.GPUS) == 8 and "h100" in evidence.text(stated.GPU).lower()


def test_twice_the_rate_needs_more_and_says_so(told: Evidence) -> None:
    seen = seen_of(told)
    assert seen is not None
    point = _closest(seen)
    assert outcome(replace(point, rate_per_s=2 * point.rate_per_s)).pain(1.0, 0.05) > outcome(point).pain(1.0, 0.05)


def page(running: int, waiting: int, done: int, ttft_s: float, tpot_s: float) -> str:
    name = '{model_name="llama-70b-fp8"}'
    return f"""# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{name} {running}
vllm:num_requests_waiting{name} {waiting}
vllm:kv_cache_usage_perc{name} 0.21
vllm:request_success_total{name} {done}
vllm:time_to_first_token_seconds_sum{name} {done * ttft_s}
vllm:time_to_first_token_seconds_count{name} {done}
vllm:time_per_output_token_seconds_sum{name} {done * 299 * tpot_s}
vllm:time_per_output_token_seconds_count{name} {done * 299}
"""


def test_pages_appended_to_one_file_are_a_watch_and_not_a_sum(tmp_path: Path) -> None:
    pages = [page(256, 60, 420 * i, 4.2, 0.0455) for i in range(1, 13)]
    (tmp_path / "metrics.txt").write_text("".join(pages))
    (tmp_path / "setup.toml").write_text(SETUP)
    evidence = gather([str(tmp_path)], cache=False, workers=1)
    diagnosis = examine(evidence)
    assert diagnosis.first is not None
    assert evidence.value(serving.RUNNING_MAX) == 256
    assert sum(f.number for f in evidence.all(serving.STORY_PART)) == pytest.approx(0.0455, rel=0.01)
    assert sum(f.number for f in evidence.all(serving.WAIT_PART)) == pytest.approx(4.2, rel=0.01)
    assert any(f.worth.startswith("simulated") for f in diagnosis.first.fixes)


def test_two_pages_in_two_files_are_rates_and_a_before(tmp_path: Path) -> None:
    for name, text in FORMS["two scrapes"].items():
        (tmp_path / name).write_text(text)
    evidence = gather([str(tmp_path / "after.txt"), str(tmp_path / "before.txt")], cache=False, workers=1)
    examine(evidence)
    for quantity, quiet, now in (
        (serving.TTFT, 0.12, 4.2),
        (serving.TPOT, 1 / 180, 1 / 22),
        (serving.OFFERED_RATE, 4, 16),
    ):
        assert evidence.value(quantity, run="before") == pytest.approx(quiet, rel=0.01), quantity.name
        assert evidence.value(quantity, run=None) == pytest.approx(now, rel=0.01), quantity.name
    assert evidence.value(serving.TTFT_GROWTH) == pytest.approx(35, rel=0.01)
    assert evidence.value(serving.LOAD_GROWTH) == pytest.approx(4, rel=0.01)


def test_pages_of_two_servers_are_never_subtracted(tmp_path: Path) -> None:
    one, other = scraped(1763400300, 1192, 0, 8, 0, 0.005), scraped(1763400420, 1192, 1636, 231, 61, 0.16)
    (tmp_path / "a.txt").write_text(one)
    (tmp_path / "b.txt").write_text(
        other.replace("process_start_time_seconds 1763400000.0", "process_start_time_seconds 1763400017.0")
    )
    evidence = gather([str(tmp_path)], cache=False, workers=1)
    assert not evidence.all(serving.OFFERED_RATE) and len(evidence.inputs) == 2


def test_defaults_follow_the_release() -> None:
    old, new = defaults_of("vllm", "0.6.3", 80e9), defaults_of("vllm", "0.10.2", 80e9)
    assert (old.cap, old.chunked) == (256, False) and (new.cap, new.chunked) == (1024, True)
    assert defaults_of("vllm", "0.10.2", 48e9).cap == 256 and defaults_of("vllm", "", 80e9).chunked is None
    assert defaults_of("sglang", "", 80e9).chunked is True
