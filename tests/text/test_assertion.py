"""Assertion status: what a text denies, cures, imagines or quotes is marked; what it complains of is not."""

from __future__ import annotations

import random

import pytest

from stallwise.doctor.words import words_in
from stallwise.evidence.bag import stem
from stallwise.readers.text.assertion import DENIED, Status, affirmed, denied, is_denied, spans_of

AFFIRMED = None
# Text, the words in question, and their status; None: plainly asserted.
ROWS: list[tuple[str, str, Status | None]] = [
    # absent, and what looks like a denial and is none
    ("There are no ECC errors on this card.", "ECC errors", Status.ABSENT),
    ("We see no ECC errors, Xids or throttling in dmesg.", "throttling", Status.ABSENT),
    ("No sign of a memory leak over 40 hours.", "memory leak", Status.ABSENT),
    ("The run finished without a single timeout.", "timeout", Status.ABSENT),
    ("The data loader is not the bottleneck.", "data loader", Status.ABSENT),
    ("The clocks never throttled.", "throttled", Status.ABSENT),
    ("We ruled out a straggler with per-rank timings.", "straggler", Status.ABSENT),
    ("It isn't due to packet loss on the fabric.", "packet loss", Status.ABSENT),
    ("Thermal throttling can be excluded.", "throttling", Status.ABSENT),
    ("All NVLinks are up, CRC errors are fine.", "CRC errors", Status.ABSENT),
    ("Zero retransmits on every port.", "retransmits", Status.ABSENT),
    ("Neither swapping nor page faults show in vmstat.", "swapping", Status.ABSENT),
    ("The model no longer fits and dies with out of memory.", "out of memory", AFFIRMED),
    ("It cannot allocate 2.5 GiB.", "allocate", AFFIRMED),
    ("Not only rank 3 hangs, rank 7 does too.", "hangs", AFFIRMED),
    ("No idea why it hangs after the first epoch.", "hangs", AFFIRMED),
    ("It hangs without any error.", "hangs", AFFIRMED),
    ("Setting NCCL_P2P_DISABLE did not help, the all-reduce still times out.", "times out", AFFIRMED),
    ("No matter which node we take, GPU 3 throttles.", "throttles", AFFIRMED),
    ("There is no ECC error, but the link was down twice.", "link was down", AFFIRMED),
    ("Loss is not stable and becomes nan after 200 steps.", "nan", AFFIRMED),
    ("The job crashed and there is no core file.", "crashed", AFFIRMED),
    ("There are no ECC errors and the loss is nan.", "nan", AFFIRMED),
    ("It no longer converges: an overflow at every step.", "overflow", AFFIRMED),
    # `key: value` lines of programs
    ("ecc_errors: 0", "ecc_errors", Status.ABSENT),
    ("Volatile Uncorrectable ECC errors | 0", "ECC errors", Status.ABSENT),
    ("HW Thermal Slowdown : Not Active", "Slowdown", Status.ABSENT),
    ("retired pages = none", "retired pages", Status.ABSENT),
    ("Graph Break Count 0", "Graph Break", Status.ABSENT),
    ("0 bytes spill stores", "spill", Status.ABSENT),
    ("packet drops: n/a", "drops", Status.ABSENT),
    ("ecc_errors: 14", "ecc_errors", AFFIRMED),
    ("HW Thermal Slowdown : Active", "Slowdown", AFFIRMED),
    ("Graph Break Count 10", "Graph Break", AFFIRMED),
    ("Xid errors: 1 in 0.5 s", "Xid errors", AFFIRMED),
    # cured
    ("We fixed the memory leak in May.", "memory leak", Status.CURED),
    ("The hang went away with driver 550.", "hang", Status.CURED),
    ("We no longer see preemptions.", "preemptions", Status.CURED),
    ("The flapping link was replaced.", "link", Status.CURED),
    ("Last year this cluster had Xid 79 twice.", "Xid 79", Status.CURED),
    ("The hang did not go away with driver 550.", "hang", AFFIRMED),
    ("It used to take 20 ms and now stalls for 200 ms.", "stalls", AFFIRMED),
    ("It was fine until the upgrade, now every step stalls.", "stalls", AFFIRMED),
    # only possible
    ("It could be a memory leak.", "memory leak", Status.POSSIBLE),
    ("Maybe the straggler is on node 7.", "straggler", Status.POSSIBLE),
    ("We suspect thermal throttling.", "throttling", Status.POSSIBLE),
    ("I wonder whether there is packet loss.", "packet loss", Status.POSSIBLE),
    ("Not sure why it hangs.", "hangs", AFFIRMED),
    # hypothetical
    ("What if the link goes down during a run?", "link", Status.HYPOTHETICAL),
    ("We monitor for ECC errors.", "ECC errors", Status.HYPOTHETICAL),
    ("How would we notice a straggler?", "straggler", Status.HYPOTHETICAL),
    ("Gradient clipping prevents overflow.", "overflow", Status.HYPOTHETICAL),
    ("We keep a spare node in case of a crash.", "crash", Status.HYPOTHETICAL),
    ("It behaves as if one rank were stuck.", "stuck", AFFIRMED),
    ("It crashes even if the batch is halved.", "crashes", AFFIRMED),
    # somebody else's
    ("A colleague had Xid 79 on another machine.", "Xid 79", Status.OTHER),
    ("I read about NCCL timeouts in a blog post.", "timeouts", Status.OTHER),
    ("The inference team fights KV cache preemption.", "preemption", Status.OTHER),
    ("The docs say that num_workers=0 starves the GPU.", "starves", Status.OTHER),
    ("My own log shows Xid 79.", "Xid 79", AFFIRMED),
    # boilerplate
    ("Where reserved memory is large try setting max_split_size_mb to avoid fragmentation.", "fragmentation", Status.BOILERPLATE),
    ("For debugging consider passing CUDA_LAUNCH_BLOCKING=1.", "CUDA_LAUNCH_BLOCKING", Status.BOILERPLATE),
    ("python train.py --enable-recompute --max-retries 3", "recompute", Status.BOILERPLATE),
    ("see https://example.org/docs/oom-errors for it", "oom-errors", Status.BOILERPLATE),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB.", "out of memory", AFFIRMED),
]  # fmt: skip


