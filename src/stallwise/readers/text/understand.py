"""Shapes into evidence: names what can be named, keeps count of what cannot."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from stallwise.evidence.catalog import quantities, stated
from stallwise.evidence.fact import WHOLE, Fact, Scope, Source
from stallwise.evidence.reading import Cell, Reading, Rows, Shape, rows_of
from stallwise.evidence.unread import Unread
from stallwise.readers.text.around import clause_after, scope_around
from stallwise.readers.text.binding import bound
from stallwise.readers.text.entries import by_word, entries
from stallwise.readers.text.name import Name, name
from stallwise.readers.text.nouns import in_scope, time_scope, topic
from stallwise.readers.text.nouns import named as named_in
from stallwise.readers.text.numbered import numbered_lists
from stallwise.readers.text.phrases import statements_in
from stallwise.readers.text.rows import (
    MENTION,
    alike_lines,
    as_pairs,
    contrast_facts,
    named_columns,
    turned,
    twin_facts,
)
from stallwise.readers.text.scopes import BEFORE, EXPECTED, NOW, scope_of
from stallwise.readers.text.slow_rank import slow_rank
from stallwise.readers.text.value import LONGEST_WORDS, flag_in, in_si, number_in, plausible
from stallwise.readers.text.words import classed, listed, word_table, words_of
from stallwise.units import Unit, readings_of

LONGEST_SENTENCE = 80  # numbers: what has more is a dump, and its words are nobody's names
MOST_LOST = 100  # numbers without a name that are kept: a proof looks for one that may refute it
BILLION = "B"
PERCENT = 0.01
PIPELINE_WORDS = 2  # one of them alone may be of anything
_SIZED = re.compile(r"^\s*(\d+)\s*[x×]\s*(\S.*)$")


@dataclass
class Understood:
    """What a file says in the lexicon's words."""

    facts: list[Fact] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)  # tables, for whoever reads tables
    unread: Unread | None = None


@dataclass(frozen=True, slots=True)
class _Named:
    reading: Reading
    name: Name
    value: float | str


def understand(shapes: Iterable[Shape], text: str, file: str, *, written: bool) -> Understood:
    """Facts of single readings and of rows that contrast; `written` where a person wrote the file."""
    singles: list[Reading] = []
    tables: list[Rows] = []
    for shape in shapes:
        if isinstance(shape, Rows):
            pairs = as_pairs(shape)
            singles += pairs
            if not pairs:
                compares = next(_compared(shape, file, written), None) is not None
                tables.append(shape if compares else turned(pivoted(shape)))
        else:
            singles.append(shape)
    conditioned: list[Rows] = []
    if written:
        singles, members = numbered_lists(singles)
        singles, conditioned = bound(singles, text)
        tables += members
    else:
        singles, records = alike_lines(singles)
        tables += records
    named, unnamed = _named(singles)
    named += [*_of_a_kernel(named, unnamed, text), *_of_a_pipeline(named, unnamed, text)] if written else []
    if named:
        from stallwise.readers.text.in_service import of_sentence

        meant = of_sentence([(one.name, one.value) for one in named])
        named = [replace(one, name=name_) for one, name_ in zip(named, meant, strict=True)]
    both = _of_two_kernels(singles, text, file) if written and singles else []
    single, repeated = _repeated(named, unnamed, singles, text)
    if any(next(contrast_facts(rows, file, written), None) is not None for rows in repeated):
        named = single
    found = Understood(rows=[*tables, *conditioned, *repeated])
    for rows in found.rows:
        compared = list(_compared(rows, file, written))
        found.facts += compared
        compared_quantities = {c.quantity for c in compared}
        others = (*twin_facts(rows, file, written), *contrast_facts(rows, file, written))
        found.facts += (f for f in others if f.quantity not in compared_quantities)
    found.facts += _facts(named, file, written)
    stated_already = {f.quantity for f in found.facts}
    found.facts += (f for f in both if f.quantity not in stated_already)
    if written and not any(f.quantity is stated.SLOW_RANK_RATIO for f in found.facts):
        found.facts += slow_rank(singles, file)
    if written:
        found.facts += _statements(text, file, {f.quantity.name for f in found.facts})
    found.unread = _unread(file, singles, named, found.rows, repeated)
    return found


