"""Which quantity each number of a sentence is of: by the words nearest to it, by a number it is compared with, by the topic.

Each word names one number. What only its unit could name is heard where nothing else is possible, and a number that counts
the thing behind it ("8 A100s") is no measure of anything before it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, lru_cache

from stallwise.evidence.catalog import stated
from stallwise.evidence.reading import Reading
from stallwise.meaning.clause import clause_after, counts_a_thing, of_the_host, runs_on, scope_around, telling
from stallwise.meaning.compared import Kin, kin_in
from stallwise.meaning.entries import entries
from stallwise.meaning.mentions import begins_with_a_card, names_a_card
from stallwise.meaning.name import Name, _scale, name
from stallwise.meaning.scopes import BEFORE, EXPECTED, NOW
from stallwise.meaning.topics import UNIT_ALONE, only_of, speaks_of_its_family, topic_of
from stallwise.meaning.turns import Own, awaited_in, links, manners, of_one_of_many, of_what_is_awaited, part_of_a_whole
from stallwise.meaning.words import classed, classes, listed, turn, words_of
from stallwise.units import Unit, readings_of

KEY_WORDS = 2  # right before a number: more are a sentence about it
WIDER = 3  # words before a number that may make a name together with those behind it
EXPLAINED = 0.15  # for each further word of a name that explains all the words: "loader waits" before "waits"
ALL_EXPLAINED = 0.95  # of their weight
LONGEST_BARE_S = 100.0  # a time without a unit that is longer was rather meant in milliseconds, and nobody knows
_DIMENSIONED = {Unit.SECOND, Unit.BYTE, Unit.BYTE_PER_S, Unit.FLOP_PER_S, Unit.WATT, Unit.HERTZ, Unit.CELSIUS}
_COUNTED = {Unit.COUNT, Unit.TOKEN}
_RATES = {Unit.PER_S, Unit.TOKEN_PER_S}


def named_in(reading: Reading, sentence: tuple[Reading, ...]) -> Name | None:
    """The quantity of one number of a sentence."""
    return heard(sentence)[sentence.index(reading)]


@lru_cache(maxsize=64)
def heard(sentence: tuple[Reading, ...]) -> tuple[Name | None, ...]:
    """A name for each number, or none: its own words first, then what it is compared with, then the topic, once."""
    kin = kin_in(sentence, tuple(clause_after(r.after) for r in sentence))
    names: list[Name | None] = [None] * len(sentence)
    settled: set[int] = set()
    taken: set[tuple[str, str]] = set()
    used = 0
    for at, reading in enumerate(sentence):
        related = kin.get(at) if not _changes(reading) else None
        if related is not None and (lent := _lent(related, names, reading, sentence)) is not None:
            names[at], used = lent, 0
            if related.scope == NOW and (then := names[related.to]) is not None and then.scope != EXPECTED:
                names[related.to] = then._replace(scope=BEFORE)
            continue
        if related is not None and related.most:
            own = _whole_of(related, names, reading, sentence, taken)
            if _counts(sentence[related.to]):
                names[related.to] = None  # "3 of 512 GPUs"
        else:
            own = _own(reading, sentence, taken, used)
        used = own.used
        if own.settled:
            settled.add(at)
        if own.name is None:
            continue
        names[at] = own.name
        taken.add((own.name.quantity.name, own.name.scope or NOW))
        if related is not None and related.scope == NOW and names[related.to] is None and related.to not in settled:
            names[related.to] = _rescaled(own.name, sentence[related.to], reading)._replace(scope=BEFORE)
    for at, reading in enumerate(sentence):
        if names[at] is None and at not in settled and not of_the_host(reading):
            found = topic_of(sentence[: at + 1], reading.unit)
            scope = scope_around(reading, sentence)
            if found is not None and found.quantity.unit is Unit.RATIO and reading.unit == "%":
                continue
            if found is not None and (found.quantity.name, scope or NOW) not in taken:
                taken.add((found.quantity.name, scope or NOW))
                names[at] = _hoped(found, scope)
    for at, related in kin.items():
        if names[at] is None and at not in settled:
            names[at] = _lent(related, names, sentence[at], sentence)
    return tuple(names)


def _lent(kin: Kin, names: list[Name | None], reading: Reading, sentence: tuple[Reading, ...]) -> Name | None:
    """The name of the number that this one is compared with, in its own unit."""
    other = names[kin.to]
    if other is None or other.quantity.name not in entries():
        return None
    if kin.most:
        most = entries()[other.quantity.name].limit
        if not most:
            return None
        return _rescaled(other, reading, sentence[kin.to])._replace(quantity=entries()[most].quantity, scope="")
    return _hoped(_rescaled(other, reading, sentence[kin.to]), kin.scope)


def _counts(reading: Reading) -> bool:
    return not reading.unit or any(unit in _COUNTED for unit, _ in readings_of(reading.unit))


def _whole_of(
    kin: Kin, names: list[Name | None], reading: Reading, sentence: tuple[Reading, ...], taken: set[tuple[str, str]]
) -> Own:
    """ "140 ms of a 390 ms step", "3 of 512 GPUs", "two nodes of 64": named by the word right behind it, or by what it is many of."""
    if _counts(reading) and _counts(sentence[kin.to]):
        own = _own(reading, sentence, taken, 0)
        return own if own.name is not None else Own(names[kin.to], settled=True)
    after = words_of(clause_after(reading.after))[:1]
    found = name(after, reading.unit, False, True) if after and after[0] not in classes().ignored else None
    return Own(found, len(after), settled=True)


def _changes(reading: Reading) -> bool:
    """ "20% faster", "3x over one card": by how much something changed, not how much it is."""
    compared = (
        turn("change").match(reading.after)
        or turn("over_one").match(reading.after)
        or turn("by").search(reading.path[0])
    )
    return compared is not None and reading.unit in ("%", "x", "×", "times", "fold")


def _hoped(found: Name, scope: str) -> Name:
    hoped = entries()[found.quantity.name].expected if scope == EXPECTED and found.quantity.name in entries() else ""
    quantity = entries()[hoped].quantity if hoped in entries() else found.quantity
    if quantity is not found.quantity and "expected" not in quantity.name:
        scope = ""  # "Gen1 instead of Gen5": the most it can be is a quantity of its own
    return found._replace(scope=scope or found.scope, quantity=quantity)


def _rescaled(found: Name, reading: Reading, other: Reading) -> Name:
    """A name for a number of another unit; a bare one has the other's."""
    units = readings_of(reading.unit)
    if not units:
        of_one = found.quantity.unit is Unit.SHARE and 0 < float(reading.value) <= 1 < float(other.value)
        return found._replace(scale=1.0) if of_one else found
    if reading.unit in ("k", "K", "M"):
        return found._replace(scale=units[0][1], unit_known=True)
    scale, inverse = _scale(found.quantity, units)
    return found._replace(scale=scale, inverse=inverse, unit_known=True)


