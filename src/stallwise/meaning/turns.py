"""Turns of speech that name a number by themselves: what is waited for, a part of a whole, one of many that is behind."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from stallwise.evidence.reading import Reading
from stallwise.meaning.clause import scope_around
from stallwise.meaning.entries import entries
from stallwise.meaning.name import Name, name
from stallwise.meaning.words import book, classes, listed, turn, words_of
from stallwise.units import Unit

PART_WORDS = 8  # behind "of the step" that say what takes that part


class Own(NamedTuple):
    """A name that a number's own words give, and how many of the words behind it were used."""

    name: Name | None
    used: int = 0
    settled: bool = False  # nothing else may name it


def awaited_in(clause: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...] | None:
    """What is waited for: "they wait 4.2 s for the first token", "200 ms is waiting for the next batch"."""
    waits = next((at for at, word in enumerate(after[:2]) if word in listed("turns.toml", "waits")), None)
    if waits is not None and after[waits + 1 : waits + 2] and after[waits + 1] in listed("turns.toml", "awaited"):
        return after[waits + 2 :] or None
    return (
        after[1:]
        if listed("turns.toml", "waits") & set(clause[-3:])
        and len(after) > 1
        and after[0] in listed("turns.toml", "awaited")
        else None
    )


def of_what_is_awaited(
    awaited: tuple[str, ...], reading: Reading, sentence: tuple[Reading, ...], asked: bool
) -> Name | None:
    """A wait is named by its end; a request's wait for something that has no name is its queue, anybody else's is not known."""
    phrases = (" ".join((*waits, *awaited[:size])) for size in range(len(awaited), 0, -1) for waits in (("wait",), ()))
    alone = name(("wait",), reading.unit, False, True)
    for found in (name((phrase,), reading.unit, False, True) for phrase in phrases):
        if found is not None and (alone is None or found.quantity is not alone.quantity):
            return found._replace(scope=scope_around(reading, sentence) or found.scope)
    return alone if asked else None


def of_one_of_many(reading: Reading, sentence: tuple[Reading, ...]) -> Name | None:
    """ "one of 64 ranks is 2.2x slower": how far one of many is behind."""
    told = manners()
    words = words_of(" ".join(r.path[0] for r in sentence[: sentence.index(reading) + 1]))
    before = [w.rstrip("0123456789") for w in words]  # "node05"
    behind = reading.after.lower().split()[:1]
    if behind and behind[0] in told["faster"] and any(w in told["alone"] for w in words_of(reading.after)[1:5]):
        return Name(entries()["run.speedup"].quantity, 1.0, "", False, 1.0, True)  # "8 GPUs only 3x faster than one"
    one = any(w in told["one"] for w in before) and any(w in told["of_many"] for w in before)
    if reading.unit == "%" or not one or not behind or behind[0].strip(".,;") not in told["slower"]:
        return None
    return Name(entries()["slow_rank_ratio"].quantity, 1.0, "", False, 1.0, True)


def part_of_a_whole(reading: Reading, clause: tuple[str, ...]) -> Own | None:
    """ "45% of the step is all-reduce", "60% of the time we wait for data": the share of what is named around it."""
    match = _wholes().match(reading.after)
    if match is None:
        return None
    if match["many"]:
        return Own(None, settled=True)  # "half of the GPUs": of many things, not of one thing's time
    rest = words_of(turn("break").split(f"{match['rest']} ")[0])[:PART_WORDS]
    waits = next((at for at, word in enumerate(rest) if word in listed("turns.toml", "waits")), None)
    asked = [("wait", *rest[waits + 2 :])] if waits is not None and rest[waits + 1 : waits + 2] else []
    around = [rest] if not match["whole"] else [rest, *(clause[-n:] for n in range(min(len(clause), 4), 0, -1))]
    for words in (*asked, *around):
        telling = tuple(w for w in words if w not in classes().ignored)
        found = name((f"{' '.join(telling)} share",), "%", False, True) if telling else None
        if found is not None and found.quantity.unit is Unit.SHARE:
            return Own(found)
    return Own(None, settled=True) if match["whole"] else None


@cache
def manners() -> dict[str, frozenset[str]]:
    """Words by which one of many is told, and by how much it is behind."""
    return {kind: frozenset(words) for kind, words in book("scopes.toml")["one_of_many"].items()}


@cache
def links() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{book('scopes.toml')['part_of']['link']})\b", re.IGNORECASE)


@cache
def _wholes() -> re.Pattern[str]:
    told = book("scopes.toml")["part_of"]
    return re.compile(
        rf"of (?:the |our |each |every |a |all |all the |total |its |my )?"
        rf"(?:(?:(?P<whole>{told['whole']})|(?P<many>{told['many']}))\b)?(?P<rest>.*)",
        re.IGNORECASE,
    )
