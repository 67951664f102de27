# ruff: noqa: E501
"""Steps that are slow now and then, told by logs alone."""

from __future__ import annotations

from stallwise.drill.artifacts.logs import megatron
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.incident import exhibit
from stallwise.drill.scenarios import Drawn, drawn, planted


@planted("checkpoint-stall")
def saves(rng: Rng) -> Drawn:
    every, long_ms, base = rng.pick(50, 100), rng.between(20e3, 40e3), rng.between(400, 700)
    rows = [
        megatron(i, rng.near(base))
        + (
            f"saving checkpoint at iteration {i} to /mnt/ckpt\nFinished saving the checkpoint in {rng.near(long_ms) * 1e-3:.2f} seconds\n"
            if i % every == every - 1
            else ""
        )
        for i in range(500)
    ]
    return drawn(long_ms * 1e-3, exhibit("train-log", "train.log", "".join(rows)), base=base)


@planted("recompilation")
def recompiles(rng: Rng) -> Drawn:
    slow, fast = rng.between(5, 10), rng.between(0.3, 0.6)
    rows = [
        f"step {i} loss 2.{i} step_time {slow if i % 2 else fast:.2f}s\nV1103 12:00:{i:02d}.0 44 torch/_dynamo/guards.py:2] [1/{i}] [__recompiles] Recompiling function forward in m.py:10\nV1103 12:00:{i:02d}.0 44 torch/_dynamo/guards.py:2] [1/{i}] [__recompiles]     - 1/0: tensor 'x' size mismatch at index 1\n"
        for i in range(20)
    ]
    return drawn(slow, exhibit("compile-log", "run.log", "".join(rows)))


@planted("graph-breaks")
def breaks(rng: Rng) -> Drawn:
    count, eager = rng.whole(20, 60), rng.between(30, 60)
    compiled = eager * rng.between(1.15, 1.5)
    text = f"Graph Count: {count + 1}\nGraph Break Count: {count}\nReason: call_function print\neager {eager:.1f} ms/iter\ncompiled {compiled:.1f} ms/iter\n"
    return drawn(count, exhibit("compile-log", "explain.txt", text))


@planted("input-starved")
def slow_loader(rng: Rng) -> Drawn:
    whole, share = rng.between(1.2, 1.8), rng.between(0.55, 0.75)
    rows = [
        f"[01/01 10:{i // 6:02d}:{i % 6}0 d2]:  iter: {i * 20 + 19}  total_loss: 2.0  time: {rng.near(whole):.3f}  data_time: {rng.near(share * whole):.3f}  lr: 0.01\n"
        for i in range(40)
    ]
    return drawn(share, exhibit("train-log", "log.txt", "".join(rows)), gpu_use=round(100 * (1 - share)), whole=whole)
