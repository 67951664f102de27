"""Training logs in several dialects."""

from __future__ import annotations

import math

from stallwise.drill.artifacts.rng import Rng


def megatron(step: int, time_ms: float, loss: float = 2.0, grad_norm: float = 1.0, scale: float = 1.0) -> str:
    """One line of Megatron-LM."""
    return (
        f" iteration {step:8d}/  500000 | consumed samples: {step * 1024:12d} | elapsed time per iteration (ms): {time_ms:.1f} | "
        f"throughput per GPU (TFLOP/s/GPU): {200000 / time_ms:.1f} | learning rate: 1.5E-04 | lm loss: {loss:.6E} | "
        f"loss scale: {scale} | grad norm: {grad_norm:.3f} | number of skipped iterations:   0 |\n"
    )


def smooth_loss(rng: Rng, steps: int = 60) -> str:
    """A loss curve without trouble, as CSV."""
    return "step,loss,grad_norm\n" + "".join(
        f"{i},{2 + 3 * math.exp(-i / 20) + 0.01 * rng.near(1, 1) - 0.01:.4f},{rng.near(0.4, 0.05):.4f}\n"
        for i in range(steps)
    )