def _own(reading: Reading, sentence: tuple[Reading, ...], taken: set[tuple[str, str]], used: int) -> Own:
    """The name from the words right before and right behind a number; `used` words before it named the last one."""
    if turn("flag").search(reading.path[-1]) is not None:
        return Own(
            name((reading.path[-1],), reading.unit), settled=True
        )  # "--max-num-queued-reqs 216": all of its words or none
    clause, after = telling(reading.path[-1]), words_of(clause_after(reading.after))
    if reading.unit and turn("to_do").match(reading.after):
        after = words_of(turn("break").split(reading.after)[0])[1:2]  # "1.8 s to load"
    if not clause and not after and reading.after.endswith(":"):
        after = words_of(clause_after(reading.after.rstrip(": ")))  # "with 4 concurrent clients: 4 running"
    if clause == ("every",) and (at := sentence.index(reading)):
        clause = (*words_of(sentence[at - 1].path[-1])[:KEY_WORDS], "every")  # "a save takes 9 s every 1000 steps"
    elif used and reading.path[-1] == reading.path[0]:
        clause = clause[used + 2 :] if clause[used : used + 1] == ("per",) else clause[used:]
    if _changes(reading):
        return Own(of_one_of_many(reading, sentence), settled=True)  # by how much something changed, not how much it is
    bytes_of = Unit.BYTE in {unit for unit, _ in readings_of(reading.unit)}
    if turn("sum").match(reading.after) or (
        bytes_of and (turn("grows").match(reading.after) or links().search(reading.after[:24]))
    ):
        return Own(None, settled=True)  # of two things at once; a growth, not a level; the rate of a link
    if bytes_of and (turn("card").match(reading.after) or names_a_card(reading.path[-1])):  # "80 GB GPUs", "A100 80GB"
        return Own(Name(entries()["memory.capacity"].quantity, _scale_of(reading.unit), "", False, 1.0, True))
    if not reading.unit and begins_with_a_card(reading.after):
        return Own(Name(stated.GPUS, 1.0, scope_around(reading, sentence), False, 1.0, True))
    if (awaited := awaited_in(clause, after)) is not None:
        return Own(of_what_is_awaited(awaited, reading, sentence, "request" in classed(clause)), settled=True)
    if reading.unit == "%" and (part := part_of_a_whole(reading, clause)) is not None:
        return part
    if after and after[0] in manners()["condition"]:
        after = ()  # "48 ms under load": when, not what
    if not reading.unit and turn("per").match(reading.after):
        after = ()  # "QPS 4, per-user throughput": a bare number is not counted per anything
    if clause and clause[-1] in listed("turns.toml", "indexed") and not reading.unit and clause[-2:-1] != ("per",):
        return Own(None, settled=True)  # "GPU 3", "step 100": which one, not how many
    scope = scope_around(reading, sentence)
    found, behind = _nearest(reading, sentence, clause, after, scope, taken)
    if (
        found is None
        and not of_the_host(reading)
        and (only := only_of(reading.unit)) is not None
        and speaks_of_its_family(only, sentence)
    ):
        found = only  # "card 7 reaches 87 degrees"
    if not reading.unit and (found is None or found.quantity.unit in _DIMENSIONED):
        found, behind = _in_the_sentences_unit(found, behind, reading, sentence, clause, after, scope, taken)
    if found is not None and found.quantity.unit is Unit.RATIO and reading.unit == "%":
        found = None  # so many percent are a share of something
    if found is not None and not reading.unit:
        found = _with_unit(found, reading, sentence, bool(behind))
        if found is None:
            return Own(None, settled=True)
    return Own(_hoped(found, scope) if found is not None else None, behind)


