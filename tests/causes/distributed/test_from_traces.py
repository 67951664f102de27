"""Causes between ranks, each seen where it is and silent where it is not."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from stallwise.causes import all_rules
from stallwise.doctor.findings.finding import Finding
from stallwise.evidence.catalog import distributed as q
from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity

MS = 1e-3


def verdict(cause: str, facts: Mapping[Quantity, float | str], stages: tuple[float, ...] = ()) -> Finding | None:
    evidence = Evidence()
    source = Source("made", "up")
    evidence.add([Fact(quantity, value, source, samples=8) for quantity, value in facts.items()])
    evidence.add([Fact(q.STAGE_COMPUTE, t, source, Scope(stage=s)) for s, t in enumerate(stages)])
    rule = next(r for r in all_rules() if r.cause == cause)
    found = [v for v in rule.verdicts(evidence) if isinstance(v, Finding)]
    return found[0] if found else None


COMM = {q.COMM_EXPOSED: 20 * MS, q.COMM_SHARE: 0.2, q.COMM_TIME: 30 * MS, q.COMPUTE_BUSY: 70 * MS, q.COLLECTIVES: 10}


def test_exposed_communication_is_named_and_priced_below_what_shows() -> None:
    found = verdict("exposed-communication", COMM)
    assert found is not None and found.gain is not None
    assert found.gain.low_s < found.gain.high_s <= 20 * MS
    assert found.against, "one rank cannot tell waiting from moving"


def test_exposed_communication_leaves_waiting_to_the_straggler() -> None:
    assert verdict("exposed-communication", {**COMM, q.WAIT_FOR_PEERS: 18 * MS, q.MOVING_BYTES: 2 * MS}) is None
    seen = verdict("exposed-communication", {**COMM, q.WAIT_FOR_PEERS: 2 * MS, q.MOVING_BYTES: 18 * MS})
    assert seen is not None and not seen.against and seen.confidence > 0.8


def test_well_overlapped_communication_is_no_finding() -> None:
    assert verdict("exposed-communication", {**COMM, q.COMM_EXPOSED: 3 * MS, q.COMM_SHARE: 0.03}) is None


SMALL = {**COMM, q.SMALL_TIME: 15 * MS, q.SMALL_COUNT: 200.0, q.SMALL_SIZE: 40e3}


def test_many_small_reductions_are_buckets_too_small() -> None:
    found = verdict("bucket-too-small", SMALL)
    assert found is not None and found.gain is not None and found.gain.high_s < 15 * MS


@pytest.mark.parametrize(
    "change", [{q.SMALL_COUNT: 4.0}, {q.SMALL_TIME: 1 * MS}, {q.WAIT_FOR_PEERS: 19 * MS, q.MOVING_BYTES: 1 * MS}]
)
def test_few_or_hidden_or_waiting_reductions_are_not(change: dict[Quantity, float]) -> None:
    assert verdict("bucket-too-small", {**SMALL, **change}) is None


def test_an_exchange_that_shows_is_all_to_all_bound() -> None:
    assert verdict("all-to-all-bound", {**COMM, q.ALL_TO_ALL_TIME: 16 * MS}) is not None
    assert verdict("all-to-all-bound", {**COMM, q.ALL_TO_ALL_TIME: 4 * MS}) is None
    waiting = {q.WAIT_FOR_PEERS: 18 * MS, q.MOVING_BYTES: 2 * MS}
    assert verdict("all-to-all-bound", {**COMM, q.ALL_TO_ALL_TIME: 16 * MS, **waiting}) is None


def test_uneven_experts_are_named_with_the_exchange_they_cost() -> None:
    found = verdict("moe-imbalance", {q.EXPERT_SPREAD: 2.9, q.EXPERT_BUSIEST: "rank 0", q.DISPATCH_TIME: 2.4 * MS,
                                      q.DISPATCH_BALANCED: 1.2 * MS})  # fmt: skip
    assert found is not None and "rank 0" in found.headline and "1.20 ms" in found.fixes[0].worth
    assert verdict("moe-imbalance", {q.EXPERT_SPREAD: 1.08}) is None


PIPE = {q.PIPELINE_STAGES: 4.0, q.STAGE_RATIO: 1.2, q.SLOWEST_STAGE: 3.0, q.JOB_STEP: 100 * MS}


def test_the_slowest_stage_is_named() -> None:
    found = verdict("pipeline-stage-imbalance", PIPE, stages=(20 * MS, 20 * MS, 20 * MS, 25.7 * MS))
    assert found is not None and "stage 3" in found.headline and "head" in found.summary
    assert found.gain is not None and found.gain.high_s == pytest.approx(25.7 * MS * (1 - 1 / 1.2))
    assert verdict("pipeline-stage-imbalance", {**PIPE, q.STAGE_RATIO: 1.02}, stages=(20 * MS,) * 4) is None


BUBBLE = {q.PIPELINE_STAGES: 8.0, q.MICROBATCHES_SEEN: 16.0, q.PIPELINE_IDLE: 0.31, q.BUBBLE_IDEAL: 7 / 23,
          q.JOB_STEP: 100 * MS}  # fmt: skip


def test_idle_that_the_schedule_must_have_is_the_bubble() -> None:
    found = verdict("pipeline-bubble", BUBBLE)
    assert found is not None and found.gain is not None
    assert found.gain.high_s == pytest.approx((7 / 23 - 7 / 39) * 100 * MS)


@pytest.mark.parametrize("change", [{q.PIPELINE_IDLE: 0.5}, {q.STAGE_RATIO: 1.3}, {q.PIPELINE_IDLE: 0.05}])
def test_more_idle_than_the_schedules_own_is_another_cause(change: dict[Quantity, float]) -> None:
    assert verdict("pipeline-bubble", {**BUBBLE, **change}) is None


def test_a_stated_bubble_is_judged_against_the_schedule() -> None:
    assert verdict("pipeline-bubble", {stated.BUBBLE: 0.2, expected.BUBBLE_SCHEDULE: 0.19}) is not None
    assert verdict("pipeline-bubble", {stated.BUBBLE: 0.4, expected.BUBBLE_SCHEDULE: 0.19}) is None


def test_long_hand_offs_are_named() -> None:
    facts = {q.P2P_TIME: 9 * MS, q.P2P_COUNT: 64.0, q.JOB_STEP: 100 * MS}
    assert verdict("pipeline-p2p-latency", facts) is not None
    assert verdict("pipeline-p2p-latency", {**facts, q.P2P_TIME: 1 * MS}) is None
    assert verdict("pipeline-p2p-latency", {stated.P2P_SHARE: 0.3}) is not None


def test_the_number_of_chunks_follows_bubble_and_hand_offs() -> None:
    base = {q.PIPELINE_STAGES: 8.0, q.MICROBATCHES_SEEN: 8.0, q.P2P_COUNT: 32.0, q.JOB_STEP: 100 * MS}
    cheap = verdict("virtual-stages-suboptimal", {**base, q.P2P_TIME: 0.3 * MS}, stages=(50 * MS,) * 8)
    assert cheap is not None and int(cheap.headline.split()[0]) > 1
    assert verdict("virtual-stages-suboptimal", {**base, q.P2P_TIME: 100 * MS}, stages=(50 * MS,) * 8) is None
    best = float(cheap.headline.split()[0])
    tuned = {**base, q.P2P_TIME: 0.3 * MS, stated.VIRTUAL_STAGES: best}
    assert verdict("virtual-stages-suboptimal", tuned, stages=(50 * MS,) * 8) is None


def test_more_communication_than_compute_is_too_little_work_a_gpu() -> None:
    heavy = {q.COMM_EXPOSED: 60 * MS, q.COMM_SHARE: 0.6, q.COMM_TIME: 90 * MS, q.COMPUTE_BUSY: 30 * MS,
             q.MESSAGE_MEDIAN: 25e6}  # fmt: skip
    assert verdict("per-gpu-batch-too-small", heavy) is not None
    assert verdict("per-gpu-batch-too-small", {**heavy, q.COMPUTE_BUSY: 200 * MS}) is None
    assert verdict("per-gpu-batch-too-small", {**heavy, q.MESSAGE_MEDIAN: 1e4}) is None
    waiting = {q.WAIT_FOR_PEERS: 55 * MS, q.MOVING_BYTES: 5 * MS}
    assert verdict("per-gpu-batch-too-small", {**heavy, **waiting}) is None


def test_a_link_that_falls_beside_a_neighbour_is_congested() -> None:
    fell = {q.LINK_RATE_BEFORE: 20e9, q.LINK_RATE_NOW: 3e9}
    full = verdict("network-congestion", {**fell, q.NEIGHBOUR_RATE: 19e9})
    alone = verdict("network-congestion", fell)
    assert full is not None and alone is not None and full.confidence > 0.85 > alone.confidence
    assert verdict("network-congestion", {q.LINK_RATE_BEFORE: 20e9, q.LINK_RATE_NOW: 18e9}) is None


def test_equal_collectives_that_vary_hint_at_congestion() -> None:
    assert verdict("network-congestion", {q.BANDWIDTH_SPREAD: 3.0, q.MOVING_BYTES: 10 * MS}) is not None
    assert verdict("network-congestion", {q.BANDWIDTH_SPREAD: 1.3, q.MOVING_BYTES: 10 * MS}) is None
