"""What the inputs say, as marks that pages and cases can share: words, named quantities, events, symptoms."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from stallwise.evidence.bag import stem
from stallwise.evidence.catalog import change, numerics, run
from stallwise.evidence.evidence import Evidence
from stallwise.findings.symptom import Symptom

# What the measures find in any log that has steps or a loss, well or not.
ROUTINE = {
    q.name
    for q in (change.STEPS_LOGGED, change.STEADY_STEP, run.NAN_STEPS, numerics.LOSS_PROGRESS, numerics.LOSS_RATIO)
}

# How one asks, and by which tool one looked: in every complaint, of any cause.
_ASKING = [stem(w) for w in "what why how which happened happens nvidia smi shows".split()]
ASKING = frozenset(_ASKING) | {f"{a} {b}" for a in _ASKING for b in _ASKING}

WORDS_OF_A_NAME = 2  # that a quantity is written in


def said(evidence: Evidence, heard: Iterable[Symptom] = ()) -> frozenset[str]:
    """Every mark once."""
    # Every log prints its loss: that it is there says nothing.
    routine = ROUTINE | {s.quantity.name for s in evidence.all_series}
    told = [name for name, facts in evidence.facts.items() if facts and name not in routine]
    marks = (evidence.stems - ASKING) | {f"q:{name}" for name in told}
    marks |= {f"e:{e.kind}" for e in evidence.events}
    return frozenset(marks | {f"s:{s.name}" for s in heard})


def in_numbers(marks: frozenset[str]) -> bool:
    """Whether the words are hardly more than the names of what is measured: how they read tells nothing beside it."""
    most = WORDS_OF_A_NAME * sum(mark.startswith("q:") for mark in marks)
    words = (mark for mark in marks if ":" not in mark[:2] and " " not in mark)
    return next(islice(words, most, None), None) is None  # a log has many more, and they need not be counted
