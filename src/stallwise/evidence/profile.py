"""Where time went, by name: one table for every profiler of sums or of samples, whatever it calls its rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stallwise.evidence.fact import WHOLE, Scope, Source, Table
from stallwise.late import np

KIND = "profile"
MOST_ROWS = 200  # the longest by their own time; the rest is in the sums
UNKNOWN = float("nan")


class Spent(NamedTuple):
    """One row: seconds of the host and of the device in it without what it calls, and with what it calls."""

    name: str
    own_s: float
    device_s: float = 0.0
    held_s: float = 0.0
    calls: float = 0.0
    line: int = 0  # of the file, from one; 0 where it has none
    moves: bool = False  # on the device: a copy or a fill, no kernel


def profile_table(
    rows: Iterable[Spent],
    source: Source,
    *,
    of: str,
    host_s: float = UNKNOWN,
    device_s: float = UNKNOWN,
    doing: Mapping[str, float] | None = None,
    limit: str = "",
    lacks: str = "",
    unit: str = "",
    launches: float = 0.0,
    scope: Scope = WHOLE,
) -> Table:
    """`of` says what the rows are (functions, operators, CUDA calls); `host_s` and `device_s` are the sums over all of them.

    `doing` is seconds by kind of work, what each calls included. `limit` says what such a file does not hold; `lacks`
    is the kind of it: kernels, device, workers. `unit` is "samples" where times are counts of them. `launches` counts what the
    host issued to the device.
    """
    by_name = _by_name(rows)
    kept = sorted(by_name, key=lambda r: (-max(r.own_s, r.device_s), r.name))[:MOST_ROWS]
    columns = {
        name: np.array([row[at] for row in kept], dtype=object if name == "name" else np.float64)
        for at, name in enumerate(Spent._fields)
    }
    meta = {
        "of": of,
        "host_s": host_s,
        "device_s": device_s,
        "doing": dict(doing or {}),
        "limit": limit,
        "lacks": lacks,
        "unit": unit,
        "launches": launches,
    }
    return Table(KIND, columns, source, scope, meta | {"left_out": len(by_name) - len(kept)})


def _by_name(rows: Iterable[Spent]) -> list[Spent]:
    """Rows of one name are its single events: they add up, at the place of the longest."""
    found: dict[str, Spent] = {}
    for row in rows:
        known = found.get(row.name)
        if known is None:
            found[row.name] = row
        else:
            longer = max(known, row, key=lambda r: r.own_s + r.device_s)
            found[row.name] = known._replace(
                own_s=known.own_s + row.own_s, device_s=known.device_s + row.device_s, held_s=known.held_s + row.held_s,
                calls=known.calls + row.calls, line=longer.line,
            )  # fmt: skip
    return list(found.values())
