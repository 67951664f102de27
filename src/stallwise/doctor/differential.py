"""The differential: base rates times likelihood ratios, over every cause that could explain the complaint.

How often a cause is behind a symptom that its rule EXPLAINS and how much likelier each of its CLUES is under it than under
another one are counted from cases (`knowledge`). What is left over is "something else", an explicit hypothesis. A finding of
a rule enters with its own odds, so one finding of 97% and nothing else gives 97%. Causes that rules have seen clearly, or
priced in a ledger, do not compete: a run may have several. A consequence takes nothing from its cause: that requests queue
speaks for the full cache that makes them, not against it. All others explain the same complaint and share what the surest of
those leaves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from stallwise.doctor.symptoms import Complaint, complaints
from stallwise.evidence.catalog import run
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope
from stallwise.findings.clue import NEEDED, SPEAK_AGAINST, Clue
from stallwise.findings.diagnosis import Hypothesis
from stallwise.findings.finding import Finding, Reason
from stallwise.findings.rule import Rule
from stallwise.findings.symptom import Symptom
from stallwise.knowledge.clues import telling

SOMETHING_ELSE = "something-else"
LEAST_ELSE = 0.08  # no list of causes is complete, however well its rates add up
UNPROMPTED = 0.03  # prior of a cause that nobody complained of but a telling clue points at
TELLING = 10.0  # a clue this strong opens a hypothesis by itself
LOOKED_AND_SAW_NOT = 0.2  # a rule with all it needs that stays silent makes its cause five times less likely
RULED_OUT = 0.03  # of the odds are left to a cause that by definition cannot be: what says so may be misread
MOST_SURE = 0.97  # clues are never certain: they may be correlated, or describe another part of the run
OTHER_TRADE = 0.2  # of the odds are left to a cause of training where only a service is seen, and the other way round
TRAINING = (run.STEP_TIME, run.LOSS, run.SAMPLES_PER_S, run.GRAD_NORM)  # what only a training run shows
SERVICE_SYMPTOMS = (Symptom.SERVING_SLOW, Symptom.SERVING_COLLAPSE, Symptom.HIGH_TTFT, Symptom.SERVER_WONT_START)
CLEAR = 0.8  # a rule this sure has seen its cause; below, it is one explanation among others
BELOW = 0.99  # of a cause's share: what follows from it never stands above it
KEPT = 0.01  # hypotheses below this are not worth a line


@dataclass(slots=True)
class _Weight:
    rule: Rule
    odds: float
    because: list[Reason] = field(default_factory=list)
    against: list[Reason] = field(default_factory=list)
    by_rate_alone: bool = False
    seen: float = 0.0  # how sure the rule itself is, where it is clear
    most: float = 1.0  # a rule that looked and doubts is not made surer by a short list of rivals
    follows: bool = False  # from a likelier cause that a rule has seen, which names it as what it leads to


def differential(
    evidence: Evidence,
    rules: Iterable[Rule],
    findings: Iterable[Finding],
    silent: frozenset[str] = frozenset(),
    *,
    priced: bool = False,
) -> tuple[tuple[Hypothesis, ...], tuple[Complaint, ...]]:
    """Hypotheses, most likely first, with "something else" among them.

    Base rates speak only where a person complained: an artifact that merely looks slow has no complainant to count.
    """
    heard = complaints(evidence)
    weights = [w for rule in rules if (w := _weigh(rule, heard, evidence, rule.cause in silent)) is not None]
    # Rates are written cause by cause, in many files; together they may promise more than there is.
    prior_mass = sum(_prior(w.rule, heard) for w in weights)
    rest = max(LEAST_ELSE, 1.0 - prior_mass)
    for weight in weights:
        weight.odds *= min(1.0, (1.0 - LEAST_ELSE) / prior_mass)
    by_cause = {w.rule.cause: w for w in weights}
    rules_by_cause = {rule.cause: rule for rule in rules}
    told = [f for f in findings if not f.optional and f.cause in rules_by_cause]
    for finding in told:
        weight = by_cause.setdefault(finding.cause, _Weight(rules_by_cause[finding.cause], 0.0))
        confidence = min(finding.confidence, 0.99)
        said = confidence / (1.0 - confidence)
        # Clues are counted from those who had trouble. Where nobody complains, the rule that looked has heard them already.
        weight.odds = max(weight.odds, said) if heard else said
        own = max(finding.confidence, min(weight.odds / (1.0 + weight.odds), MOST_SURE))
        if priced or own >= CLEAR:
            weight.seen = max(weight.seen, own)
        weight.most = own
        weight.by_rate_alone = False
        weight.because = [*finding.because, *weight.because]
        weight.against = [*finding.against, *weight.against]
    for finding in told:
        for cause in finding.explains:
            if cause in by_cause and by_cause[cause].odds < by_cause[finding.cause].odds:
                by_cause[cause].follows = True
    for finding in told:
        known = [f.confidence for f in told if f.blocking and not f.last_resort]
        if finding.last_resort and known:  # that the run died takes nothing from what it died of
            weight = by_cause[finding.cause]
            weight.follows, weight.seen, weight.most = True, 0.0, BELOW * max(known)
    if not by_cause:
        return (), tuple(heard)
    return _normalised(by_cause, rest, any(c.by_person for c in heard)), tuple(heard)


def _normalised(by_cause: dict[str, _Weight], rest: float, rates_speak: bool) -> tuple[Hypothesis, ...]:
    rivals = [w for w in by_cause.values() if not w.follows]
    total = rest + sum(w.odds for w in rivals)
    top = max((w.odds for w in rivals), default=0.0)
    if top / total > MOST_SURE:  # keep room for doubt
        rest = rest + top * (1.0 / MOST_SURE - 1.0)
        total = rest + sum(w.odds for w in rivals)
    # What follows from one of them shares what they leave.
    beside = rest + sum(w.odds for w in by_cause.values() if w.follows)
    share = {c: w.odds / total * (rest / beside if w.follows else 1.0) for c, w in by_cause.items()}
    seen = {w.rule.cause: w.seen for w in by_cause.values() if w.seen}
    suspected = {
        cause: min(share[cause], w.most)
        for cause, w in by_cause.items()
        if not w.seen and share[cause] >= KEPT and (rates_speak or not w.by_rate_alone)
    }
    # What the surest of the seen causes leaves is for those that are only suspected, and for something else.
    left, wanted = (
        1.0 - max(seen.values(), default=0.0),
        1.0 - math.fsum(share[c] for c, w in by_cause.items() if w.seen),
    )
    scale = min(1.0, left / wanted) if wanted > 0 else 0.0
    suspected = {cause: p * scale for cause, p in suspected.items()}
    chances = {**seen, **suspected}
    hypotheses = [
        Hypothesis(cause, p, tuple(w.because), tuple(w.against), w.by_rate_alone, found=cause in seen)
        for cause, p in chances.items()
        for w in [by_cause[cause]]
    ]
    hypotheses.append(Hypothesis(SOMETHING_ELSE, max(0.0, left - math.fsum(suspected.values()))))
    return tuple(sorted(hypotheses, key=lambda h: (-h.probability, h.cause)))


def _prior(rule: Rule, heard: list[Complaint]) -> float:
    """The base rate under what was complained of; several symptoms share the weight, so explaining all counts."""
    if not heard:
        return UNPROMPTED
    rates = [rule.explains.get(c.symptom, 0.0) for c in heard]
    return max(sum(rates) / len(rates), UNPROMPTED / 3)


def _weigh(rule: Rule, heard: list[Complaint], evidence: Evidence, silent: bool) -> _Weight | None:
    outcomes = clue_odds(rule, evidence)
    explains = any(c.symptom in rule.explains for c in heard)
    if not explains and not any(ratio >= TELLING for ratio, _ in outcomes):
        return None
    weight = _Weight(rule, _prior(rule, heard) * fits_the_trade(rule, evidence))
    for ratio, reason in outcomes:
        weight.odds *= ratio
        if ratio > 1.0:
            weight.because.append(reason)
        elif ratio < 1.0:
            weight.against.append(reason)
    if not weight.because:
        weight.because.append(Reason(f"base rate: {_prior(rule, heard):.0%} of such complaints"))
        weight.by_rate_alone = True
    if silent:
        weight.odds *= LOOKED_AND_SAW_NOT
        weight.against.append(Reason("its rule had all it needs and saw nothing"))
    return weight


def fits_the_trade(rule: Rule, evidence: Evidence) -> float:
    """A service has no training loop and a training run serves nobody: causes of the other trade are rarely the trouble."""
    serves = any(name.startswith("serve.") for name, facts in evidence.facts.items() if facts)
    trains = any(evidence.all(q) or evidence.series(q) for q in TRAINING)
    if serves and not trains and rule.family == "step" and not any(s in rule.explains for s in SERVICE_SYMPTOMS):
        return OTHER_TRADE
    if trains and not serves and rule.family == "serving":
        return OTHER_TRADE
    return 1.0


def refuted(rule: Rule, evidence: Evidence) -> bool:
    """One clue alone speaks so strongly against the cause that what points at it must be something else, or several do together:
    what it can hardly be without is missing, what is seldom seen with it is there."""
    told = [(clue, held, clue_ratio(rule.cause, clue, held)) for clue, held, _ in clue_outcomes(rule, evidence)]
    against = [r for clue, held, r in told if (clue.tells in SPEAK_AGAINST if held else NEEDED in clue.tells)]
    return min([*(r for _, _, r in told), math.prod(against)]) <= 1.0 / TELLING


def clue_odds(rule: Rule, evidence: Evidence) -> list[tuple[float, Reason]]:
    """How much every clue tells that the evidence decides, and why."""
    found: list[tuple[float, Reason]] = []
    for clue, held, view in clue_outcomes(rule, evidence):
        sources = tuple(dict.fromkeys(f.source for q in clue.reads for f in view.all(q)))
        found.append((clue_ratio(rule.cause, clue, held), Reason(clue.sentence(held), sources[:3])))
    return found


def clue_ratio(cause: str, clue: Clue, held: bool) -> float:
    """How much likelier an outcome makes the cause."""
    if clue.rules_out(held):
        return RULED_OUT
    tells = telling(cause, clue)
    ratio = tells.ratio if held else tells.otherwise
    if clue.by_definition:
        return max(ratio, 1.0)  # what must be so cannot speak against
    # What a clue means is known from how things work; cases say how much it tells, and few of them cannot turn it around.
    return max(ratio, 1.0) if held == (clue.tells not in SPEAK_AGAINST) else min(ratio, 1.0)


def clue_outcomes(rule: Rule, evidence: Evidence) -> Iterator[tuple[Clue, bool, Evidence]]:
    """Every clue that the evidence decides, read in the scope where it speaks loudest for the cause."""
    views = [evidence, *(evidence.within(s) for s in parts_of(rule, evidence))]
    for clue in rule.clues:
        decided = [(held, view) for view in views if (held := clue.outcome(view)) is not None]
        if decided:
            for_it = clue.tells not in SPEAK_AGAINST
            held, view = next((d for d in decided if d[0] == for_it), decided[0])
            yield clue, held, view


def parts_of(rule: Rule, evidence: Evidence) -> list[Scope]:
    """The kernels, GPUs or ranks that the rule judges one by one."""
    return list(evidence.scopes(rule.per)) if rule.per else []
