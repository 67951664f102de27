"""Which causes an incident is offered with: the planted one among its closest look-alikes, so that guessing pays nothing."""

from __future__ import annotations

from stallwise.doctor.catalogue import families
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.account import classic
from stallwise.drill.incident import CLASSICS, Incident, model_answer

OFFERED = 8  # knowing nothing is one in eight
# Which families a player would weigh beside each: a training job is not suspected of a full KV cache.
WEIGHED = {
    "kernel": ("kernel", "step"),
    "step": ("step", "distributed", "hardware"),
    "distributed": ("distributed", "hardware", "step"),
    "hang": ("hang", "hardware", "distributed"),
    "hardware": ("hardware", "hang", "distributed", "step"),
    "memory": ("memory", "step"),
    "serving": ("serving", "hardware", "memory"),
    "numerics": ("numerics", "hardware", "step"),
}


def candidates(incident: Incident) -> tuple[str, ...]:
    """The same for everybody who plays this seed."""
    rng = Rng(incident.seed * 7919 + 13)
    listed = list(classic(incident.seed)["candidates"]) if incident.seed <= CLASSICS else _offered(incident, rng)
    return tuple(rng.some(listed, len(listed)))


def _offered(incident: Incident, rng: Rng) -> list[str]:
    """The planted cause among look-alikes; never one that could be true as well."""
    planted = (incident.cause, *incident.also)
    excluded = {*planted, *(n for c in planted for n in cause_profiles()[c].near)}
    family = families()
    doubted = [h.cause for h in model_answer(incident).hypotheses if family.get(h.cause) in WEIGHED[incident.family]]
    kin = [c for c in cause_profiles() if family.get(c) == incident.family]
    rest = [c for c in cause_profiles() if family.get(c) in WEIGHED[incident.family] and c not in kin]
    wanted = [incident.rumoured_cause, *doubted[:2], *rng.some(kin, len(kin))[:4], *rng.some(rest, len(rest))]
    return [*planted, *(c for c in dict.fromkeys(wanted) if c and c not in excluded)][:OFFERED]
