"""The same question gets the same number wherever it is asked."""

from __future__ import annotations

import pytest

from stallwise.doctor.measures import measure_evidence
from stallwise.doctor.stating import state
from stallwise.evidence.catalog import expected
from stallwise.evidence.evidence import Evidence
from stallwise.physics.costs.formulas.ring_allreduce import evaluate as ring
from stallwise.physics.specs.cluster import find_cluster
from stallwise.physics.specs.layout import Layout
from stallwise.physics.specs.model import find_model
from stallwise.physics.specs.workload import Workload
from stallwise.planner.ask import ask_plan
from stallwise.planner.collective import answer_collective
from stallwise.planner.memory_answer import memory_answer
from stallwise.surfaces.web.answers import layout as on_the_page

AXES = {"tp": 8, "pp": 4, "zero": 1, "micro_batch": 1}


def test_plan_page_and_memory_agree_on_a_layout() -> None:
    plan = ask_plan(
        "llama-3-70b", "512xh100", seq=8192, global_batch=512, vp=1, cp=1, recompute="none", top=1, **AXES
    ).best[0]
    page = on_the_page(
        {"model": "llama-3-70b", "gpu": "h100-sxm", "gpus": 512, "seq": 8192, "global_batch": 512, **AXES}
    )
    layout = Layout(tp=8, pp=4, dp=16, zero=1, sequence_parallel=True)
    alone = memory_answer(find_model("llama-3-70b"), find_cluster("512xh100"), Workload(8192, 512), layout)
    assert page["memory_bytes"] == pytest.approx(plan.memory_bytes) == pytest.approx(alone.worst.device_bytes)
    assert page["fits"] == plan.fits == alone.fits
    for name in ("seconds", "low_s", "high_s", "mfu_share", "mfu_against"):
        assert page[name] == getattr(plan, name)


def test_diagnosis_counts_memory_as_the_planner_does() -> None:
    evidence = Evidence()
    state(
        evidence,
        (
            "parameters=405B",
            "tp=4",
            "dp=128",
            "sharding=fsdp",
            "recompute=full",
            "sequence=8192",
            "sequence_parallel=yes",
        ),
    )
    measure_evidence(evidence)
    layout = Layout(tp=4, dp=128, zero=3, recompute="full", style="fsdp", sequence_parallel=True)
    plan = memory_answer(find_model("llama-3.1-405b"), find_cluster("h100x512"), Workload(8192, 512), layout)
    assert evidence.value(expected.DEVICE_PEAK) == pytest.approx(plan.worst.device_bytes)


def test_the_ring_formula_names_what_a_cluster_takes() -> None:
    whole = answer_collective("allreduce", 2e9, find_cluster("512xh100"))
    assert ring(2e9, 512)["nodes_of_8_h100_s"] == pytest.approx(whole["expected"]["seconds"])
