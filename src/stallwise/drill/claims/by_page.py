"""Accounts of generated incidents, read by the doctor's own classifier and against the pages of the causes that are offered."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache

from stallwise.doctor.catalogue import by_cause
from stallwise.doctor.recognise.model import model, probabilities
from stallwise.doctor.words import words_in
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.reader import opposites, plan_start, sentences, steps_of
from stallwise.evidence.bag import stems_of

NAMED = 0.5  # of what is offered: more than all others together,
PLAUSIBLE = (
    0.2  # and among all causes: 27 accounts of 22 causes have 0.24 and more, those of another cause nearly nothing
)
CALLED = 3.0  # on the model's score, for an account that calls the cause by its own title: e^3 is 20 to 1
ALIKE = 0.05  # cosine of a step and a remedy that share one rare word
TRAPPED = 0.2  # of a step and a trap: a trap is one phrase, and a single word of it is no step into it
AS_NEAR = 0.8  # two causes share a remedy ("drain the node"): which comes first then says nothing
EXPLAINED = (
    0.08  # cosine of an account and a page's "What it means": half of 12 accounts that only name the cause stay below
)
RARE = 9.0  # idf of a word that the model has not seen
OWN, TRAP = "fix0", "trap"


def reads_as(text: str, cause: str, offered: Sequence[str]) -> str:
    """The cause that the affirmed words of a text name among those offered; "" where it is no single one."""
    known = model()
    scores, _ = known.scores(words_in(text))
    called = {c: " ".join((k.says, *k.words)) for c, k in cause_profiles().items()}
    among = {
        c: s + CALLED * _cosine(_weights(text), _weights(called[c]))
        for c, s in zip(known.causes, scores, strict=True)
        if c in called
    }
    first, share = _first({c: among[c] for c in offered if c in among})
    alike = cause_profiles()[cause].near
    _, whole = _first({c: s for c, s in among.items() if c not in alike}, first)
    return first if share >= NAMED and whole >= PLAUSIBLE else ""


def _first(scores: Mapping[str, float], cause: str = "") -> tuple[str, float]:
    """The likeliest (or this one) and its probability."""
    first = cause or max(scores, key=lambda c: scores[c])
    return first, dict(zip(scores, probabilities(list(scores.values())), strict=True)).get(first, 1.0)


def explains(text: str, cause: str) -> bool:
    """Whether an account speaks of how the cause comes about, as its page does."""
    return _cosine(_weights(text), _weights(_section(cause, "What it means"))) >= EXPLAINED


def plan_by_page(text: str) -> int:
    """Where the plan begins; without any word that announces it, at the last sentence."""
    announced, begin = plan_start(text)
    return begin if announced or begin else sentences(text)[-1][0]


def steps_by_page(text: str, cause: str, offered: Sequence[str], actions: Sequence[str]) -> list[tuple[str, str]]:
    """The steps of a plan that were recognised, in order: whose remedy it is and the step itself."""
    profile = cause_profiles()[cause]
    options = {TRAP: _weights(profile.trap), OWN: _weights(" ".join((_remedy(cause), *actions)))}
    options |= {o: _weights(_remedy(o)) for o in offered if o != cause and o not in profile.near}
    begin, found = plan_by_page(text), []
    for at, step in steps_of(text):
        if at + len(step) > begin:
            name = _nearest(step, options, profile.trap)
            found += [(name, step.strip())] if name else []
    # A first step that others share too ("drain the node") is judged with the whole plan.
    if found and found[0][0] not in (OWN, TRAP) and _nearest(text[begin:], options, profile.trap) == OWN:
        while found[0][0] not in (OWN, TRAP):
            found.pop(0)
            if not found:
                return [(OWN, text[begin:].strip())]
    return found


def _nearest(text: str, options: Mapping[str, Mapping[str, float]], trap: str) -> str:
    step = _weights(text)
    near = {name: _cosine(step, words) for name, words in options.items()}
    if near[TRAP] < TRAPPED or _opposed(text, trap):
        near[TRAP] = 0.0
    best = max(near, key=lambda name: near[name])
    if near[best] < ALIKE:
        return ""
    return OWN if best != TRAP and near[OWN] >= AS_NEAR * near[best] else best


def _opposed(text: str, trap: str) -> bool:
    """Whether a step turns the other way than the trap: "offload less" is not "offload more"."""
    one, other = ({opposites()[w] for w in re.findall(r"[a-z]+", t.lower()) if w in opposites()} for t in (text, trap))
    return any((n, 1 - side) in other for n, side in one) and not one & other


def _remedy(cause: str) -> str:
    return f"{cause_profiles()[cause].fix}. {_section(cause, 'Fix')}"


def _section(cause: str, name: str) -> str:
    return by_cause()[cause].page.partition(f"## {name}\n")[2].partition("\n## ")[0]


@cache
def _weights(text: str) -> dict[str, float]:
    known = model()
    return {s: float(known.idf[known.words[s]]) if s in known.words else RARE for s in stems_of(text)}


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    shared = math.fsum(one[w] * other[w] for w in one.keys() & other.keys())
    return shared / (math.hypot(*one.values()) * math.hypot(*other.values()) or 1.0)
