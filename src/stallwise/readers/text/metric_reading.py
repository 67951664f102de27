"""The facts, series and tables that one catalogue of metrics finds in the lines of one text."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from stallwise.evidence.catalog import quantities
from stallwise.evidence.evidence import Item
from stallwise.evidence.fact import WHOLE, Fact, Scope, Series, Source
from stallwise.evidence.number_columns import FEW_LINES, TOKEN
from stallwise.evidence.skeletons import LONGEST, Skeletons
from stallwise.late import np
from stallwise.readers.text.expressions import Value, first_line
from stallwise.readers.text.metric_catalogue import LogMetric, MetricCatalogue
from stallwise.readers.text.metric_flags import Flags
from stallwise.readers.text.metric_tables import TableRows
from stallwise.readers.text.slots import is_plain, plain_numbers, typed

if TYPE_CHECKING:
    from stallwise.readers.text.log_metrics import Place

MOST_KEPT = 2000  # facts of one gauge in one file where every line counts


class Kept(NamedTuple):
    """One value with its line; `group` counts the headings that begin a group above it."""

    value: Value
    line: int
    note: str
    group: int


class Key(NamedTuple):
    """Values that are reduced together."""

    quantity: str
    scope: Scope
    keep: str  # a way of keeping, of those below
    by: str


class MetricReading:
    """One book over one text."""

    def __init__(self, catalogue: MetricCatalogue, text: Skeletons, place: Place) -> None:
        self.catalogue, self.text, self.place = catalogue, text, place
        self.context: dict[str, Value] = {**catalogue.given, **({"node": place.node} if place.node else {})}
        self.kept: dict[Key, list[Kept]] = {}
        self.stored: dict[tuple[Value | None, ...], dict[str, Value]] = {}  # what holds for some of the lines below
        self.tables = {kind: TableRows(kind, form) for kind, form in catalogue.tables.items()}
        self.done: set[tuple[str, Scope]] = set()  # quantities of which the first counts
        self.overs: dict[str, str] = {}
        self.flags = Flags(catalogue, text, {}, ())
        self.group = 0
        self.matched = False

    def items(self, hits: dict[int, set[int]]) -> Iterator[Item]:
        """Facts and series of the lines whose skeletons hold an anchor."""
        order = {
            s: [g for g in self._sorted(metrics) if g.may(first_line(self.text, s))] for s, metrics in hits.items()
        }
        set_names = {*self.context, *(name for metrics in order.values() for g in metrics for name in g.sets)}
        order = {s: [g for g in metrics if {g.within, g.beside} - {""} <= set_names] for s, metrics in order.items()}
        if not any(metric.retracts for metrics in order.values() for metric in metrics):
            self.flags = Flags(self.catalogue, self.text, order, self.context)
            order = {s: [g for g in metrics if not self._at_once(g, s)] for s, metrics in order.items()}
        for line in self._lines({s: metrics for s, metrics in order.items() if metrics}):
            words = self.text.lines[line][:LONGEST]
            for metric in order[self.text.of[line]]:
                self._line(metric, words, line)
        for key, values in sorted(self.kept.items(), key=lambda kept: kept[1][0].line):
            yield from reduced(key, values, self.place.file)
            if over := self.overs.get(key.quantity):
                yield from self._series(key, values, over)
        for rows in self.tables.values():
            yield from rows.table(self.place.file)
        if self.matched:
            for name, word in self.catalogue.says.items():
                yield Fact(quantities()[name], word, Source(self.place.file))

    def _lines(self, order: dict[int, list[LogMetric]]) -> list[int]:
        """All lines of these skeletons; of those that are only rows of a table's end, the last ones."""
        ends = {s: max(map(self._last, metrics)) for s, metrics in order.items() if all(map(self._last, metrics))}
        last = self.text.lines_of(ends)[-max(ends.values(), default=0) :]
        return sorted([*self.text.lines_of(order.keys() - ends.keys()), *last])

    def _last(self, metric: LogMetric) -> int:
        return self.tables[metric.row].form.last if metric.row and not metric.sets and not metric.facts else 0

    def _sorted(self, numbers: set[int]) -> list[LogMetric]:
        return [self.catalogue.metrics[n] for n in sorted(numbers)]

    def _at_once(self, metric: LogMetric, skeleton: int) -> bool:
        """Takes all lines of a skeleton in which nothing but plain numbers differs and no other line has a say; True where it did."""
        members = self.text.members(skeleton)
        words = self.text.lines[members[0]][:LONGEST]
        gives_items = metric.facts or metric.row or metric.begins or metric.under or self.tables
        if not gives_items and self.flags.know(*metric.sets, *metric.clears):
            self.matched = self.matched or bool(metric.holding(self.text, skeleton))
            return True
        if len(members) < FEW_LINES or not metric.alone or not self.flags.know(metric.within, metric.until):
            return False
        holding = np.flatnonzero(self.flags.holds(metric, members))
        if metric.row and self.tables[metric.row].form.alike and not metric.facts:
            self._rows_of(metric, [members[at] for at in holding.tolist()])
            return True
        wanted_by_a_table = any(rows.meta.keys() & metric.ready.groupindex.keys() for rows in self.tables.values())
        if metric.row or wanted_by_a_table or metric.wants_digits:
            return False
        match = next(metric.matches(words), None)
        if match is None:
            return True
        places = {(m.start(), m[0].rstrip(",")): slot for slot, m in enumerate(TOKEN.finditer(words))}
        fixed: dict[str, Value] = {"file": self.place.file}
        varying: dict[str, tuple[int, str]] = {}
        for raw, written in match.groupdict().items():
            name, kind = raw.rstrip("_"), metric.slots.get(raw.rstrip("_"), "text")
            if written is None:
                continue
            if (match.start(raw), written) in places and is_plain(kind):
                varying[name] = places[match.start(raw), written], kind
            elif any(c.isdigit() for c in written) or (value := typed(kind, written.strip())) is None:
                return False
            else:
                fixed[name] = metric.words.get(str(value).lower(), value)
        slots = set(metric.facts.values())
        needed = {*metric.scope.values(), metric.by, metric.note} - {""}
        if not needed <= fixed.keys() or any(t not in fixed and t not in varying and t[0] != "=" for t in slots):
            return False
        numbers = self.text.columns(skeleton, [slot for slot, _ in varying.values()])
        if numbers is None:
            return False
        pairs = zip(varying.items(), numbers[holding].T, strict=True)
        columns = {n: plain_numbers(k, column).tolist() for (n, (_, k)), column in pairs}
        if len(holding):
            self._take_all(metric, fixed, columns, [members[at] for at in holding.tolist()])
        return True

    def _rows_of(self, metric: LogMetric, members: list[int]) -> None:
        """Rows of lines that no other line has a say in: what many of them say alike is looked at once."""
        alike: dict[tuple[str | None, ...], list[int]] = {}
        for at in members:
            if (match := metric.fits(self.text.lines[at][:LONGEST])) is not None:
                alike.setdefault(match.groups(), []).append(at)
        for lines in alike.values():
            self.matched = True
            for match in metric.matches(self.text.lines[lines[0]][:LONGEST]):
                slots = {name: value for name, _, value in metric.values_in(match)}
                self.tables[metric.row].add(slots, lines[0], len(lines))

    def _take_all(
        self, metric: LogMetric, fixed: dict[str, Value], columns: dict[str, list[float]], members: list[int]
    ) -> None:
        self.matched = True
        scope = Scope(**{k: _scoped(k, fixed[v]) for k, v in metric.scope.items()})
        note = str(fixed.get(metric.note, ""))
        for name, slot in metric.facts.items():
            values: list[Value] = list(columns.get(slot, ()))
            if not values:
                values = [_constant(slot[1:]) if slot[0] == "=" else fixed[slot]] * len(members)
            key = Key(name, scope, metric.keep, str(fixed.get(metric.by, "")))
            kept = self.kept.get(key, [])
            new = [Kept(value, line, note, 0) for value, line in zip(values, members, strict=True)]
            self.kept[key] = sorted([*kept, *new], key=lambda k: k.line) if kept else new
            if metric.over:
                self.overs[name] = metric.over

    def _line(self, metric: LogMetric, words: str, line: int) -> None:
        if not self._holds(metric, line):
            return
        if metric.keep == "first" and not (metric.sets or metric.scope or metric.row) and self._all_done(metric):
            return
        own: dict[str, Value] = {}  # what the first match of a line says holds for the others
        for match in metric.matches(words):
            own |= {
                n: metric.words.get(str(v).lower(), v) if metric.words else v for n, _, v in metric.values_in(match)
            }
            slots: dict[str, Value] = {**self.context, "file": self.place.file, "line": words.strip()[:200], **own}
            if (who := metric.scope.get("node", "file")) not in slots and (node := self.place.node_of(words)):
                slots[who] = node
            key = tuple(slots.get(name) for name in metric.under)
            if metric.under and not metric.sets and key not in self.stored:
                continue
            self.matched = True
            for name in metric.clears:
                self.context.pop(name, None)
            new_context = {
                name: self._clock(words) if name == "@clock" else slots.get(name, 1.0) for name in metric.sets
            }
            if not metric.under:
                self.context |= new_context
            elif metric.sets:
                self.stored.setdefault(key, {}).update({name: own[name] for name in metric.sets if name in own})
            else:
                slots |= self.stored[key]
            self.group += metric.begins
            if metric.retracts:
                self.kept = {k: v for k, v in self.kept.items() if k.quantity not in metric.retracts}
            self._take(metric, slots, line)
            for rows in self.tables.values():
                rows.add_meta(own)
            if metric.row:
                self.tables[metric.row].add({**slots, "@group": float(self.group)}, line)

    def _holds(self, metric: LogMetric, line: int) -> bool:
        if (metric.within or metric.until) and self.flags.know(metric.within, metric.until):
            return bool(self.flags.holds(metric, [line])[0])
        return (not metric.within or metric.within in self.context) and metric.until not in self.context

    def _all_done(self, metric: LogMetric) -> bool:
        return all((name, WHOLE) in self.done for name in metric.facts)

    def _clock(self, words: str) -> float:
        return self.place.clock_of(words) or 0.0

    def _take(self, metric: LogMetric, slots: dict[str, Value], line: int) -> None:
        scoped = {k: _scoped(k, slots[v]) for k, v in metric.scope.items() if v in slots}
        scope = Scope(**scoped) if scoped else WHOLE
        for name, slot in metric.facts.items():
            value = _constant(slot[1:]) if slot.startswith("=") else slots.get(slot)
            if slot == "@elapsed":
                value = self._elapsed(line)
            elif "{" in slot:
                value = _worded(slot, slots)
            elif " - " in slot:
                value = _difference(*(slots.get(name) for name in slot.split(" - ")))
            if value is None or (metric.keep == "first" and (name, scope) in self.done):
                continue
            if metric.times and isinstance(value, float):
                value *= float(slots.get(metric.times, 1.0))
            key = Key(name, scope, metric.keep, str(slots.get(metric.by, "")))
            self.kept.setdefault(key, []).append(Kept(value, line, _worded(metric.note, slots), self.group))
            if metric.keep == "first":
                self.done.add((name, scope))
            if metric.over:
                self.overs[name] = metric.over

    def _elapsed(self, line: int) -> float | None:
        lines, clock_of = self.text.lines, self.place.clock_of
        first = next((c for at in range(line) if (c := clock_of(lines[at])) is not None), None)
        now = clock_of(lines[line])
        return now - first if first is not None and now is not None and now > first else None

    def _series(self, key: Key, values: list[Kept], over: str) -> Iterator[Item]:
        """Over the clock of their lines, or over the steps where every one of them has a step at or above its line."""
        lines = [v.line for v in values]
        if over == "clock":
            clocks = [self.place.clock_of(self.text.lines[at]) for at in lines]
            places = np.array([at if c is None else c for at, c in zip(lines, clocks, strict=True)], dtype=float)
        else:
            places = self.place.steps_at(self.text, lines)
        if len(values) > 1 and not np.isnan(places).any():
            source = Source(self.place.file, f"lines {values[0].line + 1}-{values[-1].line + 1}")
            numbers = np.array([v.value if isinstance(v.value, float) else 1.0 for v in values])
            moments = (places - places[0], "time_s") if over == "clock" else (places, "step")
            yield Series(quantities()[key.quantity], moments[0], numbers, source, key.scope, moments[1])