def _of_two_kernels(singles: list[Reading], text: str, file: str) -> list[Fact]:
    """What a kernel takes, and what the library takes for the same."""
    from stallwise.readers.text.kernel_times import sides_in

    return sides_in(singles, text, file)


def _compared(rows: Rows, file: str, written: bool) -> Iterator[Fact]:
    """Facts of a table that compares formats or libraries; few sentences hold a table."""
    from stallwise.readers.text.compared_rows import compared_facts

    return compared_facts(rows, file, written)


def _named(singles: list[Reading]) -> tuple[list[_Named], list[Reading]]:
    found: list[_Named] = []
    unnamed: list[Reading] = []
    by_place: dict[str, list[Reading]] = defaultdict(list)
    for reading in singles:
        if reading.in_prose:
            by_place[reading.place].append(reading)
    sentences = {place: tuple(readings[:LONGEST_SENTENCE]) for place, readings in by_place.items()}
    endless = {id(reading) for readings in by_place.values() for reading in readings[LONGEST_SENTENCE:]}
    for reading in singles:
        one = None
        if id(reading) not in endless:
            readings = reading.in_prose
            one = _number_in_prose(reading, sentences[reading.place]) if readings else _keyed_value(reading)
        if one is None:
            unnamed.append(reading)
        else:
            found.append(one)
    beside: dict[str, list[_Named]] = defaultdict(list)
    for one in found:
        if one.reading.in_prose:
            beside[one.reading.place].append(one)
    likened: set[int] = set()
    subjects = _subjects(singles)
    for reading in [r for r in unnamed if id(r) not in endless]:
        sentence = sentences[reading.place] if reading.in_prose else ()
        one = _of_subject(reading, sentence, subjects) or _like_neighbour(reading, found, beside[reading.place])
        if one is not None:
            likened.add(id(reading))
            found.append(one)
            if reading.in_prose:
                beside[reading.place].append(one)
    order = {id(r): at for at, r in enumerate(singles)}
    left = [r for r in unnamed if id(r) not in likened]
    return sorted(found, key=lambda one: order[id(one.reading)]), left


def _of_a_kernel(named: list[_Named], unnamed: list[Reading], text: str) -> list[_Named]:
    """Bare ratios in a text on a kernel of one's own: the one that was hoped for, and the one that was measured."""
    known = {one.name.quantity for one in named}
    if not listed("turns.toml", "kernels") & set(words_of(text)):
        return []
    found: dict[str, _Named] = {}
    for reading in unnamed:
        value = number_in(reading.value) if isinstance(reading.value, str) else (reading.value, reading.unit)
        if value is None or isinstance(value[0], bool) or not any(u is Unit.RATIO for u, _ in readings_of(value[1])):
            continue
        hoped = any(scope_of((word,)) == EXPECTED for part in reading.path for word in words_of(part))
        quantity = stated.EXPECTED_SPEEDUP if hoped else stated.CUSTOM_SPEEDUP
        if quantity not in known:
            scope = EXPECTED if hoped else ""
            found[quantity.name] = _Named(reading, Name(quantity, 1.0, scope, False, 0.5, True), float(value[0]))
    return list(found.values())


def _of_a_pipeline(named: list[_Named], unnamed: list[Reading], text: str) -> list[_Named]:
    """Shares without a noun in a text on a pipeline: "theory 21.9%, measured 41%" are the bubble's, as is what idles."""
    if len(listed("turns.toml", "pipelines") & set(words_of(text))) < PIPELINE_WORDS:
        return []
    known = {one.name.quantity for one in named}
    found: dict[str, _Named] = {}
    for reading in unnamed:
        value = number_in(reading.value) if isinstance(reading.value, str) else (reading.value, reading.unit)
        if value is None or isinstance(value[0], bool) or not any(u is Unit.SHARE for u, _ in readings_of(value[1])):
            continue
        own = [w for part in reading.path for w in words_of(part)]
        scopes = {time_scope(reading) if reading.in_prose else "", *(scope_of((w,)) for w in own)}
        idle = listed("turns.toml", "idles") & {*own, *words_of(clause_after(reading.after))[:2]}
        if EXPECTED not in scopes and NOW not in scopes and not idle:
            continue
        quantity = stated.BUBBLE_EXPECTED if EXPECTED in scopes else stated.BUBBLE
        if quantity not in known:
            share = Name(quantity, PERCENT, "", False, 0.5, True)
            found.setdefault(quantity.name, _Named(reading, share, float(value[0]) * PERCENT))
    return list(found.values())


