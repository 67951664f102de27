# ruff: noqa: E501
"""Steps that are slow now and then, told by logs alone."""

from __future__ import annotations

import json

from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.artifacts.training import megatron
from stallwise.drill.incident import EXACT, Decisive, Plot, exhibit
from stallwise.drill.scenarios._planted import planted
from stallwise.units import Unit


@planted("checkpoint-stall")
def saves(rng: Rng) -> Plot:
    every, long_ms, base = rng.pick(50, 100), rng.between(20e3, 40e3), rng.between(400, 700)
    rows = [
        megatron(i, rng.near(base) + (long_ms if i % every == 0 and i else 0))
        + (f"saving checkpoint at iteration {i} to /mnt/ckpt\n" if i % every == every - 1 else "")
        for i in range(500)
    ]
    return Plot(
        f"Throughput over a day is a fifth below that of any ten minutes you watch ({base:.0f} ms a step). No errors. Why?",
        (exhibit("train-log", "train.log", "".join(rows)),),
        number=Decisive("How much longer than the others is a long step?", long_ms * 1e-3, Unit.SECOND),
    )


@planted("recompilation")
def recompiles(rng: Rng) -> Plot:
    slow, fast = rng.between(5, 10), rng.between(0.3, 0.6)
    rows = [
        f"step {i} loss 2.{i} step_time {slow if i % 2 else fast:.2f}s\nV1103 12:00:{i:02d}.0 44 torch/_dynamo/guards.py:2] [1/{i}] [__recompiles] Recompiling function forward in m.py:10\nV1103 12:00:{i:02d}.0 44 torch/_dynamo/guards.py:2] [1/{i}] [__recompiles]     - 1/0: tensor 'x' size mismatch at index 1\n"
        for i in range(20)
    ]
    return Plot(
        "torch.compile was switched on; some steps got 20% faster and others take many seconds, without end. Why?",
        (exhibit("compile-log", "run.log", "".join(rows)),),
        number=Decisive("How long is a slow step?", slow, Unit.SECOND),
    )


@planted("graph-breaks")
def breaks(rng: Rng) -> Plot:
    count, eager = rng.whole(20, 60), rng.between(30, 60)
    text = f"Graph Count: {count + 1}\nGraph Break Count: {count}\nReason: call_function print\neager {eager:.1f} ms/iter\ncompiled {eager * rng.between(1.15, 1.5):.1f} ms/iter\n"
    return Plot(
        "torch.compile made the model slower than eager, steadily, with no long steps. Why?",
        (exhibit("compile-log", "explain.txt", text),),
        number=Decisive("How often is the model cut?", count, within=EXACT),
    )


@planted("input-starved")
def slow_loader(rng: Rng) -> Plot:
    whole = rng.between(1.2, 1.8)
    wait = whole * rng.between(0.55, 0.75)
    rows = [
        f"[01/01 10:{i // 6:02d}:{i % 6}0 d2]:  iter: {i * 20 + 19}  total_loss: 2.0  time: {rng.near(whole):.3f}  data_time: {rng.near(wait):.3f}  lr: 0.01\n"
        for i in range(40)
    ]
    return Plot(
        f"A detector takes {whole:.1f} s a step; GPU utilisation swings between 0 and 100%. A faster GPU changed nothing. Why?",
        (exhibit("train-log", "log.txt", "".join(rows)),),
        gpu_use=round(100 * (1 - wait / whole)),
        number=Decisive("Which share of a step is spent before the work begins?", wait / whole, Unit.SHARE),
    )


@planted("allocator-churn")
def retries(rng: Rng) -> Plot:
    good, bad, at = rng.whole(8000, 12000), rng.whole(3500, 4500), rng.whole(25, 35)
    rows = [
        json.dumps(
            {"step": i, "tokens_per_sec": good if i < at else bad, "memory/alloc_retries": max(0, i - at + 1) * 3}
        )
        for i in range(80)
    ]
    return Plot(
        f"At step {at} throughput fell from {good:,} to {bad:,} tokens a second, when longer documents came. No OOM. Why?",
        (exhibit("train-log", "metrics.jsonl", "\n".join(rows) + "\n"),),
        number=Decisive("How many retries are added with every step after the fall?", 3, within=EXACT),
    )
