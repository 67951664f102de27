"""When a diagnosis should fail a build: any finding, a named cause, a gain that is large enough, or no proof of health."""

from __future__ import annotations

from dataclasses import dataclass

from stallwise.doctor.findings.diagnosis import Diagnosis, State
from stallwise.doctor.findings.finding import Finding
from stallwise.errors import BadRequest
from stallwise.units import Unit, parse

ANY = "any"
UNPROVEN = "unclear"  # the strictest: whatever is not proven healthy fails
ACCEPTED = f"{ANY}, {UNPROVEN}, a share of the step such as 5%, or a cause; stallwise causes lists them"


@dataclass(frozen=True, slots=True)
class Threshold:
    """What fails a build, in the user's words; a share of the step is a number besides."""

    words: tuple[str, ...]
    shares: dict[str, float]

    def reached(self, diagnosis: Diagnosis) -> str:
        """The first reason to fail, or nothing."""
        found = [f for f in diagnosis.findings if f.is_verdict]
        for word in self.words:
            if word == UNPROVEN and diagnosis.state is State.UNCLEAR:
                return f"cannot tell: {diagnosis.why_unclear} ({word})"
            if word in self.shares:
                hit = _worth_more(found, diagnosis, self.shares[word])
            else:
                hit = [f for f in found if word in (ANY, UNPROVEN, f.cause)]
            if hit:
                return f"{hit[0].cause} ({word})"
        return ""


def threshold(wanted: str, known: frozenset[str]) -> Threshold:
    """ "any", "unclear", causes, or a share of the step, by commas; a typing error is refused, before anything is read."""
    words = tuple(w.strip() for w in wanted.split(","))
    for word in words:
        if word not in (ANY, UNPROVEN, *known) and not _is_number(word):
            from difflib import get_close_matches

            close = get_close_matches(word, (ANY, UNPROVEN, *known), n=2)
            meant = f"{' or '.join(close)}; " if close else ""
            raise BadRequest(f"--fail-on does not know '{word}'", hint=f"{meant}accepted are {ACCEPTED}")
    return Threshold(words, {word: parse(word, Unit.SHARE) for word in words if _is_number(word)})


def _is_number(word: str) -> bool:
    return word[:1].isdigit() or word[:1] == "."


def _worth_more(found: list[Finding], diagnosis: Diagnosis, share: float) -> list[Finding]:
    whole_s = diagnosis.ledger.whole_s if diagnosis.ledger else 0.0
    return [f for f in found if f.blocking or (f.gain and whole_s and f.gain.low_s / whole_s >= share)]
