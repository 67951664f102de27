"""What a sentence is about, where a number's own words do not say it: the topic before it, or what only its unit can mean."""

from __future__ import annotations

from functools import cache, lru_cache

from stallwise.evidence.reading import Reading
from stallwise.meaning.clause import clause_after, telling
from stallwise.meaning.entries import by_word, weights
from stallwise.meaning.name import UNITS, Name, _agrees, _scale, name
from stallwise.meaning.scopes import scope_words
from stallwise.meaning.words import book, classed, words_of
from stallwise.units import Unit, readings_of

UNIT_ALONE = 0.4  # how sure a name is that only the unit gives: any other number of that unit may know better
TOPIC_WEIGHT = 3.0  # what the words of a topic must weigh together: "mfu" does, "gpu" alone does not
_SAID_BY_UNIT = (Unit.CELSIUS, Unit.WATT, Unit.HERTZ)


@lru_cache(maxsize=64)
def words_in(sentence: tuple[Reading, ...]) -> tuple[str, ...]:
    return tuple(w for r in sentence for p in (*r.path[:1], r.after) for w in words_of(p))


@lru_cache(maxsize=64)
def words_up_to(sentence: tuple[Reading, ...]) -> tuple[str, ...]:
    """The words before the last number of these, and those of its own clause behind it."""
    return tuple(w for r in sentence for w in telling(r.path[0])) + words_of(clause_after(sentence[-1].after))


@lru_cache(maxsize=64)
def topic_of(sentence: tuple[Reading, ...], unit: str) -> Name | None:
    """Of the words that lead to a number: what is said behind it is of the next one."""
    return topic(words_up_to(sentence), unit)


def topic(words: tuple[str, ...], unit: str) -> Name | None:
    """The weightiest quantity of this unit whose words are all said somewhere in the text."""
    said, units, weight = classed(tuple(w for w in words if w not in scope_words())), readings_of(unit), weights()
    best: tuple[float, Name] | None = None
    for word in sorted(said):
        for entry, phrase in by_word().get(word, ()):
            heavy = sum(weight[w] for w in phrase)
            if phrase <= said and units and heavy >= TOPIC_WEIGHT and _agrees(entry.quantity.unit, units, False):
                if entry.quantity.unit not in (Unit.COUNT, Unit.TOKEN) and (best is None or heavy > best[0]):
                    scale, inverse = _scale(entry.quantity, units)
                    best = heavy, Name(entry.quantity, scale, "", inverse, 0.5, True)
    return best[1] if best else None


@cache
def only_of(unit: str) -> Name | None:
    """The one quantity of a unit whose name is what the unit says: degrees are a card's temperature, watts its power."""
    said = next((book(UNITS)["implied"][d.value] for d, _ in readings_of(unit) if d in _SAID_BY_UNIT), None)
    found = name(tuple(said), unit, False, True) if said else None
    return found._replace(score=UNIT_ALONE) if found is not None else None


def speaks_of_its_family(found: Name, sentence: tuple[Reading, ...]) -> bool:
    """Whether a word of a sibling quantity is said: degrees beside a clock or a card are of heat, not of an angle."""
    family = found.quantity.name.partition(".")[0]
    said = classed(words_in(sentence))
    return family in said or any(
        e.quantity.name.startswith(f"{family}.") for w in said for e, _ in by_word().get(w, ())
    )