def _nearest(
    reading: Reading, sentence: tuple[Reading, ...], clause: tuple[str, ...], after: tuple[str, ...], scope: str,
    taken: set[tuple[str, str]],
) -> tuple[Name | None, int]:  # fmt: skip
    """The best name of the words before and behind, and how many of those behind it needed."""
    candidates: list[tuple[float, int, Name]] = []
    near: list[Name] = []
    shortest = 3 if clause[-2:-1] == ("per",) else 1  # "batch size per device 6"
    for size in range(shortest, min(len(clause), 6) + 1):
        if found := name((" ".join(clause[-size:]),), reading.unit, False, True):
            explained = EXPLAINED * (len(classed(clause[-size:])) - 1) if found.score >= ALL_EXPLAINED else 0.0
            candidates.append((found.score + 0.01 * size + explained, 0, found))
            near += [found] if size <= KEY_WORDS else []
    follows = runs_on(reading, sentence)
    if follows and any((c.quantity.name, scope or NOW) not in taken for c in near):
        after = ()  # "ISL 2000 OSL 300": each number follows its key
    unit_words = _words_of_unit(reading.unit)
    if not reading.unit and after[:1] == ("run",):
        after = ()  # "64 run slower"
    alone = name((unit_words,), reading.unit, False, True) if unit_words else None
    for size in (1, 2, 3):
        tail = " ".join((unit_words, *after[:size])).strip()
        found = name((tail,), reading.unit, False, True) if len(after) >= size else None
        if found is None or (alone and found.quantity is alone.quantity):
            continue
        counted = found.quantity.unit in _COUNTED
        if not reading.unit and not counted and (follows or not _may_be_bare(found, reading)):
            continue  # "GPUs 8 step time 2 s", "64 users": a time or a rate has a unit
        # "QPS 16 per-user throughput": what follows is the next number's
        if reading.unit or counted or not candidates:
            candidates.append((found.score + (0.1 if counted and not reading.unit else -0.05), size, found))
    counted_words = unit_words if _counts(reading) else ""
    both = name((" ".join((*clause[-WIDER:], counted_words, *after[:KEY_WORDS])),), reading.unit, False, True)
    if clause and (counted_words or after) and both is not None and both.score >= ALL_EXPLAINED:
        candidates.append((both.score + EXPLAINED, min(len(after), KEY_WORDS), both))  # "comm: 320 ms exposed"
    best = max(candidates, key=lambda c: c[0], default=None)
    if best is None and alone is not None:
        return alone._replace(score=UNIT_ALONE), 0  # "they get 22 tokens/s each"
    return (best[2], best[1]) if best else (None, 0)


