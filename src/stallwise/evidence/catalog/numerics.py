"""Numbers that go wrong: per-layer ranges, zeros, saturation, and what moved first."""

from __future__ import annotations

from stallwise.evidence.capture import LAYER_STATS, LOSS_LOG
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

AMAX = Quantity("numerics.amax", Unit.RATIO, "largest finite absolute value of any layer", LAYER_STATS)
AMAX_LAYER = Quantity("numerics.amax_layer", Unit.TEXT, "the layer that has it", LAYER_STATS)
BAD_LAYER = Quantity("numerics.bad_layer", Unit.TEXT, "the first layer whose values are inf or NaN", LAYER_STATS)
BAD_STEP = Quantity("numerics.bad_step", Unit.COUNT, "the step at which that was seen first", LAYER_STATS)
ZERO_GRADS = Quantity("numerics.zero_grad_share", Unit.SHARE, "gradient elements that are exactly zero", LAYER_STATS)
ZERO_GRADS_RISE = Quantity("numerics.zero_grad_rise", Unit.SHARE, "how much that share rose over the log", LAYER_STATS)
DIFFERENCE = Quantity("numerics.relative_difference", Unit.RATIO, "relative difference of two ways to compute the same")
TF32_DIFFERENCE = Quantity("numerics.tf32_difference", Unit.RATIO, "relative difference of a product with TF32 on")
FP32_DIFFERENCE = Quantity(
    "numerics.fp32_difference", Unit.RATIO, "relative difference of the same product with TF32 off"
)

# Which came first
SPIKES = Quantity("numerics.spikes", Unit.COUNT, "times that loss, gradient or update left its usual range", LOSS_LOG)
FIRST_MOVER = Quantity("numerics.first_mover", Unit.TEXT, "what moved first: update, gradient or loss", LOSS_LOG)
LEADS = Quantity("numerics.leads", Unit.SHARE, "part of the spikes in which it did", LOSS_LOG)
FIRST_STEP = Quantity("numerics.first_step", Unit.COUNT, "the step at which the first spike began", LOSS_LOG)
GRAD_RATIO = Quantity("numerics.grad_ratio", Unit.RATIO, "largest gradient norm over its usual value", LOSS_LOG)
LOSS_RATIO = Quantity("numerics.loss_ratio", Unit.RATIO, "largest loss over its usual value", LOSS_LOG)
UPDATE_RATIO = Quantity("numerics.update_ratio", Unit.RATIO, "largest update norm over its usual value", LOSS_LOG)
SPIKE_STEPS = Quantity("numerics.spike_steps", Unit.COUNT, "steps that a usual spike lasts", LOSS_LOG)
RECOVERED = Quantity("numerics.recovered", Unit.SHARE, "spikes after which the loss came back", LOSS_LOG)
SCALE_HALVINGS = Quantity("numerics.scale_halvings", Unit.COUNT, "halvings of the loss scale in a row", LOSS_LOG)
SCALE_LAST = Quantity("numerics.scale_last", Unit.RATIO, "the loss scale at the end", LOSS_LOG)
GRAD_LEVEL = Quantity("numerics.grad_level", Unit.RATIO, "usual gradient norm", LOSS_LOG)
LOSS_PROGRESS = Quantity("numerics.loss_progress", Unit.SHARE, "part by which the loss fell over the log", LOSS_LOG)
LOSS_OVER_CHANCE = Quantity(
    "numerics.loss_over_chance", Unit.RATIO, "a rising loss over ln(vocabulary), what guessing costs", LOSS_LOG
)

# FP8
FP8_LAYER = Quantity("numerics.fp8_layer", Unit.TEXT, "the layer that FP8 damages most", LAYER_STATS)
FP8_SATURATED = Quantity(
    "numerics.fp8_saturated_share", Unit.SHARE, "values clipped in that layer at worst", LAYER_STATS
)
FP8_OVER_RANGE = Quantity(
    "numerics.fp8_over_range", Unit.RATIO, "its largest value over the calibrated one", LAYER_STATS
)
FP8_CONTEXTS = Quantity("numerics.fp8_contexts", Unit.TEXT, "contexts at which it clips", LAYER_STATS)
FP8_FROM = Quantity("numerics.fp8_from_context", Unit.TOKEN, "the shortest context at which it clips", LAYER_STATS)
FP8_ERROR = Quantity("numerics.fp8_error", Unit.RATIO, "relative error of that layer at worst", LAYER_STATS)
FP8_USUAL_ERROR = Quantity("numerics.fp8_usual_error", Unit.RATIO, "relative error of the other layers", LAYER_STATS)
FP8_NEEDED_AMAX = Quantity("numerics.fp8_needed_amax", Unit.RATIO, "the range that would not clip", LAYER_STATS)
FP8_REPAIR = Quantity("numerics.fp8_repair", Unit.TEXT, "the cheapest scaling that repairs it", LAYER_STATS)
FP8_LAYERS_HIT = Quantity("numerics.fp8_layers_hit", Unit.COUNT, "layers that clip", LAYER_STATS)