def _scoped(name: str, value: Value) -> Any:
    return int(value) if name in ("rank", "gpu") and isinstance(value, float) else value


def _worded(slot: str, slots: dict[str, Value]) -> str:
    """Words with slots in them, words alone, or a slot."""
    if "{" in slot:
        return slot.format_map(defaultdict(str, slots))
    return slot[1:] if slot[:1] == "=" else str(slots.get(slot, ""))


def _difference(more: Value | None, less: Value | None) -> Value | None:
    """Never below nothing."""
    return max(0.0, more - less) if isinstance(more, float) and isinstance(less, float) else None


def _constant(word: str) -> Value:
    try:
        return float(word)
    except ValueError:
        return word


def reduced(key: Key, values: list[Kept], file: str) -> Iterator[Fact]:
    """What is kept of all the lines that feed one quantity."""
    quantity, first, last = quantities()[key.quantity], values[0], values[-1]
    if key.keep in _CHOSEN:
        for one in _CHOSEN[key.keep](values)[:MOST_KEPT]:
            yield Fact(quantity, one.value, Source(file, f"line {one.line + 1}"), key.scope, note=one.note)
    elif (whole := _WHOLE[key.keep](values)) is not None:
        where = f"line {first.line + 1}" if len(values) == 1 else f"lines {first.line + 1}-{last.line + 1}"
        yield Fact(quantity, whole, Source(file, where), key.scope, samples=len(values), note=first.note)