def _subjects(singles: list[Reading]) -> frozenset[str]:
    """What the text as a whole is about, of the subjects that qualify nouns."""
    class_names = {w for r in singles if r.in_prose for part in (r.path[0], r.after) for w in classed(words_of(part))}
    return frozenset(class_names & listed("turns.toml", "subjects"))


def _of_subject(reading: Reading, sentence: tuple[Reading, ...], subjects: frozenset[str]) -> _Named | None:
    """A noun that names a quantity together with the text's subject: "35 percent idle" where a pipeline is spoken of."""
    units = readings_of(reading.unit)
    if not sentence or not subjects or not (any(u is Unit.SHARE for u, _ in units) or 0 < float(reading.value) < 1):
        return None
    before, behind = words_of(reading.path[-1]), words_of(clause_after(reading.after))
    for subject in sorted(subjects):
        for words in (*(behind[:n] for n in (1, 2)), *(before[-n:] for n in (4, 3, 2, 1))):
            found = name((" ".join((subject, *words)),), reading.unit or "%", False, True) if words else None
            if (
                found is None
                or found.quantity.unit is not Unit.SHARE
                or name((subject,), reading.unit or "%", False, True)
            ):
                continue
            if not reading.unit:
                found = found._replace(scale=1.0)
            named = in_scope(found._replace(scope=""), scope_around(reading, sentence))
            return _Named(reading, named, in_si(named, float(reading.value)))
    return None


def _like_neighbour(reading: Reading, found: list[_Named], beside: list[_Named]) -> _Named | None:
    """Numbers without words of their own: "340 ms on 512 GPUs, 61 ms on 256", and "Hoped for: 1.5x" beside a named ratio."""
    value = number_in(reading.value) if isinstance(reading.value, str) else (reading.value, reading.unit)
    if value is None or isinstance(value[0], bool):
        return None
    words = words_of(reading.path[-1])
    if reading.in_prose and not reading.unit:
        twins = [o for o in beside if words and _same_noun(words, words_of(o.reading.path[-1]))]
        counted = [
            o
            for o in twins
            if o.name.quantity.unit in (Unit.COUNT, Unit.TOKEN) and plausible(o.name.quantity, float(value[0]))
        ]
        return _Named(reading, counted[-1].name, float(value[0])) if counted else None
    if reading.in_prose and (later := _later_sentence(reading, found, float(value[0]))) is not None:
        return later
    if not scope_of(words) or readings_of(value[1]) == ():
        return None
    if scope_of(words) != EXPECTED:  # "Measured: 0.7x" beside what was hoped for
        for one in found:
            twin = next((e for e in entries().values() if e.quantity.expected == one.name.quantity.name), None)
            if twin is not None and readings_of(one.reading.unit or _unit_of(one.reading)) == readings_of(value[1]):
                name_ = one.name._replace(quantity=twin.quantity, scope="")
                return _Named(reading, name_, in_si(name_, float(value[0])))
        return None
    for one in found:
        hoped = entries()[one.name.quantity.name].quantity.expected if one.name.quantity.name in entries() else ""
        if hoped and readings_of(one.reading.unit or _unit_of(one.reading)) == readings_of(value[1]):
            name_ = one.name._replace(quantity=entries()[hoped].quantity, scope=EXPECTED)
            return _Named(reading, name_, in_si(name_, float(value[0])))
    return None


