"""The account of an incident: a classic's own table; of a generated one what the catalogue and the doctor say of its cause."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from stallwise.drill.candidates import candidates
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.account import Account, Challenge, Quantity, account_of, classic
from stallwise.drill.claims.reader import Idea
from stallwise.drill.incident import CLASSICS, Incident, planted_finding
from stallwise.drill.requests import artifacts
from stallwise.readers.text.words import words_of

FIXES = 3  # at most, so that an order can be held in mind
STEM = 6  # characters that words of one meaning share


@cache
def account(incident: Incident) -> Account:
    """What an account of this incident is weighed against."""
    others = _others(incident)
    if incident.seed <= CLASSICS:
        strange = (account_of(classic(n)).cause for n in range(1, CLASSICS + 1) if n != incident.seed)
        elsewhere = tuple(replace(idea, name=idea.says) for idea in strange)
        return replace(account_of(classic(incident.seed)), others=others, elsewhere=elsewhere)
    known, finding = cause_profiles()[incident.cause], planted_finding(incident)
    actions = [f.action for f in (finding.fixes if finding else ()) if f.action][:FIXES]
    settles = artifacts()[min(incident.deciding, key=lambda kind: artifacts()[kind].minutes)]
    return Account(
        cause=Idea(incident.cause, known.says, ()),
        fixes=tuple((n + 1, Idea(f"fix{n}", way, ())) for n, way in enumerate(actions or [known.fix])),
        traps=(Idea("trap0", known.trap, ()),),
        quantities=(Quantity(incident.number.ask, incident.number.value, incident.number.unit),),
        challenges=(Challenge(incident.number, f"It was {incident.number.shown}."),),
        hints=(f"The cheapest artifact that settles it costs {settles.minutes} min.", f"Look at {settles.what}."),
        setup=incident.setup,
        others=others,
        offered=candidates(incident),
    )


def _others(incident: Incident) -> tuple[Idea, ...]:
    """The other candidates, by what people call them."""
    near = {n for c in incident.accepted for n in (c, *cause_profiles()[c].near)} | set(incident.also)
    left = [c for c in candidates(incident) if c in cause_profiles() and c != "none" and c not in near]
    return tuple(Idea(f"other:{c}", cause_profiles()[c].says, _lines(cause_profiles()[c].words)) for c in left)


def _lines(phrases: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(f"{w[:STEM]}*" for w in words_of(phrase)) for phrase in phrases)
