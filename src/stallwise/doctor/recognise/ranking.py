"""From evidence to a ranking of causes, with the lines of the inputs that speak for each."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from stallwise.doctor.findings.diagnosis import SOMETHING_ELSE, Hypothesis
from stallwise.doctor.findings.finding import Finding, Reason
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Kind, Symptom
from stallwise.doctor.recognise.features import clue_outcomes, words_of
from stallwise.doctor.recognise.model import Model, block_of, model, probabilities, recalibrated, set_costs
from stallwise.doctor.words import words_in
from stallwise.evidence.bag import DENIED, Passage
from stallwise.evidence.catalog import stated
from stallwise.evidence.evidence import Evidence
from stallwise.readers.text.phrases import symptom_in

KEPT = 0.01  # hypotheses below this are not worth a line
ALWAYS_NAMED = 3  # however weak: an answer that names nobody helps nobody
QUOTES = 2  # lines of the inputs that are shown for a cause
SUREST_RULE = 0.97
NOT_SEEN = math.log(
    8.0
)  # of the odds that a cause loses whose signs somebody looked for: cases of it show them in 5 to 9 of 10
SPOKE = 2.0  # log odds of a rule that speaks at all, however unsure: it has seen something


@dataclass(frozen=True, slots=True)
class Ranking:
    """Hypotheses, most likely first, "something else" among them, and how many of them make the 90% set."""

    hypotheses: tuple[Hypothesis, ...]
    in_set: tuple[str, ...]
    chances: Mapping[str, float] = field(default_factory=dict)  # of every cause, the unlikely ones too

    def probability(self, cause: str) -> float:
        """Of one cause; 0 where it is not listed."""
        return next((h.probability for h in self.hypotheses if h.cause == cause), 0.0)


def recognise(
    evidence: Evidence,
    symptoms: Iterable[Symptom],
    findings: Iterable[Finding],
    rules: Sequence[Rule],
    trouble: float,
    *,
    curve: tuple[float, float] | None = None,
) -> Ranking:
    """How likely each cause is, by everything that affirmed words, facts and clues say.

    `trouble`: how likely there is any; the rest is for "something else". `curve`: how often first answers that sure are right,
    where it differs from the model's own.
    """
    seen = tuple(symptoms)
    known, words = model(), words_of(evidence, seen)
    clues, reasons, against, cannot = _weigh_clues(evidence, rules, known)
    cannot |= {rule.cause for rule in rules if _of_another_kind(rule, seen, evidence.stems)}
    odds = rule_odds(findings)
    if not words and not clues and not odds:
        return Ranking((Hypothesis(SOMETHING_ELSE, 1.0),), ())
    scores = [
        -math.inf if cause in cannot else score + clues.get(cause, 0.0) + known.rule * odds.get(cause, 0.0)
        for cause, score in zip(known.causes, known.scores(words)[0], strict=True)
    ]
    shares = recalibrated(probabilities(scores), trouble, known.curve)
    if curve is not None:
        shares = recalibrated([x / trouble for x in shares], trouble, curve)
    chances = dict(zip(known.causes, shares, strict=True))
    named = sorted((c for c in chances if chances[c] > 0.0), key=lambda c: (-chances[c], c))
    shown = [c for place, c in enumerate(named) if chances[c] >= KEPT or place < ALWAYS_NAMED]
    quotes = _quotes(shown[:ALWAYS_NAMED], evidence.passages, words, known)
    found = [
        Hypothesis(
            c, chances[c], (*reasons.get(c, ()), *quotes.get(c, ())), tuple(against.get(c, ())),
            by_words_alone=not reasons.get(c),
        )
        for c in shown
    ]  # fmt: skip
    found.append(Hypothesis(SOMETHING_ELSE, max(0.0, 1.0 - math.fsum(h.probability for h in found))))
    rows = tuple(sorted(found, key=lambda h: (-h.probability, h.cause)))
    return Ranking(rows, _set_of(named, chances, known), chances)


def trouble_in(evidence: Evidence, symptoms: Iterable[Symptom], *, in_numbers: bool) -> float:
    """How likely somebody has trouble: by how the texts read, and by whether numbers or a program's errors show a symptom.

    A word for a trouble ("hang", "xid") stands in as many texts that rule it out as in texts that complain of it.
    """
    known = model()
    return known.trouble_in(known.scores(words_of(evidence, symptoms))[1], in_numbers=in_numbers)


MEMORY_WORDS = frozenset(("oom", "memory", "vram", "alloc", "allocat", "allocation", "allocator"))


def _of_another_kind(rule: Rule, symptoms: Sequence[Symptom], stems: Collection[str]) -> bool:
    """A failed allocation is no answer to a complaint of speed alone: who ran out of memory says so."""
    kinds, own = {s.kind for s in symptoms}, {s.kind for s in rule.explains}
    return kinds == {Kind.SPEED} and own == {Kind.MEMORY} and not any(w in stems for w in MEMORY_WORDS)


def of_our_trade(evidence: Evidence) -> bool:
    """Whether the affirmed words of the inputs are those of some cause, rather than of a licence, a letter or a changelog."""
    words, known = [w for w in words_of(evidence) if not block_of(w) and not w.startswith(DENIED)], model()
    held, pairs = sum(map(known.knows, words)), [w for w in words if " " in w]
    # Words of everybody, put together as nobody does who runs such jobs.
    strange = len(pairs) > 1 and not any(map(known.knows, pairs))
    if not words or strange or held < COVERED * len(words):
        return False
    return held > 1 or any(
        map(symptom_in, words)
    )  # one word is enough where it names a symptom: "oom", "hangs"; not "hello"


# Of stems and pairs that the model has seen in several projects: 231 licences, changelogs and notices hold 23% of them (95 of 100
# below 27%, none above 40%), complaints and incidents 68 to 80% (95 of 100 above 49%).
COVERED = 0.42


def rule_odds(findings: Iterable[Finding]) -> dict[str, float]:
    """Log odds of every cause whose rule has spoken."""
    by_cause: dict[str, float] = {}
    for f in findings:
        if not f.optional:
            sure = min(f.confidence, SUREST_RULE)
            by_cause[f.cause] = max(by_cause.get(f.cause, 0.0), SPOKE + math.log(max(sure, 0.01) / (1.0 - sure)))
    return by_cause


def clue_key(cause: str, says: str) -> str:
    """A clue's name among the weights."""
    return f"{cause}: {says}"


