"""What an incident knows about the accounts people give of it: ideas, remedies in their order, traps, numbers, follow-ups, hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from stallwise.drill.claims.reader import Idea, idea_of
from stallwise.drill.incident import Decisive
from stallwise.readers.text.groups import pattern_of, plain
from stallwise.tables import parsed
from stallwise.units import Unit

KINDS = {
    "mechanisms": "mechanism",
    "wrong_fixes": "wrongfix",
    "contrary": "contrary",
    "boring": "boring",
    "exotic": "exotic",
}


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that rightly belongs to the incident."""

    says: str
    value: float
    unit: Unit


@dataclass(frozen=True, slots=True)
class Challenge:
    """What the interviewer asks back, with its exact answer."""

    number: Decisive
    why: str
    when: str = ""  # words of the account that call for this one; without them it is for everybody


@dataclass(frozen=True, slots=True)
class Account:
    """Everything an account is weighed against."""

    cause: Idea
    fixes: tuple[
        tuple[int, Idea], ...
    ]  # with their rank; 1 comes first, 0 is a check that may stand before any of them
    traps: tuple[Idea, ...]
    quantities: tuple[Quantity, ...]
    challenges: tuple[Challenge, ...]
    hints: tuple[str, ...]
    setup: str  # what everybody was given: repeating it claims nothing
    mechanisms: tuple[Idea, ...] = ()
    wrong_fixes: tuple[Idea, ...] = ()
    contrary: tuple[Idea, ...] = ()  # what rules the cause out, or contradicts the setup
    boring: tuple[Idea, ...] = ()
    exotic: tuple[Idea, ...] = ()
    others: tuple[Idea, ...] = ()  # causes that are offered beside it and are not accepted
    elsewhere: tuple[Idea, ...] = ()  # causes of the other classics
    offered: tuple[str, ...] = ()  # of a generated incident, which has no ideas of its own and is read by their pages

    @property
    def checks(self) -> frozenset[str]:
        """Names of what is looked at, not done."""
        return frozenset(idea.name for rank, idea in self.fixes if rank == 0)

    @property
    def actions(self) -> dict[str, Idea]:
        """Everything that can be done, by name."""
        return {i.name: i for i in (*(f for _, f in self.fixes), *self.wrong_fixes, *self.traps)}


def challenge_for(account: Account, text: str) -> Challenge:
    """The follow-up that fits the account; else the one for everybody."""
    lowered = plain(text)
    fitting = (c for c in account.challenges if c.when and pattern_of(c.when).search(lowered))
    return next(fitting, next(c for c in account.challenges if not c.when))


@cache
def classic(number: int) -> Mapping[str, Any]:
    """The table of a classic scenario."""
    place = files("stallwise.drill.scenarios.classic") / f"{number}.toml"
    return parsed(place.read_text(encoding="utf-8"))


def account_of(row: Mapping[str, Any]) -> Account:
    """From a table; a remedy's text begins with its rank."""
    ranked = [says.split(". ", 1) for says in row["fix"]]
    fixes = zip(ranked, _ideas({"fix": {says: row["fix"][f"{n}. {says}"] for n, says in ranked}}, "fix"), strict=True)
    ideas: dict[str, Any] = {field: _ideas(row, kind) for field, kind in KINDS.items()}
    return Account(
        cause=_ideas(row, "cause_idea")[0],
        fixes=tuple((int(rank), idea) for (rank, _), idea in fixes),
        traps=_ideas(row, "trap"),
        quantities=tuple(Quantity(says, value, Unit(unit)) for says, value, unit in row["quantities"]),
        challenges=tuple(
            Challenge(Decisive(c["ask"], c["value"], Unit(c["unit"]), c["within"]), c["why"], c.get("when", ""))
            for c in row["challenge"]
        ),
        hints=tuple(row["hints"]),
        setup=row["setup"],
        **ideas,
    )


def _ideas(row: Mapping[str, Any], kind: str) -> tuple[Idea, ...]:
    return tuple(idea_of(f"{kind}{n}", says, lines) for n, (says, lines) in enumerate(row.get(kind, {}).items()))
