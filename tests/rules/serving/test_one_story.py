"""The collapse under load, told as facts or as two benchmark printouts: one cause, sums that add up, one simulator."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from stallwise.doctor.examine import examine
from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence
from stallwise.measures._serving_point import seen_of
from stallwise.measures.serving_story import _closest
from stallwise.search.serving import Question, size_service
from stallwise.sim.what_if import outcome, trials

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


@pytest.fixture(params=["facts", "printouts"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Evidence:
    if request.param == "facts":
        (tmp_path / "case.toml").write_text(FACTS)
    else:
        (tmp_path / "setup.toml").write_text(SETUP)
        (tmp_path / "qps4.txt").write_text(printout(4, 120, 5.6, 3.95))
        (tmp_path / "qps16.txt").write_text(printout(16, 4200, 45.5, 14.2))
    found = gather([str(tmp_path)])
    return getattr(found, "evidence", found)  # type: ignore[no-any-return]


def test_cause_sums_fixes_and_plan_are_one_story(told: Evidence) -> None:
    diagnosis = examine(told)
    assert diagnosis.ranked[0] == "prefill-decode-contention" and diagnosis.first is not None
    parts = told.all(serving.STORY_PART)
    assert sum(f.number for f in parts) == pytest.approx(1 / 22, rel=0.01)
    assert sum(f.number for f in told.all(serving.WAIT_PART)) == pytest.approx(4.2, rel=0.01)
    assert any(f.scope.layer == "unexplained" for f in parts) and told.all(serving.ASSUMED)
    # Every fix's number is the simulator's own.
    seen = seen_of(told)
    assert seen is not None
    point = _closest(seen)
    again = {t.action: t.outcome for t in trials(point, chunked=seen.chunked, shared_share=seen.shared_share)}
    simulated = [f for f in diagnosis.first.fixes if f.worth.startswith("simulated")]
    assert len(simulated) == len(again) and all(f.action in again for f in simulated)
    for fact in told.all(serving.TRIAL_TTFT):
        if fact.note in again:
            assert fact.number == pytest.approx(again[fact.note].ttft_s, rel=1e-6)
    # The plan for the same load and target agrees with the advice about GPUs.
    needed, now = told.value(serving.GPUS_NEEDED), told.value(serving.GPUS_NOW)
    target = told.value(serving.TARGET_TTFT), told.value(serving.TARGET_TPOT)
    question = Question(
        point.deployment.model, (point.deployment.gpu,), point.isl, point.osl, point.rate_per_s, *target,
        weights=("fp8",), headroom_share=0.0, sort="gpus",
    )  # fmt: skip
    best = size_service(question).options[0]
    assert best.gpus <= needed
    words = " ".join(r.text for r in diagnosis.first.because)
    assert ("can be met on the 8 GPUs" in words) == (needed <= now)
    assert re.search(r"GPUs", diagnosis.first.avoid)


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
    found = gather([str(tmp_path)])
    evidence = getattr(found, "evidence", found)
    diagnosis = examine(evidence)
    assert diagnosis.first is not None
    assert evidence.value(serving.RUNNING_MAX) == 256
    assert sum(f.number for f in evidence.all(serving.STORY_PART)) == pytest.approx(0.0455, rel=0.01)
    assert sum(f.number for f in evidence.all(serving.WAIT_PART)) == pytest.approx(4.2, rel=0.01)
    assert any(f.worth.startswith("simulated") for f in diagnosis.first.fixes)
