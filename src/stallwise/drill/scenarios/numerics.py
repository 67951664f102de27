# ruff: noqa: E501
"""Runs whose numbers go wrong, told by loss, gradient norm and scale."""

from __future__ import annotations

import json

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._classic_exhibits import fp8_long_context
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


@planted("grad-explosion")
def explosion(rng: Rng) -> Plot:
    start, growth = rng.whole(120, 180), rng.between(1.3, 1.5)
    rows = []
    for i in range(start + 30):
        dead = i >= start + 26
        norm = rng.near(0.5, 0.03) * (growth ** (i - start) if i > start else 1)
        loss = 3 - 0.005 * i + (0.8 * (i - start - 8) if i > start + 8 else 0)
        rows.append(
            json.dumps(
                {
                    "step": i,
                    "loss": float("nan") if dead else loss,
                    "grad_norm": float("nan") if dead else norm,
                    "dtype": "bf16",
                }
            )
        )
    return Plot(
        f"A bf16 run was fine until about step {start}; the loss then rose within twenty steps and became NaN. Restarting from an older checkpoint does the same. What do you look at?",
        (exhibit("train-log", "steps.jsonl", "\n".join(rows) + "\n"),),
        number=Decisive("At about which step does the gradient norm begin to grow?", start, Unit.COUNT),
    )


@planted("bad-batch")
def outlier(rng: Rng) -> Plot:
    at, jump = rng.whole(200, 500), rng.between(3, 5)
    rows = [
        f"{i},{3 - 0.002 * i + (jump if i == at else 0) + 0.02 * rng.near(1, 0.5):.4f},{0.5 * (rng.between(20, 40) if i == at else rng.near(1, 0.1)):.3f}\n"
        for i in range(600)
    ]
    return Plot(
        f"The loss of a long run jumps by {jump:.1f} for a single step and comes back. The team wants to lower the learning rate. Do you?",
        (exhibit("train-log", "steps.csv", "step,loss,grad_norm\n" + "".join(rows)),),
        number=Decisive("Which step is it?", at, within=EXACT),
    )


@planted("loss-scale-collapse")
def collapse(rng: Rng) -> Plot:
    first, count = rng.pick(15, 16, 17), rng.whole(22, 28)
    rows = [
        f"[INFO] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {2.0 ** (first - i)}, reducing to {2.0 ** (first - 1 - i)}\n"
        for i in range(count)
    ]
    return Plot(
        "An fp16 run with dynamic loss scaling prints warnings since its start and the weights do not change. What is wrong?",
        (exhibit("train-log", "train.log", "".join(rows)),),
        number=Decisive("How many times in a row is the scale lowered?", count, within=EXACT),
    )


@planted("fp16-overflow")
def half_nan(rng: Rng) -> Plot:
    last = rng.whole(5, 9)
    rows = [
        f"{{'loss': {4 - 0.1 * i if i < last else 'nan'}, 'grad_norm': {rng.near(1.1, 0.05) if i < last else 'nan'}, 'epoch': {i / 100}}}\n"
        for i in range(last + 6)
    ]
    model = rng.pick("a T5", "a Gemma", "a bf16-trained Llama")
    return Plot(
        f"Fine-tuning {model} model gives NaN after {last * 10} steps, on every node and every seed. The same script trained others. Why?",
        (exhibit("train-log", "train.log", "TrainingArguments(fp16=True, bf16=False)\n" + "".join(rows)),),
        number=Decisive("How many losses are logged before the first NaN?", last, within=EXACT),
    )


@planted("fp8-saturation")
def calibrated_short(rng: Rng) -> Plot:
    calibrated, last = rng.whole(60, 120), rng.whole(40, 79)
    observed = calibrated * rng.between(2.4, 4)
    was, now = rng.between(0.68, 0.8), rng.between(0.45, 0.58)
    return Plot(
        f"A model was converted to FP8 (E4M3). Short tasks are as before; retrieval over 32,768 tokens fell from {was:.0%} to {now:.0%}. Why?",
        fp8_long_context(rng, calibrated, observed, was, now, last),
        number=Decisive(
            "How many times their calibrated maximum do the values of the worst layer reach?",
            observed / calibrated,
            Unit.RATIO,
        ),
    )


@planted("fp16-underflow")
def vanishing(rng: Rng) -> Plot:
    first, last, count = rng.between(0.002, 0.006), rng.between(0.25, 0.45), 120
    rows = [
        {
            "step": i,
            "loss": round(4.2 - 0.9 * (1 - 0.97 ** min(i, 60)) + 0.004 * rng.near(1, 0.5), 4),
            "zero_grad_share": round(first + (last - first) * i / (count - 1), 4),
        }
        for i in range(count)
    ]
    text = json.dumps({"config": {"precision": "fp16"}, "rows": rows})
    return Plot(
        "Old mixed-precision code without a scaler: the loss falls for a while, then goes flat, without an error. The team wants a higher learning rate. Do you?",
        (exhibit("train-log", "steps.json", text),),
        number=Decisive("Which share of the gradients is zero at the end?", last, Unit.SHARE),
    )
