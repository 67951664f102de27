"""Which quantity each number of a sentence is of: number, unit and the nearest noun of its clause.

A number that is compared with an earlier one ("2.9 s, it used to be 1.4", "11 GB/s instead of 45", "250 W of 700 W") takes that
one's noun, and a share the noun of what it is a share of. What has no noun of its own is of the sentence's topic, where only one
quantity of its unit is spoken of. The words that compare are data (scopes.toml, turns.toml).
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import NamedTuple

from stallwise.evidence.catalog import run, serving, stated
from stallwise.evidence.reading import Reading
from stallwise.readers.text.around import (
    Sentence,
    clause_after,
    clause_words,
    counts_a_thing,
    of_the_host,
    runs_on,
    scope_around,
    words_in,
    words_up_to,
)
from stallwise.readers.text.entries import by_word, entries, weights
from stallwise.readers.text.mentions import begins_with_a_card, names_a_card
from stallwise.readers.text.name import UNITS, Name, _agrees, _scale, name
from stallwise.readers.text.scopes import BEFORE, EXPECTED, NOW, is_past, scope_of, scope_words
from stallwise.readers.text.words import classed, classes, listed, turn, word_table, words_of
from stallwise.units import Unit, readings_of

LONGEST_KEY = 6  # words before a number
LONGEST_NOUN = 3  # words behind it
LONGEST_PHRASE = 3  # that compares
PART_WORDS = 8  # behind "of the step" that say what takes that part
ALL_EXPLAINED = 0.95  # of a name's weight
EXPLAINED = 0.15  # for each further word of a name that explains all the words: "loader waits" before "waits"
UNIT_ALONE = 0.4  # how sure a name is that only the unit gives: any other number of that unit may know better
TOPIC_WEIGHT = 3.0  # what the words of a topic must weigh together: "mfu" does, "gpu" alone does not
LONGEST_BARE_S = 100.0  # a time without a unit that is longer was rather meant in milliseconds, and nobody knows
PERCENT = 0.01
EITHER, MOST = "either", "most"
_COUNTED = {Unit.COUNT, Unit.TOKEN}
_MEASURED = {Unit.SECOND, Unit.BYTE, Unit.BYTE_PER_S, Unit.FLOP_PER_S, Unit.WATT, Unit.HERTZ, Unit.CELSIUS}
_IMPLIED_BY_UNIT = (Unit.CELSIUS, Unit.WATT, Unit.HERTZ)
_THOUSANDS = {"k", "K", "M"}
_WORD = re.compile(r"[A-Za-z][\w/'-]*|->|→|=>")

_EVERY = re.compile(r"\b(?:every|each)\s*$", re.IGNORECASE)


class Kin(NamedTuple):
    """To which earlier number of its sentence a number belongs, and how."""

    to: int
    scope: str  # of this number: before, now, expected, or nothing where both are said alike
    most: bool = False  # the most that the earlier one can be


@lru_cache(maxsize=64)
def named(sentence: Sentence) -> tuple[Name | None, ...]:
    """A name for each number, or none: its own noun, what it is compared with, then the topic, once."""
    names: list[Name | None] = [None] * len(sentence)
    settled: set[int] = set()
    taken: set[tuple[str, str]] = set()
    used = 0  # words that have named the number before them
    for at, reading in enumerate(sentence):
        if _is_no_level(reading):
            settled.add(at)
            continue
        kin = _kin(sentence, at)
        if kin is not None and (lent := _lent(kin, names, sentence, at)) is not None:
            names[at] = lent
            earlier = names[kin.to]
            if kin.scope == NOW and earlier is not None and earlier.scope != EXPECTED:
                names[kin.to] = earlier._replace(scope=BEFORE)
            continue
        found, used = _own(reading, sentence, taken, used)
        if found is None:
            continue
        names[at] = found
        taken.add((found.quantity.name, found.scope or NOW))
        if kin is not None and names[kin.to] is None and kin.to not in settled and kin.scope == NOW:
            hoped = (
                scope_around(sentence[kin.to], sentence) == EXPECTED
            )  # "in theory 11%, the profiler shows 27% bubble"
            earlier = _in_unit(found, sentence[kin.to])._replace(scope=BEFORE)  # "from 340 to 41 GB/s bus bandwidth"
            names[kin.to] = _hoped(earlier, EXPECTED) if hoped else earlier
        elif kin is not None and names[kin.to] is None and kin.to not in settled and kin.scope in (BEFORE, EXPECTED):
            names[kin.to] = in_scope(_in_unit(found, sentence[kin.to]), "")  # "3.1 s instead of 1.2 s per step"
            names[at] = _hoped(found._replace(scope=""), kin.scope)
    for at, reading in enumerate(sentence):
        if names[at] is None and at not in settled and (found := _length_of_task(reading, sentence)) is not None:
            names[at] = found
            continue
        if names[at] is None and at not in settled and not of_the_host(reading):
            scope = scope_around(reading, sentence)
            found = topic(words_up_to(sentence[: at + 1]), reading.unit)
            wrong = found is None or (found.quantity.unit is Unit.RATIO and reading.unit == "%")
            if found is not None and not wrong and (found.quantity.name, scope or NOW) not in taken:
                taken.add((found.quantity.name, scope or NOW))
                names[at] = _hoped(found, scope)
    for at in range(len(sentence)):
        if names[at] is None and at not in settled and _are_points(sentence, at, names):
            scope = scope_around(sentence[at], sentence) or _precision_before(sentence[at])
            names[at] = Name(stated.ACCURACY, PERCENT, scope, False, UNIT_ALONE, True)
    return tuple(names)


def _are_points(sentence: Sentence, at: int, names: list[Name | None]) -> bool:
    """Two numbers that are compared, in a sentence on a test, are its results in points of a hundred."""
    if not _scores(sentence) or any(n is not None and n.quantity is stated.ACCURACY for n in names[: max(at - 1, 0)]):
        return False
    of_models = bool(_precision_of(sentence[at])) and sum(bool(_precision_of(r)) for r in sentence) > 1
    if of_models and sentence[at].unit in ("%", "percent", ""):
        return 1.0 < float(sentence[at].value) <= 100.0
    compared = (_kin(sentence, at) is not None and not sentence[at - 1].unit) or (
        at + 1 < len(sentence) and (kin := _kin(sentence, at + 1)) is not None and kin.to == at
    )
    return compared and not sentence[at].unit and 1.0 < float(sentence[at].value) <= 100.0


def _precision_of(reading: Reading) -> str:
    """The number format that stands right before a number: "the bf16 model finds 82 %", "fp8 70.9"."""
    return next((w for w in reversed(words_of(reading.path[-1])[-4:]) if w in listed("turns.toml", "formats")), "")


def _precision_before(reading: Reading) -> str:
    """A result of the wider format is what it was before the model was cut."""
    return BEFORE if _precision_of(reading) in listed("turns.toml", "wide_formats") else ""


def _scores(sentence: Sentence) -> bool:
    """Whether a sentence is on the results of a test."""
    return "accuracy" in classed(words_in(sentence)) or bool(set(words_in(sentence)) & listed("turns.toml", "scored"))


# By its own words.


def _own(reading: Reading, sentence: Sentence, taken: set[tuple[str, str]], used: int) -> tuple[Name | None, int]:
    """The quantity that the words right before or right behind a number name, and how many of those behind it do."""
    clause, after = clause_words(reading.path[-1]), words_of(clause_after(reading.after))
    after = after[: after.index("per")] if "per" in after else after  # "869k per node": of each, not how many
    if clause and all(word in _filling() for word in clause):
        clause = clause_words(reading.path[0])  # "bubble: expected 0.22"
    clause = clause[used:] if reading.path[-1] == reading.path[0] else clause
    scope = scope_around(reading, sentence)
    is_bytes = Unit.BYTE in {unit for unit, _ in readings_of(reading.unit)}
    if is_bytes and (turn("card").match(reading.after) or names_a_card(reading.path[-1])):  # "80 GB GPUs", "A100 80GB"
        return _in_unit(Name(entries()["memory.capacity"].quantity, 1.0, "", False, 1.0, True), reading), 0
    if not reading.unit and begins_with_a_card(reading.after) and _of_each_node(reading, sentence):
        return None, 0  # "64 nodes of 8 H100s": those of a node, which mentions of cards tell
    if not reading.unit and begins_with_a_card(reading.after):
        return Name(stated.GPUS, 1.0, scope, False, 1.0, True), 0
    if reading.unit == "%" and (whole := _wholes().match(reading.after)) is not None:
        return _part_of(whole, clause), 0
    if not reading.unit and clause[-1:] and clause[-1] in listed("turns.toml", "indexed") and clause[-2:-1] != ("per",):
        return None, 0  # "GPU 3", "step 100": which one, not how many
    if (awaited := _awaited(clause, after)) is not None:
        found, used = _wait_for(awaited, reading, "request" in classed(clause)), 0
    else:
        taken_now = {q for q, s in taken if s == (scope or NOW)}
        found, used = _nearest(reading, clause, after, runs_on(reading, sentence), taken_now)
    if found is None and not of_the_host(reading):
        found = _only_of(reading.unit, words_in(sentence))  # "card 7 reaches 87 degrees"
    if found is None or (found.quantity.unit is Unit.RATIO and reading.unit == "%"):
        return None, 0
    if found.quantity is run.TOKENS_PER_S and set(words_in(sentence)) & listed("turns.toml", "persons"):
        found = found._replace(
            quantity=serving.PER_REQUEST_RATE
        )  # "users see 180 tokens per second", "22 tokens/s each"
    if found.quantity is stated.MICROBATCHES and not used and clause[-1:] in (("batch",), ("microbatch",)):
        found = found._replace(quantity=stated.MICROBATCH)  # "micro batch 2" is its size, "16 micro batches" are many
    if not reading.unit:
        found = _in_points(_bare(found, reading, sentence, bool(used)), reading)
    return (_hoped(found, scope) if found is not None else None), used


def _of_each_node(reading: Reading, sentence: Sentence) -> bool:
    at = sentence.index(reading)
    before = f"{sentence[at - 1].unit} {sentence[at - 1].after}".split() if at else []
    return (
        len(before) > 1 and "node" in classed((before[0].lower(),)) and before[-1] in ("of", "with", "x", "×", "each")
    )


def _awaited(clause: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...] | None:
    """What is waited for: "they wait 4.2 s for the first token", "200 ms is waiting for the next batch"."""
    around = (*clause[-3:], *after)
    for at, word in enumerate(around[:-1]):
        if word in listed("turns.toml", "waits") and after:
            rest = after if at < len(clause[-3:]) else around[at + 1 :]
            return rest[1:] if rest[:1] and rest[0] in listed("turns.toml", "awaited") else None
    return None


def _wait_for(awaited: tuple[str, ...], reading: Reading, asked: bool) -> Name | None:
    """A wait is named by its end; a request's wait for something without a name is its queue, anybody else's is not known."""
    alone = name(("wait",), reading.unit, False, True)
    for size in range(len(awaited), 0, -1):
        for words in (("wait", *awaited[:size]), awaited[:size]):
            found = name((" ".join(words),), reading.unit, False, True)
            if found is not None and (alone is None or found.quantity is not alone.quantity):
                return found
    return alone if asked else None


def _nearest(
    reading: Reading, clause: tuple[str, ...], after: tuple[str, ...], follows: bool, taken: set[str]
) -> tuple[Name | None, int]:
    """The longest end of the words before it, or beginning of those behind it, that names a quantity of its unit."""
    own_words = _words_of_unit(reading.unit)
    candidates: list[tuple[float, int, Name]] = []
    for size in range(1, min(len(clause), LONGEST_KEY) + 1):
        if found := name((" ".join(clause[-size:]),), reading.unit, False, True):
            more = EXPLAINED * (len(classed(clause[-size:])) - 1) if found.score >= ALL_EXPLAINED else 0.0
            candidates.append((found.score + 0.01 * size + more, 0, found))
            if follows and size <= 2 and found.quantity.name not in taken:
                after = ()  # "ISL 2000 OSL 300": each number follows its key
    for size in range(1, min(len(after), LONGEST_NOUN) + 1):
        found = name((" ".join((own_words, *after[:size])).strip(),), reading.unit, False, True)
        if found is None or (not reading.unit and not _may_be_bare(found, reading) and (follows or candidates)):
            continue
        counts = not reading.unit and found.quantity.unit in _COUNTED
        candidates.append((found.score + (0.1 if counts else -0.05), size, found))
    both = name((" ".join((*clause[-3:], *after[:2])),), reading.unit, False, True) if clause and after else None
    if both is not None and both.score >= ALL_EXPLAINED:
        candidates.append((both.score + EXPLAINED, min(len(after), 2), both))  # "comm: 320 ms exposed"
    if candidates:
        _, used, best = max(candidates, key=lambda c: c[0])
        return best, used
    alone = name((own_words,), reading.unit, False, True) if own_words else None
    return (alone._replace(score=UNIT_ALONE) if alone is not None else None), 0  # "they get 22 tokens/s each"


def _may_be_bare(found: Name, reading: Reading) -> bool:
    """Counts, ratios and shares below one are written without a unit; what else is measured is not."""
    unit = found.quantity.unit
    return unit in _COUNTED or unit is Unit.RATIO or (unit is Unit.SHARE and 0 < float(reading.value) <= 100)


def _bare(found: Name, reading: Reading, sentence: Sentence, named_behind: bool) -> Name | None:
    """A bare number that measures something has the unit of the nearest one that measures the like, or its meaning is lost."""
    dimension = found.quantity.unit
    if dimension not in _COUNTED and not named_behind and counts_a_thing(reading) and not runs_on(reading, sentence):
        return None  # "bus bandwidth on 8 A100s": it counts what follows
    if dimension not in _MEASURED:
        return found
    at = sentence.index(reading)
    for other in sorted(sentence, key=lambda r: abs(sentence.index(r) - at)):
        if any(unit is dimension for unit, _ in readings_of(other.unit)):
            return _in_unit(found, other)
    long = dimension is Unit.SECOND and float(reading.value) >= LONGEST_BARE_S
    return None if long or dimension is Unit.BYTE_PER_S else found


def _in_points(found: Name | None, reading: Reading) -> Name | None:
    """ "MFU was 48": a share above one is in points of a hundred."""
    if found is None or found.quantity.unit is not Unit.SHARE or not 1.0 < float(reading.value) <= 100.0:
        return found
    return found._replace(scale=PERCENT)


def _only_of(unit: str, words: tuple[str, ...]) -> Name | None:
    """The one quantity that a unit can mean, where its family is spoken of: degrees beside a card are of heat, not of an angle."""
    implied = next((word_table(UNITS)["implied"][d.value] for d, _ in readings_of(unit) if d in _IMPLIED_BY_UNIT), ())
    found = name(tuple(implied), unit, False, True)
    family = found.quantity.name.partition(".")[0] if found is not None else ""
    class_names = classed(words) if family else frozenset()
    kin = any(e.quantity.name.startswith(f"{family}.") for w in class_names for e, _ in by_word().get(w, ()))
    return found._replace(score=UNIT_ALONE) if found is not None and (family in class_names or kin) else None


def _part_of(whole: re.Match[str], clause: tuple[str, ...]) -> Name | None:
    """ "45% of the step is all-reduce": the share of what is named around it; "half of the GPUs" is no share of time."""
    rest = words_of(turn("break").split(f"{whole['rest']} ")[0])[:PART_WORDS]
    around = [rest, *(clause[-n:] for n in range(min(len(clause), 4), 0, -1) if whole["whole"])]
    for words in around if not whole["many"] else ():
        naming = tuple(w for w in words if w not in classes().ignored)
        found = name((f"{' '.join(naming)} share",), "%", False, True) if naming else None
        if found is not None and found.quantity.unit is Unit.SHARE:
            return found
    return None


def _length_of_task(reading: Reading, sentence: Sentence) -> Name | None:
    """So many tokens beside an accuracy are the length at which it was measured: "retrieval at 32k tokens", "32k: 61%"."""
    counted = "token" in classed(words_of(reading.after)[:1]) or reading.unit in ("tokens", "token")
    if not counted and not (reading.unit in _THOUSANDS and not counts_a_thing(reading)):
        return None
    if not _scores(sentence):
        return None
    return _in_unit(Name(stated.TASK_CONTEXT, 1.0, "", False, UNIT_ALONE, True), reading)


def _is_no_level(reading: Reading) -> bool:
    """By how much something changed, a growth, the sum of two things, the rate of a link: not how much something is."""
    if reading.unit in ("%", "x", "×", "times", "fold"):
        changes = turn("change").match(reading.after) or turn("over_one").match(reading.after)
        return bool(changes or turn("by").search(reading.path[0]))
    if _EVERY.search(reading.path[-1]):  # "a checkpoint every 30 min": when it comes, not how long it takes
        return True
    is_bytes = Unit.BYTE in {unit for unit, _ in readings_of(reading.unit)}
    grows = is_bytes and (turn("grows").match(reading.after) or turn("link").search(reading.after[:24]))
    return bool(turn("sum").match(reading.after) or grows)


# By a number that it is compared with.


def _kin(sentence: Sentence, at: int) -> Kin | None:
    """The earlier number that this one is told by."""
    if not at:
        return None
    reading = sentence[at]
    if _begins_a_count(sentence, at):
        return None
    counted = not reading.unit or any(u in _COUNTED for u, _ in readings_of(reading.unit))
    if _compares(reading.path[0]) == (MOST, False):
        fits = _alike(sentence[at - 1], reading) or not sentence[at - 1].unit
        return Kin(at - 1, "", most=True) if fits and not (counted and counts_a_thing(reading)) else None
    kind, says_more = _compares(reading.path[-1])
    behind = clause_after(reading.after)
    if kind in ("", EITHER):
        later = BEFORE if is_past(words_of(behind)) else _compares(behind)[0]
        kind = later if later in (BEFORE, EXPECTED) and (kind or not reading.path[-1].strip()) else kind
    if kind == EITHER and (own := scope_of(words_of(reading.path[-1]))) in (BEFORE, EXPECTED):
        kind = own  # "2.31 vs the BF16 baseline of 2.28"
    if not kind or kind == MOST:
        return None
    for to in range(at - 1, -1, -1):
        if not reading.unit and _lasts(sentence[to]) and any(not r.unit for r in sentence[:to]):
            continue  # "it was 48 for 3 h, now 22": how long it lasted is not what it was
        if _alike(sentence[to], reading):
            return Kin(to, "" if kind == EITHER else kind) if not says_more else None
        if not reading.unit:
            return None  # a bare number is of the last one's kind or of its own
    return None


def _begins_a_count(sentence: Sentence, at: int) -> bool:
    """ "... to 9 s when we went from 10 to 30 users": a bare number whose successor has a noun of its own counts the same."""
    if (
        sentence[at].unit
        or at + 1 >= len(sentence)
        or sentence[at + 1].unit
        or _compares(sentence[at + 1].path[-1])[0] != NOW
    ):
        return False
    behind = words_of(clause_after(sentence[at + 1].after))
    names = (name((" ".join(behind[:size]),), "", False, True) for size in range(1, min(len(behind), LONGEST_NOUN) + 1))
    return any(found is not None and found.quantity.unit in _COUNTED for found in names)


def _lasts(reading: Reading) -> bool:
    """A span of time behind a preposition: "for 3 h", "after 20 min"."""
    spans = reading.path[-1].lower().split()[-1:]
    return (
        bool(spans)
        and spans[0] in listed("turns.toml", "spans")
        and {unit for unit, _ in readings_of(reading.unit)} == {Unit.SECOND}
    )


def _lent(kin: Kin, names: list[Name | None], sentence: Sentence, at: int) -> Name | None:
    """The name of the number that this one is compared with, in its own unit."""
    other = names[kin.to]
    if other is None or other.quantity.name not in entries():
        return None
    if other.scope == EXPECTED and kin.scope != EXPECTED:
        other = _measured_instead(other)  # "should be 22%, we measure 41%"
    found = _in_unit(other, sentence[at]) if sentence[at].unit else other
    if not kin.most:
        share = other.quantity.unit is Unit.SHARE and 0 < float(sentence[at].value) <= 1 < float(sentence[kin.to].value)
        return _hoped(found._replace(scale=1.0) if share and not sentence[at].unit else found, kin.scope)
    limit = entries()[other.quantity.name].quantity.limit
    return found._replace(quantity=entries()[limit].quantity, scope="") if limit else None


def _alike(one: Reading, other: Reading) -> bool:
    """Whether both may be of one thing, by their units; the second may be bare."""
    if not other.unit or one.unit == other.unit or (other.unit in _THOUSANDS and not one.unit):
        return True
    return bool({d for d, _ in readings_of(one.unit)} & {d for d, _ in readings_of(other.unit)} - _COUNTED)


def _compares(text: str) -> tuple[str, bool]:
    """How the words between two numbers compare them, by the last that does, and whether they name something besides."""
    words, kind, left, at = tuple(text.lower().replace("'s", "").split()), "", [], 0
    while at < len(words):
        size = next((n for n in range(LONGEST_PHRASE, 0, -1) if words[at : at + n] in _phrases()), 0)
        if size:
            here = _phrases()[words[at : at + size]]
            kind = here if here not in (EITHER, MOST) or not kind else kind  # "vs the baseline of 1.85" compares
        else:
            left.append(words[at])
        at += max(size, 1)
    return kind, bool(classed(words_of(" ".join(w for w in left if w not in _filling()))))


@cache
def _phrases() -> dict[tuple[str, ...], str]:
    data = word_table("scopes.toml")["compared"]
    return {tuple(p.split()): kind for kind in (BEFORE, NOW, EXPECTED, EITHER, MOST) for p in data[kind]}


@cache
def _filling() -> frozenset[str]:
    data = word_table("scopes.toml")["compared"]
    return frozenset(data["filling"]) | frozenset(data["moved"]) | classes().ignored | scope_words()


# By the topic of the sentence.


@lru_cache(maxsize=256)
def topic(words: tuple[str, ...], unit: str) -> Name | None:
    """The weightiest quantity of this unit whose words are all said somewhere in the text."""
    units, weight = readings_of(unit), weights()
    class_names = classed(tuple(w for w in words if w not in scope_words())) if units else frozenset()
    best: tuple[float, Name] | None = None
    for word in sorted(class_names):
        for entry, phrase in by_word().get(word, ()):
            heavy = sum(weight[w] for w in phrase)
            if phrase <= class_names and heavy >= TOPIC_WEIGHT and _agrees(entry.quantity.unit, units, False):
                if entry.quantity.unit not in _COUNTED and (best is None or heavy > best[0]):
                    scale, inverse = _scale(entry.quantity, units)
                    best = heavy, Name(entry.quantity, scale, "", inverse, 0.5, True)
    return best[1] if best else None


def time_scope(reading: Reading) -> str:
    """Of when a number is by the words before it: before, now, expected; empty where they do not say."""
    kind = _compares(reading.path[-1])[0] or scope_of(words_of(reading.path[-1]))
    return kind if kind in (BEFORE, NOW, EXPECTED) else ""


def in_scope(known: Name, scope: str) -> Name:
    """The quantity of another sentence's number, for one of another time."""
    if known.scope == EXPECTED and scope != EXPECTED:
        known = _measured_instead(known)
    return _hoped(known._replace(scope=""), scope)


