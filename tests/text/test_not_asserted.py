"""What a text affirms, and what it denies, calls cured, imagines, ascribes to others or prints as standing advice."""

from __future__ import annotations

import pytest

from stallwise.doctor.examine import diagnose
from stallwise.doctor.findings.diagnosis import State
from stallwise.readers.text.assertion import affirmed, spans_of

NOT_ASSERTED = {
    "absent": [
        ("no ECC errors, no Xid in dmesg, but the step is twice as slow", "ECC", "twice as slow"),
        ("zero graph breaks, 1.4x faster", "graph breaks", "faster"),
        ("temperatures and clocks are fine, the loader is slow", "temperatures", "loader is slow"),
        ("we ruled out the network; rank 3 lags", "network", "rank 3 lags"),
        ("Graph Break Count 0, one graph", "Break", "one graph"),
        ("0 bytes spill stores, 62% occupancy", "spill", "62% occupancy"),
        ("HW Thermal Slowdown : Not Active\nstep 2.1 s", "Thermal", "step 2.1 s"),
        ("The ECC counters are all zero on every card; throughput fell", "ECC", "throughput fell"),
        ("TORCH_LOGS and the recompiles list print nothing; the loader waits", "recompiles", "loader waits"),
        ("thermal_violation: disabled\nstep 2.1 s", "violation", "step 2.1 s"),
        ("host 22 GiB, memory pressure all zero", "pressure", "host 22 GiB"),
        ("Nobody changed anything, loss is fine, no OOM", "OOM", "Nobody changed anything"),
    ],
    "cured": [
        ("we fixed the NCCL hang last week, now the loader is slow", "hang", "loader is slow"),
        ("torch.OutOfMemoryError was raised by the old config; the step takes 300 ms", "OutOfMemory", "300 ms"),
    ],
    "other": [
        ("A colleague had Xid 79 on his node. Ours takes 300 ms a step.", "Xid", "300 ms a step"),
        ("In the tutorial the author gets CUDA out of memory; our step takes 300 ms", "memory", "300 ms"),
    ],
    "hypothetical": [("The queue would grow without bound next month. Today 3 wait.", "grow", "3 wait")],
    "boilerplate": [
        ("OutOfMemoryError. If reserved memory is large try setting max_split_size_mb.", "split", "OutOfMemory"),
        ("usage: train.py [--nccl-timeout SECONDS]\nstep 2.1 s", "nccl", "step 2.1 s"),
    ],
}
ASSERTED = [
    "it hangs without any error",
    "the job no longer fits on the card",
    "not only the loader stalls",
    "RuntimeError: CUDA error: no kernel image is available",
    "rank 3 did not complete before the timeout",
    "training hangs if I use 8 GPUs",
    "one GPU disappeared from nvidia-smi during training",
]


@pytest.mark.parametrize(("status", "row"), [(s, row) for s, rows in NOT_ASSERTED.items() for row in rows])
def test_what_is_not_asserted_is_blanked_and_the_rest_stays(status: str, row: tuple[str, str, str]) -> None:
    text, gone, stays = row
    spans = spans_of(text)
    kept = affirmed(text, spans)
    assert gone not in kept and stays in kept, (status, kept)
    assert status in {span.status.value for span in spans}
    assert len(kept) == len(text) and kept.count("\n") == text.count("\n"), "lines and columns stay where they are"


@pytest.mark.parametrize("text", ASSERTED)
def test_a_complaint_with_a_no_in_it_stays_a_complaint(text: str) -> None:
    assert affirmed(text, spans_of(text)) == text


@pytest.mark.parametrize(
    ("text", "ruled_out"),
    [
        (
            "no ECC errors, no Xid in dmesg, temperatures fine, loss fine, but the step is twice as slow",
            "gpu-memory-errors",
        ),
        ("I read a blog about uncorrectable ECC errors yesterday. Our run is fine.", "gpu-memory-errors"),
        ("all 18 links active, no Xid 74, 231 GB/s between all pairs", "nvlink-fault"),
        ("a colleague had Xid 79 on his node, ours is fine", "gpu-fell-off-bus"),
        ("we fixed the hang by pinning NCCL, no hang since", "collective-mismatch"),
    ],
)
def test_no_disease_that_the_text_rules_out_is_named(text: str, ruled_out: str) -> None:
    answer = diagnose(text)
    assert answer.state is not State.HEALTHY
    assert ruled_out not in answer.ranked[:1] and not any(
        f.cause == ruled_out and f.confidence >= 0.5 for f in answer.findings
    )
