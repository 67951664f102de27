"""Separate pools of prefill and decode in one closed loop: each has its queue, and the loop ties their rates together."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.costs.closed_loop import FULLEST, implied_token_per_s
from stallwise.costs.inference import Engine, larger
from stallwise.costs.kv_room import kv_room
from stallwise.errors import BadRequest

NIC_BYTE_PER_S = 50e9  # a 400 Gb/s adapter, one per GPU of the prefill worker
ROUNDS = 60


@dataclass(frozen=True)
class Pool:
    """So many equal workers."""

    engine: Engine
    workers: float

    def __post_init__(self) -> None:
        if not self.workers >= 1:
            raise BadRequest("a pool has at least one worker", hint="prefill and decode workers of 1 or more")


@dataclass(frozen=True)
class PoolTimes:
    """What users see, and how busy the prompts' pool is."""

    tpot_s: float
    ttft_s: float
    output_token_per_s: float
    prefill_load: float
    decode_batch: float  # of one worker
    transfer_s: float


def pools(prefill: Pool, decode: Pool, isl: float, osl: float, users: float) -> PoolTimes:
    """The steady state of `users` who wait for their answers: found by bisection on the rate that fills the loop."""
    p, d = prefill.engine, decode.engine
    one_s = p.prefill_s(isl)
    launching_s = float(p.work.layers * p.k.prompt_layer_s + p.work.moe_layers * p.k.prompt_moe_layer_s)
    lone_s = float(larger(one_s, launching_s))
    servers = prefill.workers * p.work.dp
    transfer_s = isl * kv_room(p.deployment).bytes_per_token / NIC_BYTE_PER_S
    low, high = 0.0, servers / one_s * FULLEST + users / (osl * d.decode_s(1.0, isl + osl / 2))
    found = _at(0.0, one_s, lone_s, servers, transfer_s, decode, isl, osl)
    for _ in range(ROUNDS):
        rate = (low + high) / 2
        found = _at(rate, one_s, lone_s, servers, transfer_s, decode, isl, osl)
        inside = rate * (found[0] + (osl - 1) * found[1])
        low, high = (rate, high) if inside < users else (low, rate)
    ttft, tpot, load, batch = found
    # What the prompts' pool cannot take waits before it: Little's law gives the wait of those who are left over.
    rate = (low + high) / 2
    ttft = max(ttft, users / rate - (osl - 1) * tpot) if rate > 0 else ttft
    return PoolTimes(tpot, ttft, implied_token_per_s(users, osl, ttft, tpot), load, batch, transfer_s)


def _at(
    rate: float, one_s: float, lone_s: float, servers: float, transfer_s: float, decode: Pool, isl: float, osl: float
) -> tuple[float, float, float, float]:
    """TTFT, TPOT, load of prefill and batch of a decode worker at a rate of requests."""
    load = min(rate * one_s / servers, 0.999)
    wait_s = one_s * load / (2 * (1 - load))  # one length of job: Pollaczek-Khinchine
    batch, tpot = 1.0, decode.engine.decode_s(1.0, isl + osl / 2)
    for _ in range(20):  # more requests make iterations longer, which keeps more of them inside
        batch = max(1.0, rate * osl * tpot / decode.workers)
        tpot = 0.5 * tpot + 0.5 * decode.engine.decode_s(batch, isl + osl / 2)
    ttft = float(decode.engine.k.first_token_s) + lone_s + wait_s + transfer_s + tpot
    return ttft, tpot, load, batch
