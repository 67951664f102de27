"""An account weighed: cause, remedies in order, boring first, numbers; each missing, a pass or a strong pass, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stallwise.drill.claims.account import Account
from stallwise.drill.claims.reader import Idea, claims_in, guesses_in, is_prose, orders_in, own_words
from stallwise.drill.quantity import numbers
from stallwise.units import Unit

MISSING, PASS, STRONG = 0, 1, 2
NUMBERS = "numbers: "
ROUNDED = 1.04  # people say 2.2 for 2.18 and 45 for 45.5
ENOUGH_FIXES = 3  # an order needs more than two
MOSTLY = 0.7  # of the pairs of remedies stand in the order of their worth: one of four may be misplaced
HEDGES = 2  # other causes affirmed before the right one: a list of everything holds it too
GUESSES = 3  # "it may be this, maybe that, or perhaps the third": nothing is committed to
# From here on an account speaks of remedies; what stands before describes.
_REMEDIES = re.compile(
    r"\b(?:fix(?:es)?(?: order\w*| ranked[^:]{0,30})?|remed(?:y|ies)|cures?|actions?|first fix|order of (?:fixes|work))\s*(?::|=)",
    re.IGNORECASE,
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
    trap_first: bool
    understood: tuple[str, ...]  # what was taken from the text, for the player to see


@lru_cache(maxsize=256)
def weigh(text: str, account: Account) -> Weighed:
    """All that the text alone decides."""
    text = own_words(text, account.setup)
    if not is_prose(text):
        empty = Mark(MISSING, "a list of terms claims nothing: say what is so, why, and what you would do")
        return Weighed(empty, empty, empty, empty, ("cause", "fixes"), False, ())
    actions, trap_first = _actions(text, account)
    cause = _cause(text, account)
    fixes = _fixes(actions, account)
    found = [account.cause.says] if cause.level else []
    found += [i.says for i in _affirmed(text, account.mechanisms)] if cause.level else []
    found += [f"{n}. {account.actions[name].says}" for n, name in enumerate(actions, start=1)]
    unread = tuple(
        name for name, missing in (("cause", not claims_in(text, (account.cause,))), ("fixes", not actions)) if missing
    )
    return Weighed(
        cause, fixes, _boring(text, account, cause), _numbers(text, account), unread, trap_first, tuple(found)
    )


def _cause(text: str, account: Account) -> Mark:
    claims = claims_in(text, (account.cause,), across=True)
    yes, no = [c for c in claims if not c.denied], [c for c in claims if c.denied]
    if not yes:
        return Mark(MISSING, "the cause was denied" if no else "the cause was not named")
    if len(no) > len(yes):
        return Mark(MISSING, "the account contradicts itself about the cause")
    before = {c.idea for c in claims_in(text, account.others) if not c.denied and c.at < yes[0].at}
    if len(before) >= HEDGES:
        named = "; ".join(i.says for i in account.others if i.name in before)
        return Mark(MISSING, f"named only after {len(before)} others: {named}")
    guessed = guesses_in(text)
    if guessed >= GUESSES and all(c.guessed for c in yes):
        return Mark(MISSING, f"one of {guessed} guesses: commit to one")
    how = _affirmed(text, account.mechanisms)
    if how:
        return Mark(STRONG, f"class and mechanism: {how[0].says}")
    return Mark(
        PASS,
        f"the class is right; the mechanism is missing: {account.mechanisms[0].says}"
        if account.mechanisms
        else "right",
    )


def _affirmed(text: str, ideas: tuple[Idea, ...]) -> list[Idea]:
    found = {c.idea for c in claims_in(text, ideas, across=True) if not c.denied}
    return [i for i in ideas if i.name in found]


def _actions(text: str, account: Account) -> tuple[list[str], bool]:
    """What is to be done, in the order of the text, each once; whether a trap leads it.

    Where the account announces its remedies they begin there, unless what it checks before makes the better order.
    """
    named = _REMEDIES.search(text)
    orders = [_ordered(text[named.start() :], account)] if named else []
    orders.append(_ordered(orders_in(text), account))
    if not any(orders) or named:
        orders.append(_ordered(text, account))
    best = max(orders, key=lambda order: (_fixes(order, account).level, bool(order)))
    remedies = [name for name in best if name not in account.checks]
    return best, bool(remedies) and remedies[0].startswith("trap")


def _ordered(text: str, account: Account) -> list[str]:
    return list(
        dict.fromkeys(c.idea for c in claims_in(text, tuple(account.actions.values()), steps=True) if not c.denied)
    )


def _fixes(order: list[str], account: Account) -> Mark:
    rank = {idea.name: r for r, idea in account.fixes}
    best = next(i for r, i in account.fixes if r == 1).says
    remedies = [name for name in order if name not in account.checks]
    if not remedies:
        return Mark(MISSING, f"no remedy was named; first: {best}")
    if remedies[0].startswith("trap"):
        return Mark(MISSING, f"begins with the trap: {account.actions[remedies[0]].says}")
    if rank.get(remedies[0]) != 1:
        return Mark(MISSING, f"begins with: {account.actions[remedies[0]].says}; first: {best}")
    given = [rank[name] for name in remedies if name in rank]
    pairs = [(a, b) for n, a in enumerate(given) for b in given[n + 1 :] if a != b]
    kept = sum(a < b for a, b in pairs)
    if len(order) >= ENOUGH_FIXES and kept >= MOSTLY * len(pairs):
        return Mark(STRONG, f"{len(order)} remedies and checks in the order of their worth")
    return Mark(PASS, "the right remedy first; rank more of them, with what each is worth")


def _boring(text: str, account: Account, cause: Mark) -> Mark:
    plain, why = _affirmed(text, account.boring), claims_in(text, account.exotic)
    if not plain or not cause.level:
        return Mark(MISSING, "say which plain explanation comes first, and what you leave for later")
    if why:
        return Mark(STRONG, "plain first, and why the others are less likely")
    return Mark(PASS, "plain first; say why the exotic ones are less likely")


def _numbers(text: str, account: Account) -> Mark:
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
    return fits and given > 0 and 1 / ROUNDED <= given / value <= ROUNDED
