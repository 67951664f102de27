"""Tensor and pipeline parallelism divide the weights, data parallelism only what ZeRO shards.

The ranks must multiply up, and the batch must divide over the replicas and microbatches.
"""

from __future__ import annotations

from stallwise.errors import BadRequest
from stallwise.units import Unit

EQUATION = "GPUs = t p d    weights per rank = N / (t p)    states = N (w + g + o/d) / (t p)"
SOURCE = "Narayanan et al. 2021 (arXiv 2104.04473); layout of a 175B on 1,024 GPUs: 8 x 16 x 8."
FOLK = """
"Each rank holds N / 1024" divides by the replicas too: with TP 8 and PP 16 a rank holds N / 128. Stages are not equal:
embedding and head sit on the ends, and the first stage holds the most microbatches.
"""
UNITS = {
    "weight": Unit.BYTE, "gradient": Unit.BYTE, "optimizer": Unit.BYTE, "weights_bytes": Unit.BYTE,
    "replicated_state_bytes": Unit.BYTE, "sharded_state_bytes": Unit.BYTE,
}  # fmt: skip


def evaluate(
    params: float = 175e9, gpus: int = 1024, tp: int = 8, pp: int = 16, weight: float = 2.0, gradient: float = 2.0,
    optimizer: float = 12.0,
) -> dict[str, float]:  # fmt: skip
    """Replicas, parameters and bytes per rank, with and without the optimizer sharded over the replicas."""
    if gpus % (tp * pp):
        raise BadRequest(
            f"TP {tp} x PP {pp} does not divide {gpus} GPUs", hint=f"{gpus // (tp * pp) * tp * pp} GPUs would do"
        )
    dp = gpus // (tp * pp)
    each = params / (tp * pp)
    return {
        "replicas": dp,
        "params_per_rank": each,
        "weights_bytes": each * weight,
        "replicated_state_bytes": each * (weight + gradient + optimizer),
        "sharded_state_bytes": each * (weight + gradient + optimizer / dp),
    }
