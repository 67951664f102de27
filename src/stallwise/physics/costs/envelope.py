"""Closed forms for the back of an envelope: what a few stated numbers imply, before any simulation."""

from __future__ import annotations

# bf16 weights and gradients, fp32 master, momentum and variance: the mixed-precision Adam of most trainers.
STATE_BYTES_PER_PARAMETER = 16.0
USABLE_MEMORY_SHARE = 0.9  # what engines take of a card by default


def bubble_share(stages: float, microbatches: float, chunks: float = 1.0) -> float:
    """Idle share of the whole step of 1F1B; with v chunks a rank the idle over useful time divides by v.

    x = (p - 1) / (v m) is idle over useful time (Narayanan et al. 2021); the share of the step is x / (1 + x).
    """
    return of_the_step(bubble_over_useful(stages, microbatches, chunks))


def bubble_over_useful(stages: float, microbatches: float, chunks: float = 1.0) -> float:
    """Idle over useful time of a balanced pipeline, the formula that people quote: (p - 1) / (v m)."""
    return (stages - 1.0) / (chunks * microbatches)


def of_the_step(over_useful: float) -> float:
    """Idle over useful time as a part of the whole step."""
    return over_useful / (1.0 + over_useful)


def slowest_over_mean(bubble: float, stages: float, microbatches: float, chunks: float = 1.0) -> float:
    """How much slower than the mean the slowest stage must be to explain this idle share.

    A balanced pipeline takes (m + (p-1)/v) slots; with unequal stages each slot is as long as the slowest one, so the
    busy share is m / ((m + (p-1)/v) r).
    """
    slots = microbatches + (stages - 1.0) / chunks
    return microbatches / (slots * max(1.0 - bubble, 1e-9))


def ring_bytes_factor(ranks: float) -> float:
    """Bytes that each rank sends for an all-reduce, over the message: 2 (n-1) / n."""
    return 2.0 * (ranks - 1.0) / ranks


def decode_iteration_s(weight_bytes: float, kv_bytes: float, bandwidth_byte_per_s: float) -> float:
    """A decode step reads all weights once and the KV of every running request once."""
    return (weight_bytes + kv_bytes) / bandwidth_byte_per_s


def kv_budget_bytes(memory_bytes: float, weight_bytes: float, share: float = USABLE_MEMORY_SHARE) -> float:
    """What weights leave for the KV cache."""
    return max(0.0, share * memory_bytes - weight_bytes)


def speculative_gain(acceptance: float, drafted: int) -> float:
    """Tokens a target step yields at most: (1 - a^(g+1)) / (1 - a) (Leviathan et al. 2023); an upper bound."""
    return (1.0 - acceptance ** (drafted + 1)) / (1.0 - acceptance)


def state_bytes(parameters: float, ranks: float) -> float:
    """Weights, gradients and Adam states of one rank when all of them are sharded over all ranks."""
    return STATE_BYTES_PER_PARAMETER * parameters / max(ranks, 1.0)


def layer_activation_bytes(
    sequence: float, microbatch: float, hidden: float, tp: float, sequence_parallel: bool
) -> float:
    """Activations that one transformer layer keeps or rebuilds, 16-bit, fused attention.

    Korthikanti et al. 2022: s b h (10 + 24/t) without and 34/t with sequence parallelism, scores left out.
    """
    per_token = 34.0 / tp if sequence_parallel else 10.0 + 24.0 / tp
    return sequence * microbatch * hidden * per_token


def score_matrix_bytes(sequence: float, microbatch: float, heads: float, tp: float, width: float = 2.0) -> float:
    """One s x s matrix of scores for the heads of a rank: what a single allocation of unfused attention asks for."""
    return heads / tp * sequence * sequence * microbatch * width


def score_bytes(sequence: float, microbatch: float, heads: float, tp: float, copies: float = 2.5) -> float:
    """Attention scores written out: 5 a s^2 b bytes a layer (two 16-bit copies and a mask), heads split over t."""
    return 2.0 * copies * heads / tp * sequence * sequence * microbatch
