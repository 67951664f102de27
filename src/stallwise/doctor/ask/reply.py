"""What an answer adds to the evidence: the facts of a choice, or the user's own words."""

from __future__ import annotations

from stallwise.doctor.findings.question import DONT_KNOW, Choice, Question
from stallwise.doctor.stating import state
from stallwise.errors import BadRequest
from stallwise.evidence.evidence import Evidence
from stallwise.evidence.vocabulary import resolve

NOT_KNOWN = ("", "?", "dont know", "do not know", "unknown", "no idea", "skip", DONT_KNOW)
LONGEST_REPLY = 4000  # characters


def choice_of(question: Question, reply: str) -> Choice:
    """The choice that is meant, by its number or its text; any other words are an answer of their own."""
    typed = " ".join(reply[:LONGEST_REPLY].split())
    plain = typed.casefold().rstrip(".")
    if plain.isascii() and plain.isdigit():
        if not 1 <= int(plain) <= len(question.choices):
            raise BadRequest(f"there is no choice {plain}", hint=f"1 to {len(question.choices)}, or words")
        return question.choices[int(plain) - 1]
    for choice in question.choices:
        if plain == choice.text.casefold().rstrip("."):
            return choice
    if plain in NOT_KNOWN:
        return Choice(DONT_KNOW)
    begins = [c for c in question.choices if c.text.casefold().startswith(plain)]
    if len(begins) == 1:
        return begins[0]
    return Choice(typed, (typed if _is_fact(typed) else f"symptom={typed}",))


def _is_fact(typed: str) -> bool:
    key, sign, value = typed.partition("=")
    if not sign or not value or len(key.split()) != 1:
        return False
    try:
        resolve(key.strip())
    except BadRequest:
        return False
    return True


def add_to(evidence: Evidence, choice: Choice) -> None:
    """As stated: what was picked counts as what somebody says of the run."""
    for word in choice.states:
        state(evidence, [word])