@cache
def _words_of_unit(unit: str) -> str:
    """What a unit says of the thing itself: requests, tokens/s; of milliseconds a token, the token."""
    dimensions = readings_of(unit)
    if not dimensions or len(unit) <= 2:  # too short for a word
        return ""
    return unit.partition("/")[2] or unit if any(d is Unit.SECOND for d, _ in dimensions) else unit


def _may_be_bare(found: Name, reading: Reading) -> bool:
    """Shares below one and ratios are written without a unit; what else is measured is not."""
    return found.quantity.unit is Unit.RATIO or (found.quantity.unit is Unit.SHARE and 0 < float(reading.value) <= 1)


def _in_the_sentences_unit(
    found: Name | None, behind: int, reading: Reading, sentence: tuple[Reading, ...], clause: tuple[str, ...],
    after: tuple[str, ...], scope: str, taken: set[tuple[str, str]],
) -> tuple[Name | None, int]:  # fmt: skip
    """ "the step is 640 ms: 190 all-reduce, 40 optimizer": where one thing is measured, bare numbers with names are of it."""
    units = {r.unit: d for r in sentence for d, _ in readings_of(r.unit) if d in _DIMENSIONED or d in _RATES}
    if len(set(units.values())) != 1 or (found is not None and found.quantity.unit in units.values()):
        return found, behind
    unit = next(iter(units))
    told, after = replace(reading, unit=unit), () if runs_on(reading, sentence) else after
    # No unit's own words: those are the other number's.
    again, used = _nearest(told, (*sentence, told), clause, after, scope, taken)
    if again is None or again.score == UNIT_ALONE or again.quantity.unit is not units[unit]:
        return found, behind
    return again, used


def _with_unit(found: Name, reading: Reading, sentence: tuple[Reading, ...], behind: bool) -> Name | None:
    """A bare number that measures something has the unit of the nearest one that measures the like, or its meaning is lost."""
    dimension = found.quantity.unit
    if not behind and counts_a_thing(reading) and dimension not in _COUNTED and not runs_on(reading, sentence):
        return None  # "bus bandwidth on 8 A100s": it counts what follows
    if dimension not in _DIMENSIONED:
        return found
    at = sentence.index(reading)
    nearest = sorted(range(len(sentence)), key=lambda n: (abs(n - at), n))
    for other in (sentence[n] for n in nearest):
        units = readings_of(other.unit)
        if any(unit is dimension for unit, _ in units):
            scale, inverse = _scale(found.quantity, units)
            return found._replace(scale=scale, inverse=inverse, unit_known=True)
    if dimension is Unit.BYTE_PER_S or (dimension is Unit.SECOND and float(reading.value) >= LONGEST_BARE_S):
        return None
    return found


def _scale_of(unit: str) -> float:
    return next(scale for dimension, scale in readings_of(unit) if dimension is Unit.BYTE)
