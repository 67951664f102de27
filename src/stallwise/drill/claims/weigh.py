"""An account weighed: cause, remedies in order, boring first, numbers; each missing, a pass or a strong pass, with the reason."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.account import Account
from stallwise.drill.claims.by_page import TRAP, explains, plan_by_page, reads_as, steps_by_page
from stallwise.drill.claims.languages import in_english
from stallwise.drill.claims.reader import (
    STEP,
    Idea,
    asserted,
    claims_in,
    guesses_in,
    idea_of,
    is_prose,
    own_words,
    planned,
    sentences,
)
from stallwise.drill.claims.sums import false_comparisons, false_sums
from stallwise.drill.quantity import numbers
from stallwise.units import Unit

MISSING, PASS, STRONG = 0, 1, 2
NUMBERS = "numbers: "
ROUNDED = 1.04  # people say 2.2 for 2.18 and 45 for 45.5
ENOUGH_FIXES = 3  # fewer have no order to speak of
FEW_FIXES = 2  # that the page of a generated incident's cause names
MOSTLY = 0.7  # of the pairs of remedies stand in the order of their worth: one of four may be misplaced
HEDGES = 2  # other causes affirmed before the right one: a list of everything holds it too
EVERYTHING = 4  # causes of other incidents: an account for any of them
GUESSES = 3  # "it may be this, maybe that, or perhaps the third": nothing is committed to

PLAIN, UNLIKELY = (
    idea_of("plain", "plain first", [["@plain"]]),
    idea_of("unlikely", "others less likely", [["@unlikely"]]),
)


@dataclass(frozen=True, slots=True)
class Mark:
    """One dimension of the rubric."""

    level: int
    why: str


@dataclass(frozen=True, slots=True)
class Weighed:
    """What an account says, as it was understood."""

    cause: Mark
    fixes: Mark
    boring: Mark
    numbers: Mark
    unread: tuple[str, ...]  # "cause", "fixes": what could not be read and may be asked back once
    understood: tuple[str, ...]  # what was taken from the text, for the player to see


@lru_cache(maxsize=256)
def weigh(text: str, account: Account) -> Weighed:
    """All that the text alone decides."""
    english = in_english(text)
    text, sums = own_words(english, account.setup), tuple(false_sums(english))
    if not is_prose(text):
        empty = Mark(MISSING, "a list of terms claims nothing: say what is so, why, and what you would do")
        return Weighed(empty, empty, empty, empty, ("cause", "fixes"), ())
    at, steps = _steps(text, account)
    ordered = _in_order(text, at, steps)
    cause = _cause_by_page(text, account, at) if account.offered else _cause(text, account, at)
    found = [i.says for i in (account.cause, *_affirmed(text, account.mechanisms)) if cause.level]
    found += [f"{n}. {says}" for n, (_, says) in enumerate(steps, start=1)]
    named = cause.level or bool(claims_in(text, (account.cause,)))
    lacking = {"cause": not named, "fixes": not (steps if account.offered else ordered)}
    unread = tuple(name for name, missing in lacking.items() if missing)
    marks = (_fixes(steps, ordered, account), _boring(text, account, cause), _numbers(text, account, sums))
    return Weighed(cause, *marks, unread, tuple(found))


def _steps(text: str, account: Account) -> tuple[int, list[tuple[str, str]]]:
    """Where the plan begins, and its steps: the action's name and how it is called."""
    if account.offered:
        return plan_by_page(text), steps_by_page(
            text, account.cause.name, account.offered, [i.says for _, i in account.fixes]
        )
    at, order = planned(text, tuple(account.actions.values()))
    return at, [(name, account.actions[name].says) for name in order]


def _in_order(text: str, plan_at: int, steps: list[tuple[str, str]]) -> bool:
    """Whether there are enough steps for an order, one of them at most in words that were not understood."""
    written = sum(at + len(step) > plan_at for at, step in sentences(text, STEP))
    return len(steps) >= ENOUGH_FIXES or (len(steps) == ENOUGH_FIXES - 1 and written >= ENOUGH_FIXES)


def _cause_by_page(text: str, account: Account, plan_at: int) -> Mark:
    # A plan has words of other causes; without it little may be left.
    parts = [part for part in (text, text[:plan_at]) if is_prose(part)]
    read = {reads_as(part, account.cause.name, account.offered) for part in parts}
    if account.cause.name not in read:
        others = [cause_profiles()[c].says for c in read if c]
        return Mark(MISSING, f"it reads as: {others[0]}" if others else "no single cause was named")
    if wrong := _against_itself(text, account):
        return wrong
    if explains(text, account.cause.name):
        return Mark(STRONG, "class and mechanism")
    return Mark(PASS, "the class is right; say how it comes about")


