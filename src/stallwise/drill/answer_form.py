"""What a player must commit to in one incident: the choices, in an order the seed gives, and which of them are right."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from stallwise.doctor.catalogue import families
from stallwise.doctor.findings.finding import Fix
from stallwise.drill.artifacts.rng import Rng
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.incident import Incident, model_answer, planted_finding

CHOICES = 8  # suspects offered; knowing nothing is one in eight
REAL_FIXES = 3  # at most, so that the list can be held in mind
OTHER_FIXES = 2
REFUTERS = 4
MOVES = 4
CLEARLY_MORE = 1.2  # two fixes have an order when one is worth so much more than the other
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
HARMLESS = (
    "compare with a run that was fast",
    "read the first error of every log",
    "write down when it began",
    "ask whether others on the same machines see it too",
)


@dataclass(frozen=True, slots=True)
class Choice:
    """One line of a list to choose from."""

    text: str
    right: bool = False
    trap: bool = False
    place: int = -1  # of a real fix in the doctor's order


@dataclass(frozen=True, slots=True)
class AnswerForm:
    """All lists of one incident."""

    causes: tuple[str, ...]
    fixes: tuple[Choice, ...]
    ordered: tuple[tuple[int, int], ...]  # places of real fixes whose order is known: the first comes before the second
    refuters: tuple[Choice, ...]
    first_moves: tuple[Choice, ...]


@cache
def answer_form(incident: Incident) -> AnswerForm:
    """The same for everybody who plays this seed."""
    rng = Rng(incident.seed * 7919 + 13)
    known = cause_profiles()[incident.cause]
    offered = _offered(incident, rng)
    wrong = [c for c in offered if c not in (incident.cause, *incident.also, "none")]
    finding = planted_finding(incident)
    real = [f for f in (finding.fixes if finding else ()) if f.action][:REAL_FIXES] or [Fix(known.fix)]
    fixes = [Choice(f.action, True, place=n) for n, f in enumerate(real)]
    fixes += [Choice(cause_profiles()[c].fix) for c in wrong[:OTHER_FIXES]]
    fixes.append(Choice(known.trap, trap=True))
    refuters = [Choice(known.refuted, True), *(Choice(cause_profiles()[c].refuted) for c in wrong[: REFUTERS - 1])]
    good = [*(f.action for f in real[:2]), *rng.some(HARMLESS, len(HARMLESS))]
    moves = [Choice(known.trap, True), *(Choice(text) for text in good[: MOVES - 1])]
    return AnswerForm(
        tuple(rng.some(offered, len(offered))),
        tuple(rng.some(fixes, len(fixes))),
        _known_order(real),
        tuple(rng.some(refuters, len(refuters))),
        tuple(rng.some(moves, len(moves))),
    )


def _offered(incident: Incident, rng: Rng) -> list[str]:
    """The planted cause among look-alikes; never one that could be true as well."""
    planted = (incident.cause, *incident.also)
    excluded = {*planted, *(n for c in planted for n in cause_profiles()[c].near)}
    family = families()
    doubted = [h.cause for h in model_answer(incident).hypotheses if family.get(h.cause) in WEIGHED[incident.family]]
    kin = [c for c in cause_profiles() if family.get(c) == incident.family]
    rest = [c for c in cause_profiles() if family.get(c) in WEIGHED[incident.family] and c not in kin]
    wanted = [
        *([incident.rumoured_cause] if incident.rumoured_cause else []),
        *doubted[:2],
        *rng.some(kin, len(kin))[:4],
        *rng.some(rest, len(rest)),
    ]
    others = [c for c in dict.fromkeys(wanted) if c not in excluded]
    return [*planted, *others][:CHOICES]


def _known_order(real: list[Fix]) -> tuple[tuple[int, int], ...]:
    """Pairs whose order is more than taste: gains that differ, or places at least two apart in the doctor's list."""
    pairs = []
    for a in range(len(real)):
        for b in range(a + 1, len(real)):
            one, two = real[a].gain, real[b].gain
            if one is not None and two is not None and one.middle_s > 0 and two.middle_s > 0:
                if one.middle_s >= CLEARLY_MORE * two.middle_s:
                    pairs.append((a, b))
            elif b - a > 1:
                pairs.append((a, b))
    return tuple(pairs)
