"""A service under a fixed number of concurrent requests: the steady state without simulating it.

Every request prefills once in a lifetime, so each running request sees the others' prefills pass by: decode iterations
and, for each output token, (batch - 1) / output length prefills. Requests that the cache or the cap cannot hold wait for
others. Throughput is what Little's law makes of the same two latencies, so that none contradicts another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from stallwise.errors import BadRequest
from stallwise.physics.costs.inference import Engine, iteration_parts, larger
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.rank_work import RankWork
from stallwise.physics.costs.serving_constants import Constants, spread
from stallwise.physics.costs.speculation import NO_SPECULATION, Speculation

GROWTH_SHARE = 0.6  # of its output that a request holds on average while the cache is contended
RESTART_SHARE = 0.9  # of a lifetime that a request without room waits
BUDGET_TOKENS = 8192.0  # an iteration's tokens: the default of vLLM and TensorRT-LLM on large cards, SGLang's chunk
FULLEST = 0.9  # load of prefill beyond which the formula of a random queue has no bound
LOOP, WAVES, OPEN = "loop", "waves", "poisson"
PATTERNS = (LOOP, WAVES, OPEN)
# Of the others' prompts, how many stand before the mean request; None: as in the fitted closed loops.
CROWD_SHARES: dict[str, float | None] = {LOOP: None, "": None, WAVES: 0.5, OPEN: 0.0}


@dataclass(frozen=True)
class Load:
    """What comes in. An empty pattern is not known: a closed loop is assumed and the interval holds waves too."""

    isl: float
    osl: float
    concurrency: float
    pattern: str = LOOP
    max_seqs: float | None = None
    budget: float | None = None  # tokens of an iteration; None: as engines default
    hit_share: float = 0.0  # of each prompt that comes from the prefix cache
    chunked: bool = True
    speculation: Speculation | None = NO_SPECULATION  # None: not known

    def __post_init__(self) -> None:
        if self.pattern not in ("", *PATTERNS):
            raise BadRequest(f"no load is called '{self.pattern}'", hint="one of " + ", ".join(PATTERNS))
        if not (self.isl > 0 and self.osl > 0 and self.concurrency > 0):
            raise BadRequest("a load has prompts, answers and users", hint="isl, osl and concurrency above 0")
        if not 0 <= self.hit_share < 1:
            raise BadRequest("the prefix hit rate lies between 0 and 1", hint="0.4")


@dataclass(frozen=True, slots=True)
class Operating:
    """What users see. Intervals hold 80% of groups that the constants never saw."""

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
    assumed: tuple[str, ...] = field(default=())  # inputs that nobody stated, with what stands in for them


def steady_times(
    w: RankWork, k: Constants, *, isl: Any, osl: Any, running: Any, concurrency: Any, kv_read_bytes: Any,
    cached: Any = 0.0, crowd_share: Any = None, passing_share: Any = 1.0, at_random: bool = False,
    decode_s: Any = None, inside: Any = None,
) -> tuple[Any, Any, Any, Any]:  # fmt: skip
    """TPOT, TTFT, one decode iteration and one prefill, for floats or arrays. `isl` is what must be prefilled.

    `crowd_share`: of the others' prompts, how many stand before the mean request (None: as in the fitted closed loops);
    `passing_share`: how many pass by while it decodes; `at_random`: arrivals are, and queue for prefill as such.
    `decode_s` replaces the decode iteration (speculation); `inside`: the mean number in the service, which may be below
    one (None: all of `concurrency`).
    """
    context = isl + cached + osl / 2
    alone = running / w.dp / w.pp  # pipeline stages work on as many parts of the batch
    zero = 0.0 * isl

    def iteration(decodes: Any, prompts: Any, sampled: Any) -> Any:
        parts = iteration_parts(
            w, k, tokens=decodes * running / w.pp + prompts * isl * w.dp, sampled=sampled,
            kv_bytes=decodes * alone * kv_read_bytes + (1 - decodes) + zero, decode_context=decodes * alone * context,
            prefill_pairs=prompts * isl * (cached + isl / 2),
        )  # fmt: skip
        return parts.total_s - (1 - decodes) * parts.host_s

    decode = iteration(1.0, zero, running)
    prefill = iteration(0.0, 1.0 + zero, 1.0 + zero)
    beside = (iteration(1.0, 1.0 + zero, running) - decode) / w.dp
    side_by_side = prefill / w.dp  # replicas of attention prefill different prompts at once
    launching = w.layers * k.prompt_layer_s + w.moe_layers * k.prompt_moe_layer_s
    lone = larger(prefill, launching)  # a lone short prompt waits for its launches; among decodes it shares theirs
    others = running - 1
    passing = k.mixed_share * beside + (1 - k.mixed_share) * side_by_side
    token = decode if decode_s is None else decode_s
    tpot = token + k.contention * passing * passing_share * others / osl
    wait = (concurrency / running - 1) * osl * tpot * RESTART_SHARE
    crowd = (k.burst if crowd_share is None else crowd_share) * side_by_side * others
    met = np.minimum(concurrency - 1 if inside is None else inside, 1.0)  # chance that an iteration is under way
    ttft = k.alone_s + met * (k.first_token_s - k.alone_s + decode / 2) + k.prefill_factor * lone + crowd + wait
    if at_random:
        stay = ttft + np.maximum(osl - 1, 0.0) * tpot  # of a request that meets nobody in prefill
        load = np.minimum(prefill_load(side_by_side, stay, concurrency if inside is None else inside), FULLEST)
        ttft = ttft + side_by_side * load / (2 * (1 - load))  # one server, one length of job: Pollaczek-Khinchine
    return tpot, ttft, decode, prefill


def prefill_load(job_s: Any, stay_s: Any, inside: Any) -> Any:
    """The share of the time in which a prompt is worked on, with so many requests inside on average.

    Little's law, inside = rate x (stay + wait), with the wait of a random queue for jobs of one length: a quadratic
    equation in rate x job. An all but empty service has all but no load, however long its prompts are.
    """
    half = stay_s + job_s * inside
    wide = 2 * stay_s - job_s
    root = np.sqrt(np.maximum(half**2 - 2 * job_s * inside * wide, 0.0))
    return 2 * job_s * inside / (half + root)


def closed_loop(engine: Engine, isl: float, osl: float, concurrency: float) -> Operating:
    """The steady state of `concurrency` users who each wait for their answer, everything else as engines default."""
    return operating(engine, Load(isl, osl, concurrency))


def operating(engine: Engine, load: Load) -> Operating:
    """The steady state under this load, whatever of it is known."""
    k, isl, osl = engine.k, load.isl, load.osl
    room = kv_room(engine.deployment)
    fitting = max(room.tokens * k.kv_room_share / (isl + GROWTH_SHARE * osl), 1.0)
    running = max(min(load.concurrency, fitting, load.max_seqs or load.concurrency), 1.0)
    if not load.chunked or (load.budget or BUDGET_TOKENS) <= running:
        k = replace(k, mixed_share=0.0)  # prompts have iterations of their own
    new = max(isl * (1 - load.hit_share), 1.0)
    passing = 0.5 if load.pattern == WAVES else 1.0
    tpot, ttft, decode, prefill = steady_times(
        engine.work, k, isl=new, cached=isl - new, osl=osl, running=running,
        concurrency=max(load.concurrency, running), kv_read_bytes=engine.kv_read_bytes(isl + osl / 2),
        crowd_share=CROWD_SHARES[load.pattern], passing_share=passing, at_random=load.pattern == OPEN,
        decode_s=_drafted(engine, load, running),
    )  # fmt: skip
    stated = bool(engine.deployment.engine_version and load.pattern)
    (t_low, t_high), (f_low, f_high) = spread("tpot", stated=stated), spread("ttft", stated=stated)
    return Operating(
        tpot, ttft, decode, prefill, running, max(load.concurrency - running, 0.0),
        implied_token_per_s(load.concurrency, osl, ttft, tpot),
        tpot * t_low, tpot * t_high, ttft * f_low, ttft * f_high, _assumed(engine, load),
    )  # fmt: skip


def implied_token_per_s(concurrency: float, osl: float, ttft_s: Any, tpot_s: Any) -> Any:
    """Little's law: users in the service over the time each stays, times the tokens of an answer."""
    return concurrency * osl / (ttft_s + max(osl - 1, 0.0) * tpot_s)


def _drafted(engine: Engine, load: Load, running: float) -> float | None:
    """Seconds between tokens when a draft is checked; None without one."""
    draft, context = load.speculation, load.isl + load.osl / 2
    if draft is None or not draft.tokens:
        return None
    plain = float(engine.parts(running, context).total_s)
    return draft.token_s(plain, float(engine.parts(running, context, running * draft.tokens).total_s))


def _assumed(engine: Engine, load: Load) -> tuple[str, ...]:
    found = []
    if not engine.deployment.engine_version:
        found.append("release of the engine not stated: half way between early and late ones")
    if not load.pattern:
        found.append("arrivals not stated: a closed loop")
    if load.speculation is None:
        found.append("speculative decoding not stated: none")
    return tuple(found)
