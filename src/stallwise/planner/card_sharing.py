"""Several of one model on one card: whole, cut by MIG into slices of its own, or shared by MPS without walls.

All ways are priced by the costs of one service: a slice is a card with its part of the compute, the memory and the bandwidth;
under MPS every process has its part of the memory, all of the card while the others rest and its part of it while all work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from stallwise.errors import BadRequest
from stallwise.physics.costs.kv_room import KvRoom, kv_room
from stallwise.physics.specs.deployment import Deployment
from stallwise.physics.specs.mig import part_of, profiles
from stallwise.planner.serving import Curve, Option, Point, Question, fit

LITTLE_WORK = 0.45  # of the card that one model keeps busy, so that two have room beside each other
MOST_BESIDE = 16  # processes on one card: each brings its own context and weights, and latency has long gone by then
WHOLE, MIG, MPS = "whole", "mig", "mps"
WAYS = (WHOLE, MIG, MPS)
ISOLATION = {
    WHOLE: "nothing shared",
    MIG: "memory, bandwidth, L2 and faults apart; what a slice does not use is lost to the others",
    MPS: "nothing apart: a burst of one is felt by all, and a fault of one ends all",
}


@dataclass(frozen=True)
class Sharing:
    """How many such services one card carries."""

    way: str  # "MIG 3g.40gb" or "MPS"
    models: int
    tpot_s: float
    ttft_s: float
    memory_bytes: float
    note: str


@dataclass(frozen=True)
class Way:
    """One way to use a card: each of its `models` instances alone and at its limit, or why none runs."""

    by: str  # one of WAYS
    name: str  # "whole card", "MIG 3g.40gb x 2", "MPS x 2"
    models: int
    memory_bytes: float  # of one instance
    bandwidth_byte_per_s: float  # of one instance while all work
    room: KvRoom
    alone: Point | None = None  # one request, the others at rest
    busy: Point | None = None  # one request, the others at work
    limit: Point | None = None  # of one instance: the most within the target while all work
    limited_by: str = ""
    why_not: str = ""

    @property
    def rate_per_s(self) -> float:
        """Requests a second of the whole card within the target."""
        return self.models * self.limit.rate_per_s if self.limit else 0.0


def ways(deployment: Deployment, question: Question, by: tuple[str, ...] = WAYS) -> list[Way]:
    """Every way to use one card for this model, as far as it is asked for."""
    d, gpu = deployment, deployment.gpu
    if unknown := [way for way in by if way not in WAYS]:
        raise BadRequest(f"a card is not shared by '{unknown[0]}'", hint="one of " + ", ".join(WAYS))
    found = [_way(WHOLE, "whole card", 1, d, d, question)] if WHOLE in by else []
    if MIG in by:
        slices = [p for p in profiles(gpu) if not p.whole]
        if not slices and by == (MIG,):
            raise BadRequest(f"{gpu.title} has no MIG profile on record", hint="--by mps or --by whole")
        for p in slices:
            part = d.changed(gpu=p.cut(gpu))
            found.append(_way(MIG, f"MIG {p.name} x {p.count}", p.count, part, part, question))
    if MPS in by:
        for count in range(2, MOST_BESIDE + 1):
            way = _way(MPS, f"MPS x {count}", count, *_beside(d, count), question)
            found.append(way)
            if way.why_not:
                break  # more of them have less each
    return found


def _beside(d: Deployment, count: int) -> tuple[Deployment, Deployment]:
    """One process of so many: with the card to itself for a moment, and with all of them at work."""
    share = 1.0 / count
    rests = d.changed(memory_share=d.memory_share * share)
    works = d.changed(gpu=replace(part_of(d.gpu, share, share), memory_bytes=d.gpu.memory_bytes * share))
    return rests, works


def _way(by: str, name: str, count: int, rests: Deployment, works: Deployment, q: Question) -> Way:
    room = kv_room(works)
    way = Way(by, name, count, works.gpu.memory_bytes, works.gpu.bandwidth_byte_per_s, room)
    if not room.fits:
        has = max(room.usable_bytes - room.reserved_bytes, 0.0)
        return replace(way, why_not=f"weights need {room.weight_bytes / 1e9:.1f} GB, {has / 1e9:.1f} GB are there")
    curve = Curve(works, q, room)
    if curve.most < 1:
        return replace(way, why_not=f"{room.tokens:,.0f} tokens of cache, one request has {q.isl + q.osl:,.0f}")
    way = replace(way, alone=Curve(rests, q, room).at(1.0), busy=curve.at(1.0))
    assert way.busy is not None
    if way.busy.tpot_s > q.tpot_s:
        return replace(way, why_not=f"a token takes {way.busy.tpot_s * 1e3:.0f} ms while all work")
    if way.busy.ttft_s > q.ttft_s:
        return replace(way, why_not=f"the first token takes {way.busy.ttft_s * 1e3:.0f} ms while all work")
    limit, limited_by = curve.limit()
    return replace(way, limit=limit, limited_by=limited_by)


def share_card(option: Option, question: Question) -> list[Sharing]:
    """Ways to put two or more of this model on one of these cards; empty where one fills it."""
    d = option.deployment
    if d.ranks != 1 or option.replicas != 1:
        return []
    found = []
    for p in profiles(d.gpu):
        part = p.cut(d.gpu)
        sized = fit(d.changed(gpu=part), question)
        if p.count > 1 and isinstance(sized, Option) and sized.replicas == 1:
            found.append(Sharing(f"MIG {p.name}", p.count, sized.now.tpot_s, sized.now.ttft_s, part.memory_bytes,
                                 "memory, bandwidth and faults apart"))  # fmt: skip
            break
    half = d.changed(memory_share=d.memory_share / 2)
    sized = fit(half, question)
    if isinstance(sized, Option) and sized.replicas == 1 and _busy(sized, question) <= LITTLE_WORK:
        together = Curve(half, replace(question, rate_per_s=2 * question.rate_per_s)).at_rate(2 * question.rate_per_s)
        if together.tpot_s <= question.tpot_s and together.ttft_s <= question.ttft_s:
            found.append(Sharing("MPS", 2, together.tpot_s, together.ttft_s, d.gpu.memory_bytes * half.memory_share,
                                 "shares everything: a burst of one is felt by the other"))  # fmt: skip
    return found


def _busy(option: Option, question: Question) -> float:
    """Share of the card's time that this rate needs."""
    return option.now.rate_per_s / option.limit.rate_per_s


def cards_for(way: Way, question: Question) -> int | None:
    """Cards that carry the asked rate this way; None where none does."""
    if not way.rate_per_s > 0:
        return None
    return math.ceil(question.rate_per_s * (1 + question.headroom_share) / way.rate_per_s)
