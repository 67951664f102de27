"""The same collective on many ranks: one row per collective, one column per rank."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from stallwise.doctor.measures._collective_names import HAND_OFFS, TOGETHER
from stallwise.evidence.fact import Table

Floats = NDArray[np.float64]
IN_STEP_S = 50e-6  # ends that keep their distance this well need no sliding
MAX_SHIFT = 24  # collectives by which the windows of two ranks may be apart where steps are not marked


@dataclass(slots=True, eq=False)
class Matched:
    """Times are each rank's own clock, in seconds since `origin_s`; NaN where a rank lacks the collective."""

    ranks: NDArray[np.int64]
    tables: list[Table]  # in the order of ranks
    start: Floats  # collectives x ranks
    end: Floats
    row: NDArray[np.int64]  # place in the rank's own table, -1 where absent
    op: NDArray[np.str_]
    group: NDArray[np.str_]
    step: NDArray[np.int64]
    size_bytes: Floats
    expected: NDArray[np.int64]  # ranks that the group has
    origin_s: float
    left_out: list[Table] = field(default_factory=list)  # further files of ranks already here

    @property
    def together(self) -> NDArray[np.bool_]:
        """Those that no rank can leave before all have come."""
        return np.isin(self.op, list(TOGETHER))

    def column(self, name: str) -> Floats:
        """A column of the ranks' tables, laid out like `start`."""
        out = np.full(self.start.shape, np.nan)
        for at, table in enumerate(self.tables):
            there = self.row[:, at] >= 0
            out[there, at] = table.columns[name][self.row[there, at]]
        return out


def match(tables: list[Table]) -> Matched | None:
    """Matches by group, step and order; None when fewer than two ranks share anything."""
    chosen, left_out = one_per_rank(tables)
    if len(chosen) < 2:
        return None
    codes: dict[str, int] = {}
    keys = [_keys(table, codes) for table in chosen]
    if all((np.asarray(t.columns["step"]) < 0).all() for t in chosen):
        keys = _shifted(chosen, keys)
    every, count = np.unique(np.concatenate(keys), return_counts=True)
    every = every[count >= 2]
    if not len(every):
        return None
    origin_s = min(float(t.meta["origin_s"]) for t in chosen)
    shape = (len(every), len(chosen))
    start, end, row = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, -1, np.int64)
    size = np.zeros(len(every))
    expected = np.zeros(len(every), np.int64)
    op, group, step = np.empty(len(every), "<U16"), np.empty(len(every), "<U64"), np.full(len(every), -1, np.int64)
    for at, (table, key) in enumerate(zip(chosen, keys, strict=True)):
        place = np.minimum(np.searchsorted(every, key), len(every) - 1)
        mine = np.flatnonzero(every[place] == key)
        place = place[mine]
        shift_s = float(table.meta["origin_s"]) - origin_s
        start[place, at] = table.columns["start_s"][mine] + shift_s
        end[place, at] = table.columns["end_s"][mine] + shift_s
        row[place, at] = mine
        size[place] = np.maximum(size[place], table.columns["size_bytes"][mine])
        expected[place] = np.maximum(expected[place], _expected(table)[mine])
        op[place], group[place], step[place] = (
            table.columns["op"][mine], table.columns["group"][mine], table.columns["step"][mine],
        )  # fmt: skip
    order = np.argsort(np.nanmedian(start, axis=1), kind="stable")
    ranks = np.array([_rank(t) for t in chosen], np.int64)
    return Matched(
        ranks, chosen, start[order], end[order], row[order], op[order], group[order], step[order], size[order],
        expected[order], origin_s, left_out,
    )  # fmt: skip


def _rank(table: Table) -> int:
    assert table.scope.rank is not None
    return table.scope.rank