def _later_sentence(reading: Reading, found: list[_Named], number: float) -> _Named | None:
    """ "MFU was 46% until eleven. Since then it shows 19%": what a later sentence says of when is of the last measure of its unit."""
    scope = time_scope(reading)
    units = {unit for unit, _ in readings_of(reading.unit)}
    if not scope or not units or units <= {Unit.COUNT, Unit.TOKEN}:
        return None
    for one in reversed(found):
        entry = entries().get(one.name.quantity.name)
        hoped = any(e.quantity.expected == one.name.quantity.name for e in entries().values())
        measure = entry is not None and (entry.quantity.better or hoped)
        if (
            not measure
            or not one.reading.in_prose
            or one.reading.place == reading.place
            or one.name.quantity.unit not in units
        ):
            continue
        name_ = in_scope(one.name, scope)._replace(
            scale=next(f for u, f in readings_of(reading.unit) if u is one.name.quantity.unit)
        )
        value = in_si(name_, number)
        same = any(o.name.quantity is name_.quantity and o.value == value for o in found)
        return _Named(reading, name_, value) if plausible(name_.quantity, value) and not same else None
    return None


def _same_noun(words: tuple[str, ...], others: tuple[str, ...]) -> bool:
    """The same last word, and no word of another quantity before it: "input length" is not told like "output length"."""
    return others[-1:] == words[-1:] and not (classed(words) - classed(others)) & by_word().keys()


def _unit_of(reading: Reading) -> str:
    parsed = number_in(reading.value) if isinstance(reading.value, str) else None
    return parsed[1] if parsed else ""


def _number_in_prose(reading: Reading, sentence: tuple[Reading, ...]) -> _Named | None:
    number = float(reading.value)
    if reading.unit == BILLION:  # "a 405B model"
        return _Named(reading, Name(stated.PARAMETERS, 1e9, "", False, 1.0, True), number * 1e9)
    found = named_in(sentence)[sentence.index(reading)]
    if found is None:
        return None
    value = in_si(found, number)
    return _Named(reading, found, value) if plausible(found.quantity, value) else None


def _keyed_value(reading: Reading) -> _Named | None:
    value, unit = reading.value, reading.unit
    if isinstance(value, str):
        parsed = number_in(value)
        if parsed is None:
            return _worded(reading, value)
        value, unit = parsed
    if isinstance(value, bool):
        found = name(reading.path, "", True) or name(reading.path)
        return _Named(reading, found, float(value)) if found and found.quantity.unit is Unit.FLAG else None
    found = name(reading.path, unit)
    if found is None and unit:
        found = name((*reading.path, unit), unit)
    if found is None and isinstance(reading.value, str):  # "Hoped for: 1.5x over PyTorch eager"
        found = name((*reading.path, reading.value.lstrip("0123456789., ").removeprefix(unit)), unit)
    if found is None and unit == BILLION:
        found = Name(stated.PARAMETERS, 1e9, "", False, 1.0, True)
    if found is None or found.quantity.unit is Unit.TEXT:
        return _worded(reading, reading.value) if isinstance(reading.value, str) else None
    number = in_si(found, float(value))
    return _Named(reading, found, number) if plausible(found.quantity, number) else None


def _worded(reading: Reading, value: str) -> _Named | None:
    found = name(reading.path, "", True)
    if found is None or len(value) > LONGEST_WORDS:
        return None
    if found.quantity.unit is Unit.FLAG:
        flag = flag_in(value)
        return None if flag is None else _Named(reading, found, flag)
    if found.quantity is stated.GPU and not _is_gpu(value):
        return None
    return _Named(reading, found, value.strip())


def _is_gpu(name_: str) -> bool:
    from stallwise.physics.specs.hardware import find_gpu

    return find_gpu(name_) is not None


