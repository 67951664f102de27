"""One story: the simulator at the operating point that was seen, and every change to it, as facts that rules quote."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from stallwise.doctor.measures._serving_point import Seen, number, seen_of
from stallwise.errors import StallwiseError
from stallwise.evidence.catalog import serving
from stallwise.evidence.evidence import Evidence, Item
from stallwise.evidence.fact import Fact, Scope, Source
from stallwise.evidence.quantity import Quantity
from stallwise.physics.sim.what_if import (
    RISKS,
    Outcome,
    Point,
    Trial,
    helps,
    outcome,
    ranked,
    replicas_needed,
    together,
    token_parts,
    trials,
)
from stallwise.units import Unit, show

ORDER = 4
SOURCE = Source("simulation")
PROMPTS = (512.0, 1250.0, 3000.0, 8000.0)  # tokens that are tried where nobody says
ANSWERS = (200.0, 600.0)
FINER = (0.6, 1.0, 1.6)  # around the nearest of them
OFFERED = (1.0, 1.05, 1.12, 1.2, 1.35, 1.6)  # over what came back, where only that is known
# An iteration over what is computed for it: four of five engines that the constants never saw lie within 0.8 and 1.3.
PACES = (1.0, 0.9, 1.1, 0.8, 1.25, 0.7, 1.4, 0.6, 1.6, 0.5, 1.8, 2.0)
NEARER = 0.05  # of the distance, by which another pace must be nearer to what was seen
FAR = 2.0  # times off: the simulation does not tell this latency
USUAL_TTFT_S, USUAL_TPOT_S = 1.0, 0.05  # targets of a chat where nobody says: a second, and faster than reading
NOTICED = 1.05  # times what was seen: less is nothing to speak of
SLACK = 1.5  # over what a quiet run showed: nobody expects its latency under load to the millisecond


def from_evidence(evidence: Evidence) -> Iterator[Item]:
    """Nothing unless model, card, load and a latency are known."""
    seen = seen_of(evidence)
    if seen is None:
        return
    ttft_s, tpot_s = _target(evidence)
    try:
        point, now, found, best, replicas = _trials_of(seen, ttft_s, tpot_s)
    except StallwiseError:
        return  # the weights do not fit as stated: another rule's matter
    yield from _baseline(seen, point, now)
    yield Fact(serving.TARGET_TTFT, ttft_s, SOURCE)
    yield Fact(serving.TARGET_TPOT, tpot_s, SOURCE)
    for trial in found:
        scope = Scope(layer=trial.name)
        yield Fact(serving.TRIAL_TTFT, trial.outcome.ttft_s, SOURCE, scope, note=trial.action)
        yield Fact(serving.TRIAL_TPOT, trial.outcome.tpot_s, SOURCE, scope, note=trial.cost)
        if not helps(trial, now, ttft_s, tpot_s):
            yield Fact(serving.TRIAL_NULL, trial.action, SOURCE, scope)
        risk = "; ".join(x for x in (trial.assumed and f"assumes {trial.assumed}", RISKS[trial.name]) if x)
        yield Fact(serving.TRIAL_RATE, trial.outcome.output_token_per_s, SOURCE, scope, note=risk)
    if best.action:
        scope = Scope(layer="together")
        yield Fact(serving.TRIAL_TTFT, best.outcome.ttft_s, SOURCE, scope, note=best.action)
        yield Fact(serving.TRIAL_TPOT, best.outcome.tpot_s, SOURCE, scope)
    yield Fact(serving.GPUS_NOW, float(point.gpus), SOURCE)
    if replicas is not None:
        yield Fact(serving.GPUS_NEEDED, float(replicas * best.point.gpus), SOURCE)


def _trials_of(seen: Seen, ttft_s: float, tpot_s: float) -> tuple[Point, Outcome, list[Trial], Trial, int | None]:
    """The point, what it does now, every change, the free ones together, and the replicas that hold the target."""
    point = _closest(seen)
    now = outcome(point)
    found = ranked(trials(point, chunked=seen.chunked, shared_share=seen.shared_share), now, ttft_s, tpot_s)
    best = together(point, found, now, ttft_s, tpot_s)
    alone = [t for t in found if not (t.more_gpus or t.guessed)]
    enough = next((t for t in alone if t.outcome.pain(ttft_s, tpot_s) == 1), None)
    if best.outcome.pain(ttft_s, tpot_s) > 1 and enough is not None:
        return point, now, found, replace(enough, action=enough.name), 1
    return point, now, found, best, replicas_needed(best.point, ttft_s, tpot_s)


def _closest(seen: Seen) -> Point:
    """What nobody said (lengths, the rate that was sent), among usual values, as comes nearest to what was seen."""
    point = seen.point

    def nearest(tried: list[Point]) -> Point:
        return min(tried, key=lambda p: _distance(outcome(p), seen)) if len(tried) > 1 else tried[0]

    if not seen.lengths_known:
        rough = nearest([replace(point, isl=i, osl=o) for i in PROMPTS for o in ANSWERS])
        point = nearest(
            [replace(rough, isl=round(rough.isl * a), osl=round(rough.osl * b)) for a in FINER for b in FINER]
        )
    if not seen.offered_known:
        point = nearest([replace(point, rate_per_s=point.rate_per_s * x) for x in OFFERED])
    paced = nearest([replace(point, settings=replace(point.settings, pace=x)) for x in PACES])
    nearer = _distance(outcome(paced), seen) < _distance(outcome(point), seen) - NEARER
    return paced if nearer else point


def _distance(found: Outcome, seen: Seen) -> float:
    pairs = ((found.ttft_s, seen.ttft_s), (found.tpot_s, seen.tpot_s))
    return sum(abs(math.log(max(a, 1e-6) / b)) for a, b in pairs if b == b and b > 0)


def _baseline(seen: Seen, point: Point, now: Outcome) -> Iterator[Item]:
    """The observed times split into what the simulation explains and what it does not."""
    scope = Scope(layer="now")
    yield Fact(serving.TRIAL_TTFT, now.ttft_s, SOURCE, scope)
    yield Fact(serving.TRIAL_TPOT, now.tpot_s, SOURCE, scope)
    yield Fact(serving.TRIAL_RATE, now.output_token_per_s, SOURCE, scope)
    for text in seen.assumed:
        yield Fact(serving.ASSUMED, text, SOURCE)
    if not seen.lengths_known:
        text = f"prompts of {point.isl:,.0f} and answers of {point.osl:,.0f} tokens (not stated; these come nearest to what was seen)"
        yield Fact(serving.ASSUMED, text, SOURCE)
    if point.rate_per_s != seen.point.rate_per_s:
        text = f"{point.rate_per_s:.3g} requests a second are sent (only what came back is known; this comes nearest to the wait)"
        yield Fact(serving.ASSUMED, text, SOURCE)
    if (pace := point.settings.pace) != 1.0:
        yield Fact(
            serving.ASSUMED,
            f"an iteration takes {pace:g}x what it is computed to (this comes nearest to what was seen)",
            SOURCE,
        )
    for what, simulated, observed in (("first token", now.ttft_s, seen.ttft_s), ("token", now.tpot_s, seen.tpot_s)):
        if observed > 0 and not 1 / FAR < simulated / observed < FAR:
            yield Fact(
                serving.ASSUMED,
                f"the simulated {what} is off by more than {FAR:.0f}x: read its gains as directions",
                SOURCE,
            )
    parts, prompts = token_parts(point, now)
    if seen.tpot_s > 0:
        named = {
            "reading weights": parts.weights_s, "reading KV": parts.kv_s,
            "arithmetic, launches, links and host": parts.arithmetic_s + parts.launch_s + parts.communication_s + parts.host_s,
            "others' prompts in between": prompts,
        }  # fmt: skip
        yield from _parts_of(seen.tpot_s, serving.STORY_PART, {name: float(value) for name, value in named.items()})
    if seen.ttft_s > 0:
        front = max(0.0, now.ttft_s - now.queue_s - now.prefill_s)
        share = now.ttft_s / max(now.queue_s + now.prefill_s + front, 1e-9)  # parts are means, the whole is a median
        named = {"queue": now.queue_s * share, "prefill": now.prefill_s * share, "front end": front * share}
        yield from _parts_of(seen.ttft_s, serving.WAIT_PART, named)


def _parts_of(seen_s: float, quantity: Quantity, simulated: dict[str, float]) -> Iterator[Fact]:
    """The simulated parts of what was seen, and what they leave. Where they come to more, each takes its part of what was seen."""
    total_s = sum(simulated.values())
    scale = min(1.0, seen_s / total_s) if total_s > 0 else 1.0
    for name, seconds in simulated.items():
        yield Fact(quantity, seconds * scale, SOURCE, Scope(layer=name))
    if seen_s > total_s:
        yield Fact(quantity, seen_s - total_s, SOURCE, Scope(layer="unexplained"))
    elif total_s > NOTICED * seen_s:
        sums = f"simulated parts come to {show(total_s, Unit.SECOND)} where {show(seen_s, Unit.SECOND)} was seen"
        over = f"{sums}: each is told as its part"
        yield Fact(serving.ASSUMED, over, SOURCE)


def _target(evidence: Evidence) -> tuple[float, float]:
    """What was asked for; else what a quieter run showed, with slack; else what chats want."""
    ttft, tpot = number(evidence, serving.TARGET_TTFT), number(evidence, serving.TARGET_TPOT)
    before, rate = evidence.get(serving.TTFT, run="before"), evidence.get(serving.PER_REQUEST_RATE, run="before")
    if ttft != ttft:
        ttft = max(USUAL_TTFT_S, SLACK * before.number) if before else USUAL_TTFT_S
    if tpot != tpot:
        tpot = max(USUAL_TPOT_S, SLACK / rate.number) if rate and rate.number > 0 else USUAL_TPOT_S
    return ttft, tpot