def one_per_rank(tables: list[Table]) -> tuple[list[Table], list[Table]]:
    """Of several files of one rank the one whose steps most others share."""
    numbered = sorted((t for t in tables if t.scope.rank is not None), key=lambda t: (_rank(t), str(t.source)))
    steps: dict[int, int] = {}
    for table in numbered:
        for number in set(np.asarray(table.columns["step"]).tolist()):
            steps[number] = steps.get(number, 0) + 1
    chosen: dict[int, Table] = {}
    left_out: list[Table] = []
    for table in numbered:
        known = chosen.get(_rank(table))
        if known is None:
            chosen[_rank(table)] = table
            continue
        better = _shared(table, steps) > _shared(known, steps)
        left_out.append(known if better else table)
        if better:
            chosen[_rank(table)] = table
    return [chosen[r] for r in sorted(chosen)], left_out


def _shared(table: Table, steps: dict[int, int]) -> int:
    return sum(steps[n] for n in set(np.asarray(table.columns["step"]).tolist()))


def _keys(table: Table, codes: dict[str, int]) -> NDArray[np.int64]:
    """Group, step and place in one number. Hand-offs between two ranks are not collectives of a group."""
    group, op = table.columns["group"], table.columns["op"]
    # A wrong guess of two ranks' group names must not pair an all-reduce with an all-gather.
    words = [f"{g}\0{o}" if o not in HAND_OFFS else "" for g, o in zip(group.tolist(), op.tolist(), strict=True)]
    code = np.array([codes.setdefault(w, len(codes)) if w else -1 for w in words], np.int64)
    step = np.asarray(table.columns["step"], np.int64) + 1
    place = _place_within(code, step)
    key = (code << 44) | ((step & 0xFFFFFF) << 20) | (place & 0xFFFFF)
    # A hand-off gets a key that nobody shares, and so does what lies outside the marked steps: its place is unsure.
    matchable = (code >= 0) & ((step > 0) | (step.max(initial=0) == 0))
    return np.where(matchable, key, -1 - np.arange(len(key)) - (np.int64(_rank(table)) << 32))


def _place_within(code: NDArray[np.int64], step: NDArray[np.int64]) -> NDArray[np.int64]:
    mixed = (code + 1) * (int(step.max(initial=0)) + 2) + step
    order = np.argsort(mixed, kind="stable")
    ordered = mixed[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1])) if len(ordered) else np.zeros(0, bool)
    begin = np.maximum.accumulate(np.where(first, np.arange(len(ordered)), 0))
    place = np.empty(len(ordered), np.int64)
    place[order] = np.arange(len(ordered)) - begin
    return place


def _expected(table: Table) -> NDArray[np.int64]:
    members = table.meta["members"]
    world = int(table.meta["world_size"])
    size = {name: len(ranks) for name, ranks in members.items()}
    known = np.asarray(table.columns["group_size"], np.int64)
    guess = np.array([size.get(g, world) for g in table.columns["group"].tolist()], np.int64)
    return np.where(known > 0, known, guess)


def _shifted(tables: list[Table], keys: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """Without step marks windows may begin anywhere: slide each rank until its ends keep a constant distance."""
    reference = int(np.argmax([len(k) for k in keys]))
    against = dict(zip(keys[reference].tolist(), tables[reference].columns["end_s"].tolist(), strict=True))
    out = []
    for at, (table, key) in enumerate(zip(tables, keys, strict=True)):
        if at == reference or len(key) < 3:
            out.append(key)
            continue
        ends = np.asarray(table.columns["end_s"])
        if _spread(key, ends, against) <= IN_STEP_S:
            out.append(key)
            continue
        best = min(range(-MAX_SHIFT, MAX_SHIFT + 1), key=lambda s: (_spread(key + s, ends, against), abs(s)))
        out.append(key + best)
    return out


def _spread(key: NDArray[np.int64], ends: Floats, against: dict[int, float]) -> float:
    pairs = [(e, against[k]) for k, e in zip(key.tolist(), ends.tolist(), strict=True) if k in against]
    if len(pairs) < max(3, len(key) // 2):
        return float("inf")
    differences = np.array([a - b for a, b in pairs])
    return float(np.median(np.abs(differences - np.median(differences))))
