"""Interleaved 1F1B: every device owns v chunks of the model, so a microbatch comes by v times.

The warm-up shrinks by v in time; messages grow by v and held activations by 1 + (p-1)/(p v). Microbatches travel in
groups of p, so their number must divide by p (Megatron's virtual pipeline).
"""

from __future__ import annotations

from stallwise.errors import BadRequest
from stallwise.physics.sim.pipeline import PassTimes
from stallwise.physics.sim.program import Op, Pass, Program, linear, round_robin

NAME = "interleaved"
TITLE = "interleaved 1F1B"
ALSO = ("1f1b-i", "1f1b-interleaved", "interleaved-1f1b", "vpp", "1f1bi")
CHUNKS = None


def program(devices: int, microbatches: int, chunks: int, times: PassTimes) -> Program:
    """Groups of p microbatches pass chunk after chunk."""
    if microbatches % devices:
        near = max(devices, round(microbatches / devices) * devices)
        raise BadRequest(
            f"interleaving needs microbatches divisible by the {devices} stages, not {microbatches}",
            hint=f"{near} microbatches",
        )
    total = microbatches * chunks
    orders: list[list[Op]] = []
    for d in range(devices):
        warm = min(2 * (devices - d - 1) + (chunks - 1) * devices, total)
        order = [_op(Pass.FORWARD, k, d, devices, chunks) for k in range(warm)]
        for k in range(total):
            if k + warm < total:
                order.append(_op(Pass.FORWARD, k + warm, d, devices, chunks))
            order.append(_op(Pass.BACKWARD, k, d, devices, chunks))
        orders.append(order)
    return linear(NAME, orders, round_robin(devices, chunks), microbatches)


def _op(kind: Pass, turn: int, device: int, devices: int, chunks: int) -> Op:
    group, within = divmod(turn, devices * chunks)
    chunk, place = divmod(within, devices)
    if kind is Pass.BACKWARD:
        chunk = chunks - 1 - chunk
    return Op(kind, group * devices + place, chunk * devices + device)
