"""What each change would do to a service at its operating point: the same simulator runs every one of them.

A point is a deployment, a load and an engine's settings. A trial changes one thing and is simulated with the same
requests, so that differences are the change's and not chance's. No trial is left out for doing nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache

from stallwise.errors import StallwiseError
from stallwise.physics.costs.inference import Engine, IterationParts
from stallwise.physics.costs.kv_room import kv_room
from stallwise.physics.costs.speculation import Speculation
from stallwise.physics.sim.requests import ClosedLoop, Request, Traffic, lognormal, poisson
from stallwise.physics.sim.service import Settings, simulate, simulate_disaggregated
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.dtype import bytes_per

SECONDS = 60.0  # of load
MOST_REQUESTS = 1500  # of one simulation: beyond it percentiles no longer move
MOST_EVENTS = (
    20_000  # of one simulation: three times what the busiest of them needed; no clock may decide what is tried
)
ROUNDS = 6  # requests of each user in a closed loop
SPREAD_OF_LENGTHS = 0.3  # of the logarithm: a service has no two equal requests
CHUNK_TOKENS = 2048  # vLLM's default budget for small cards, and a prefill as long as a few decodes on large ones
DRAFT = Speculation(3, 0.7)  # a usual draft, and the acceptance that EAGLE-like drafters report on chat
SHARED_SHARE = 0.5  # of a prompt, where nobody says what prompts share
MOST_REPLICAS = 64
MOST_REMEMBERED = 256  # outcomes: one story simulates about forty
HELPS = 0.95  # of the pain, or of both latencies together: less than this is noise of the simulation
RISKS = {
    "chunking": "long prompts take a little longer themselves", "cap": "time per token grows with the batch",
    "prefix": "none where nothing is shared but the memory", "kv8": "accuracy on long contexts",
    "weights8": "accuracy: evaluate", "speculation": "the gain fades as the batch grows",
    "heads": "another model: quality must be shown again",
    "pools": "each pool must fit its own part of the load", "replicas": "the same stalls, on more cards",
}  # fmt: skip
EFFORT = (
    "chunking",
    "cap",
    "prefix",
    "kv8",
    "weights8",
    "speculation",
    "pools",
    "heads",
    "replicas",
)  # a flag first, GPUs last


@dataclass(frozen=True)
class Point:
    """Where a service runs: a rate of requests, or (rate 0) users who wait for their answers."""

    deployment: Deployment
    isl: float
    osl: float
    rate_per_s: float = 0.0
    users: float = 0.0
    settings: Settings = field(default_factory=Settings)
    replicas: int = 1
    shared_share: float = 0.0  # of each prompt
    prefill_workers: int = 0  # of separate pools; 0: one pool

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.deployment.ranks * max(self.replicas, 1) * (1 + self.prefill_workers)


@dataclass(frozen=True)
class Outcome:
    """What users see there."""

    ttft_s: float
    tpot_s: float
    ttft_tail_s: float
    output_token_per_s: float
    running: float
    waiting: float
    kv_share: float
    queue_s: float
    prefill_s: float
    decode_s: float
    preempted_s: float
    preemptions: int

    def pain(self, ttft_s: float, tpot_s: float) -> float:
        """How far beyond a target: 1 where both are met."""
        return max(1.0, self.ttft_s / ttft_s) * max(1.0, self.tpot_s / tpot_s)


@dataclass(frozen=True)
class Trial:
    """One change, what it costs, what was assumed, and what came out."""

    name: str
    action: str
    cost: str
    point: Point
    outcome: Outcome
    assumed: str = ""

    @property
    def more_gpus(self) -> bool:
        """True when it is bought rather than set."""
        return self.name == "replicas"

    @property
    def guessed(self) -> bool:
        """True when it works only on requests that nobody has described so, or on another model."""
        return self.name == "heads" or (self.name == "prefix" and bool(self.assumed))


@lru_cache(maxsize=MOST_REMEMBERED)
def outcome(point: Point, seed: int = 0) -> Outcome:
    """The point simulated: medians over its requests; the same point gives the same, so it is asked once."""
    traffic = Traffic(
        lognormal(point.isl, SPREAD_OF_LENGTHS), lognormal(point.osl, SPREAD_OF_LENGTHS),
        prefixes=4 if point.shared_share else 0, shared=int(point.shared_share * point.isl),
    )  # fmt: skip
    replicas = max(point.replicas, 1)
    if point.rate_per_s > 0:
        rate = point.rate_per_s / replicas
        arrivals = poisson(rate, traffic, max(40, min(MOST_REQUESTS, int(min(rate * SECONDS, MOST_REQUESTS)))), seed)
    else:
        arrivals = None
    if point.prefill_workers and arrivals is not None:
        served, _ = simulate_disaggregated(
            point.deployment,
            point.deployment,
            arrivals,
            point.settings,
            prefill_workers=point.prefill_workers,
            most_events=MOST_EVENTS,
        )
    else:
        served = simulate(
            point.deployment, arrivals or _loop(point, traffic, seed), point.settings, most_events=MOST_EVENTS
        )
    m = served.meter
    done = max(m.completed, 1)
    busy = [s for s in m.samples if s[1] > 0] or [(0.0,) * 6]
    half = busy[len(busy) // 4 :]  # past the first requests, which meet an empty engine
    return Outcome(
        m.ttft.quantile(0.5), m.tpot.quantile(0.5) if m.tpot.count else 0.0, m.ttft.quantile(0.99),
        served.output_token_per_s * replicas, _mean(half, 1), _mean(half, 2), max(s[3] for s in busy),
        m.queue_s / done, m.prefill_s / done, m.decode_s / done, m.preempted_s / done, m.preemptions,
    )  # fmt: skip


def _loop(point: Point, traffic: Traffic, seed: int) -> ClosedLoop | Iterator[Request]:
    users = max(1, round(point.users / max(point.replicas, 1)))
    return ClosedLoop(users, traffic, max(40, min(MOST_REQUESTS, users * ROUNDS)), seed)


def _mean(samples: Sequence[tuple[float, ...]], column: int) -> float:
    return sum(s[column] for s in samples) / len(samples)


def token_parts(point: Point, seen: Outcome) -> tuple[IterationParts, float]:
    """Where a token's time goes at this point: the decode iteration, and what others' prompts add to it."""
    context = point.isl + point.osl / 2
    parts = Engine(point.deployment).parts(max(seen.running, 1.0), context)
    paced = IterationParts(*(point.settings.pace * float(getattr(parts, f.name)) for f in fields(parts)))
    return paced, max(0.0, seen.tpot_s - float(paced.total_s))


def trials(point: Point, *, chunked: bool | None, shared_share: float | None) -> list[Trial]:
    """Every change that applies, alone: those that need no GPU, then more of them."""
    found = []
    for name, action, cost, changed, assumed in _changes(point, chunked, shared_share):
        try:
            found.append(Trial(name, action, cost, changed, outcome(changed), assumed))
        except StallwiseError:
            continue  # a change that this service cannot make: its weights do not fit
    return found


def _changes(
    point: Point, chunked: bool | None, shared_share: float | None
) -> Iterator[tuple[str, str, str, Point, str]]:
    d, s = point.deployment, point.settings
    if not chunked:
        yield (
            "chunking", f"Cut prefill into chunks (chunked prefill, max_num_batched_tokens {CHUNK_TOKENS})",
            "a restart; a little prefill efficiency", replace(point, settings=replace(s, policy="chunked", budget=CHUNK_TOKENS)),
            "" if chunked is not None else "that it is off now",
        )  # fmt: skip
    elif s.budget > CHUNK_TOKENS:
        yield (
            "chunking", f"Lower max_num_batched_tokens from {s.budget:,} to {CHUNK_TOKENS:,}", "a restart",
            replace(point, settings=replace(s, budget=CHUNK_TOKENS)), "",
        )  # fmt: skip
    room = kv_room(d)
    each = point.isl + point.osl
    fits = max(1, int(room.tokens / each))
    cap = max(1, min(fits, 4096))
    if cap != s.max_seqs:
        word = "Raise" if cap > s.max_seqs else "Cap"
        yield (
            "cap", f"{word} max_num_seqs ({s.max_seqs} now) by the KV budget: {fits:,} requests of {each:,.0f} tokens fit",
            "a restart", replace(point, settings=replace(s, max_seqs=cap)), "",
        )  # fmt: skip
    if bytes_per(d.kv_dtype) > 1:
        yield (
            "kv8", "Keep the KV cache in FP8", "a restart; check accuracy on long contexts",
            replace(point, deployment=d.changed(kv="fp8")), "",
        )  # fmt: skip
    if bytes_per(d.weights) > 1 and "fp8" in d.gpu.peak_flop_per_s:
        yield (
            "weights8", "Serve FP8 weights", "a quantised checkpoint; check accuracy",
            replace(point, deployment=d.changed(weights="fp8", kv=d.kv_dtype)), "",
        )  # fmt: skip
    if not d.model.mla:
        # Tensor parallelism copies a KV head that it cannot split: below one a GPU nothing is gained.
        fewest = min(d.tp, d.model.kv_heads)
        kind = "multi-query" if fewest == 1 else "grouped-query"
        bound = (
            ""
            if fewest < d.model.kv_heads
            else f"; {d.model.kv_heads} for {d.model.heads} heads over {d.tp} GPUs is one each already"
        )
        yield (
            "heads", f"Fewer KV heads ({kind} attention, {fewest} for {d.model.heads}{bound})", "a model trained so",
            replace(point, deployment=d.changed(model=replace(d.model, kv_heads=fewest))), "",
        )  # fmt: skip
    share = SHARED_SHARE if shared_share is None else shared_share
    if share > 0 and not point.shared_share:
        yield (
            "prefix", "Cache the prefixes that prompts share", "memory that the prefixes take",
            replace(point, shared_share=share), "" if shared_share is not None else f"prompts share {share:.0%} of their tokens",
        )  # fmt: skip
    if not s.speculation.tokens:
        yield (
            "speculation", f"Speculative decoding, {DRAFT.tokens} drafted tokens", "a draft model and its memory",
            replace(point, settings=replace(s, speculation=DRAFT)), f"{DRAFT.acceptance:.0%} of drafts are accepted",
        )  # fmt: skip
    if (
        point.rate_per_s > 0
        and d.tp >= 2
        and d.tp % 2 == 0
        and d.dp == 1
        and kv_room(d.changed(tp=d.tp // 2, ep=1)).fits
    ):
        yield (
            "pools", f"Separate prefill and decode (disaggregation) on the same GPUs, {d.tp // 2} each", "KV moves over the network",
            replace(point, deployment=d.changed(tp=d.tp // 2, ep=1), prefill_workers=1), "",
        )  # fmt: skip
    yield (
        "replicas", f"Twice the replicas ({2 * point.gpus} GPUs)", f"{point.gpus} more GPUs",
        replace(point, replicas=2 * point.replicas), "",
    )  # fmt: skip


def helps(trial: Trial, now: Outcome, ttft_s: float, tpot_s: float) -> bool:
    """Nearer to both targets, or (where it is no farther) both latencies together lower, by more than the simulation's noise."""
    before, after = now.pain(ttft_s, tpot_s), trial.outcome.pain(ttft_s, tpot_s)
    return after < HELPS * before or (after <= before and _left(trial, now) < HELPS)


