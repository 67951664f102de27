"""A service under a fixed number of concurrent requests: the steady state without simulating it.

Every request prefills once in a lifetime, so each running request sees the others' prefills pass by: decode iterations
and, for each output token, (batch - 1) / output length prefills. Requests that the cache cannot hold wait for others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stallwise.costs.inference import Engine, iteration_parts, larger
from stallwise.costs.kv_room import kv_room
from stallwise.costs.rank_work import RankWork
from stallwise.costs.serving_constants import Constants, spread

GROWTH_SHARE = 0.6  # of its output that a request holds on average while the cache is contended
RESTART_SHARE = 0.9  # of a lifetime that a request without room waits


@dataclass(frozen=True, slots=True)
class Operating:
    """What users see."""

    tpot_s: float
    ttft_s: float
    decode_s: float
    prefill_s: float
    running: float
    waiting: float
    output_token_per_s: float
    tpot_low_s: float
    tpot_high_s: float
    ttft_low_s: float
    ttft_high_s: float


def steady_times(
    w: RankWork, k: Constants, *, isl: Any, osl: Any, running: Any, concurrency: Any, kv_read_bytes: Any
) -> tuple[Any, Any, Any, Any]:
    """TPOT, TTFT, one decode iteration and one prefill, for floats or arrays."""
    context = isl + osl / 2
    alone = running / w.dp
    decode = iteration_parts(
        w, k, tokens=running, sampled=running, kv_bytes=alone * kv_read_bytes, decode_context=alone * context,
        prefill_pairs=0.0 * isl,
    )  # fmt: skip
    prompt = iteration_parts(
        w, k, tokens=isl * w.dp, sampled=1.0 + 0 * isl, kv_bytes=1.0 + 0 * isl, decode_context=0.0 * isl,
        prefill_pairs=isl * isl / 2,
    )  # fmt: skip
    prefill = prompt.total_s - prompt.host_s
    side_by_side = prefill / w.dp  # replicas of attention prefill different prompts at once
    launching = w.layers * k.prompt_layer_s + w.moe_layers * k.prompt_moe_layer_s
    alone = larger(prefill, launching)  # a lone short prompt waits for its launches; among decodes it shares theirs
    others = running - 1
    tpot = decode.total_s + k.contention * side_by_side * others / osl
    wait = (concurrency / running - 1) * osl * tpot * RESTART_SHARE
    ttft = k.first_token_s + decode.total_s / 2 + k.prefill_factor * alone + k.burst * side_by_side * others + wait
    return tpot, ttft, decode.total_s, prefill


def closed_loop(engine: Engine, isl: float, osl: float, concurrency: float) -> Operating:
    """The steady state of `concurrency` users who each wait for their answer."""
    room = kv_room(engine.deployment)
    fitting = max(room.tokens * engine.k.kv_room_share / (isl + GROWTH_SHARE * osl), 1.0)
    running = max(min(concurrency, fitting), 1.0)
    tpot, ttft, decode, prefill = steady_times(
        engine.work, engine.k, isl=isl, osl=osl, running=running, concurrency=max(concurrency, running),
        kv_read_bytes=engine.kv_read_bytes(isl + osl / 2),
    )  # fmt: skip
    (t_low, t_high), (f_low, f_high) = spread("tpot"), spread("ttft")
    rate = running * osl / (ttft - max(0.0, ttft - prefill) + osl * tpot)
    return Operating(
        tpot, ttft, decode, prefill, running, max(concurrency - running, 0.0), rate,
        tpot * t_low, tpot * t_high, ttft * f_low, ttft * f_high,
    )  # fmt: skip
