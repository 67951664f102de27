"""When a diagnosis should fail a build: any finding, a named cause, a gain that is large enough, or no proof of health."""

from __future__ import annotations

from difflib import get_close_matches

from stallwise.errors import BadRequest
from stallwise.findings.diagnosis import Diagnosis, State
from stallwise.findings.finding import Finding
from stallwise.units import Unit, parse

SURE_ENOUGH = 0.5  # a finding below even odds fails nothing

UNPROVEN = "unclear"  # the strictest: whatever is not proven healthy fails


def reached(diagnosis: Diagnosis, wanted: str, known: frozenset[str] = frozenset()) -> str:
    """The first reason to fail, or nothing. `wanted`: "any", "unclear", causes, or a share of the step, by commas.

    A cause that is not `known` (where that is given) is a typing error, not a build that passes.
    """
    found = [f for f in diagnosis.findings if f.confidence >= SURE_ENOUGH and not f.optional]
    for word in (w.strip() for w in wanted.split(",")):
        if not word:
            raise BadRequest("--fail-on needs a word", hint="any, unclear, input-starved, or 5%")
        if word == UNPROVEN:
            if diagnosis.state is State.UNCLEAR:
                return f"cannot tell: {diagnosis.why_unclear} ({word})"
            hit = found[:1]
        elif word == "any":
            hit = found[:1]
        elif word[0].isdigit() or word[0] == ".":
            hit = _worth_more(found, diagnosis, parse(word, Unit.SHARE))
        elif known and word not in known:
            close = get_close_matches(word, known, n=2)
            raise BadRequest(f"no cause is called '{word}'", hint=" or ".join(close) or "stallwise causes lists them")
        else:
            hit = [f for f in found if f.cause == word]
        if hit:
            return f"{hit[0].cause} ({word})"
    return ""


def _worth_more(found: list[Finding], diagnosis: Diagnosis, share: float) -> list[Finding]:
    whole_s = diagnosis.ledger.whole_s if diagnosis.ledger else 0.0
    return [f for f in found if f.blocking or (f.gain and whole_s and f.gain.low_s / whole_s >= share)]