def _left(trial: Trial, now: Outcome) -> float:
    """What both latencies together become."""
    o = trial.outcome
    return o.ttft_s / max(now.ttft_s, 1e-9) * o.tpot_s / max(now.tpot_s, 1e-9)


def ranked(found: list[Trial], now: Outcome, ttft_s: float, tpot_s: float) -> list[Trial]:
    """By how far from both targets each leaves the service, then by what it leaves of both latencies; the least effort first
    among equals. After what helps comes what rests on a guess, then what is bought, last what does not help."""

    def key(trial: Trial) -> tuple[bool, bool, bool, float, float, int]:
        left = (round(trial.outcome.pain(ttft_s, tpot_s), 2), round(_left(trial, now), 2))
        return not helps(trial, now, ttft_s, tpot_s), trial.more_gpus, trial.guessed, *left, EFFORT.index(trial.name)

    return sorted(found, key=key)


def together(point: Point, found: list[Trial], now: Outcome, ttft_s: float, tpot_s: float) -> Trial:
    """The free changes that help, one on top of the other as long as each still helps."""
    best, seen, taken = point, now, []
    free = [t for t in found if not t.more_gpus and not t.point.prefill_workers and not t.guessed]
    for trial in ranked(free, now, ttft_s, tpot_s):
        changed = _apply(best, point, trial.point)
        try:
            tried = outcome(changed)
        except StallwiseError:
            continue
        if tried.pain(ttft_s, tpot_s) < 0.98 * seen.pain(ttft_s, tpot_s):
            best, seen = changed, tried
            taken.append(trial.name)
    return Trial("together", " + ".join(taken), "", best, seen)


