"""The order of the zero-bubble family on one stage per device: 1F1B with delayed weight gradients."""

from __future__ import annotations

from stallwise.physics.sim.program import Op, Pass


def split_order(device: int, microbatches: int, *, warm: int, delay: int) -> list[Op]:
    """`warm` forwards first; then forward, input gradient, and the weight gradient of `delay` microbatches ago."""
    warm = min(warm, microbatches)
    order = [Op(Pass.FORWARD, k, device) for k in range(warm)]
    weights = 0
    for k in range(microbatches):
        if k + warm < microbatches:
            order.append(Op(Pass.FORWARD, k + warm, device))
            order.append(Op(Pass.INPUT_GRAD, k, device))
            if k >= delay:
                order.append(Op(Pass.WEIGHT_GRAD, weights, device))
                weights += 1
        else:  # nothing left to forward: a weight gradient fills the wait for the next input gradient
            order.append(Op(Pass.INPUT_GRAD, k, device))
            order.append(Op(Pass.WEIGHT_GRAD, weights, device))
            weights += 1
    order.extend(Op(Pass.WEIGHT_GRAD, k, device) for k in range(weights, microbatches))
    return order