def _against_itself(text: str, account: Account) -> Mark | None:
    """What an account says against its own cause."""
    if against := asserted(text, account.contrary):
        return Mark(MISSING, f"this rules it out: {against[0].says}")
    if wrong := next(false_comparisons(text), ""):
        return Mark(MISSING, f"the account contradicts itself: {wrong}")
    return None


def _cause(text: str, account: Account, plan_at: int) -> Mark:
    claims = claims_in(text, (account.cause,), across=True)
    # What a plan is to prevent ("so that prompts cannot block") is not denied.
    yes, no = [c for c in claims if not c.denied], [c for c in claims if c.denied and c.at < plan_at]
    if not yes:
        return Mark(MISSING, "the cause was denied" if no else "the cause was not named")
    if len(no) > len(yes):
        return Mark(MISSING, "the account contradicts itself about the cause")
    if wrong := _against_itself(text, account):
        return wrong
    before = {c.idea for c in claims_in(text, account.others) if not c.denied and c.at < yes[0].at}
    if len(before) >= HEDGES:
        named = "; ".join(i.says for i in account.others if i.name in before)
        return Mark(MISSING, f"named only after {len(before)} others: {named}")
    if len(strange := _affirmed(text, account.elsewhere)) >= EVERYTHING:
        return Mark(MISSING, f"so is the cause of {len(strange)} other incidents: commit to one")
    guessed = guesses_in(text)
    if guessed >= GUESSES and all(c.guessed for c in yes):
        return Mark(MISSING, f"one of {guessed} guesses: commit to one")
    if how := _affirmed(text, account.mechanisms):
        return Mark(STRONG, f"class and mechanism: {how[0].says}")
    lacking = f"the class is right; the mechanism is missing: {account.mechanisms[0].says}"
    return Mark(PASS, lacking if account.mechanisms else "right")


def _affirmed(text: str, ideas: tuple[Idea, ...]) -> list[Idea]:
    found = {c.idea for c in claims_in(text, ideas, across=True) if not c.denied}
    return [i for i in ideas if i.name in found]


def _fixes(steps: list[tuple[str, str]], ordered: bool, account: Account) -> Mark:
    rank = {idea.name: r for r, idea in account.fixes}
    best = next(i for r, i in account.fixes if r == 1).says
    remedies = [step for step in steps if step[0] not in account.checks]
    if not remedies:
        return Mark(MISSING, f"no remedy was named; first: {best}")
    if remedies[0][0].startswith(TRAP):
        return Mark(MISSING, f"begins with the trap: {remedies[0][1]}")
    if rank.get(remedies[0][0]) != 1:
        return Mark(MISSING, f"begins with: {remedies[0][1]}; first: {best}")
    if account.offered:
        own = sum(name in rank for name, _ in steps)
        return (
            Mark(STRONG, f"{own} remedies of this cause")
            if own >= FEW_FIXES
            else Mark(PASS, "right; rank more of them")
        )
    if not ordered:
        return Mark(MISSING, f"the right remedy first; rank at least {ENOUGH_FIXES}, what is looked at included")
    given = [rank[name] for name, _ in remedies if name in rank]
    pairs = [(a, b) for n, a in enumerate(given) for b in given[n + 1 :] if a != b]
    if sum(a < b for a, b in pairs) >= MOSTLY * len(pairs):
        return Mark(STRONG, f"{len(steps)} remedies and checks in the order of their worth")
    return Mark(PASS, "the right remedy first; the rest is not in the order of its worth")


def _boring(text: str, account: Account, cause: Mark) -> Mark:
    plain = _affirmed(text, (*account.boring, PLAIN)) or any(c.denied for c in claims_in(text, account.others))
    if not plain or not cause.level:
        return Mark(MISSING, "say which plain explanation comes first, and what you leave for later")
    if claims_in(text, (*account.exotic, UNLIKELY)):
        return Mark(STRONG, "plain first, and why the others are less likely")
    return Mark(PASS, "plain first; say why the exotic ones are less likely")


def _numbers(text: str, account: Account, sums: tuple[str, ...]) -> Mark:
    if sums:
        return Mark(MISSING, f"does not work out: {sums[0]}")
    given = numbers(text)
    right = [q.says for q in account.quantities if any(_same(v, u, q.value, q.unit) for u, v in given)]
    if not right:
        return Mark(MISSING, "no number that belongs here")
    found = ", ".join(dict.fromkeys(right))
    return Mark(STRONG if len(set(right)) > 1 else PASS, f"{NUMBERS}{found}")


def _same(given: float, unit: object, value: float, wanted: Unit) -> bool:
    fits = (
        unit is wanted
        or unit is None
        or (wanted in (Unit.RATIO, Unit.COUNT, Unit.SHARE) and unit in (Unit.RATIO, Unit.COUNT))
    )
    return fits and (given == value or (given * value > 0 and 1 / ROUNDED <= given / value <= ROUNDED))