def _apply(onto: Point, base: Point, changed: Point) -> Point:
    """The fields in which `changed` differs from `base`, put onto another point."""
    for name in ("shared_share", "replicas", "prefill_workers"):
        if getattr(changed, name) != getattr(base, name):
            onto = replace(onto, **{name: getattr(changed, name)})
    for name in ("policy", "max_seqs", "budget", "speculation"):
        if getattr(changed.settings, name) != getattr(base.settings, name):
            onto = replace(onto, settings=replace(onto.settings, **{name: getattr(changed.settings, name)}))
    for name in ("weights", "kv"):
        if getattr(changed.deployment, name) != getattr(base.deployment, name):
            onto = replace(onto, deployment=onto.deployment.changed(**{name: getattr(changed.deployment, name)}))
    return onto


def replicas_needed(point: Point, ttft_s: float, tpot_s: float) -> int | None:
    """The fewest replicas whose median request meets both targets; None where none does."""
    if outcome(replace(point, replicas=MOST_REPLICAS)).pain(ttft_s, tpot_s) > 1:
        return None
    low, high = 0, MOST_REPLICAS  # low fails (or is none), high holds
    while high - low > 1:
        middle = (low + high) // 2 if high > 4 or low else math.ceil(high / 2)
        if outcome(replace(point, replicas=middle)).pain(ttft_s, tpot_s) > 1:
            low = middle
        else:
            high = middle
    return high
