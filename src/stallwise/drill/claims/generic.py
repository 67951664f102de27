"""The account of a generated incident, from what the catalogue and the doctor say of its cause."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from itertools import combinations

from stallwise.drill.candidates import candidates
from stallwise.drill.cause_profiles import cause_profiles
from stallwise.drill.claims.account import Account, Challenge, Quantity, account_of, classic
from stallwise.drill.claims.reader import Idea
from stallwise.drill.incident import CLASSICS, Incident, planted_finding
from stallwise.drill.requests import artifacts
from stallwise.readers.text.words import words_of

FIXES = 3  # at most, so that an order can be held in mind
STEM = 6  # characters that words of one meaning share
PAIRED = 5  # words of a remedy of which any two together name it
_EMPTY = frozenset(
    "the and for with its their are was were that this all others other than too instead into not one two where which from what "
    "have has per each more less only before after while until them they does can may must".split()
)
_DENIAL = re.compile(r"\b(?:no|not|never|without|less|fewer)\b")
_SET_ASIDE = "not|isn't|aren't|no|less likely|unlikely|ruled out|rule* out|rather|excluded|neither|nor|instead"


@cache
def account(incident: Incident) -> Account:
    """A classic's own table; of any other incident, what is known of its cause."""
    others = _others(incident)
    if incident.seed <= CLASSICS:
        return replace(account_of(classic(incident.seed)), others=others)
    known, finding = cause_profiles()[incident.cause], planted_finding(incident)
    actions = [f.action for f in (finding.fixes if finding else ()) if f.action][:FIXES]
    ways = tuple(dict.fromkeys([*actions, known.fix]))
    aside = tuple((_SET_ASIDE, *line) for other in others for line in other.lines)
    settles = min(incident.deciding, key=lambda kind: artifacts()[kind].minutes)
    return Account(
        cause=Idea("cause_idea0", known.says, (*_lines((*known.words, incident.cause.replace("-", " "))), *_threes(known.says))),
        mechanisms=(Idea("mechanism0", known.says, _pairs(known.says)),),
        fixes=tuple((1 if n == 0 or way == known.fix else n + 1, Idea(f"fix{n}", way, _pairs(way))) for n, way in enumerate(ways)),
        wrong_fixes=(),
        traps=(Idea("trap0", known.trap, _pairs(known.trap)),),
        contrary=(),
        boring=(Idea("boring0", "another explanation is set aside", aside),),
        exotic=(Idea("exotic0", "and why", tuple((*line, "because|since|as|would|shows|not|stays|same") for line in aside)),),
        quantities=(Quantity(incident.number.ask, incident.number.value, incident.number.unit),),
        challenges=(Challenge(incident.number, f"It was {incident.number.shown}."),),
        hints=(
            f"The cheapest paper that settles it costs {artifacts()[settles].minutes} min.",
            f"Look at {artifacts()[settles].what}.",
        ),
        setup=incident.setup,
        others=others,
        fewest_fixes=1,
    )  # fmt: skip


def _others(incident: Incident) -> tuple[Idea, ...]:
    """The other candidates, by what people call them."""
    near = {n for c in incident.accepted for n in (c, *cause_profiles()[c].near)} | set(incident.also)
    left = [c for c in candidates(incident) if c in cause_profiles() and c != "none" and c not in near]
    return tuple(Idea(f"other:{c}", cause_profiles()[c].says, _lines(cause_profiles()[c].words)) for c in left)


def _groups(text: str) -> tuple[str, ...]:
    naming = [w for w in words_of(text) if len(w) > 2 and w not in _EMPTY and not w.isdigit()]
    return tuple(dict.fromkeys(f"{w[:STEM]}*" for w in naming))


def _lines(phrases: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    return tuple(groups for phrase in phrases if (groups := _groups(phrase)))


def _threes(text: str) -> tuple[tuple[str, ...], ...]:
    """Any three words of a sentence say it; a denial of its own is one of them."""
    own = tuple(_DENIAL.findall(text)[:1])
    return tuple((*own, *three) for three in combinations(_groups(text)[: PAIRED + 1], 3))


def _pairs(text: str) -> tuple[tuple[str, ...], ...]:
    words = _groups(text)[:PAIRED]
    return tuple(combinations(words, 2)) or tuple((w,) for w in words)
