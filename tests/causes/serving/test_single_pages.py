"""One page of metrics of any engine: where requests spend their lives, and a queue that is never called healthy."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import examine
from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import serving

VLLM = """{p}num_requests_running{{model_name="m"}} 120
{p}num_requests_waiting{{model_name="m"}} 80
{p}kv_cache_usage_perc{{model_name="m"}} 0.31
{p}request_queue_time_seconds_sum{{model_name="m"}} 5500
{p}request_queue_time_seconds_count{{model_name="m"}} 1000
{p}request_prefill_time_seconds_sum{{model_name="m"}} 500
{p}request_prefill_time_seconds_count{{model_name="m"}} 1000
{p}request_decode_time_seconds_sum{{model_name="m"}} 4000
{p}request_decode_time_seconds_count{{model_name="m"}} 1000
{p}e2e_request_latency_seconds_sum{{model_name="m"}} 10000
{p}e2e_request_latency_seconds_count{{model_name="m"}} 1000
"""
PAGES = {
    "vllm": VLLM.format(p="vllm:"),
    "ray": VLLM.format(p="ray_vllm:"),
    "tgi": "tgi_queue_size 42\ntgi_batch_current_size 16\ntgi_request_queue_duration_sum 5500\ntgi_request_queue_duration_count 1000\n"
    "tgi_request_duration_sum 10000\ntgi_request_duration_count 1000\ntgi_request_success 1000\n",
    "triton": 'nv_inference_queue_duration_us{model="a"} 5500000000\nnv_inference_request_duration_us{model="a"} 10000000000\n'
    'nv_inference_request_success{model="a"} 1000\n',
}


def examined(tmp_path: Path, text: str):  # type: ignore[no-untyped-def]
    (tmp_path / "metrics.txt").write_text(text)
    found = gather([str(tmp_path)])
    evidence = getattr(found, "evidence", found)
    return evidence, examine(evidence)


@pytest.mark.parametrize("name", PAGES)
def test_half_of_every_request_in_the_queue_is_said_from_one_page(name: str, tmp_path: Path) -> None:
    evidence, diagnosis = examined(tmp_path, PAGES[name])
    assert evidence.value(serving.QUEUE_TIME) == pytest.approx(5.5)
    assert diagnosis.ranked[0] == "queue-saturated" and not diagnosis.healthy


def test_a_queue_at_the_moment_of_the_page_is_not_health(tmp_path: Path) -> None:
    _, diagnosis = examined(
        tmp_path, "llamacpp:requests_processing 4\nllamacpp:requests_deferred 30\nllamacpp:kv_cache_usage_ratio 0.4\n"
    )
    assert (
        diagnosis.ranked[0] in ("queue-saturated", "batch-cap-too-low") and not diagnosis.healthy
    )  # four slots, 30 wait


def test_a_page_of_a_calm_engine_is_no_queue(tmp_path: Path) -> None:
    calm = VLLM.format(p="vllm:").replace(" 80\n", " 0\n").replace(" 5500\n", " 20\n").replace(" 10000\n", " 4520\n")
    _, diagnosis = examined(tmp_path, calm)
    assert not any(f.is_verdict or f.cause == "queue-saturated" for f in diagnosis.findings)