def _facts(named: list[_Named], file: str, written: bool) -> Iterator[Fact]:
    """One fact a quantity and scope; of two values without a scope the first is what was, the second what is."""
    groups: dict[str, list[_Named]] = defaultdict(list)
    for one in named:
        groups[one.name.quantity.name].append(one)
    for name_, ones in groups.items():
        scoped = {one.name.scope for one in ones}
        values = list(dict.fromkeys(one.value for one in ones))
        better = entries()[name_].quantity.better if scoped <= {"", "now"} and len(values) > 1 else ""
        if better and len(ones) > 2:  # told more than twice: the worst is the question, the best what it was
            ranked = sorted(ones, key=lambda one: float(one.value), reverse=better == "higher")
            ones = [ranked[0], ranked[-1]]
        if name_ in _tails() and scoped <= {""} and not any(one.reading.in_prose for one in ones):
            ones = [
                max(ones, key=lambda one: float(one.value))
            ]  # p95 and p99 of one thing: the farther one is its tail
        seen: set[str] = set()
        # "3.1 s instead of 1.2 s": where no quantity of its own says what was hoped for, it is what a good run shows.
        hoped = entries()[name_].quantity.expected or "expected" in name_
        reference = EXPECTED if not hoped and BEFORE not in scoped and len(scoped) > 1 else BEFORE
        for at, one in enumerate(ones):
            scope = BEFORE if one.name.scope in (BEFORE, reference) or (better and len(ones) == 2 and at == 0) else ""
            if scope in seen or (one.name.scope == EXPECTED and not scope and not hoped):
                continue
            seen.add(scope)
            source = Source(file, one.reading.place, written)
            if one.name.quantity is stated.GPU and isinstance(one.value, str) and (sized := _SIZED.match(one.value)):
                yield Fact(stated.GPUS, float(sized[1]), source)
                yield Fact(stated.GPU, sized[2], source)
                continue
            yield Fact(one.name.quantity, one.value, source, Scope(run=BEFORE) if scope else WHOLE)


@cache
def _tails() -> frozenset[str]:
    return frozenset(e.quantity.tail for e in entries().values() if e.quantity.tail)


def _repeated(
    named: list[_Named], unnamed: list[Reading], singles: list[Reading], text: str
) -> tuple[list[_Named], list[Rows]]:
    """Sentences that say the same things again for another setting are rows of a table."""
    repeatable = [one for one in named if one.reading.in_prose or one.reading.place.startswith("line")]
    counts = Counter(one.name.quantity.name for one in repeatable if one.name.scope != EXPECTED)
    settings = [
        n for n, c in counts.items() if c >= 2 and not entries()[n].quantity.better and _numbers(repeatable, n) >= 2
    ]
    if not settings:
        return named, []
    by_reading = {id(one.reading): one for one in named}
    units = {r.unit for r in singles if r.unit and isinstance(r.value, float) and id(r) not in by_reading}
    topics = {unit: topic(words_of(text), unit) for unit in sorted(units)}
    titles = {id(r): _title(by_reading.get(id(r)), topics.get(r.unit)) for r in singles if isinstance(r.value, float)}
    often = Counter(t for t in titles.values() if t)
    lead = next((t for r in singles if (t := titles.get(id(r), "")) and often[t] >= 2), "")
    if not lead:
        return named, []
    last = {
        id(r) for r, after in zip(singles, [*singles[1:], None], strict=True) if after is None or after.place != r.place
    }
    valued = [
        (
            r,
            titles.get(id(r), ""),
            _value(r, by_reading.get(id(r))),
            r.after if id(r) in last else clause_after(r.after),
        )
        for r in singles
    ]
    records, used = _cut(valued, lead)
    again, used_again = _cut([v for v in valued if not v[1] or often[v[1]] >= 2], "")
    if len(again) >= 2 and len({frozenset(r) for r in again}) == 1:  # every record says the same things, in any order
        records, used = again, used_again
    columns = list(dict.fromkeys(k for r in records for k in r if sum(k in x for x in records) >= 2))
    records = [r for r in records if sum(c in r for c in columns) > len(columns) / 2 and lead in r]
    measured = [c for c in columns if c != "outcome"]
    records = [r for r in records if all(c in r for c in measured)] if len(measured) == 2 else records
    if len(columns) < 2 or len(records) < 2:
        return named, []
    cells: list[list[Cell]] = [[r.get(c) for c in columns] for r in records]
    rows = rows_of(columns, cells, list(range(1, len(records) + 1)), noun=MENTION)
    kept = [one for one in named if id(one.reading) not in used or _key(one) not in columns]
    return kept, [rows]


def _value(reading: Reading, one: _Named | None) -> Cell:
    if one is not None and isinstance(one.value, float):
        return one.value
    return _plain(reading) if isinstance(reading.value, float) else None


