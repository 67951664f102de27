"""Facts that decide alone do so as a stated fact, in JSON and in a log line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallwise.doctor.examine import diagnose

RUNNING_ALONE = {"model": "llama-3-8b", "precision": "bf16", "gpu": "H100", "running": 1, "tpot_ms": 14}
CASES = [
    ("straggler-rank", ["slow_rank_ratio=2.1"], {"slow_rank_ratio": 2.1}, "step 120 slow_rank_ratio=2.1"),
    ("gpu-fell-off-bus", ["xid=79"], {"xid": 79}, "[ 1234.56] NVRM: Xid (PCI:0000:3b:00): 79, pid=4321, GPU has fallen off the bus."),
    ("power-throttle", ["power=400W", "power_limit=400W", "power_default_limit=700W"],
     {"power_limit_w": 400, "default_power_limit_w": 700}, "power limit 400 W, default power limit 700 W"),
    ("tp-crosses-nodes", ["tp=16", "gpus_per_node=8"], {"tp": 16, "gpus_per_node": 8}, "tensor_parallel_size=16 gpus_per_node=8"),
    ("all-to-all-bound", ["all_to_all_share=0.5"], {"all_to_all_share": 0.5}, "step 10: all-to-all takes 50% of the step"),
    ("exposed-communication", ["exposed_communication_share=0.45"], {"exposed_communication_share": 0.45},
     "step 10: exposed communication 45% of the step"),
    ("input-starved", ["batch_wait=200ms", "step_time=545ms"], {"batch_wait_ms": 200, "step_time_ms": 545},
     "step 10: batch wait 200 ms, step time 545 ms"),
    ("checkpoint-stall", ["checkpoint_time=300ms", "step_time=800ms"], {"checkpoint_ms": 300, "step_time_ms": 800},
     "step 10: checkpoint 300 ms, step time 800 ms"),
    ("launch-bound", ["model=llama-3-8b", "precision=bf16", "gpu=h100", "running=1", "tpot=14ms"], RUNNING_ALONE,
     "model llama-3-8b bf16 on H100, running 1, tpot 14 ms"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "facts", "tree", "line"), CASES, ids=[c[0] for c in CASES])
def test_one_fact_decides(cause: str, facts: list[str], tree: dict[str, object], line: str, tmp_path: Path) -> None:
    assert diagnose(facts=facts).ranked[0] == cause
    (tmp_path / "run.json").write_text(json.dumps(tree), encoding="utf-8")
    assert diagnose(str(tmp_path / "run.json"), workers=1, cache=False).ranked[0] == cause
    (tmp_path / "run.log").write_text(line + "\n", encoding="utf-8")
    assert diagnose(str(tmp_path / "run.log"), workers=1, cache=False).ranked[0] == cause


def test_a_small_part_decides_nothing() -> None:
    answer = diagnose(facts=["batch_wait=5ms", "step_time=545ms"])
    assert not answer.ranked or answer.ranked[0] != "input-starved" or answer.findings[0].confidence < 0.5