def _weigh_clues(
    evidence: Evidence, rules: Sequence[Rule], known: Model
) -> tuple[dict[str, float], dict[str, list[Reason]], dict[str, list[Reason]], set[str]]:
    """Summed weights by cause, reasons for, reasons against, and what cannot be."""
    weights: dict[str, float] = {}
    reasons: dict[str, list[Reason]] = {}
    against: dict[str, list[Reason]] = {}
    cannot: set[str] = set()
    missed = {str(f.value): f.source for f in evidence.all(stated.NOT_SEEN)}
    for rule in rules:
        if rule.cause not in known.causes:
            continue
        if rule.cause in missed:
            weights[rule.cause] = -NOT_SEEN
            against[rule.cause] = [Reason("you do not see its signs", (missed[rule.cause],))]
        for clue, held, view in clue_outcomes(rule, evidence):
            if clue.rules_out(held):
                cannot.add(rule.cause)
                continue
            weight = known.clues.get(clue_key(rule.cause, clue.says), (0.0, 0.0))[0 if held else 1]
            weights[rule.cause] = weights.get(rule.cause, 0.0) + weight
            if weight:
                sources = tuple(dict.fromkeys(f.source for q in clue.reads for f in view.all(q)))[:3]
                side = reasons if weight > 0 else against
                side.setdefault(rule.cause, []).append(Reason(clue.sentence(held), sources))
    return weights, reasons, against, cannot


def _quotes(
    causes: Sequence[str], passages: Sequence[Passage], words: frozenset[str], known: Model
) -> Mapping[str, tuple[Reason, ...]]:
    """For each cause the lines that add most to it, in the user's own words."""
    names, parts = known.contributions(words)
    parts = [part[:-1] for part in parts]  # without the column of trouble
    row = {name: i for i, name in enumerate(names)}
    means = [math.fsum(part) / len(part) for part in parts]
    once = {
        p.text: p for p in reversed(passages) if " " in p.text
    }.values()  # what is typed stands among facts and among words
    held = [
        (p, sorted(row[w] for w in words_in(p.text) if w in row)) for p in once
    ]  # lines of the same words weigh the same
    found: dict[str, tuple[Reason, ...]] = {}
    for cause in causes:
        place = known.causes.index(cause)
        column = [part[place] - mean for part, mean in zip(parts, means, strict=True)]
        scored = [(math.fsum(column[row] for row in rows), p) for p, rows in held if rows]
        best = sorted((s for s in scored if s[0] > 0.0), key=lambda s: -s[0])[:QUOTES]
        found[cause] = tuple(Reason(f"\u201c{p.text}\u201d", (p.source,)) for _, p in best)
    return found


def _set_of(order: Sequence[str], chances: Mapping[str, float], known: Model) -> tuple[str, ...]:
    """The likeliest causes that together hold the truth in nine of ten unseen cases."""
    costs = set_costs([chances[c] for c in order])
    return tuple(order[: max(1, sum(cost <= known.threshold for cost in costs))])


REFUTING = math.log(10.0)  # of the odds: one clue, or all that speak against together, leaves a tenth


def refuted(rule: Rule, evidence: Evidence) -> bool:
    """Whether the clues leave so little of the cause that what points at it must be something else."""
    if rule.cause not in model().causes:
        return False
    weights: list[float] = []
    for clue, held, _ in clue_outcomes(rule, evidence):
        if clue.rules_out(held):
            return True
        weights.append(model().clues.get(clue_key(rule.cause, clue.says), (0.0, 0.0))[0 if held else 1])
    return math.fsum(w for w in weights if w < 0.0) <= -REFUTING
