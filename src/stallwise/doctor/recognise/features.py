"""What the classifier sees: affirmed and denied words, named quantities, events, symptoms, and the outcome of every clue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from stallwise.doctor.findings.clue import AGAINST_CAUSE, Clue
from stallwise.doctor.findings.rule import Rule
from stallwise.doctor.findings.symptom import Symptom
from stallwise.evidence.bag import stem
from stallwise.evidence.catalog import change, numerics, run, stated
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.fact import Scope

# What the measures find in any log that has steps or a loss, well or not, and what is weighed by itself.
ROUTINE = {
    q.name
    for q in (
        stated.NOT_SEEN,
        change.STEPS_LOGGED,
        change.STEADY_STEP,
        run.NAN_STEPS,
        run.NAN_GRADIENTS,
        numerics.LOSS_PROGRESS,
        numerics.LOSS_RATIO,
    )
}
# How one asks, and by which tool one looked: in every complaint, of any cause.
_ASKING = [stem(w) for w in "what why how which happened happens nvidia smi shows".split()]
ASKING = frozenset(_ASKING) | {f"{a} {b}" for a in _ASKING for b in _ASKING}


def words_of(evidence: Evidence, symptoms: Iterable[Symptom] = ()) -> frozenset[str]:
    """Stems, `q:` quantities that somebody named, `e:` kinds of events, `s:` symptoms; each once."""
    # Every log prints its loss: that it is there says nothing.
    routine = ROUTINE | {s.quantity.name for s in evidence.all_series}
    named = {f"q:{name}" for name, facts in evidence.facts.items() if facts and name not in routine}
    kinds = {f"e:{e.kind}" for e in evidence.events}
    return frozenset((evidence.stems - ASKING) | named | kinds | {f"s:{s.name}" for s in symptoms})


def clue_outcomes(rule: Rule, evidence: Evidence) -> Iterator[tuple[Clue, bool, Evidence]]:
    """Every clue that the evidence decides, read in the scope where it speaks loudest for the cause."""
    views = [evidence, *(evidence.within(s) for s in parts_of(rule, evidence))]
    for clue in rule.clues:
        decided = [(held, view) for view in views if (held := clue.outcome(view)) is not None]
        if decided:
            for_it = clue.strength not in AGAINST_CAUSE
            held, view = next((d for d in decided if d[0] == for_it), decided[0])
            yield clue, held, view


def parts_of(rule: Rule, evidence: Evidence) -> list[Scope]:
    """The kernels, GPUs or ranks that the rule judges one by one."""
    return list(evidence.scopes(rule.per)) if rule.per else []
