"""Each proof of health holds on its own numbers, and is refused by the second number that refutes it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stallwise.causes.health import all_proofs
from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.doctor.findings.proof import Proof
from stallwise.evidence.catalog import (
    change,
    distributed,
    fabric,
    numerics,
    recording,
    roofline,
    run,
    stated,
    step,
    workers,
)
from stallwise.evidence.catalog import hardware as hw
from stallwise.evidence.catalog import kernel as k
from stallwise.evidence.catalog import memory as m
from stallwise.evidence.catalog import serving as v
from stallwise.evidence.event import Event, Role
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Series, Source, Table
from stallwise.evidence.ledger import Category, Ledger
from stallwise.evidence.profile import Spent, profile_table
from stallwise.evidence.quantity import Quantity
from stallwise.evidence.unread import Unread

HERE, TEXT = Source("measured"), Source("note.txt", "", True)
X = np.arange(100.0)


def fact(quantity: Quantity, value: float | str, scope: Scope = WHOLE, source: Source = HERE) -> Fact:
    return Fact(quantity, value, source, scope)


def facts(values: dict[Quantity, Any], scope: Scope = WHOLE) -> list[Item]:
    return [fact(q, value, scope) for q, value in values.items()]


def series(quantity: Quantity, values: Any, scope: Scope = WHOLE) -> Series:
    return Series(quantity, X, np.asarray(values, float) * np.ones(len(X)), HERE, scope)


def ledger(idle_s: float = 0.001, scope: Scope = WHOLE) -> Ledger:
    return Ledger({Category.COMPUTE: 0.1 - idle_s, Category.LAUNCH_GAP: idle_s}, HERE, scope, samples=4)


GEMM, GPU1 = Scope(kernel="hgemm_128x128(__half const *)"), Scope(gpu=1)
PRODUCT = {k.TIME: 1e-3, k.TENSOR_SHARE: 0.85, k.FMA_SHARE: 0.05, k.SM_SHARE: 0.85, k.DRAM_SHARE: 0.3, k.KIND: "matrix product",
           k.ARGUMENT_TYPES: "__half", k.TAIL_SHARE: 0.0}  # fmt: skip
STREAM = {k.TIME: 1e-3, k.SM_SHARE: 0.1, k.DRAM_SHARE: 0.92, k.KIND: "unknown", k.TAIL_SHARE: 0.0}
BUSY_PIPE = STREAM | {k.DRAM_SHARE: 0.1, k.TIME: 1.0}
TRACE = {step.BUSY_TIME: 0.099, roofline.NEAR_SHARE: 0.9, roofline.KNOWN_SHARE: 0.95, roofline.MATRIX_SHARE: 0.8,
         roofline.BY_SHAPE_SHARE: 0.9, roofline.STEP_SPREAD: 0.01, step.STEP_UNIT: "step", roofline.MATRIX_RATE_SHARE: 0.7,
 roofline.MEMORY_RATE_SHARE: 0.3}  # fmt: skip
DECODE = TRACE | {step.ITERATION_KIND: "decode", roofline.ATTENTION_SHARE: 0.1, roofline.MEMORY_RATE_SHARE: 0.8,
                  roofline.GEMM_BYTES_SHARE: 0.8, roofline.MATRIX_RATE_SHARE: 0.02}  # fmt: skip
ENGINE = {
    v.RUNNING: 32.0,
    v.WAITING: 0.0,
    v.KV_MEDIAN: 0.5,
    v.DECODE_SEEN: 0.02,
    v.DECODE_EXPECTED: 0.018,
    v.TPOT: 0.02,
    v.TTFT: 0.2,
}
MEMORY = {m.PEAK: 50e9, m.CAPACITY: 80e9, m.ACTIVATIONS: 30e9}
BREATHES = 10e9 + 40e9 * (X % 10) / 9


def card(gpu: int, **other: float) -> list[Item]:
    """100 samples of a busy card, and what measures make of its clock."""
    values = {"utilisation_share": 0.99, "clock_sm_hz": 1.9e9, "clock_sm_max_hz": 1.98e9, "pcie_width": 16.0, "pcie_width_max": 16.0,
              "memory_used_bytes": 60e9, "reasons": 0.0} | other  # fmt: skip
    columns = {name: np.full(len(X), value) for name, value in values.items()}
    clocks = {hw.GPU_CLOCK: values["clock_sm_hz"], hw.GPU_CLOCK_MAX: values["clock_sm_max_hz"]}
    return [Table("gpu.samples", columns, HERE, Scope(gpu=gpu)), *facts(clocks, Scope(gpu=gpu))]


def links(gpu: int, up: int, errors: float = 0.0) -> list[Item]:
    rates = np.array([25e9] * up + [0.0] * (4 - up))
    columns = {"rate_bytes_per_s": rates, "errors": np.array([errors, 0.0, 0.0, 0.0])}
    return [Table("gpu.links", columns, HERE, Scope(gpu=gpu), meta={"counters": ["replay"]})]


def dump(rank: int, *states: str) -> list[Item]:
    count = len(states)
    columns = {"state": np.array(states), "op": np.array(["nccl:all_reduce"] * count), "enqueued": np.arange(count),
               "completed": np.arange(count), "sequence": np.arange(count)}  # fmt: skip
    return [Table("collective.waits", columns, HERE, Scope(rank=rank), meta={"dump": True, "rank": rank})]


KERNEL = {"driver": True, "first": "", "last": "", "boots": 1, "others": 0}
XID = Event("driver-error", "nvrm.xid", "NVRM: Xid (PCI:0000:3b:00): 79", HERE, Role.ROOT, "driver", "error")
RUN = Scope(run="8 a second")
TEST = {v.ACHIEVED_RATE: 7.9, v.OFFERED_RATE: 8.0, v.TTFT: 0.2, v.TPOT: 0.02, v.REQUESTS_DONE: 800.0}

RECORDED = {
    recording.BUSY_SHARE: 0.99, recording.LENGTH: 1.0, recording.DEVICE_SPAN: 0.99, recording.KERNELS: 900.0,
    recording.KERNEL_TIME: 0.98, recording.STEPS_SHARE: 0.95, step.STEP_UNIT: "step", step.STEP_COUNT: 5.0,
    roofline.MATRIX_SHARE: 0.8, step.BUSY_TIME: 0.19,
}  # fmt: skip


def moved(rate: float, best: float) -> Table:
    """A millisecond of kernels that move their bytes at this rate, the fastest of them at the other."""
    table = profile_table([Spent("triton_poi_fused_1", 0.0, 1e-3)], HERE, of="kernels", device_s=1e-3)
    table.meta.update(moved_bytes=rate * 1e-3, best_rate=best)
    return table


# The proof, what it rests on, and near cases: one more number each.
CASES: dict[str, tuple[Sequence[Item], dict[str, Sequence[Item]]]] = {
    "stated_numbers": (
        [fact(run.MFU, 0.48, source=TEXT), fact(stated.GPU, "h100", source=TEXT)],
        {
            "22% now": [fact(run.MFU, 0.22, source=TEXT)],
            "22% that has no name": [Unread("note.txt", 2, 1, numbers_lost=((22.0, "%"),))],
            "0.22 that has no name": [Unread("note.txt", 2, 1, numbers_lost=((0.22, ""),))],
            "a step that became longer": [fact(change.WORSE_RATIO, 1.9, Scope(layer="run.step_time"))],
            "a GPU that is busy less": [fact(run.GPU_BUSY, 0.3, source=TEXT)],
        },
    ),
    "training_log": (
        [series(run.STEP_TIME, 1.0), series(run.LOSS, 5 - X / 50), series(run.MFU, 0.48)],
        {
            "an MFU that fell": [series(run.MFU, np.where(X < 60, 0.48, 0.22))],
            "another MFU": [fact(run.MFU, 0.22)],
            "another rank that is slower": [series(run.STEP_TIME, 1.4, Scope(rank=3))],
            "a rate that fell": [series(run.TOKENS_PER_S, np.where(X < 60, 1e5, 6e4))],
        },
    ),
    "training_trace": (
        [*facts(TRACE), ledger()],
        {
            "a rank that idles": [ledger(0.02, Scope(rank=3))],
            "a rank far from its ceiling": [fact(roofline.NEAR_SHARE, 0.5, Scope(rank=3))],
            "steps that differ on one rank": [fact(roofline.STEP_SPREAD, 0.4, Scope(rank=3))],
            "work that nobody knows": [fact(roofline.UNREAD_SHARE, 0.4)],
        },
    ),
    "decode_trace": (
        [*facts(DECODE), ledger()],
        {
            "products near nothing behind them": [fact(roofline.NEAR_SHARE, 0.5)],
            "attention that leads and reads slowly": facts({roofline.ATTENTION_SHARE: 0.6, roofline.ATTENTION_BYTES_SHARE: 0.2}),
            "iterations that differ": [fact(roofline.STEP_SPREAD, 0.5)],
            "a rank that idles": [ledger(0.02, Scope(rank=1))],
        },
    ),
    "profiled_kernels": (
        facts(PRODUCT, GEMM),
        {
            "a tensor pipe at 12% beside FMA at 94%": facts({k.TENSOR_SHARE: 0.12, k.FMA_SHARE: 0.94, k.SM_SHARE: 0.94}, GEMM),
            "a library 3.6x as fast": facts({run.FLOP_RATE: 180e12, stated.LIBRARY_FLOP_RATE: 650e12}),
            "a reference that is faster": [fact(stated.CUSTOM_SPEEDUP, 0.7)],
            "scattered bytes in a busy DRAM": facts(STREAM | {k.EXCESS_SECTORS: 0.8, k.TIME: 1.0}, Scope(kernel="gather")),
            "spills in a busy DRAM": facts(STREAM | {k.LOCAL_TRAFFIC: 0.5, k.TIME: 1.0}, Scope(kernel="spilling")),
            "lanes that are off": facts(BUSY_PIPE | {k.ALU_SHARE: 0.95, k.ACTIVE_THREADS: 6.0}, Scope(kernel="x")),
            "doubles by accident": facts(BUSY_PIPE | {k.FP64_SHARE: 0.95, k.ARGUMENT_TYPES: "float"}, Scope(kernel="y")),
        },
    ),
    "engine_state": (
        facts(ENGINE),
        {
            "a queue at one moment": [fact(v.WAITING, 12.0, Scope(rank=1))],
            "a queue in many samples": [fact(v.WAITING_SHARE, 0.4)],
            "a cache that was full once": [fact(v.KV_MAX, 0.99)],
            "slow tokens in the tail": [fact(v.TPOT_TAIL, 0.5)],
            "first tokens in the tail": [fact(v.TTFT_TAIL, 9.0)],
            "requests given up": [fact(v.ABORTED, 7.0)],
            "prompts that starve answers": [fact(v.PREFILL_STALLS, 5.0)],
        },
    ),
    "hardware_state": (
        card(0),
        {
            "one card that is slow": card(1, clock_sm_hz=1.2e9),
            "one card that is idle": card(1, utilisation_share=0.0),
            "one narrow link": card(1, pcie_width=4.0),
            "an error of the driver": [fact(hw.XID_MEMORY, "Xid 94")],
            "a link that is down": [fact(hw.NVLINK_INACTIVE, 1.0, GPU1)],
        },
    ),
    "memory_snapshot": (
        [*facts(MEMORY), Series(m.LIVE_BYTES, X, BREATHES, HERE)],
        {
            "another device that is full": [fact(m.PEAK, 79e9, GPU1)],
            "a reservation that fills the card": [fact(m.RESERVED, 79.5e9)],
            "retries": [fact(m.RETRIES, 3.0)],
            "another device that grows": [fact(change.GPU_MEMORY_FACTOR, 1.4, GPU1)],
        },
    ),
    "precision_comparison": (
        facts({numerics.TF32_DIFFERENCE: 3e-4, numerics.FP32_DIFFERENCE: 5e-7}),
        {
            "a layer that differs by more": [fact(numerics.TF32_DIFFERENCE, 3e-2, Scope(layer="head"))],
            "a layer without numbers": [fact(numerics.BAD_LAYER, "decoder.3")],
        },
    ),
    "collective_benchmark": (
        facts({fabric.NCCL_TIME: 360e9, fabric.NCCL_EXPECTED: 400e9}),
        {
            "a second run that is slower": [fact(fabric.NCCL_TIME, 120e9)],
            "a group that is slower": [fact(fabric.NCCL_SHARE_ACROSS, 0.3)],
            "more than the links give": [fact(fabric.NCCL_SHARE_IN_NODE, 2.0)],
            "wrong results": [fact(fabric.NCCL_WRONG, 1.0)],
        },
    ),
    "recording": (
        facts(RECORDED),
        {
            "a rank that waits": [fact(recording.BUSY_SHARE, 0.8, Scope(rank=3))],
            "products on ordinary cores": [fact(step.SIMT_TIME, 0.05)],
            "steps that differ": [fact(roofline.STEP_SPREAD, 0.4)],
            "kernels whose names say nothing": [fact(roofline.UNREAD_SHARE, 0.6)],
        },
    ),
    "profile": (
        [moved(2.0e12, 2.6e12)],
        {"another run at a fraction of the rate": [moved(0.4e12, 2.6e12)], "times without bytes": [moved(0.0, 0.0)]},
    ),
    "collective_setup": (
        facts({fabric.FABRIC_RANKS: 1.0, fabric.NCCL_VERSION: "2.21.5"}),
        {
            "another log with more ranks": [fact(fabric.FABRIC_RANKS, 16.0, Scope(rank=3))],
            "a job of many GPUs": [fact(stated.GPUS, 64.0, source=TEXT)],
            "a warning": [fact(fabric.NCCL_WARNING, "Call to ibv_create_qp failed")],
        },
    ),
    "load_test": (
        facts(TEST, RUN),
        {
            "requests that failed": facts({v.FAILED: 90.0}, RUN),
            "first tokens in the tail": facts({v.TTFT_TAIL: 9.0}, RUN),
            "a rate that was not reached": facts({v.OFFERED_RATE: 16.0}, RUN),
        },
    ),
    "recorded_collectives": (
        dump(0, "completed", "completed"),
        {
            "one that is open": dump(1, "completed", "started"),
            "a rank that is behind": dump(1, "completed"),
        },
    ),
    "gpu_links": (
        links(0, 4),
        {
            "a card with fewer links": links(1, 3),
            "a link with errors": links(1, 4, 5000.0),
        },
    ),
    "rdma_benchmark": (
        facts({fabric.RDMA_RATE: 24.5e9}),
        {"a slower test": [fact(fabric.RDMA_RATE, 15e9)]},
    ),
    "even_workers": (
        facts({
            distributed.JOB_STEP: 2.0, workers.IDEAL_STEP: 1.99, workers.SLOWDOWN: 1.005, workers.WORKERS: 8,
            workers.REPLAY_ERROR: 0.001,
        }),
        {
            "a replay that is off": [fact(workers.REPLAY_ERROR, 0.2)],
            "a worker that costs": [fact(distributed.STRAGGLER_COST, 0.4)],
        },
    ),
    "kernel_messages": (
        [Table("kernel.log", {"line": np.arange(9)}, HERE, meta=KERNEL)],
        {"a fault of a card": [XID]},
    ),
}  # fmt: skip
NEVER_WELL = ("program_end", "engine_start")  # they always lack something


def proved(name: str, items: Sequence[Item]) -> Proof:
    evidence = Evidence()
    evidence.add(items)
    found = next(p for p in all_proofs() if p.__name__ == name)(evidence)
    assert found is not None
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_proof_holds_on_its_own_numbers(name: str) -> None:
    assert not proved(name, CASES[name][0]).lacks


@pytest.mark.parametrize(("name", "near"), [(name, near) for name, (_, cases) in CASES.items() for near in cases])
def test_a_second_number_refutes_it(name: str, near: str) -> None:
    own, cases = CASES[name]
    refused = proved(name, [*own, *cases[near]])
    assert refused.lacks and refused.limit is None


def test_two_runs_tell_how_much_a_rate_fell_and_never_speak_for_the_run() -> None:
    before = Scope(run="before")
    told = [fact(run.TOKENS_PER_S, 153e3), fact(run.TOKENS_PER_S, 292e3, before)]
    ratio = fact(change.WORSE_RATIO, 292 / 153, Scope(layer="run.tokens_per_s"))
    refused = proved("two_runs", [*told, ratio])
    assert refused.lacks.endswith("48% lower.") and refused.objects and not refused.covers_run
    slower = [
        fact(run.STEP_TIME, 1.9),
        fact(run.STEP_TIME, 1.0, before),
        fact(change.WORSE_RATIO, 1.9, Scope(layer="run.step_time")),
    ]
    assert proved("two_runs", slower).lacks.endswith("90% longer.")
    other = fact(change.WORSE_RATIO, 3.0, Scope(layer="serve.ttft"))
    kept = [fact(run.STEP_TIME, 1.0), fact(run.STEP_TIME, 1.0, before)]
    assert not proved("two_runs", kept).objects and proved("two_runs", [*kept, other]).objects


CLAIM_NO_HEALTH = {"two_runs", "counted_kernels"}


def test_every_proof_has_its_near_cases() -> None:
    names = {p.__name__ for p in all_proofs()}
    assert names == {*CASES, *NEVER_WELL, *CLAIM_NO_HEALTH}
    for prove in all_proofs():
        assert "Refuted by:" in (import_module(prove.__module__).__doc__ or ""), prove.__name__


@pytest.mark.parametrize(
    "text",
    [
        "Our 70B run on 512 H100 had MFU 48% before and 22% now",
        "MFU 48% on H100. Since Tuesday it is 22%.",
        "H100, mfu 0.48 in January, 0.22 in March",
        "On H100 we reach 48% MFU at 64 GPUs, 22% at 512 GPUs",
        "training on 64 H100, MFU: 48% -> 22%",
    ],
)
def test_no_text_with_a_worse_number_is_healthy(text: str) -> None:
    assert diagnose(text, cache=False, workers=1).state is not State.HEALTHY


def test_a_text_with_one_usual_number_is_still_well(tmp_path: Path) -> None:
    assert diagnose("pretraining on 8 H100, bf16, mfu 52.6%", cache=False, workers=1).state is State.HEALTHY