def _cut(valued: list[tuple[Reading, str, Cell, str]], lead: str) -> tuple[list[dict[str, Cell]], set[int]]:
    """Records that each begin with the leading title; without one, where a title comes again."""
    records: list[dict[str, Cell]] = []
    used: set[int] = set()
    for reading, title, value, behind in valued:
        if title and (title == lead if lead else not records or title in records[-1]):
            records.append({"outcome": reading.path[0] if reading.in_prose else " ".join(reading.path)})
        if not records:
            continue
        records[-1]["outcome"] = f"{records[-1]['outcome']} {behind}"
        if title and title not in records[-1]:
            records[-1][title] = value
            used.add(id(reading))
    return records, used


def _numbers(repeatable: list[_Named], name_: str) -> int:
    return len({one.value for one in repeatable if one.name.quantity.name == name_ and isinstance(one.value, float)})


def _key(one: _Named) -> str:
    return one.name.quantity.name


def _title(one: _Named | None, found: Name | None) -> str:
    if one is not None:
        return _key(one)
    return found.quantity.name if found is not None and found.quantity.unit is Unit.SECOND else ""


def _plain(reading: Reading) -> float:
    factor = next((f for _, f in readings_of(reading.unit)), 1.0)
    return float(reading.value) * factor


def pivoted(rows: Rows) -> Rows:
    """A long table (…, Metric, Value) of one metric, with the metric as the value's title."""
    heads = [" ".join(words_of(c)) for c in rows.columns]
    words = word_table("scopes.toml")["pairs"]
    value = next((i for i, h in enumerate(heads) if h in words["value"]), None)
    keys = [i for i, h in enumerate(heads) if h in words["metric"]]
    if value is None or not keys:
        return rows
    metrics = {str(c) for c in rows.cells[keys[0]] if c is not None}
    if len(metrics) != 1:
        return rows
    titles = tuple(metrics.copy().pop() if i == value else c for i, c in enumerate(rows.columns))
    return Rows(titles, rows.cells, rows.places, rows.path, rows.noun)


def _statements(text: str, file: str, known: set[str]) -> Iterator[Fact]:
    catalogue = quantities()
    for statement in statements_in(text):
        if statement.quantity in known:
            continue
        quantity = catalogue[statement.quantity]
        value: float | str | None = statement.value
        if quantity.unit is Unit.FLAG:
            value = flag_in(statement.value)
        elif quantity.unit is not Unit.TEXT:
            value = float(statement.value)  # "no NVLink": a share of nothing
        if value is not None:
            yield Fact(quantity, value, Source(file, statement.text, True))


def excluded_in(text: str, file: str) -> Iterator[Fact]:
    """What a text says is not there or is well: "no stragglers, the fabric is healthy" are facts, though no complaints."""
    catalogue, well = quantities(), word_table("statements.toml")["well"]
    for statement in statements_in(text):
        quantity = catalogue[statement.quantity]
        if quantity.unit is Unit.FLAG and (statement.value == "no" or statement.quantity in well):
            value = flag_in(statement.value)
            if value is not None:
                yield Fact(quantity, value, Source(file, statement.text, True))


def _unread(file: str, singles: list[Reading], named: list[_Named], tables: list[Rows], repeated: list[Rows]) -> Unread:
    numbers = [r for r in singles if isinstance(r.value, float)]
    names = {id(one.reading) for one in named}
    seen, known = len(numbers), sum(id(r) in names for r in numbers)
    lost = Counter(r.path[-1] for r in numbers if id(r) not in names and r.path[-1])
    for rows in tables:
        if rows in repeated:
            continue
        labels = {c.label for c in named_columns(rows)}
        for at, title in enumerate(rows.columns):
            count = rows.count(at)
            seen += count
            if " ".join(words_of(title)) in labels:
                known += count
            elif count:
                lost[title] += count
    in_tables = sum(rows.count(at) for rows in tables for at in range(len(rows.columns)))
    nameless = tuple((r.value, r.unit) for r in numbers if id(r) not in names and isinstance(r.value, float))
    keys = tuple(k for k, _ in lost.most_common(12))
    return Unread(file, seen, known, keys, cells_seen=in_tables, numbers_lost=nameless[:MOST_LOST])