def _measured_instead(hoped: Name) -> Name:
    """What is measured, where another number of it was hoped for."""
    twin = next((e.quantity for e in entries().values() if e.quantity.expected == hoped.quantity.name), hoped.quantity)
    return hoped._replace(quantity=twin, scope="")


def _hoped(found: Name, scope: str) -> Name:
    """A number that is hoped for is of the quantity that says so, where there is one."""
    entry = entries().get(found.quantity.name)
    if (
        scope == EXPECTED
        and (entry is None or not (entry.quantity.expected or entry.quantity.better))
        and "expected" not in found.quantity.name
    ):
        found, scope = found._replace(scope=""), ""  # a setting is as it is, whatever was promised of it
    hoped = entry.quantity.expected if scope == EXPECTED and entry is not None else ""
    quantity = entries()[hoped].quantity if hoped in entries() else found.quantity
    if quantity is not found.quantity and "expected" not in quantity.name:
        scope = ""  # "Gen1 instead of Gen5": the most it can be is a quantity of its own
    return found._replace(scope=scope or found.scope, quantity=quantity)


def _in_unit(found: Name, reading: Reading) -> Name:
    """A name for a number of this unit."""
    units = readings_of(reading.unit)
    if not units:
        return found
    scale, inverse = (units[0][1], False) if reading.unit in _THOUSANDS else _scale(found.quantity, units)
    return found._replace(scale=scale, inverse=inverse, unit_known=True)


@cache
def _words_of_unit(unit: str) -> str:
    """What a unit says of the thing itself: requests, tokens/s; of milliseconds a token, the token."""
    dimensions = readings_of(unit)
    if any(d is Unit.FLOP_PER_S for d, _ in dimensions):
        return "tflops"
    if not dimensions or len(unit) <= 2:  # too short for a word
        return ""
    return unit.partition("/")[2] or unit if any(d is Unit.SECOND for d, _ in dimensions) else unit


@cache
def _wholes() -> re.Pattern[str]:
    table = word_table("scopes.toml")["part_of"]
    return re.compile(
        rf"of (?:the |our |each |every |a |all |all the |total |its |my )?"
        rf"(?:(?:(?P<whole>{table['whole']})|(?P<many>{table['many']}))\b)?(?P<rest>.*)",
        re.IGNORECASE,
    )
