"""The rubric: six dimensions, each failed, passed or strongly passed, each with what was matched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from stallwise.drill.artifact_words import WHAT
from stallwise.drill.artifact_words import meant as meant_artifacts
from stallwise.drill.concepts import causes_named, matched, names_cause, names_class
from stallwise.drill.fix_order import meant, rank_correlation
from stallwise.drill.incident import model_answer
from stallwise.drill.round import Round
from stallwise.drill.spoken_numbers import near, numbers_in
from stallwise.findings.diagnosis import Diagnosis
from stallwise.findings.finding import Finding

FAIL, PASS, STRONG = 0, 1, 2
WORDS = ("fail", "pass", "strong pass")
FIRST_HYPOTHESIS_S = (90.0, 45.0)  # pass, strong pass
NAMED_ARTIFACTS = 2  # specific ones, for a strong pass
MOST_NAMED_CAUSES = 6  # an answer that names more mechanisms than this is a list, not a diagnosis
NUMBERS = 2  # right ones, for a strong pass
PASSED_OF_SIX = 4  # a pass needs the root cause and most of the rest
STRONG_OF_SIX = 5
ORDERED = 0.6  # rank correlation of an order that agrees but for a neighbour or two
_REASONED = (
    "because",
    "since",
    "so that",
    "worth",
    "frees",
    "saves",
    "gains",
    "costs",
    "biggest",
    "largest",
    "up to",
    "back to",
    "->",
    "%",
)
_COMPARED = ("less likely", "unlikely", "lower prior", "rare", "rule out", "ruled out", "before anything exotic", "exotic",
             "rather than",
             "instead of", "more likely", "most likely")  # fmt: skip
_ORDINARY = (
    "node health",
    "throttl",
    "hardware first",
    "what changed",
    "config",
    "data loader",
    "straggler",
    "misconfigur",
    "version",
)
_TEMPTING = (
    "add gpus",
    "more gpus",
    "increase batch",
    "larger batch",
    "raise occupancy",
    "increase occupancy",
    "rewrite",
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One dimension."""

    dimension: str
    level: int
    why: str  # what was matched, in words the player can dispute

    @property
    def word(self) -> str:
        """fail, pass or strong pass."""
        return WORDS[self.level]


@dataclass(frozen=True, slots=True)
class Score:
    """The whole: marks, the failure mode if it was walked into, and the verdict."""

    marks: tuple[Mark, ...]
    trap: str  # the tempting move that was made; "" where none was
    level: int

    @property
    def word(self) -> str:
        """fail, pass or strong pass."""
        return WORDS[self.level]


