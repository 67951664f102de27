"""What stated numbers imply: ceilings, budgets and expectations worked out before anybody measures."""

from __future__ import annotations

from stallwise.evidence.capture import LAYER_STATS, RANK_TRACES, STEP_SHAPE
from stallwise.evidence.quantity import Quantity
from stallwise.units import Unit

_C = STEP_SHAPE
VECTOR_CEILING = Quantity("expected.vector_ceiling", Unit.FLOP_PER_S, "the most that CUDA cores alone can do", _C)
MATRIX_PEAK = Quantity("expected.matrix_peak", Unit.FLOP_PER_S, "dense tensor-core peak", _C)
GEMM_TIME = Quantity("expected.gemm_time", Unit.SECOND, "time of the stated product at the stated rate", _C)
GEMM_TIME_LIBRARY = Quantity("expected.gemm_time_library", Unit.SECOND, "time of the same product in the library", _C)
WARP_LIMIT = Quantity("expected.warp_limit_share", Unit.SHARE, "occupancy that the stated registers allow", _C)
SLOWDOWN = Quantity("expected.slowdown", Unit.RATIO, "step time now over before, from the stated rates", _C)
LOST_GPUS = Quantity("expected.lost_gpus", Unit.COUNT, "GPUs' worth of work lost to the slowdown", _C)
LOST_DOLLARS = Quantity("expected.lost_dollars", Unit.DOLLAR_PER_HOUR, "what the slowdown costs an hour", _C)
WEIGHT_BYTES = Quantity("expected.weight_bytes", Unit.BYTE, "weights of the served model", _C)
KV_BYTES_PER_TOKEN = Quantity("expected.kv_bytes_per_token", Unit.BYTE, "KV cache of one token over all GPUs", _C)
KV_BUDGET = Quantity("expected.kv_budget", Unit.BYTE, "memory that weights leave for KV", _C)
KV_BUDGET_TOKENS = Quantity("expected.kv_budget_tokens", Unit.TOKEN, "tokens that fit the KV budget", _C)
KV_SEQUENCES = Quantity("expected.kv_sequences", Unit.COUNT, "requests of the stated length that fit the KV budget", _C)
DECODE_FLOOR = Quantity("expected.decode_floor", Unit.SECOND, "decode iteration at the memory roof, few requests", _C)
DECODE_ITERATION = Quantity(
    "expected.decode_iteration", Unit.SECOND, "decode iteration at the memory roof, this load", _C
)
CONCURRENCY = Quantity("expected.concurrency", Unit.COUNT, "requests in flight by Little's law", _C)
PREFILL_TIME = Quantity("expected.prefill_time", Unit.SECOND, "one prompt's prefill at what large products reach", _C)
PREFILL_LOAD = Quantity("expected.prefill_load", Unit.SHARE, "share of the engine's time that prefill alone needs", _C)
SPECULATIVE_GAIN = Quantity("expected.speculative_gain", Unit.RATIO, "tokens a step with 4 drafts at 70% accepted", _C)
FP8_MAX = Quantity("expected.fp8_max", Unit.RATIO, "largest value of the stated 8-bit format", _C)
FP8_LAYER = Quantity("expected.fp8_layer", Unit.TEXT, "the layer that eight bits break first, and why", _C)
CLIP_RATIO = Quantity("expected.clip_ratio", Unit.RATIO, "observed over calibrated maximum", LAYER_STATS)
STATE_BYTES = Quantity("expected.state_bytes", Unit.BYTE, "weights, gradients and Adam states of one rank", _C)
GATHERED_LAYER = Quantity("expected.gathered_layer", Unit.BYTE, "weights of two gathered layers on one rank", _C)
LAYER_ACTIVATIONS = Quantity("expected.layer_activations", Unit.BYTE, "activations of one layer while recomputed", _C)
LAYER_SCORES = Quantity("expected.layer_scores", Unit.BYTE, "attention scores of one layer if written out", _C)
DEVICE_PEAK = Quantity("expected.device_peak", Unit.BYTE, "all memory of the fullest GPU, as plan memory counts it", _C)
DEVICE_PART = Quantity("expected.device_part", Unit.BYTE, "a part of the fullest GPU's memory at its peak", _C)
SPLIT_FREES = Quantity("expected.split_frees", Unit.BYTE, "what sequence parallelism frees of the peak", _C)
LONGEST_FIT = Quantity(
    "expected.longest_fit", Unit.TOKEN, "tokens of a micro-batch of one up to which a layout fits the card", _C
)
SCORES_EACH = Quantity("expected.scores_each", Unit.BYTE, "one s x s score matrix of a layer's heads on a rank", _C)
HEADS_EACH = Quantity("expected.heads_each", Unit.COUNT, "attention heads on a rank", _C)
FUSED_FREES = Quantity("expected.fused_frees", Unit.BYTE, "what fused attention frees where scores are written", _C)
CARD_MEMORY = Quantity("expected.card_memory", Unit.BYTE, "memory of the stated card", _C)
LAYER_INPUTS = Quantity("expected.layer_inputs", Unit.BYTE, "checkpointed layer inputs of all layers", _C)
RING_TIME = Quantity("expected.ring_time", Unit.SECOND, "all-reduce at the largest scale, from the trend below it", _C)
RING_FACTOR = Quantity("expected.ring_factor", Unit.RATIO, "growth that 2(N-1)/N allows over the last doubling", _C)
CLIFF_RATIO = Quantity("expected.cliff_ratio", Unit.RATIO, "measured over expected at the largest scale", _C)
NARROWER = Quantity("expected.narrower", Unit.RATIO, "how much less bandwidth behind the jump would explain it", _C)
RAIL_SPREAD = Quantity(
    "expected.rail_spread", Unit.RATIO, "an exchange with a rail gone, its traffic spread evenly", _C
)
RAIL_PINNED = Quantity("expected.rail_pinned", Unit.RATIO, "an exchange with a rail gone, rings pinned to rails", _C)
CLIFF_GPUS = Quantity("expected.cliff_gpus", Unit.COUNT, "scale at which the time leaves its trend", _C)
BUBBLE_1F1B = Quantity("expected.bubble_1f1b", Unit.SHARE, "idle share of plain 1F1B with equal stages", _C)
BUBBLE_FORMULA = Quantity("expected.bubble_formula", Unit.SHARE, "(p-1)/m: idle over useful time of equal stages", _C)
BUBBLE_OF_STEP = Quantity("expected.bubble_of_step", Unit.SHARE, "the measured bubble as a part of the whole step", _C)
BUBBLE_SCHEDULE = Quantity(
    "expected.bubble_schedule", Unit.SHARE, "idle share of the stated schedule, equal stages", _C
)
STAGE_RATIO_NEEDED = Quantity(
    "expected.stage_ratio", Unit.RATIO, "slowest over mean stage that explains the bubble", _C
)
STAGE_IDLE = Quantity("expected.stage_idle", Unit.SHARE, "idle share of one stage, of the measured step", _C)
RECOMPUTE_STAGE_RATIO = Quantity(
    "expected.recompute_stage_ratio",
    Unit.RATIO,
    "slowest over mean stage where one stage alone re-runs its forward pass",
    _C,
)
STAGE_RATIO = Quantity("expected.stage_ratio_seen", Unit.RATIO, "slowest over mean stage as measured", RANK_TRACES)
BUBBLE_DOUBLED = Quantity("expected.bubble_doubled", Unit.SHARE, "ideal bubble with twice the micro-batches", _C)
HEAD_LAYERS = Quantity("expected.head_layers", Unit.RATIO, "output head, counted in transformer layers", _C)
DRAM_MOVED = Quantity("expected.dram_moved", Unit.BYTE, "bytes that the product moved from and to DRAM", _C)
DRAM_LEAST = Quantity("expected.dram_least", Unit.BYTE, "bytes of both operands and the result, once", _C)
FUSED_PASS = Quantity(
    "expected.fused_pass", Unit.SHARE, "one pass over a product's input, over the product's own time", _C
)
AUTOTUNE_SPACE = Quantity("expected.autotune_space", Unit.COUNT, "configurations worth trying on this card", _C)
