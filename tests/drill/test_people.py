# ruff: noqa: E501
"""Answers in people's own words to the eight classics are understood; the wrong first moves are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallwise.drill.round import start
from stallwise.drill.rubric import STRONG, Score, score
from tests.drill.players import Clock

# seed: (first thought, requests, fixes, commitment)
ANSWERS: dict[int, tuple[str, list[str], list[str], str]] = {
    1: (
        "Tensor cores sit at 12% while the SMs look busy, so they are waiting for data; low occupancy is most likely only a symptom",
        ["SASS of the kernel", "the nsight compute stall table"],
        ["move to wgmma tensor core instructions, that is the largest factor: 180 of 989 TFLOPS", "async copy with TMA and a multi-stage pipeline", "cut register pressure with smaller tiles", "swizzle shared memory against bank conflicts"],
        "The tensor cores are starved: loads are not pipelined, no async copy. 2*4096^3 = 137 GFLOP at 180 TFLOPS against 989 peak.",
    ),
    2: (
        "One degraded node or a straggler is the boring answer, much more likely than anything in the code since nothing changed",
        ["NCCL all-reduce times per rank", "nvidia-smi throttle reasons and ECC"],
        ["compare per-rank timings and name the rank all wait for, because it takes minutes", "check throttle reasons, ECC and PCIe on that node", "drain the node and restart from the last checkpoint, back to 48%"],
        "A straggler: node 17 runs 2.1x slower and holds all 512 GPUs. 48/22 is 2.18x.",
    ),
    3: (
        "Prefill and decode fight for the GPU; 99% util says little. A bug in the engine is less likely",
        ["vllm iteration log", "kv cache usage and preemptions"],
        ["chunked prefill or disaggregation, because iterations with prefill take 160ms", "cap the batch by the KV budget", "speculative decoding", "tune max_num_seqs and max_num_batched_tokens"],
        "Prefill blocks decode: an iteration with a prompt takes 160 ms against 19 ms. 22 tok/s is 45 ms per token.",
    ),
    4: (
        "The activation range at 32k is larger than what was calibrated, so E4M3 saturates; more likely than a bad kernel",
        ["per layer activation max against sequence length", "training log"],
        ["recalibrate with long-context data because scales come from 2,048 tokens", "per block or per row scaling for the worst layers", "keep attention in higher precision", "sensitivity analysis per layer"],
        "FP8 saturation in o_proj of layer 71: calibrated max 96, observed 310, and E4M3 ends at 448.",
    ),
    5: (
        "Activations per rank double when TP halves; optimizer state is less likely since it is sharded over all 512",
        ["memory snapshot at the failure", "config"],
        ["sequence parallelism, because it shards what TP does not", "FlashAttention so that scores are never materialised", "smaller micro-batch", "tensor parallelism back to 8"],
        "Sharding peak: one layer gathered and per-rank activations double from TP=8 to TP=4, 1.59 GB to 3.19 GB per layer.",
    ),
    6: (
        "The ring crosses a topology boundary at 512, a slower link between pods; an NCCL bug is unlikely",
        ["nccl-tests inside a pod and across", "topology, NCCL debug log"],
        ["hierarchical all-reduce, because only 1/8 of the bytes cross", "double binary trees", "overlap with backward and check the bucket size", "gradient accumulation"],
        "Topology cliff: 2(N-1)/N grows 0.2%, yet 61 ms becomes 340 ms; cross-pod links give 9 GB/s against 46.",
    ),
    7: (
        "Two configurations are too few; the autotune space is most likely the problem, rather than Triton",
        ["autotuner log of a wide search", "SASS: is wgmma emitted"],
        ["widen the autotune grid: BLOCK_K 64 and 128, stages 3 to 5, because 2 of about 108 were tried", "check SASS for wgmma", "ask whether the fusion can pay at all", "CUTLASS epilogue fusion"],
        "The autotune space is too small: 2 configs of about 108, BLOCK_K 32 and 2 stages.",
    ),
    8: (
        "Stage imbalance: embedding and loss stages are heavier; more likely than latency since the fabric is healthy",
        ["per-stage timing", "profiler traces of all ranks"],
        ["rebalance the layers over stages because the last takes 46 ms against 24", "tune virtual stages", "more micro-batches", "zero-bubble schedule"],
        "Imbalanced stages: the slowest stage takes 46 ms against 24, 1.5x the mean; the formula 7/32 assumes balance. 41% against 18%.",
    ),
}  # fmt: skip


def play(seed: int, folder: Path, fixes: list[str] | None = None) -> Score:
    thought, requests, ordered, answer = ANSWERS[seed]
    clock = Clock()
    played = start(seed, clock, folder / "r.jsonl")
    clock.wait(30)
    played.hypothesis(thought)
    for request in requests:
        clock.wait(60)
        played.ask(request)
    played.fixes(fixes or ordered)
    played.commit(answer)
    return score(played)


@pytest.mark.parametrize("seed", ANSWERS)
def test_a_good_answer_in_own_words_is_a_strong_pass(seed: int, tmp_path: Path) -> None:
    result = play(seed, tmp_path)
    assert result.level == STRONG, [(m.dimension, m.word, m.why) for m in result.marks if m.level < STRONG] + [
        result.trap
    ]


TRAPS = {1: "increase occupancy", 2: "change the sharding and the recompute policy", 3: "just add more GPUs", 6: "use ZeRO or FSDP instead", 7: "blame Triton and go back to PyTorch"}  # fmt: skip


@pytest.mark.parametrize("seed", TRAPS)
def test_the_tempting_first_move_is_called_by_its_name(seed: int, tmp_path: Path) -> None:
    result = play(seed, tmp_path, [TRAPS[seed], *ANSWERS[seed][2]])
    assert result.trap and result.level < STRONG
