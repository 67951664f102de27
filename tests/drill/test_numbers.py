"""Numeric questions: right by independent arithmetic, never impossible, units understood."""

from __future__ import annotations

import math

import pytest

from stallwise.drill.numbers import Question, series
from stallwise.errors import BadRequest


def independent(question: Question) -> float:
    """The same number by arithmetic written anew, from the inputs alone."""
    v = dict(question.inputs)
    n, p = v.get("ranks", 0), v.get("params", 0)
    key = (question.formula, question.result)
    if key == ("zero-memory", "bytes_per_rank"):
        kept = {1: 4, 2: 2, 3: 0}[int(v["stage"])]
        return p * kept + p * (16 - kept) / n
    if key == ("tensor-parallel-traffic", "sent_bytes"):  # four all-reduces a layer, forward and backward together
        return 4 * v["layers"] * 2 * (v["tp"] - 1) / v["tp"] * v["tokens"] * v["hidden"] * 2
    table = {
        ("adam-states", "state_bytes"): lambda: p * (14 + v["gradient"]),
        ("adam-states", "optimizer_bytes"): lambda: p * 12,
        ("kv-cache", "request_bytes"): lambda: 2 * math.prod(v[k] for k in ("layers", "kv_heads", "head_dim", "context", "element")),
        ("minimum-gpus", "gpus"): lambda: math.ceil(v["state_bytes"] / v["memory_bytes"]),
        ("attention-scores", "scores_bytes"): lambda: v["batch"] * v["heads"] / v["tp"] * v["seq"] ** 2 * 2,
        ("ring-allreduce", "sent_bytes"): lambda: 2 * v["size_bytes"] * (1 - 1 / n),
        ("ring-allreduce", "seconds"): lambda: 2 * v["size_bytes"] * (1 - 1 / n) / v["byte_per_s"] + 1e-5 * (n - 1),
        ("pipeline-bubble", "step_share"): lambda: (v["stages"] - 1) / (v["microbatches"] + v["stages"] - 1),
        ("pipeline-bubble", "useful_ratio"): lambda: (v["stages"] - 1) / v["microbatches"] / v["chunks"],
        ("zero3-volume", "sharded_bytes"): lambda: 3 * 2 * p * (1 - 1 / n),
        ("ridge-point", "ridge_flop_per_byte"): lambda: v["peak_flop_per_s"] / v["byte_per_s"],
        ("decode-ceiling", "step_s"): lambda: (v["weights_bytes"] + v["requests"] * v["kv_bytes"]) / v["gpus"] / v["byte_per_s"],
        ("speculative-gain", "tokens_per_pass"): lambda: sum(v["accept_share"] ** k for k in range(int(v["guesses"]) + 1)),
        ("training-flops", "mfu_share"): lambda: v["token_per_s"] / v["peak_flop_per_s"]
        * (6 * p + 6 * v["layers"] * v["query_width"] * v["seq"]),
        ("checkpoint-interval", "young_s"): lambda: (2 * v["checkpoint_s"] * v["mtbf_gpu_s"] / v["gpus"]) ** 0.5,
    }  # fmt: skip
    return float(table[key]())


def test_five_hundred_numeric_questions_are_right_and_no_two_alike() -> None:
    questions = series(seed=2024, count=500)
    assert len({q.id for q in questions}) == len({q.ask for q in questions}) == 500
    for question in questions:
        assert question.answer == pytest.approx(independent(question), rel=1e-9), question.ask
        assert question.accepts(f"{question.answer:.17g}")
        assert not question.accepts(f"{question.answer * 1.3:.17g}")


def test_the_same_seed_gives_the_same_questions() -> None:
    assert series(5, 20) == series(5, 20) != series(6, 20)


def test_units_are_understood() -> None:
    question = next(q for q in series(1, 200) if q.unit.value == "B")
    assert question.accepts(f"{question.answer / 1e9}GB")


def test_no_question_asks_for_the_impossible() -> None:
    memory = {2.039e12: 80e9, 3.35e12: 80e9, 4.8e12: 141e9, 8e12: 192e9}
    questions = series(seed=77, count=1500)
    assert len({(q.formula, q.result) for q in questions}) >= 15
    for q in questions:
        v = q.inputs
        assert q.answer > 0 and math.isfinite(q.answer), q.ask
        assert q.unit.value != "share" or q.answer < 1, q.ask
        if q.formula == "training-flops":
            assert 0.05 <= q.answer <= 0.65, q.ask
        if q.formula == "decode-ceiling":
            assert (v["weights_bytes"] + v["requests"] * v["kv_bytes"]) / v["gpus"] <= memory[v["byte_per_s"]], q.ask
        if "chunks" in v:
            assert v["microbatches"] % v["stages"] == 0, q.ask
        if q.formula == "checkpoint-interval":
            assert q.answer > 2 * v["checkpoint_s"], q.ask


def test_numbers_are_taken_as_people_write_them() -> None:
    share = next(q for q in series(1, 300) if q.unit.value == "share")
    assert share.accepts(f"{100 * share.answer:.2f} %".replace(".", ",")) and share.accepts(f"about {share.answer:.4f}")
    with pytest.raises(BadRequest):
        share.accepts("quite a lot")
