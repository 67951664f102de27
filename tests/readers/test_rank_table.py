"""Tables of ranks and stages, and link measurements, become evidence."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.gather import gather
from stallwise.doctor.measures import measure_evidence
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import fabric
from stallwise.readers import named_columns

STAGES = "stage,layers,forward_ms,backward_ms\n0,8,1.0,2.0\n1,8,1.0,2.0\n2,8,1.3,2.6\n"
TOKENS = "rank,tokens,dispatch_us\n0,9000,2400\n1,1000,2410\n2,1000,2405\n3,1000,2400\n"


def facts(path: Path):
    evidence = gather([str(path)], cache=False)
    measure_evidence(evidence)
    return evidence


def test_stage_times_are_summed_over_passes(tmp_path: Path) -> None:
    (tmp_path / "stages.csv").write_text(STAGES)
    evidence = facts(tmp_path)
    assert evidence.value(q.PIPELINE_STAGES) == 3
    assert evidence.value(q.SLOWEST_STAGE) == 2
    assert evidence.value(q.STAGE_COMPUTE, stage=2) == pytest.approx(3.9e-3)
    assert diagnose(str(tmp_path), cache=False).ranked[0] == "pipeline-stage-imbalance"


def test_even_stages_are_healthy(tmp_path: Path) -> None:
    (tmp_path / "stages.csv").write_text(STAGES.replace("1.3,2.6", "1.0,2.0"))
    found = diagnose(str(tmp_path), cache=False).findings
    assert not any(f.cause == "pipeline-stage-imbalance" and f.confidence >= 0.5 for f in found)


def test_tokens_by_rank_tell_uneven_experts(tmp_path: Path) -> None:
    (tmp_path / "tokens.csv").write_text(TOKENS)
    evidence = facts(tmp_path)
    assert evidence.value(q.EXPERT_SPREAD) == pytest.approx(3.0)
    assert evidence.text(q.EXPERT_BUSIEST) == "rank 0"
    assert evidence.value(q.DISPATCH_TIME) == pytest.approx(2.4e-3, rel=0.01)


@pytest.mark.parametrize("text", ["step,rank,loss\n1,0,2.0\n", "name,value\na,1\n", "", "rank\n1\n"])
def test_other_tables_are_not_taken(text: str) -> None:
    assert not named_columns.recognises("x.csv", text.encode())


def run_of(client: str, clock: str, gbit: float) -> str:
    return (
        f"# {clock} {client} on node-7\n$ iperf3 -c node-9 -P 2 -t 10\nConnecting to host node-9, port 5201\n"
        f"[  5]   0.00-10.00  sec  1 GBytes  {gbit / 2:.1f} Gbits/sec  0   sender\n"
        f"[SUM]   0.00-10.00  sec  2 GBytes  {gbit:.1f} Gbits/sec  0   sender\n"
    )


def test_a_link_beside_a_neighbour(tmp_path: Path) -> None:
    (tmp_path / "a1.txt").write_text(run_of("mine", "10:00:00", 90))
    (tmp_path / "a2.txt").write_text(run_of("mine", "10:20:00", 12))
    (tmp_path / "b.txt").write_text(run_of("other", "10:19:50", 80))
    evidence = facts(tmp_path)
    assert evidence.value(q.LINK_RATE_BEFORE) == pytest.approx(90e9 / 8)
    assert evidence.value(q.LINK_RATE_NOW) == pytest.approx(12e9 / 8)
    assert evidence.value(q.NEIGHBOUR_RATE) == pytest.approx(80e9 / 8)
    assert diagnose(str(tmp_path), cache=False).ranked[0] == "network-congestion"


def test_iperf_as_json_is_read(tmp_path: Path) -> None:
    text = (
        '{"start": {"connecting_to": {"host": "n2"}, "timestamp": {"timesecs": 5}, "connected": [{"local_host": "n1"}]},'
        ' "end": {"sum_sent": {"bits_per_second": 8e9}, "sum_received": {"bits_per_second": 7.2e9}}}'
    )
    (tmp_path / "x.json").write_text(text)
    (table,) = gather([str(tmp_path)], cache=False).table("link_rates")
    assert table.columns["rate_byte_per_s"].tolist() == [0.9e9]


def test_nccl_tests_as_json_are_read(tmp_path: Path) -> None:
    text = (
        '{"version": 1, "args": ["./build/all_reduce_perf", "-g", "2"], "config": {"ngpus": 2}, "devices": ['
        '{"rank": 0, "pid": 4, "hostname": "n1", "device": 0, "device_hex": "0x1b", "device_info": "NVIDIA H100 80GB HBM3"},'
        '{"rank": 1, "pid": 4, "hostname": "n2", "device": 1, "device_hex": "0x43", "device_info": "NVIDIA H100 80GB HBM3"}],'
        '"results": [{"size": 1048576, "count": 262144, "type": "float", "out_of_place": {"time": 35.1, "alg_bw": 29.9, "bus_bw": 56.0'
        ', "nwrong": 0.0}, "in_place": {"time": 34.9, "alg_bw": 30.1, "bus_bw": 56.3, "nwrong": 3.0}}]}'
    )
    (tmp_path / "x.json").write_text(text)
    evidence = gather([str(tmp_path)], cache=False)
    (table,) = evidence.table("collective.bandwidth")
    assert table.columns["time_s"].tolist() == [pytest.approx(35.1e-6)]
    assert table.meta == {"test": "all_reduce_perf", "ranks": 2, "nodes": 2, "device": "NVIDIA H100 80GB HBM3"}
    assert evidence.value(fabric.NCCL_WRONG) == 3