def _status(text: str, words: str) -> Status | None:
    start = text.index(words)
    end = start + len(words)
    return next((s.status for s in spans_of(text) if s.start < end and start < s.end), None)


@pytest.mark.parametrize(("text", "words", "status"), ROWS, ids=[f"{n}-{r[1]}" for n, r in enumerate(ROWS)])
def test_status(text: str, words: str, status: Status | None) -> None:
    assert _status(text, words) is status
    start = text.index(words)
    assert is_denied(spans_of(text), start, start + len(words)) is (status is not None)


@pytest.mark.parametrize("status", Status, ids=lambda s: s.value)
def test_every_status_has_samples(status: Status) -> None:
    assert sum(row[2] is status for row in ROWS) >= 3


def test_what_is_no_evidence_is_blank_and_lines_and_columns_stay() -> None:
    text = "no ECC errors\nloss is nan\nA colleague had Xid 79.\n"
    kept = affirmed(text, spans_of(text))
    assert len(kept) == len(text)
    assert [i for i, c in enumerate(kept) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    assert kept.split() == ["loss", "is", "nan"]


def test_a_count_of_zero_is_no_fault_and_stays_a_fact() -> None:
    text = "ecc_errors: 0\n"
    assert affirmed(text, spans_of(text)).strip() == ""
    assert affirmed(text, spans_of(text), numbers=True) == text


def test_denied_words_speak_against_their_cause_and_imagined_ones_not_at_all() -> None:
    absent = words_in("no ECC errors on this card, but it throttled to 900 MHz")
    assert f"not:{stem('ecc')}" in absent and stem("ecc") not in absent and stem("throttled") in absent
    imagined = words_in("What if there were ECC errors?")
    assert not {stem("ecc"), f"not:{stem('ecc')}"} & imagined


def test_only_absent_and_cured_count_against() -> None:
    text = "no ECC errors. We suspect throttling. We fixed the leak."
    against = denied(text, spans_of(text))
    assert {s.status for s in spans_of(text)} >= {*DENIED, Status.POSSIBLE}
    assert "ECC" in against and "leak" in against and "throttling" not in against


def test_any_text_gives_spans_in_order_that_do_not_overlap() -> None:
    pieces = [row[0] for row in ROWS] + ["\n", "(", "--", '"', ": 0", "if ", "not ", "\u201c", "no " * 50, "a" * 5000]
    draw = random.Random(7)
    for _ in range(150):
        text = "".join(draw.choices(pieces, k=draw.randint(0, 12)))[draw.randint(0, 5) :]
        spans = spans_of(text)
        assert all(0 <= s.start < s.end <= len(text) for s in spans)
        assert all(a.end <= b.start for a, b in zip(spans, spans[1:], strict=False))
        assert len(affirmed(text, spans)) == len(text)
