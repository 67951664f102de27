"""What load generators write: response times, rates and users in SI, whichever of their forms was saved."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.doctor.gather import gather
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence

TREND = {"avg": 17950.2, "min": 4100.1, "med": 17800.0, "max": 31000.5, "p(90)": 24000.0, "p(95)": 26000.0}
K6 = {
    "metrics": {
        "http_req_duration": TREND,
        "http_reqs": {"count": 1820, "rate": 14.6},
        "vus": {"value": 1, "min": 1, "max": 290},
    }
}
K6_CUSTOM = {"metrics": {name: {"type": "trend", "values": values} for name, values in K6["metrics"].items()}}
K6_PRINTED = """
     http_req_blocked...............: avg=10.2us   min=1us     med=2us     max=1.2ms    p(90)=4us     p(95)=5us
     http_req_duration..............: avg=17.95s   min=4.1s    med=17.8s   max=31s      p(90)=24s     p(95)=26s
     http_reqs......................: 1820   14.6/s
     vus............................: 1      min=1        max=290
"""
LOCUST = """Type,Name,Request Count,Failure Count,Median Response Time,Average Response Time,Min Response Time,Max Response Time,\
Average Content Size,Requests/s,Failures/s,50%,95%,100%
POST,/v1/chat/completions,1820,3,17800,17950.2,4100.1,31000.5,1820.4,14.6,0.02,18000,26000,31000
,Aggregated,1820,3,17800,17950.2,4100.1,31000.5,1820.4,14.6,0.02,18000,26000,31000
"""
LOCUST_JSON = [
    {
        "name": "/v1/chat/completions", "method": "POST", "last_request_timestamp": 124.66, "start_time": 0.0, "num_requests": 1820,
        "num_none_requests": 0, "total_response_time": 1820 * 17800.0, "response_times": {"17000": 900, "18000": 920},
    }
]  # fmt: skip


def read(folder: Path, name: str, text: str) -> Evidence:
    (folder / name).write_text(text)
    return gather([str(folder / name)], cache=False, workers=1)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("summary.json", json.dumps(K6)),
        ("handled.json", json.dumps(K6_CUSTOM)),
        ("k6.txt", K6_PRINTED),
        ("run_stats.csv", LOCUST),
        ("run.json", json.dumps(LOCUST_JSON)),
    ],
)
def test_response_time_and_rate(tmp_path: Path, name: str, text: str) -> None:
    evidence = read(tmp_path, name, text)
    assert evidence.value(serving.REQUEST_TIME) == pytest.approx(17.8)
    assert evidence.value(serving.ACHIEVED_RATE) == pytest.approx(14.6, rel=0.01)
    if "vus" in text:  # a test that ends in a ramp ends with one user: the load is what it rose to
        assert evidence.value(serving.CONCURRENCY) == 290
    assert evidence.value(serving.CONCURRENCY, 290.0) == 290.0


def test_a_history_is_cut_into_its_loads(tmp_path: Path) -> None:
    rows = ["Timestamp,User Count,Type,Name,Requests/s,Failures/s,50%,Total Request Count,Total Median Response Time"]
    for i in range(40):
        users, rate, took = (8, 4.0, 1800) if i < 15 else (290, 14.6, 17800)
        rows.append(f"{1772460000 + i},{users},,Aggregated,{rate},0.0,{took},{i * 10},{took}")
    evidence = read(tmp_path, "run_stats_history.csv", "\n".join(rows) + "\n")
    for quantity, wanted in ((serving.CONCURRENCY, [8, 290]), (serving.REQUEST_TIME, [1.8, 17.8])):
        assert [f.number for f in evidence.all(quantity) if f.scope.run] == pytest.approx(wanted)


def successful(middle: float) -> dict[str, object]:
    return {"successful": {"mean": 1.1 * middle, "median": middle, "percentiles": {"p99": 2 * middle}}}


def test_guidellm_has_its_rate_lengths_and_one_time_per_token(tmp_path: Path) -> None:
    metrics = {
        "time_to_first_token_ms": 4200.0, "inter_token_latency_ms": 45.45, "time_per_output_token_ms": 59.0,
        "requests_per_second": 14.6, "prompt_token_count": 1000.0, "output_token_count": 300.0, "request_latency": 17.8,
    }  # fmt: skip
    one = {
        "config": {"strategy": {"type_": "constant", "rate": 16.0}},
        "metrics": {k: successful(v) for k, v in metrics.items()},
    }
    evidence = read(tmp_path, "benchmarks.json", json.dumps({"benchmarks": [one]}))
    assert evidence.value(serving.OFFERED_RATE) == 16.0 and evidence.value(serving.OUTPUT_TOKENS) == 300.0
    assert [f.number for f in evidence.all(serving.TPOT)] == [pytest.approx(0.04545)]


CSV = """Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ms),"4,600.20",110.00,"9,800.00","9,200.00","8,100.00","7,000.00","5,100.00","4,200.00","3,900.00"
Inter Token Latency (ms),46.10,20.00,95.00,80.00,70.00,60.00,50.00,45.45,40.00
Output Sequence Length (tokens),300.00,290.00,310.00,309.00,308.00,305.00,302.00,300.00,295.00
Input Sequence Length (tokens),"1,000.00",990.00,"1,010.00","1,009.00","1,005.00","1,004.00","1,002.00","1,000.00",998.00

Metric,Value
Output Token Throughput (tokens/sec),"4,380.00"
Request Throughput (requests/sec),14.60
"""
DRAWN = """
┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━┳━━━━━━━━━━┓
┃                         Statistic ┃      avg ┃    min ┃      max ┃      p99 ┃
┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━╇━━━━━━━━━━┩
│          Time To First Token (ms) │ 4,200.00 │ 110.00 │ 9,800.00 │ 9,200.00 │
│          Inter Token Latency (ms) │    45.45 │  20.00 │    95.00 │    80.00 │
│   Output Sequence Length (tokens) │   300.00 │ 290.00 │   310.00 │   309.00 │
│    Input Sequence Length (tokens) │ 1,000.00 │ 990.00 │ 1,010.00 │ 1,009.00 │
│ Output Token Throughput (per sec) │ 4,380.00 │    N/A │      N/A │      N/A │
│      Request Throughput (per sec) │    14.60 │    N/A │      N/A │      N/A │
└───────────────────────────────────┴──────────┴────────┴──────────┴──────────┘
"""


@pytest.mark.parametrize(("name", "text"), [("profile.csv", CSV), ("genai.txt", DRAWN)])
def test_a_table_of_statistics_is_not_a_table_of_runs(tmp_path: Path, name: str, text: str) -> None:
    evidence = read(tmp_path, name, text)
    for quantity, wanted in (
        (serving.TTFT, 4.2), (serving.TTFT_TAIL, 9.2), (serving.TPOT, 0.04545), (serving.OUTPUT_TOKENS, 300),
        (serving.PROMPT_TOKENS, 1000), (serving.OUTPUT_RATE, 4380), (serving.ACHIEVED_RATE, 14.6),
    ):  # fmt: skip
        assert [f.number for f in evidence.all(quantity)] == [pytest.approx(wanted)], quantity.name
