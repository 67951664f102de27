"""A published run of separate pools as a question: what its description leaves open is a mixture of answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from stallwise.errors import BadRequest
from stallwise.physics.costs.inference import Engine
from stallwise.physics.costs.mixture import Mixture
from stallwise.physics.costs.pools import Pair, Pool, pools_together
from stallwise.physics.specs.deployment import Deployment
from stallwise.planner.pool_layouts import Worker, drafts, keeping_up, layouts, users_of, worker_of
from stallwise.planner.served_runs import served_run
from stallwise.planner.stated_words import stated

# Sweeps send about ten waves. A server that still compiles kernels or connects its pools for 20, 60 or 180 seconds makes
# the first of them wait for it, so that the mean first token comes later by a tenth of that. Who warmed up first does
# not say; of 60 runs described in full a quarter had not.
COLD_DELAYS_S = (2.0, 6.0, 18.0)
COLD_CHANCE = 0.2


@dataclass(frozen=True)
class PooledRun:
    """One run. Two that ask the same are equal."""

    prefill: Worker
    decode: Worker
    users: float
    gpus: float | None
    isl: float
    osl: float
    pattern: str

    @property
    def assumed(self) -> tuple[str, ...]:
        """What was not stated, with what stands in for it."""
        found = []
        for name, pool in (("prefill", self.prefill), ("decode", self.decode)):
            if pool.count is None:
                found.append(f"number of {name} workers not stated: any that fit")
            if len(pool.cuts) > 1:
                found.append(f"cut of attention in {name} not stated: among a worker's GPUs, or a replica on each")
        if len(list(drafts(self.decode))) > 1:
            found.append("speculative decoding not stated: none, or the model's own draft")
        return (*found, "warm-up not stated: mostly done before")

    @property
    def all_stated(self) -> bool:
        """Workers, batches and cuts were stated."""
        return self.prefill.count is not None and self.decode.count is not None


def pooled_run(row: dict[str, str]) -> PooledRun:
    """The pools and the load of a disaggregated run."""
    plain = served_run({**row, "tp": "1", "ep": "1", "dp_attn": "1", "notes": ""})
    prefill = worker_of(row.get("prefill_cfg", ""), plain.deployment, stated(row, "prefill_workers"))
    decode = worker_of(row.get("decode_cfg", ""), plain.deployment, stated(row, "decode_workers"))
    if not prefill or not decode:
        raise BadRequest("the workers of the pools are not stated", hint="prefill_cfg and decode_cfg")
    users = users_of(row, decode)
    if not users:
        raise BadRequest("neither the concurrency nor the pools' batches are stated", hint="a concurrency")
    return PooledRun(prefill, decode, users, stated(row, "gpus"), plain.isl, plain.osl, plain.pattern)


def answers(run: PooledRun, engine_for: Callable[[Deployment], Engine]) -> dict[str, Mixture]:
    """TPOT, TTFT and output tokens a second under everything that may be meant."""
    pairs, weights = [], []
    for x in layouts(run.prefill, run.decode, run.users, run.gpus):
        prompts = Pool(engine_for(x.prefill), x.prefill_workers)
        tokens = Pool(engine_for(x.decode), x.decode_workers)
        for draft, share in drafts(run.decode):
            pairs.append(Pair(prompts, tokens, draft))
            weights.append(x.weight * share)
    at = pools_together(pairs, run.isl, run.osl, run.users, run.pattern)
    weight = np.concatenate(weights) * keeping_up(at)
    found = {name: Mixture(getattr(at, name), weight) for name in ("tpot_s", "ttft_s", "output_token_per_s")}
    return {**found, "ttft_s": found["ttft_s"].or_later(COLD_DELAYS_S, COLD_CHANCE)}
