"""Separate pools of prefill and decode in one closed loop: each has its queue, and the loop ties their rates together.

A request's first token waits for the prompts' pool (the wave that opens a closed loop, then a random queue), for its
cache to cross to the decode pool, and for the next iteration there. Many layouts are solved together, as arrays: what
nobody stated about the pools leaves many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from stallwise.errors import BadRequest
from stallwise.physics.costs.closed_loop import CROWD_SHARES, FULLEST, GROWTH_SHARE, LOOP, implied_token_per_s
from stallwise.physics.costs.inference import Engine, iteration_parts, larger
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.speculation import NO_SPECULATION, Speculation

NIC_BYTE_PER_S = 50e9  # a 400 Gb/s adapter, one per GPU of the prefill worker
# Of a closed loop's first wave, what the mean request of a sweep waits for: half of it in one of six to ten waves. A pool
# that has only prompts serves them in turn under any engine.
WAVE_SHARE = 0.08
ROUNDS = 24  # halvings of a batch's logarithm: to a millionth
EMPTIEST = 1e-4  # mean batch of a decode worker below which nothing changes any more
CURVE_POINTS = 24  # of a decode worker's time against its batch; between them the logarithm is straight


@dataclass(frozen=True)
class Pool:
    """So many equal workers; an array of counts is as many questions."""

    engine: Engine
    workers: Any

    def __post_init__(self) -> None:
        if not np.all(np.asarray(self.workers) >= 1):
            raise BadRequest("a pool has at least one worker", hint="prefill and decode workers of 1 or more")


@dataclass(frozen=True)
class Pair:
    """Both pools, and the draft that decode checks."""

    prefill: Pool
    decode: Pool
    draft: Speculation = NO_SPECULATION


@dataclass(frozen=True)
class PoolTimes:
    """What users see, and how busy the prompts' pool is."""

    tpot_s: Any
    ttft_s: Any
    output_token_per_s: Any
    prefill_load: Any
    decode_batch: Any  # of one worker
    transfer_s: Any


def pools(prefill: Pool, decode: Pool, isl: float, osl: float, users: float, pattern: str = LOOP) -> PoolTimes:
    """The steady state of `users` who wait for their answers."""
    at = pools_together([Pair(prefill, decode)], isl, osl, users, pattern)
    return PoolTimes(*(float(getattr(at, f.name)[0]) for f in fields(PoolTimes)))


def pools_together(pairs: Sequence[Pair], isl: float, osl: float, users: float, pattern: str = LOOP) -> PoolTimes:
    """Every pair with every count of its workers, in one array: found by bisection on the decode batch."""
    servers = np.concatenate([np.atleast_1d(x.prefill.workers) * x.prefill.engine.work.dp for x in pairs]).astype(float)
    workers = np.concatenate([np.atleast_1d(x.decode.workers) for x in pairs]).astype(float)
    which = np.repeat(np.arange(len(pairs)), [np.size(x.decode.workers) for x in pairs])
    prompts = np.array([_prompt(x.prefill.engine, x.decode.engine, isl, pattern) for x in pairs])[which].T
    one_s, crowd_s, transfer_s, rest_s = prompts
    fixed_s = rest_s + transfer_s + crowd_s * max(users - 1, 0.0) / servers
    room = np.array([_room(x.decode.engine, isl, osl) for x in pairs])[which]
    curve = _Curves(pairs, isl + osl / 2, users, which)

    def at(batch: Any) -> tuple[Any, Any, Any, Any]:
        """TTFT, TPOT, load of prefill and requests a second with so many on a decode worker."""
        tpot = curve.at(batch)
        asked = batch * workers / (osl * tpot) * one_s / servers
        load = np.minimum(asked, 1.0)
        rate = load * servers / one_s
        wait = one_s / 2 * load / np.maximum(1 - load, 1 - FULLEST)  # one length of job: Pollaczek-Khinchine
        return fixed_s + wait + tpot, tpot, load, rate

    low, high = np.full(len(which), np.log(EMPTIEST)), np.log(np.minimum(users / workers, room))
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        ttft, tpot, load, rate = at(np.exp(middle))
        more = (rate * (ttft + (osl - 1) * tpot) < users) & (load < 1.0)
        low, high = np.where(more, middle, low), np.where(more, high, middle)
    batch = np.exp((low + high) / 2)
    ttft, tpot, load, rate = at(batch)
    # What the pools cannot take waits before them: Little's law gives the wait of those who are left over.
    ttft = np.maximum(ttft, users / rate - (osl - 1) * tpot)
    return PoolTimes(tpot, ttft, implied_token_per_s(users, osl, ttft, tpot), load, batch, transfer_s)


def _prompt(p: Engine, d: Engine, isl: float, pattern: str) -> tuple[float, float, float, float]:
    """One prompt's time among others, what each other prompt of the opening wave adds, its transfer, and the rest."""
    one_s = p.prefill_s(isl)
    launching_s = float(p.work.layers * p.k.prompt_layer_s + p.work.moe_layers * p.k.prompt_moe_layer_s)
    crowd = CROWD_SHARES[pattern]
    crowd_s = (WAVE_SHARE if crowd is None else crowd) * one_s
    transfer_s = isl * kv_room(p.deployment).bytes_per_token / NIC_BYTE_PER_S
    return one_s, crowd_s, transfer_s, float(d.k.first_token_s + larger(one_s, launching_s))


def _room(d: Engine, isl: float, osl: float) -> float:
    """Requests whose cache fits one decode worker."""
    return max(kv_room(d.deployment).tokens * float(d.k.kv_room_share) / (isl + GROWTH_SHARE * osl), 1.0)


class _Curves:
    """Seconds between tokens of each pair's decode worker against its batch, as tables of logarithms."""

    def __init__(self, pairs: Sequence[Pair], context: float, users: float, which: Any) -> None:
        batch = np.geomspace(1.0, max(users, 2.0), CURVE_POINTS)
        self.step = np.log(batch[1])
        self.tables = np.log([_token_s(x, context, batch) for x in pairs])
        self.which = which

    def at(self, batch: Any) -> Any:
        """At this batch; a worker that is idle part of the time still runs whole iterations."""
        place = np.clip(np.log(np.maximum(batch, 1.0)) / self.step, 0.0, CURVE_POINTS - 1.001)
        left = place.astype(int)
        below, above = self.tables[self.which, left], self.tables[self.which, left + 1]
        return np.exp(below + (place - left) * (above - below))


def _token_s(pair: Pair, context: float, batch: Any) -> Any:
    e, w, draft = pair.decode.engine, pair.decode.engine.work, pair.draft
    alone = batch / w.dp / w.pp

    def iteration(tokens: Any) -> Any:
        return iteration_parts(
            w, e.k, tokens=tokens / w.pp, sampled=batch, kv_bytes=alone * e.kv_read_bytes(context),
            decode_context=alone * context, prefill_pairs=0.0,
        ).total_s  # fmt: skip

    plain = iteration(batch)
    return draft.token_s(plain, iteration(batch * (1 + draft.tokens))) if draft.tokens else plain
