"""Suspicion: where nothing is proved, how likely each cause is, from everything that speaks.

Six witnesses are heard for every cause: its page's likeness to the inputs, the vote of the cases that read alike, the same
vote for its family, whether it explains what is complained of, the clues that the evidence decides, and its rule where it
has spoken. What each weighs was fitted to cases of other projects (`knowledge/fitted.toml`), and so was how often an answer
of that score turns out right: the probability is a frequency.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

from stallwise.doctor.differential import SOMETHING_ELSE, TELLING, clue_outcomes, clue_ratio, refuted
from stallwise.doctor.likeness import in_common, page_scores
from stallwise.doctor.said import said
from stallwise.evidence.evidence import Evidence
from stallwise.findings.clue import Clue
from stallwise.findings.diagnosis import Hypothesis
from stallwise.findings.finding import Finding, Reason
from stallwise.findings.rule import Rule
from stallwise.findings.symptom import Kind, Symptom
from stallwise.knowledge.fitted import Fitted, fitted
from stallwise.knowledge.vote import votes
from stallwise.rules import all_rules

LEAST_SHARE = 0.02
UNNAMED = 0.01  # how often a cause is behind a complaint that its rule does not name
# What a person complains of is the question. A cause that explains none of it, and that only the words of a log beside it speak
# for, answers another one: in log odds, enough to stand behind every cause that does explain it.
BESIDE_THE_QUESTION = -12.0
MOST_UNHEARD = 0.45  # below even odds
ALWAYS_NAMED = 3  # suspects, however weak: an answer that names nobody helps nobody
LOUDEST_CLUES = 4.0  # in log odds: clues of one cause are seldom independent
SUREST_RULE = 0.97
HEARD_OF = 2.0  # in log odds: a rule that speaks at all, however unsure, has seen something
# Of the raw probability: of 200 texts of other trades (licences, headers, changelogs) 191 lie below. So do 35 of 200 complaints whose
# project is not counted, which are heard for the symptom that they name.
LEAST_ALIKE = 0.15
QUIET = frozenset(
    (Kind.SPEED, Kind.NUMBERS)
)  # a job that is slow or wrong goes on; one that stopped may have done so for anything
WITNESSES = ("page", "cases", "family", "explains", "clues", "rule")
NO_CAUSE = "none"
OURS = ("wording", "question")  # kinds of cases told in our own words: nobody can look them up


def suspicion(
    evidence: Evidence,
    heard: Iterable[Symptom],
    weighed: Iterable[Hypothesis],
    findings: Iterable[Finding],
    *,
    said_aloud: bool,
    asked: frozenset[Symptom] = frozenset(),
    complained: frozenset[Symptom] = frozenset(),
) -> tuple[Hypothesis, ...]:
    """The table, most likely first: every cause that the witnesses leave more than a trace of.

    Likeness makes a verdict only of a complaint, a person's or a program's; else, or where a clue refutes the cause, it stays below
    even odds, unless rules and clues by themselves are surer.
    """
    marks = said(evidence, heard)
    by_cause = {r.cause: r for r in all_rules()}
    old = {h.cause: h for h in weighed if h.cause != SOMETHING_ELSE}
    witnesses = statements(marks, by_clues(evidence), by_rules(findings))
    known = fitted()
    for cause, testimony in witnesses.items():
        explains = set(by_cause[cause].explains)
        beside = bool(asked) and not asked & explains
        if testimony["rule"] == 0.0 and (beside or _of_another_kind(complained, explains)):
            testimony["explains"] += BESIDE_THE_QUESTION / known.weights["explains"]
    chances = probabilities(witnesses, len(marks), known)
    nearest = votes(marks)[1]
    found = []
    likeliest = sorted((c for c in chances if c != SOMETHING_ELSE), key=lambda c: (-chances[c], c))
    for place, cause in enumerate(likeliest):
        p = chances[cause]
        if p < LEAST_SHARE and place >= ALWAYS_NAMED:
            continue
        by_words = witnesses[cause]["rule"] == 0.0 and witnesses[cause]["clues"] <= 0.0
        reasons = (
            [Reason(f"what its page and the inputs both speak of: {words}")]
            if (words := in_common(cause, marks))
            else []
        )
        reasons += [
            Reason(f"reads like {c.project} {c.id}") for c in nearest if cause in c.causes and c.kind not in OURS
        ]
        before = old.get(cause, Hypothesis(cause, 0.0))
        if witnesses[cause]["rule"] == 0.0 and refuted(by_cause[cause], evidence):
            p = min(p / TELLING, MOST_UNHEARD)
        elif not said_aloud:
            p = min(p, max(MOST_UNHEARD, before.probability))
        told = before.because if not before.by_rate_alone else ()
        found.append(
            replace(
                before,
                probability=p,
                because=(*told, *reasons),
                by_rate_alone=False,
                by_words_alone=by_words,
                found=False,
            )
        )
    rest = max(0.0, 1.0 - math.fsum(h.probability for h in found))
    return tuple(sorted([*found, Hypothesis(SOMETHING_ELSE, rest)], key=lambda h: (-h.probability, h.cause)))


def _of_another_kind(complained: frozenset[Symptom], explains: set[Symptom]) -> bool:
    """A complaint of speed or of wrong numbers is not answered by what stops a job or fills its memory: that would be said."""
    kinds = {s.kind for s in complained}
    return bool(kinds) and kinds <= QUIET and not kinds & {s.kind for s in explains}


def of_our_trade(evidence: Evidence) -> bool:
    """Whether the words of the inputs are those of some cause, rather than of a licence, a header or a changelog."""
    marks = said(evidence)
    if not evidence.stems:
        return False
    chances = raw_probabilities(statements(marks, {}, {}), len(marks), fitted())
    return max(p for cause, p in chances.items() if cause != SOMETHING_ELSE) >= LEAST_ALIKE


def statements(
    marks: frozenset[str], clues: Mapping[str, float], spoken: Mapping[str, float]
) -> dict[str, dict[str, float]]:
    """What each witness says of each cause."""
    like = page_scores(marks)
    voted, _ = votes(marks)
    rules = [r for r in all_rules() if r.cause != NO_CAUSE]
    family: dict[str, float] = {}
    for rule in rules:
        family[rule.family] = family.get(rule.family, 0.0) + voted.get(rule.cause, 0.0)
    complaints = {mark[2:] for mark in marks if mark.startswith("s:")}
    return {
        r.cause: {
            "page": like.get(r.cause, 0.0),
            "cases": voted.get(r.cause, 0.0),
            "family": family[r.family],
            "explains": _explained(r, complaints),
            "clues": clues.get(r.cause, 0.0),
            "rule": spoken.get(r.cause, 0.0),
        }
        for r in rules
    }


def _explained(rule: Rule, complaints: set[str]) -> float:
    """How often the cause is behind such complaints, in log odds above one that is never named for them."""
    if not complaints:
        return 0.0
    rate = sum(rate for symptom, rate in rule.explains.items() if symptom.name in complaints) / len(complaints)
    return math.log1p(rate / UNNAMED)


def by_clues(evidence: Evidence) -> dict[str, float]:
    """Log odds of every cause by the clues that the evidence decides."""
    return weighed((r.cause, clue, held) for r in all_rules() for clue, held, _ in clue_outcomes(r, evidence))


def weighed(outcomes: Iterable[tuple[str, Clue, bool]]) -> dict[str, float]:
    """Log odds of every cause by what its clues say."""
    found: dict[str, float] = {}
    for cause, clue, held in outcomes:
        found[cause] = found.get(cause, 0.0) + math.log(clue_ratio(cause, clue, held))
    return {cause: max(-LOUDEST_CLUES, min(LOUDEST_CLUES, odds)) for cause, odds in found.items()}


def by_rules(findings: Iterable[Finding]) -> dict[str, float]:
    """Log odds of every cause whose rule has spoken."""
    spoken: dict[str, float] = {}
    for f in findings:
        if not f.optional:
            sure = min(f.confidence, SUREST_RULE)
            spoken[f.cause] = max(spoken.get(f.cause, 0.0), HEARD_OF + math.log(max(sure, 0.01) / (1.0 - sure)))
    return spoken


def raw_probabilities(witnesses: Mapping[str, Mapping[str, float]], marks: int, known: Fitted) -> dict[str, float]:
    """From testimony to the share of each cause in the odds, with "something else" among them."""
    w = known.weights
    scores = {cause: math.fsum(w[k] * told[k] for k in WITNESSES) for cause, told in witnesses.items()}
    scores[SOMETHING_ELSE] = w["else"] + w["else_words"] * math.log1p(marks)
    top = max(scores.values())
    odds = {cause: math.exp(score - top) for cause, score in scores.items()}
    total = math.fsum(odds.values())
    return {cause: o / total for cause, o in odds.items()}


def probabilities(witnesses: Mapping[str, Mapping[str, float]], marks: int, known: Fitted) -> dict[str, float]:
    """How often each cause holds: the first answer by the curve that was fitted, the others share what it leaves."""
    raw = raw_probabilities(witnesses, marks, known)
    first = max((c for c in raw if c != SOMETHING_ELSE), key=lambda c: raw[c])
    sure = known.frequency(raw[first])
    others = 1.0 - raw[first]
    scale = (1.0 - sure) / others if others > 0 else 0.0
    rest = {c: min(p * scale, sure) if c != SOMETHING_ELSE else p * scale for c, p in raw.items() if c != first}
    return {first: sure, **rest}