class _Judge:
    def __init__(self, played: Round) -> None:
        self.round = played
        self.answer: Diagnosis = model_answer(played.incident)
        self.finding: Finding | None = next(
            (f for f in self.answer.findings if f.cause == played.incident.cause), self.answer.first
        )

    @cached_property
    def said(self) -> str:
        """The diagnosis: the commitment, or the last hypothesis where time ran out."""
        last = self.round.texts("commit") or self.round.texts("hypothesis")[-1:]
        return " ".join(last)

    @cached_property
    def ordered(self) -> list[str]:
        lists = self.round.texts("fixes")
        return [str(x) for x in json.loads(lists[-1])] if lists else []

    def time(self) -> Mark:
        first = next((e.at_s for e in self.round.events if e.kind == "hypothesis"), None)
        if first is None:
            return Mark("time to first hypothesis", FAIL, "no hypothesis was stated")
        level = sum(first < limit for limit in FIRST_HYPOTHESIS_S)
        return Mark("time to first hypothesis", level, f"first one after {first:.0f} s; 90 s passes, 45 s is strong")

    def artifacts(self) -> Mark:
        asked = [list(meant_artifacts(text).items())[:2] for text in self.round.texts("ask")]
        named = tuple(dict.fromkeys(kind for pairs in asked for kind, _ in pairs))
        specific = {pairs[0][1] for pairs in asked if pairs}  # two metrics of one log are two specific requests
        right = [k for k in named if k in self.round.incident.deciding]
        wanted = ", ".join(WHAT[k] for k in self.round.incident.deciding)
        if not right:
            return Mark("right artifact before guessing", FAIL, f"what settles it was not asked for: {wanted}")
        level = STRONG if len(specific) >= NAMED_ARTIFACTS else PASS
        told = ", ".join(f"'{words}'" for words in sorted(specific))
        return Mark("right artifact before guessing", level, f"asked for {told}; {WHAT[right[0]]} settles it")

    def root(self) -> Mark:
        case = self.round.incident
        named = causes_named(self.said)
        if len(named) > MOST_NAMED_CAUSES:
            return Mark("root cause", FAIL, f"{len(named)} mechanisms named: that is a list, not a diagnosis")
        if words := names_cause(self.said, case.cause):
            return Mark("root cause", STRONG, f"the mechanism, {case.cause}: matched '{words}'")
        if words := names_class(self.said, case.family):
            return Mark(
                "root cause", PASS, f"the class, {case.family}: matched '{words}'; the mechanism is {case.cause}"
            )
        return Mark("root cause", FAIL, f"neither {case.cause} nor its class ({case.family}) was named")

    def fixes(self) -> Mark:
        name = "fixes ordered by impact"
        if self.finding is None or not self.finding.fixes or not self.ordered:
            return Mark(name, FAIL, "no fixes were ordered")
        actions = [f"{f.action} {f.worth}" for f in self.finding.fixes]
        places = [p for p in (meant(fix, actions) for fix in self.ordered) if p is not None]
        order = list(dict.fromkeys(places))
        best = self.finding.fixes[0].action
        if not order:
            return Mark(name, FAIL, f"none of these is among the fixes that pay here; first would be: {best}")
        tau = rank_correlation(order)
        reasoned = sum(matched(fix, _REASONED) is not None or bool(numbers_in(fix)) for fix in self.ordered)
        why = f"{len(order)} of {len(actions)} fixes matched, rank correlation {tau:+.2f} with the doctor's order"
        if order[0] == 0 and len(order) >= min(2, len(actions)) and tau >= ORDERED and reasoned:
            return Mark(name, STRONG, why + ", with reasons")
        mostly = tau >= 0 and (order[0] <= 1 or len(order) > 1)
        return Mark(name, PASS if mostly else FAIL, why + ("" if mostly else f"; first would be: {best}"))

    def boring(self) -> Mark:
        name = "boring explanation first"
        first = next(iter(self.round.texts("hypothesis")), "")
        case = self.round.incident
        likely = [h.cause for h in self.answer.hypotheses[:3]]
        words = (
            names_cause(first, case.cause)
            or names_class(first, case.family)
            or next((w for cause in likely if (w := names_cause(first, cause))), None)
            or matched(first, _ORDINARY)
        )
        if not first or words is None:
            return Mark(name, FAIL, "the first hypothesis was none of the ordinary explanations of this symptom")
        everything = " ".join(self.round.texts("hypothesis", "commit"))
        compared = matched(everything, _COMPARED)
        tail = f", and others were weighed: '{compared}'" if compared else "; why others are less likely was not said"
        return Mark(name, STRONG if compared else PASS, f"began with '{words}'{tail}")

    def numbers(self) -> Mark:
        name = "numbers"
        spoken = numbers_in(" ".join([*self.round.texts("hypothesis", "commit"), *self.ordered]))
        worked = [float(t.rsplit("= ", 1)[1]) for t in self.round.texts("calc")]
        if not spoken and not worked:
            return Mark(name, FAIL, "no number was said and none was worked out")
        told, found = self._known()
        right = sorted({n for v in (*spoken, *worked) if (n := near(v, (*found, *told))) is not None})
        if not right:
            return Mark(name, PASS if worked else FAIL, "numbers were said; none is one of this incident's within 25%")
        # Repeating the setup is a start; a strong answer has a number that the evidence or arithmetic gave.
        own = bool(worked) or not found or any(near(n, found) is not None for n in right)
        level = STRONG if own and (len(right) >= NUMBERS or worked) else PASS
        return Mark(name, level, f"{len(right)} right within 25%: {', '.join(f'{n:.4g}' for n in right[:4])}")

    def _known(self) -> tuple[list[float], list[float]]:
        """Numbers of this incident: those of its setup, and those that only evidence and arithmetic give."""
        told = numbers_in(self.round.incident.setup)
        if self.finding is None:
            return told, []
        texts = [self.finding.headline, self.finding.summary, *(r.text for r in self.finding.because)]
        texts += [f"{f.action} {f.worth}" for f in self.finding.fixes]
        gains = [g for g in (self.finding.gain, *(f.gain for f in self.finding.fixes)) if g is not None]
        found = [*numbers_in(" ".join(texts)), *(g.high_s for g in gains), *(g.low_s for g in gains)]
        return told, [n for n in found if near(n, told) is None]

    def trap(self) -> str:
        """The tempting wrong move, if the player starts with it."""
        first = self.ordered[0] if self.ordered else ""
        if not first or matched(first, ("do not", "don't", "avoid", "never")):
            return ""
        warned = self.finding.avoid if self.finding else ""
        if warned and matched(first, _TEMPTING) and meant(first, [warned]) is not None:
            return warned  # a fix further down the list may be the trap when it comes first
        actions = [f"{f.action} {f.worth}" for f in self.finding.fixes] if self.finding else []
        if meant(first, actions) is not None:
            return ""
        if matched(first, _TEMPTING):
            return f"'{first}': a reflex that does not touch this cause"
        if self.finding and self.finding.avoid and meant(first, [self.finding.avoid]) is not None:
            return self.finding.avoid
        return ""


def score(played: Round) -> Score:
    """Marks in the order of the rubric; the verdict needs the root cause before anything else."""
    judge = _Judge(played)
    marks = (judge.time(), judge.artifacts(), judge.root(), judge.fixes(), judge.boring(), judge.numbers())
    trap, root = judge.trap(), marks[2].level
    passed, strong = sum(m.level >= PASS for m in marks), sum(m.level == STRONG for m in marks)
    level = FAIL
    if root >= PASS and passed >= PASSED_OF_SIX:
        level = PASS
        if root == STRONG and passed == len(marks) and strong >= STRONG_OF_SIX and not trap:
            level = STRONG
    return Score(marks, trap, level)


def narrated(played: Round) -> list[str]:
    """The model answer, from this incident's own evidence."""
    answer = model_answer(played.incident)
    finding = _Judge(played).finding
    lines = list(answer.tree)
    if finding is not None:
        lines += [f"{finding.cause}: {finding.headline}", *((finding.summary,) if finding.summary else ())]
        lines += [f"because {reason.text}" for reason in finding.because]
        lines += [f"not here: {reason.text}" for reason in finding.not_here]
        lines += [
            f"{n}. {f.action}" + (f" ({f.worth})" if f.worth else "") for n, f in enumerate(finding.fixes, start=1)
        ]
        lines += [f"the trap: {finding.avoid}"] if finding.avoid else []
    for cause in played.incident.also:
        seen = next((f.headline for f in answer.findings if f.cause == cause), cause)
        lines.append(f"there was a second, smaller fault too, {cause}: {seen}")
    return lines
