"""What a player must know of each cause: its name in plain words, its remedy, what refutes it, its trap."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from stallwise.doctor.catalogue import families, table_of
from stallwise.readers.text.words import classed, words_of

LEAST_LEAD = 1.2  # the best match must weigh so much more than the next, or the words could mean either


@dataclass(frozen=True, slots=True)
class CauseProfile:
    """One cause as the drill shows it (`[drill]` of its cause.toml)."""

    cause: str
    says: str
    words: tuple[str, ...]
    fix: str
    refuted: str
    trap: str
    near: frozenset[str]


@cache
def cause_profiles() -> dict[str, CauseProfile]:
    """All of them; `near` holds both ways."""
    tables = {cause: table_of(cause) for cause in families()}
    near = {cause: set(table["drill"]["near"]) for cause, table in tables.items()}
    for cause, others in list(near.items()):
        for other in list(others):
            near[other].add(cause)
    return {
        cause: CauseProfile(
            cause, table["title"], tuple(row["words"]), row["fix"], row["refuted"], row["trap"], frozenset(near[cause])
        )
        for cause, table in tables.items()
        for row in [table["drill"]]
    }  # fmt: skip


def chosen(text: str, among: tuple[str, ...]) -> str | None:
    """Which of these causes a text names: by its number, its slug, or words that fit one much better than any other."""
    plain = text.strip().strip(".)(").lower()
    if re.fullmatch(r"\d{1,2}", plain):
        place = int(plain)
        return among[place - 1] if 1 <= place <= len(among) else None
    slug = re.sub(r"[\s_]+", "-", plain)
    if slug in among:
        return slug
    score = sorted(((_similarity(text, cause_profiles()[c]), c) for c in among if c in cause_profiles()), reverse=True)
    if not score or score[0][0] <= 0 or (len(score) > 1 and score[0][0] < LEAST_LEAD * score[1][0]):
        return None
    return score[0][1]


def _similarity(text: str, profile: CauseProfile) -> float:
    """The largest share of one of its names that the text holds, longer names first."""
    stems = _stems(text)
    best = 0.0
    for name in (*profile.words, profile.says, profile.cause.replace("-", " ")):
        wanted = _stems(name)
        common = len(wanted & stems)
        if wanted and common / len(wanted) > 0.5:
            best = max(best, common * common / len(wanted))
    return best


@cache
def _stems(text: str) -> frozenset[str]:
    naming = tuple(w for w in words_of(text) if (len(w) > 2 or w.isdigit()) and w not in _EMPTY)
    return frozenset(w[:6] for w in classed(naming)) if naming else frozenset()


_EMPTY = frozenset(
    "the and for with its their are was is that this all others other than too instead into not one two".split()
)