def _of_numbers(reduce: Callable[[list[float]], float]) -> Callable[[list[Kept]], float | None]:
    def whole(values: list[Kept]) -> float | None:
        numbers = [v.value for v in values if isinstance(v.value, float)]
        return float(reduce(numbers)) if numbers else None

    return whole


def _distinct(values: list[Kept]) -> list[Kept]:
    once: dict[Value, Kept] = {}
    for one in values:
        once.setdefault(one.value, one)
    return list(once.values())


def _largest_group(values: list[Kept]) -> float:
    sums: Counter[int] = Counter()
    for v in values:
        sums[v.group] += v.value  # type: ignore[assignment,operator]
    return float(max(sums.values()))


def _release(one: Kept) -> list[int]:
    return [int(n) for n in re.findall(r"\d{1,9}", str(one.value))[:4]]


_CHOSEN: dict[str, Callable[[list[Kept]], list[Kept]]] = {
    "each": lambda values: values,
    "distinct": _distinct,
    "first": lambda values: values[:1],
    "last": lambda values: values[-1:],
    "newest": lambda values: [max(values, key=_release)],
}


def _middle(numbers: Iterable[float]) -> float:
    from statistics import median

    return median(numbers)


_WHOLE: dict[str, Callable[[list[Kept]], Value | None]] = {
    "common": lambda values: Counter(str(v.value) for v in values).most_common(1)[0][0],
    "count": lambda values: float(len(values)),
    "again": lambda values: float(len(values) - len({v.value for v in values})),  # beyond the first of each
    "series": lambda values: None,
    "group": _largest_group,
    "sum": _of_numbers(sum),
    "most": _of_numbers(max),
    "least": _of_numbers(min),
    "middle": _of_numbers(_middle),
}
