"""The layer that eight bits break first, from the lengths of the task and of the calibration."""

from __future__ import annotations

from collections.abc import Iterator

from stallwise.evidence.catalog import expected, stated
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Source
from stallwise.physics.costs.formulas.fp8_layers import evaluate

ORDER = -4
EIGHT_BITS = ("fp8", "e4m3", "e5m2")
SHORT_IS_FINE = 0.015  # accuracy lost on short inputs that evaluations report as noise


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """A sentence with its numbers; nothing where a layer was named by measurement."""
    written = evidence.text(stated.FORMAT).lower()
    if not any(word in written for word in EIGHT_BITS) or evidence.text(stated.WORST_LAYER):
        return
    contexts = (evidence.get(stated.TASK_CONTEXT), evidence.get(stated.CALIBRATION_CONTEXT))
    task, short = (f if f is not None and f.number >= 1.0 else None for f in contexts)
    ratios = evaluate(context=int(task.number)) if task else evaluate()
    down, normed = f"{ratios['down_ratio']:.0f}x", f"{ratios['normed_ratio']:.0f}x"
    fine = evidence.get(stated.ACCURACY_SHORT_DROP)
    longer = bool(task and short and short.number < task.number)
    if longer or (fine is not None and fine.number < SHORT_IS_FINE):
        text = (
            "the output projection (o_proj), last layers first: it reads means over the context, so its largest input over its usual "
            "one grows by the square root of the length"
        )
        if task and short and longer:
            grows = evaluate(context=int(task.number), calibrated=int(short.number))["output_growth_ratio"]
            text += f", {grows:.1f}x from {short} to {task} tokens"
        text += (
            f"; the down projection is worse than the rest at every length ({down} against {normed}) and does not grow"
        )
    else:
        text = (
            f"the down projection: it reads a product of two activations, its largest input is {down} its usual one where normed "
            f"inputs have {normed}; the output projection (o_proj) where only long inputs suffer"
        )
    yield Fact(expected.FP8_LAYER, text, Source("computed", "plan formula fp8-layers"))
