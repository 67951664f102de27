# ruff: noqa: E501
"""Runs whose numbers go wrong, told by loss, gradient norm and scale."""

from __future__ import annotations

import json
import math

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted
from stallwise.drill.scenarios._classic_exhibits import fp8_long_context


@planted("grad-explosion")
def explosion(rng: Rng) -> Drawn:
    start, growth = rng.whole(120, 180), rng.between(1.3, 1.5)
    rows = []
    for i in range(start + 30):
        norm = rng.near(0.5, 0.03) * (growth ** (i - start) if i > start else 1)
        loss = 3 - 0.005 * i + (0.8 * (i - start - 8) if i > start + 8 else 0)
        rows.append(
            {"step": i, "loss": loss, "grad_norm": norm, "dtype": "bf16"}
            | ({"loss": math.nan, "grad_norm": math.nan} if i >= start + 26 else {})
        )
    return drawn(
        start, exhibit("train-log", "steps.jsonl", "".join(json.dumps(row) + "\n" for row in rows)), start=start
    )


@planted("bad-batch")
def outlier(rng: Rng) -> Drawn:
    at, jump = rng.whole(200, 500), rng.between(3, 5)
    rows = [
        f"{i},{3 - 0.002 * i + (jump if i == at else 0) + 0.02 * rng.near(1, 0.5):.4f},{0.5 * (rng.between(20, 40) if i == at else rng.near(1, 0.1)):.3f}\n"
        for i in range(600)
    ]
    return drawn(at, exhibit("train-log", "steps.csv", "step,loss,grad_norm\n" + "".join(rows)), jump=jump)


@planted("loss-scale-collapse")
def collapse(rng: Rng) -> Drawn:
    first, count = rng.pick(15, 16, 17), rng.whole(22, 28)
    line = "[INFO] [deepspeed] OVERFLOW! Rank 0 Skipping step. Attempted loss scale: {}, reducing to {}\n"
    rows = [line.format(2.0 ** (first - i), 2.0 ** (first - 1 - i)) for i in range(count)]
    return drawn(count, exhibit("train-log", "train.log", "".join(rows)))


@planted("fp16-overflow")
def half_nan(rng: Rng) -> Drawn:
    last = rng.whole(5, 9)
    rows = [
        f"{{'loss': {4 - 0.1 * i if i < last else 'nan'}, 'grad_norm': {rng.near(1.1, 0.05) if i < last else 'nan'}, 'epoch': {i / 100}}}\n"
        for i in range(last + 6)
    ]
    log = "TrainingArguments(fp16=True, bf16=False)\n" + "".join(rows)
    return drawn(last, exhibit("train-log", "train.log", log), steps=last * 10)


@planted("fp8-saturation")
def calibrated_short(rng: Rng) -> Drawn:
    calibrated, last, times = rng.whole(60, 120), rng.whole(40, 79), rng.between(2.4, 4)
    was, now = rng.between(0.68, 0.8), rng.between(0.45, 0.58)
    return drawn(times, *fp8_long_context(rng, calibrated, calibrated * times, was, now, last), was=was, now=now)


@planted("fp16-underflow")
def vanishing(rng: Rng) -> Drawn:
    first, last, count = rng.between(0.002, 0.006), rng.between(0.25, 0.45), 120
    losses = [4.2 - 0.9 * (1 - 0.97 ** min(i, 60)) + 0.004 * rng.near(1, 0.5) for i in range(count)]
    rows = [
        {"step": i, "loss": round(loss, 4), "zero_grad_share": round(first + (last - first) * i / (count - 1), 4)}
        for i, loss in enumerate(losses)
    ]
    return drawn(last, exhibit("train-log", "steps.json", json.dumps({"config": {"precision": "fp16"}, "rows": rows})))
