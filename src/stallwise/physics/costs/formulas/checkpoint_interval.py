"""The best time between checkpoints is the geometric mean of writing one and failing once, times the root of two.

Too often wastes writing, too seldom wastes repeated work; at the optimum the two cost the same.
"""

from __future__ import annotations

from stallwise.physics.costs.economics import daly_interval_s, young_interval_s
from stallwise.units import Unit

EQUATION = "Young: sqrt(2 C M)    Daly: sqrt(2 C M) (1 + sqrt(C/2M)/3 + (C/2M)/9) - C"
SOURCE = "Young 1974; Daly 2006. M = MTBF of one GPU / GPUs; Llama 3 saw one failure per 50,700 GPU-hours."
FOLK = """
M is the whole job's: 16,384 GPUs that fail once in 50,700 hours each stop every 3.1 hours. For asynchronous checkpoints
C is only what the step waits for, but a checkpoint counts from when it is written.
"""
UNITS = {
    "checkpoint_s": Unit.SECOND, "mtbf_gpu_s": Unit.SECOND, "mtbf_s": Unit.SECOND, "young_s": Unit.SECOND,
    "daly_s": Unit.SECOND, "overhead_share": Unit.SHARE,
}  # fmt: skip


def evaluate(checkpoint_s: float = 60.0, gpus: int = 16384, mtbf_gpu_s: float = 50_700 * 3600.0) -> dict[str, float]:
    """Both intervals, and what writing and repeating cost at the optimum."""
    mtbf = mtbf_gpu_s / gpus
    young = young_interval_s(checkpoint_s, mtbf)
    return {
        "mtbf_s": mtbf,
        "young_s": young,
        "daly_s": daly_interval_s(checkpoint_s, mtbf),
        "overhead_share": checkpoint_s / young + young / (2 * mtbf),
    }
