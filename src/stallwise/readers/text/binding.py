"""Numbers bound to the condition under which they were measured: "45 ms at 64 GPUs, 340 ms at 512" is a table of two rows.

A value has a dimension (ms, GB/s, %), a condition counts a setting (GPUs, ranks, tokens, QPS). Pairs are found by what stands
between the two numbers, never by their order alone: a link ("at", "@", "with") leads from a value to its condition, an arrow, a
colon or a verb from a condition to its value, and a comma or "and" from one pair to the next. Bare numbers take their role from
the pair and their unit or noun from the other pairs of the same list. Words are data (binding.toml).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from stallwise.evidence.quantity import Quantity
from stallwise.evidence.reading import Cell, Reading, Rows, rows_of
from stallwise.readers.text.around import words_in
from stallwise.readers.text.entries import entries
from stallwise.readers.text.name import Name, _agrees, _scale, name
from stallwise.readers.text.nouns import named, topic
from stallwise.readers.text.rows import MENTION
from stallwise.readers.text.scopes import EXPECTED, scope_of
from stallwise.readers.text.value import in_si, plausible
from stallwise.readers.text.words import listed, word_table, words_of
from stallwise.units import Unit, readings_of

LEAST_PAIRS = 2  # one pair is two facts, and is read as such
SURE = 0.9  # of a noun: a setting, not a word that resembles one
LONGEST_NOUN = 3  # words
LONGEST_NAME = 6
LONGEST_GAP = 10  # words between a value and its condition
INTRODUCED = 5  # words before a condition among which a link introduces it
NO_KIND = ("", "")
THOUSANDS = {"k": 1e3, "K": 1e3, "M": 1e6}
_TOKEN = re.compile(r"[A-Za-z][\w'-]*|→|->|=>|⇒|[,;:=()|/@]")
_BREAK = re.compile(r"[,;:=()|/→]|->")
_COUNTED = {Unit.COUNT, Unit.TOKEN, Unit.PER_S}
_NAMING = {
    "step",
    "steps",
    "size",
    "count",
    "total",
    "scale",
}  # they name nothing between two numbers, and much before the first
_UNMEASURED = {Unit.COUNT, Unit.TOKEN, Unit.FLAG, Unit.TEXT}

Sentence = tuple[Reading, ...]


class Pair(NamedTuple):
    """Places in the sentence."""

    value: int
    condition: int


def bound(singles: list[Reading], text: str) -> tuple[list[Reading], list[Rows]]:
    """What is left of the readings, and a table for each list of values with their conditions."""
    sentences: dict[str, list[Reading]] = defaultdict(list)
    for reading in singles:
        if reading.in_prose:
            sentences[reading.place].append(reading)
    tables: list[Rows] = []
    used: set[int] = set()
    for run in _runs([tuple(readings) for readings in sentences.values()]):
        joined = tuple(reading for sentence in run for reading in sentence)
        groups = lists_in(joined, text) if len(run) > 1 else []
        lists = [(joined, g) for g in groups if len(g.pairs) == sum(len(_pairs(s, 1)) for s in run)]
        lists = lists or [(sentence, group) for sentence in run for group in lists_in(sentence, text)]
        for sentence, group in lists:
            tables.append(group.rows)
            used |= {id(sentence[at]) for pair in group.pairs for at in pair}
    return [r for r in singles if id(r) not in used], tables


def _runs(sentences: list[Sentence]) -> list[list[Sentence]]:
    """Sentences or lines one after the other whose pairs are of one kind: "61 ms at 256. But 340 ms at 512" is one list."""
    runs: list[list[Sentence]] = []
    kinds: list[tuple[str, str]] = []
    for sentence in sentences:
        kind = _kind_of(sentence)
        if runs and kind != NO_KIND and kinds[-1] == kind:
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
            kinds.append(kind)
    return runs


def _kind_of(sentence: Sentence) -> tuple[str, str]:
    """The setting and the unit of all pairs of a sentence that consists of nothing else."""
    pairs = _pairs(sentence, 1)
    if not pairs or 2 * len(pairs) != len(sentence):
        return NO_KIND
    settings = {q.name for p in pairs if (q := condition_of(sentence, p.condition)) is not None}
    units = {sentence[p.value].unit for p in pairs} - {""}
    return (settings.pop(), units.pop()) if len(settings) == 1 == len(units) else NO_KIND


class Group(NamedTuple):
    """One quantity over one condition."""

    pairs: tuple[Pair, ...]
    rows: Rows


def lists_in(sentence: Sentence, text: str) -> list[Group]:
    """The lists of bound numbers of one sentence."""
    pairs = _pairs(sentence)
    if len(pairs) < LEAST_PAIRS:
        return []
    groups: list[list[Pair]] = []
    for pair in pairs:
        if not groups or _names_another(sentence, pair, groups[-1][-1]):
            groups.append([])
        groups[-1].append(pair)
    found = (_group(sentence, tuple(group), text) for group in groups if len(group) >= LEAST_PAIRS)
    return [group for group in found if group is not None]


# Which number belongs to which.


def _pairs(sentence: Sentence, least: int = LEAST_PAIRS) -> list[Pair]:
    """The reading of the sentence that binds most numbers: value first, condition first, or two lists side by side."""
    if len(sentence) < 2 * least:
        return []
    conditions = [condition_of(sentence, at) is not None for at in range(len(sentence))]
    readings = (
        _chain(sentence, conditions, _value_first, lambda i: Pair(i, i + 1)),
        _chain(sentence, conditions, _condition_first, lambda i: Pair(i + 1, i)),
        _side_by_side(sentence, conditions),
    )
    best = max(readings, key=len)
    has_value = any(_is_measured(sentence[p.value]) for p in best) or bool(_unit_in_lead(sentence))
    has_noun = any(conditions[p.condition] for p in best) or _noun_in_lead(sentence) is not None
    return best if has_value and has_noun else []


def _chain(
    sentence: Sentence,
    conditions: Sequence[bool],
    fits: Callable[[Sentence, Sequence[bool], int], bool],
    pair: Callable[[int], Pair],
) -> list[Pair]:
    """Pairs of neighbours, none of which shares a number with another."""
    found, at = [], 0
    while at + 1 < len(sentence):
        if fits(sentence, conditions, at):
            found.append(pair(at))
            at += 1
        at += 1
    return found


def _value_first(sentence: Sentence, conditions: Sequence[bool], at: int) -> bool:
    """ "45 ms at 64 GPUs", "45 ms (64 GPUs)"."""
    if not _may_be_value(sentence[at], conditions[at]) or not _may_be_condition(sentence[at + 1], conditions[at + 1]):
        return False
    gap = _gap(sentence, at)
    if len(gap) > LONGEST_GAP or any(t in _listed("separators") or t in _listed("arrows") for t in gap):
        return False
    return gap[:1] == ["("] or any(t in _listed("links") for t in gap)


def _condition_first(sentence: Sentence, conditions: Sequence[bool], at: int) -> bool:
    """ "64 GPUs -> 45 ms", "at 64 GPUs, 45 ms", "with 64 GPUs it takes 45 ms", "64 GPUs (45 ms)"."""
    if not _may_be_condition(sentence[at], conditions[at]) or not _may_be_value(sentence[at + 1], conditions[at + 1]):
        return False
    gap = _gap(sentence, at)
    if gap[:1] == [","] and _introduced(sentence, at):
        gap = gap[1:]  # "at 64 GPUs, it takes 45 ms"
    if len(gap) > LONGEST_GAP or any(t in _listed("separators") for t in gap):
        return False
    return (
        gap[:1] == ["("] or any(t in _listed("arrows") for t in gap) or gap[:1] not in ([t] for t in _listed("links"))
    )


def _side_by_side(sentence: Sentence, conditions: Sequence[bool]) -> list[Pair]:
    """ "45, 52 and 340 ms at 64, 128 and 512 GPUs": two lists of one length, each of one kind."""
    lists: list[list[int]] = []
    for at in range(len(sentence)):
        joined = at > 0 and bool(gap := _gap(sentence, at - 1)) and all(t in (",", "and", "/", "or") for t in gap)
        if joined and _of_one_kind(sentence, conditions, [*lists[-1], at]):
            lists[-1].append(at)
        else:
            lists.append([at])
    for one, other in zip(lists, lists[1:], strict=False):
        if len(one) != len(other) or len(one) < LEAST_PAIRS:
            continue
        if any(conditions[i] for i in one) and _condition_first(sentence, conditions, one[-1]):
            return [Pair(v, c) for c, v in zip(one, other, strict=True)]
        if not any(conditions[i] for i in one) and _value_first(sentence, conditions, one[-1]):
            return [Pair(v, c) for v, c in zip(one, other, strict=True)]
    return []


def _of_one_kind(sentence: Sentence, conditions: Sequence[bool], places: list[int]) -> bool:
    """Numbers of one unit, written at one of them at least, or of one noun."""
    units = {sentence[i].unit for i in places} - {""}
    return len(units) <= 1 and not (
        any(conditions[i] for i in places) and any(_is_measured(sentence[i]) for i in places)
    )


def _gap(sentence: Sentence, at: int) -> list[str]:
    """What stands between a number and the next, without the noun that the first counts and that which names the second."""
    tokens = _TOKEN.findall(sentence[at].after.lower())
    while tokens and tokens[-1] == "=":  # "at QPS=16"
        tokens.pop()
    return tokens


def _introduced(sentence: Sentence, at: int) -> bool:
    """Whether a link stands before a condition, in its own clause: "at 64 GPUs"."""
    before = _gap(sentence, at - 1) if at else _TOKEN.findall(sentence[0].path[0].lower())
    last = max((i for i, t in enumerate(before) if t in _listed("separators")), default=-1)
    return any(t in _listed("links") for t in before[last + 1 :][-INTRODUCED:])


def _may_be_value(reading: Reading, is_condition: bool) -> bool:
    return _is_measured(reading) or (not is_condition and not reading.unit)


def _may_be_condition(reading: Reading, is_condition: bool) -> bool:
    return is_condition or not reading.unit or reading.unit in THOUSANDS


def _is_measured(reading: Reading) -> bool:
    """Whether its unit is of something measured: a time, a rate, a size, a share."""
    dimensions = {dimension for dimension, _ in readings_of(reading.unit)}
    return bool(dimensions) and not dimensions <= _UNMEASURED and reading.unit not in THOUSANDS


# What a condition is.


def condition_of(sentence: Sentence, at: int) -> Quantity | None:
    """The setting that a number counts, by its unit or the noun behind it, else by the key before it."""
    reading = sentence[at]
    if reading.unit and reading.unit not in THOUSANDS:
        return setting(reading.unit)
    behind = words_of(_BREAK.split(reading.after.removeprefix("-"))[0])
    before = [w for w in words_of(reading.path[-1]) if w not in _listed("fillers") or w in ("size", "count")]
    if at and not sentence[at - 1].unit and _counts_with(sentence[at - 1].after):
        before = []  # "128 cards 52": the noun is that of the number before it
    for size in range(LONGEST_NOUN, 0, -1):
        for words in (behind[:size], tuple(before[-size:])):
            if len(words) == size and (found := setting(" ".join(words))) is not None:
                return found
    return None


def _counts_with(after: str) -> bool:
    """Whether nothing but the noun that a number counts stands between it and the next."""
    words = words_of(after)
    return 0 < len(words) <= LONGEST_NOUN and not _BREAK.search(after) and setting(" ".join(words)) is not None


@cache
def setting(words: str) -> Quantity | None:
    """The quantity of a setting that these words name; nothing for what is measured."""
    if listed_as := word_table("binding.toml")["nouns"].get(words.lower()):
        return entries()[listed_as].quantity
    found = name((words,), "", False, True)
    if found is None or found.score < SURE or found.quantity.name not in entries():
        return None
    entry = entries()[found.quantity.name]
    return entry.quantity if entry.quantity.unit in _COUNTED and not entry.quantity.better else None


def _noun_in_lead(sentence: Sentence) -> Quantity | None:
    """ "all-reduce by number of GPUs: 45 ms at 64, ...": the condition is named once, before all of them."""
    words = words_of(sentence[0].path[0])
    spans = (words[i : i + n] for n in range(LONGEST_NOUN, 0, -1) for i in range(len(words) - n, -1, -1))
    return next((q for span in spans if (q := setting(" ".join(span))) is not None), None)


def _unit_in_lead(sentence: Sentence) -> str:
    """ "all-reduce time in ms: 64: 45, 128: 52": the unit is named once."""
    words = sentence[0].path[0].split()
    return next((w for w in reversed(words) if len(w) > 1 and _is_measured(Reading((), 0.0, w))), "")


# What a value is, and the table of both.


def _names_another(sentence: Sentence, pair: Pair, before: Pair) -> bool:
    """Whether the words before a pair name another quantity than that of the pair before it."""
    between = " ".join(t for t in _gap(sentence, max(before)) if t[0].isalpha() and t not in _listed("separators"))
    own = _named_by(between, sentence[pair.value].unit)
    if own is None or own.quantity.unit in _UNMEASURED:
        return False
    known = named(sentence)[before.value]
    return known is None or known.quantity is not own.quantity


def _group(sentence: Sentence, pairs: tuple[Pair, ...], text: str) -> Group | None:
    nouns = [condition_of(sentence, p.condition) for p in pairs]
    kinds = {q.name for q in nouns if q is not None}
    setting_ = next((q for q in nouns if q is not None), None) or _noun_in_lead(sentence)
    if len(kinds) > 1 or setting_ is None or _is_hoped(sentence, pairs):
        return None
    units = _units(sentence, pairs)
    quantity = _quantity(sentence, pairs, units[0], text) if all(units) else None
    if quantity is None or any(not _agrees(quantity.unit, readings_of(u), False) for u in units):
        return None
    conditions = [_counted(sentence[p.condition], setting_) for p in pairs]
    values = [_measured(sentence[p.value], unit, quantity) for p, unit in zip(pairs, units, strict=True)]
    if len(set(conditions)) < len(pairs) or not all(plausible(quantity, v) for v in values):
        return None  # one condition told twice is a comparison, not a list
    cells: list[list[Cell]] = [[c, v] for c, v in zip(conditions, values, strict=True)]
    places = list(range(1, len(pairs) + 1))
    return Group(pairs, rows_of([setting_.name, quantity.name], cells, places, path=(sentence[0].place,), noun=MENTION))


def _is_hoped(sentence: Sentence, pairs: tuple[Pair, ...]) -> bool:
    """ "expected 50 ms at 256": what was hoped for is no measurement beside the others."""
    return any(scope_of(words_of(sentence[p.value].path[-1])) == EXPECTED for p in pairs)


def _units(sentence: Sentence, pairs: tuple[Pair, ...]) -> list[str]:
    """The unit of each value; a bare one has that of the value before it, else of the first that has one."""
    own = [sentence[p.value].unit for p in pairs]
    last = next((u for u in own if u), "") or _unit_in_lead(sentence)
    found = []
    for unit in own:
        last = unit or last
        found.append(last)
    return found


def _quantity(sentence: Sentence, pairs: tuple[Pair, ...], unit: str, text: str) -> Quantity | None:
    """What the values are of: by the words before the first, by the sentence, by the words of another, by the text."""
    first = pairs[0]
    around = [sentence[first.value].path[0]]
    if first.condition < first.value:
        around += [sentence[first.condition].path[0]]
    names: list[Name | None] = [_named_by(words, unit) for words in around]
    names += [named(sentence)[first.value], topic(words_in(sentence), unit)]
    names += [named(sentence)[p.value] for p in pairs[1:]] + [topic(words_of(text), unit)]
    fitting = (n.quantity for n in names if n is not None and _agrees(n.quantity.unit, readings_of(unit), False))
    return next((q for q in fitting if q.unit not in _UNMEASURED and setting(q.name) is None), None)


def _named_by(words: str, unit: str) -> Name | None:
    """The longest end of these words that is a name as a whole; "per step" says how often it is counted, not of what."""
    for part in (words.rpartition(" per ")[0], words):
        own = _without_conditions(part)
        for size in range(min(len(own), LONGEST_NAME), 0, -1):
            found = name((" ".join(own[-size:]),), unit, False, True) if own[-size:] != ("time",) else None
            if found is not None and found.score >= SURE:
                return found
    return None


def _without_conditions(text: str) -> tuple[str, ...]:
    """The words that may name a value: those of the last clause between links that holds more than a setting."""
    clauses: list[list[str]] = [[]]
    for word in text.split():
        if word.lower() in _listed("links"):
            clauses.append([])
        else:
            clauses[-1].append(word)
    for clause in reversed(clauses):
        while clause and clause[-1].lower() in _listed("fillers") - _NAMING:
            clause.pop()
        while clause and (size := _setting_at_end(clause)):
            del clause[-size:]
        if clause:
            return tuple(clause)
    return ()


def _setting_at_end(words: list[str]) -> int:
    """How many of the last words are the noun of a condition."""
    return next((n for n in range(LONGEST_NOUN, 0, -1) if len(words) >= n and setting(" ".join(words[-n:]))), 0)


def _counted(reading: Reading, quantity: Quantity) -> float:
    factor = next((f for unit, f in readings_of(reading.unit) if unit is quantity.unit), 1.0)
    return float(reading.value) * THOUSANDS.get(reading.unit, factor)


def _measured(reading: Reading, unit: str, quantity: Quantity) -> float:
    scale, inverse = _scale(quantity, readings_of(unit))
    return in_si(Name(quantity, scale, "", inverse, 1.0, True), float(reading.value))


@cache
def _listed(key: str) -> frozenset[str]:
    return listed("binding.toml", key)
